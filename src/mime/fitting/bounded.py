"""The least of a quadratic among values within bounds and bodies that exist.

    minimise  |W (u - a)|² / 2 + |(u - s) / width|² / 2 + sum_i (lambda + p_i) D(P_i(u), P_i(s))
    D(P, Q) = tr(P Q⁻¹) - log det(P Q⁻¹) - dim P            low <= u <= high

P is linear in u and positive definite for a body that exists: its pseudo-inertia (4, 4), or
S = tr(I) 1 / 2 - I (3, 3) of its inertia alone. D is convex, 0 at the start s, and infinite where a
body ceases to exist (Lee, Wensing and Park 2020). So the problem is convex, and it has one answer.
lambda goes down to `_LEAST`, where D decides only what W leaves open, which stays near the start;
p_i is what is known of a body beforehand. Along K⁻¹ dP K⁻ᵀ, P = K Kᵀ, D has the slope KᵀK - 1 and
the curvature 1: each Newton step is a least squares problem. Bounds are kept by projection: values
at a bound that the slope presses against are held (Bertsekas 1982), and end on it exactly.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mime.core.address import find
from mime.fitting.unknown import Coordinate
from mime.running.simulation import Simulation

_LOOSE = 100.0
"""The width of what is known of a value beforehand, in units of its start, where nothing is."""
_LEAST, _LESS = 1e-6, 0.1
"""The last lambda, and the factor from one to the next."""
_STEPS, _HALVINGS = 60, 40
_ARMIJO, _INSIDE = 1e-4, 0.95
_SETTLED = 1e-2
"""A lambda is done when a step would gain less than this part of it."""


@dataclasses.dataclass(frozen=True)
class Cone:
    """A matrix that is linear in some of the unknowns and must be positive definite.

    P = constant + sum_j u[members[j]] slopes[j]
    """

    members: np.ndarray
    constant: np.ndarray
    slopes: np.ndarray
    """(members, d, d)"""
    precision: float = 0.0
    """p, one over the variance of what is known beforehand."""

    def at(self, u: np.ndarray) -> np.ndarray:
        """P (d, d)."""
        P: np.ndarray = self.constant + np.einsum("j,jab->ab", u[self.members], self.slopes)
        return P

    def in_its_own(self, start: np.ndarray) -> "Cone | None":
        """The same in coordinates where it is 1 at `start`; None where it is singular there."""
        try:
            L = np.linalg.cholesky(self.at(start))
        except np.linalg.LinAlgError:
            return None
        matrices = np.concatenate([self.constant[None], self.slopes])
        turned = np.linalg.solve(L, np.linalg.solve(L, matrices).transpose(0, 2, 1))
        return dataclasses.replace(self, constant=turned[0], slopes=turned[1:])

    def information(self, count: int) -> np.ndarray:
        """Rows (d², count) whose squares are what is known beforehand: p times D's curvature."""
        rows = np.zeros((self.constant.size, count))
        rows[:, self.members] = (
            np.sqrt(self.precision) * self.slopes.reshape(len(self.slopes), -1).T
        )
        return rows


