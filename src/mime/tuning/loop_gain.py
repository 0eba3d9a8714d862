"""L(z) of a loop, from the matrices of one step with the loop closed and open; and its slopes.

    1 + L(z) = det(z - A(1)) / det(z - A(0)) = R,    z = exp(i angle)

    dL = R (tr (z - A(0))⁻¹ dA(0) - tr (z - A(1))⁻¹ dA(1))
    dL / dangle = i z R (tr (z - A(1))⁻¹ - tr (z - A(0))⁻¹)

This is exact where the gains of a loop act on one signal, as a PI or the PD of a joint does: then
A(g) = A(0) + g b cᵀ, and the determinant is linear in g.
"""

import dataclasses
from functools import cached_property

import numpy as np

_FREQUENCIES = 1500
_DECADES = 7.0
_NOTHING = 1e-6
"""|L| below which there is no loop: rounding of double eigenvalues leaves 1e-8."""
UNSTABLE = 1e-9
"""By how much an eigenvalue may be outside of the circle: an integrator is on it, but for
rounding."""


@dataclasses.dataclass(frozen=True)
class LoopGain:
    """L(z) of one loop about one working point."""

    closed: np.ndarray
    """A(1), (n, n)"""
    opened: np.ndarray
    """A(0), (n, n)"""

    @cached_property
    def poles(self) -> np.ndarray:
        """Eigenvalues of the closed loop (n,)."""
        return _sorted(np.linalg.eigvals(self.closed))

    @cached_property
    def open_poles(self) -> np.ndarray:
        """Eigenvalues with the loop open (n,)."""
        return _sorted(np.linalg.eigvals(self.opened))

    @property
    def is_stable(self) -> bool:
        """No eigenvalue is outside of the circle."""
        return radius(self.closed) <= 1.0 + UNSTABLE

    @property
    def has_gain(self) -> bool:
        """The loop does anything here: at a limit of its drive it does not, and L is 0."""
        return bool(np.abs(self.curve[1]).max(initial=0.0) > _NOTHING)

    def at(self, angles: np.ndarray) -> np.ndarray:
        """L on the unit circle, (k,) radians a period to (k,)."""
        z = np.exp(1j * np.atleast_1d(angles))[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # a pole may be on the circle
            return np.prod((z - self.poles) / (z - self.open_poles), axis=1) - 1.0

    def one(self, angle: float) -> complex:
        """L at one angle."""
        return complex(self.at(np.array([angle]))[0])

    def slope(self, angle: float) -> complex:
        """dL / dangle"""
        z = np.exp(1j * angle)
        traces = np.sum(1.0 / (z - self.poles)) - np.sum(1.0 / (z - self.open_poles))
        return complex(1j * z * (1.0 + self.one(angle)) * traces)

    def by_matrices(self, angle: float, weight: complex) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of Re(weight L) by A(1) and A(0), at one angle."""
        z, eye = np.exp(1j * angle), np.eye(len(self.closed))
        factor = weight * (1.0 + self.one(angle))
        inverses = (np.linalg.inv(z * eye - A).T for A in (self.closed, self.opened))
        return tuple(s * np.real(factor * M) for s, M in zip((-1, 1), inverses, strict=True))  # type: ignore[return-value]

    @cached_property
    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Angles, seven decades up to Nyquist's frequency and about every resonance, and L."""
        even = np.pi * np.logspace(-_DECADES, 0.0, _FREQUENCIES)
        both = np.concatenate([self.poles, self.open_poles])
        wide = np.abs(1.0 - np.abs(both))
        about = (np.angle(both) + wide * np.array([[-1.0], [0.0], [1.0]])).ravel()
        angles = np.union1d(even, about[(about > even[0]) & (about < np.pi)])
        L = self.at(angles)
        there = np.isfinite(L)
        return angles[there], L[there]


def radius(A: np.ndarray) -> float:
    """The largest |eigenvalue|; a double one on the circle is off it by the root of rounding."""
    return float(np.abs(np.linalg.eigvals(A)).max(initial=0.0))


def growth_by_matrix(A: np.ndarray) -> tuple[float, np.ndarray]:
    """log |largest eigenvalue| of A, and its slope by A: d lambda = y dA x / (y x)."""
    values, vectors = np.linalg.eig(A)
    k = int(np.argmax(np.abs(values)))
    try:
        left = np.linalg.inv(vectors)[k]
    except np.linalg.LinAlgError:  # a defective matrix has no such slope
        return float(np.log(np.abs(values[k]))), np.zeros_like(A)
    slope = np.real(np.outer(left, vectors[:, k]) / values[k])
    return float(np.log(np.abs(values[k]))), slope


def _sorted(values: np.ndarray) -> np.ndarray:
    """By size, so that factors of the ratio stay near 1."""
    return values[np.lexsort((values.imag, values.real))]