@dataclasses.dataclass(frozen=True)
class Region:
    """Where the unknowns can be, and what is known of them before any log."""

    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    width: np.ndarray
    cones: tuple[Cone, ...]

    def least(self, W: np.ndarray, aim: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        """The u of the least sum; `at` is one that may be near, and inside."""
        if at is not None and not np.isfinite(self.known(at)):
            at = None  # sums round out of a cone
        u = self.start if at is None else at
        lam = _LEAST
        if self.cones:
            off = W @ (u - aim)
            lam = max(float(off @ off), 1.0) if at is None else 1e2 * _LEAST
        while True:
            u = self._descended(W, aim, u, lam)
            if lam <= _LEAST:
                return u
            lam = max(lam * _LESS, _LEAST)

    @property
    def without_cones(self) -> "Region":
        """The same where bodies need not exist."""
        width = np.where(np.isfinite(self.width), self.width, _LOOSE**2)
        return dataclasses.replace(self, width=width, cones=())

    def at_bound(self, u: np.ndarray) -> np.ndarray:
        """Which values lie on a bound."""
        return (u <= self.low) | (u >= self.high)

    def known(self, u: np.ndarray) -> float:
        """What is known before any log, in |r|²."""
        return 2.0 * self._value(np.zeros((0, len(u))), u, u, _LEAST)

    def _descended(self, W: np.ndarray, aim: np.ndarray, u: np.ndarray, lam: float) -> np.ndarray:
        for _ in range(_STEPS):
            A, r = self._factors(W, aim, u, lam)
            slope = A.T @ r
            step = self._step(A, r, u, slope, _SETTLED * lam)
            if -float(slope @ step) < _SETTLED * lam:
                break
            value = self._value(W, aim, u, lam)
            # Up to a bound there is a gain; beyond it what is clipped may take others with it.
            for part in (*0.5 ** np.arange(_HALVINGS), self._inside(u, step)):
                ahead = np.clip(u + part * step, self.low, self.high)
                there, gain = self._value(W, aim, ahead, lam), -float(slope @ (ahead - u))
                if gain > 0 and there <= value - _ARMIJO * gain:
                    break
            else:
                break  # rounding: no step gains anything
            u = ahead
        return u

    def _step(
        self, A: np.ndarray, r: np.ndarray, u: np.ndarray, slope: np.ndarray, least: float
    ) -> np.ndarray:
        """A step that leaves no bound outwards: what would is held, and the rest steps anew.

        Where the rest has arrived, the value that gains most leaves its bound alone.
        """
        at_low, at_high = u <= self.low, u >= self.high
        inwards = (at_low & (slope < 0)) | (at_high & (slope > 0))
        free = ~(at_low | at_high) | inwards
        while True:
            step = _least_squares(A, r, free)
            outwards = free & ((at_low & (step < 0)) | (at_high & (step > 0)))
            if not outwards.any():
                break
            free &= ~outwards
        if -float(slope @ step) < least and inwards.any():
            gains = np.where(inwards, np.abs(slope) / np.linalg.norm(A, axis=0), 0.0)
            free = ~(at_low | at_high)
            free[np.argmax(gains)] = True
            step = _least_squares(A, r, free)
        return step

    def _inside(self, u: np.ndarray, step: np.ndarray) -> float:
        """The part of a step that ends on the first bound."""
        room = np.where(step < 0, self.low - u, self.high - u)
        moving = step != 0
        return float(np.min(room[moving] / step[moving], initial=1.0))

    def _value(self, W: np.ndarray, aim: np.ndarray, u: np.ndarray, lam: float) -> float:
        off, away = W @ (u - aim), (u - self.start) / self.width
        value = 0.5 * float(off @ off + away @ away)
        for cone in self.cones:
            P = cone.at(u)
            try:
                K = np.linalg.cholesky(P)
            except np.linalg.LinAlgError:
                return np.inf
            D = float(np.trace(P)) - 2.0 * float(np.sum(np.log(np.diag(K)))) - len(P)
            value += (lam + cone.precision) * D
        return value

    def _factors(
        self, W: np.ndarray, aim: np.ndarray, u: np.ndarray, lam: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """A and r with slope Aᵀ r and curvature Aᵀ A."""
        rows, left = [W, np.diag(1.0 / self.width)], [W @ (u - aim), (u - self.start) / self.width]
        for cone in self.cones:
            K = np.linalg.cholesky(cone.at(u))
            size = np.sqrt(lam + cone.precision)
            own = np.linalg.solve(K, np.linalg.solve(K, cone.slopes).transpose(0, 2, 1))
            part = np.zeros((K.size, len(u)))
            part[:, cone.members] = size * own.reshape(len(own), -1).T
            rows.append(part)
            left.append(size * (K.T @ K - np.eye(len(K))).ravel())
        return np.concatenate(rows), np.concatenate(left)


def _least_squares(A: np.ndarray, r: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The step of the free unknowns that minimises |A step + r|², its columns scaled to 1."""
    from scipy.linalg import solve_triangular

    step = np.zeros(A.shape[1])
    own = A[:, free]
    size = np.linalg.norm(own, axis=0)
    triangle: Any = np.linalg.qr(np.column_stack([own / size, r]), mode="r")
    count = own.shape[1]
    step[free] = -solve_triangular(triangle[:count, :count], triangle[:count, count]) / size
    return step


def region_of(
    simulation: Simulation,
    shown: Sequence[Coordinate],
    start: np.ndarray,
    stds: np.ndarray,
    of_bodies: dict[str, float],
) -> Region:
    """Bounds of values, and a cone for every body.

    shown       coordinates that torques are linear in, value / scale
    stds        what is known of them beforehand, infinite where nothing is
    of_bodies   the same of whole bodies, a part of their size, by address
    """
    low = np.array([c.low / c.scale for c in shown])
    high = np.array([c.high / c.scale for c in shown])
    groups: dict[tuple[str, str], list[int]] = {}
    for j, c in enumerate(shown):
        if c.kind == "body":
            groups.setdefault((c.key[0], c.key[1]), []).append(j)
        elif c.kind == "parameter" and (entry := _moment(simulation, c.key[0])) is not None:
            groups.setdefault((entry[0], "entries"), []).append(j)
            low[j] = max(low[j], 0.0)
    cones = []
    for (address, kind), members in groups.items():
        values = np.array([shown[j].scale for j in members])
        constant = np.zeros((4, 4) if kind == "moments" else (3, 3))
        if kind == "moments":
            slopes = [_pseudo_inertia(row) for row in np.diag(values)]
        elif kind == "central":
            slopes = [_second_moments(row) for row in np.diag(values)]
        else:
            constant, slopes = _principal(simulation, [shown[j] for j in members])
        cone = Cone(
            np.array(members),
            constant,
            np.array(slopes),
            float(of_bodies.get(address, np.inf)) ** -2.0,
        )
        if (there := cone.in_its_own(start)) is not None:
            cones.append(there)
    loose = [2.0 * _LOOSE if c.kind == "parameter" and c.low >= 0 else _LOOSE for c in shown]
    is_loose = [
        c.kind != "body" and not np.isfinite(std) for c, std in zip(shown, stds, strict=True)
    ]
    return Region(start, low, high, np.where(is_loose, loose, np.inf), tuple(cones))


def _moment(simulation: Simulation, address: str) -> tuple[str, int, int] | None:
    """Node, link and axis of an address like `arm.link[NAME].inertia_kg_m2[1,1]`, of a moment."""
    node, _, rest = address.partition(".")
    leaf = find(simulation.nodes[node], rest)
    if leaf.path != ("tree", "inertias") or leaf.index is None or len(leaf.index) != 3:
        return None
    link, row, column = leaf.index
    return (f"{node}.{link}", link, row) if row == column else None


def _principal(
    simulation: Simulation, of: Sequence[Coordinate]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """I (3, 3) of a link without the moments that are unknown, and its slopes by these."""
    node: Any = simulation.nodes[of[0].key[0].partition(".")[0]]
    entries = [entry for c in of if (entry := _moment(simulation, c.key[0])) is not None]
    constant = np.array(node.tree.inertias[entries[0][1]], float)
    slopes = []
    for c, (_, _, axis) in zip(of, entries, strict=True):
        constant[axis, axis] = 0.0
        slopes.append(np.diag(c.scale * np.eye(3)[axis]))
    return constant, slopes


def _second_moments(six: np.ndarray) -> np.ndarray:
    """S = tr(I) 1 / 2 - I of the six of I."""
    xx, xy, xz, yy, yz, zz = six
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    S: np.ndarray = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return S


def _pseudo_inertia(pi: np.ndarray) -> np.ndarray:
    """[[S_o, m c], [m cᵀ, m]] of the ten moments."""
    h = pi[1:4, None]
    return np.block([[_second_moments(pi[4:]), h], [h.T, pi[:1, None]]])
