"""What a log can tell, before any value is told: the singular values of the whitened Jacobian.

    J D = U S Vᵀ      half a 95 % interval: q / s_i of direction v_i, q |V_j / s| of unknown j

D holds how wide an interval may be at most (`Coordinate.widest`): a factor of two either way; of
what may be zero, its value or half of its start; of what is no logarithm its scale. So an unknown
is known well when its half-width in these units is at most 1.
Along a direction that the log leaves open s_i is 0, and every unknown in it is infinitely wide.
Intervals may be wider than these (`widening.py`, `profile.py`). Whether an unknown has a value is
asked of the interval that is told (`Coordinate.is_narrow`).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mime.fitting.unknown import Coordinate

TRADE_OFF = 0.95
_ZERO = 1e-8
"""Singular values are zero below this part of the largest: a simulation's own rounding."""
_NEARLY = 0.25
"""Of q: singular values of directions in which what is told with a wide interval has a part."""
_NO_PART = 1e-5
"""An unknown has no part in a direction of zero below this component."""
Kind = Literal["known", "combination", "unknown", "bound"]


@dataclasses.dataclass(frozen=True)
class Widening:
    """The jackknife's covariance of y, z = D V y / s, over all directions that are not zero.

    Under white noise y has the covariance 1.
    """

    covariance: np.ndarray
    """C, (directions, directions)."""
    quantile: float
    """t of one degree less than there are windows."""
    windows: int
    stationary: np.ndarray | None = None
    """S, the covariance of y if every residual is a stationary process."""


@dataclasses.dataclass(frozen=True)
class Rank:
    """Directions of the unknowns that the log determines, and those that it leaves open."""

    singular: np.ndarray
    """s_i, largest first; 0 for unknowns held at a bound."""
    directions: np.ndarray
    """V: column i is the direction of s_i."""
    widest: np.ndarray
    """D."""
    at_bound: np.ndarray
    quantile: float
    """q, of the 95 % interval in standard deviations."""
    widening: Widening | None = None
    """Where residuals are not white: intervals are the wider of the plain and the jackknife's."""

    @property
    def plain(self) -> "Rank":
        """The same as under white noise."""
        return dataclasses.replace(self, widening=None)

    @property
    def basis(self) -> np.ndarray:
        """D V / s of all directions that are not zero: z = basis y."""
        felt = ~self.is_zero
        return (self.widest[:, None] * self.directions)[:, felt] / self.singular[felt]

    @property
    def is_zero(self) -> np.ndarray:
        """Directions of which the log says nothing."""
        return (self.singular <= _ZERO * self.singular.max(initial=0.0)) & self.is_open

    @property
    def is_open(self) -> np.ndarray:
        """Directions that are not known: too wide."""
        return self.singular < self.quantile

    @property
    def count(self) -> int:
        """How many directions are known."""
        return int(np.count_nonzero(~self.is_open))

    def count_of(self, members: Sequence[bool]) -> int:
        """How many directions among these unknowns are known, whatever the others are."""
        chosen = np.asarray(members, bool) & ~self.at_bound
        across = self.directions[chosen][:, self.is_open]
        lost = np.linalg.matrix_rank(across, tol=1e-3) if across.size else 0
        return int(np.count_nonzero(chosen) - lost)

    def felt(self, members: Sequence[bool]) -> int:
        """How many directions among these unknowns the readings feel at all, however little."""
        chosen = np.asarray(members, bool) & ~self.at_bound
        across = self.directions[chosen][:, self.is_zero]
        lost = np.linalg.matrix_rank(across, tol=1e-3) if across.size else 0
        return int(np.count_nonzero(chosen) - lost)

    @property
    def covariance(self) -> np.ndarray:
        """Of the coordinates, in the directions that are known, or nearly; none of the open ones.

        With a widening, its deviations are half-widths over q: C where that is larger than 1.
        """
        known = self.singular >= _NEARLY * self.quantile
        V = (self.widest[:, None] * self.directions)[:, known] / self.singular[known]
        if self.widening is None:
            return V @ V.T
        parts, U = np.linalg.eigh(self.widening.covariance[np.ix_(*2 * (known[~self.is_zero],))])
        wide = (V @ U * np.maximum(parts, 1.0)) @ (V @ U).T
        deviations, halves = np.sqrt(np.diag(wide)), self.half_widths / self.quantile
        is_told = (deviations > 0) & np.isfinite(halves)
        ratio = np.where(is_told, halves / np.where(is_told, deviations, 1.0), 1.0)
        return ratio[:, None] * wide * ratio

    def log_det(self, members: Sequence[bool] | np.ndarray) -> float:
        """Of the information on these unknowns, however wide their intervals; -inf if any is 0."""
        if self.is_zero.any():
            return -np.inf
        V = (self.widest[:, None] * self.directions)[np.asarray(members, bool)]
        # Of F⁻¹ = V s⁻² Vᵀ by the triangle of s⁻¹ Vᵀ: squares would lose half of the digits.
        triangle: Any = np.linalg.qr((V / self.singular).T, mode="r")
        return float(-2.0 * np.sum(np.log(np.abs(np.diag(triangle)))))

    def half_width(self, gradient: np.ndarray) -> float:
        """Half of the 95 % interval of a function of z with this gradient; infinite if open."""
        along = self.directions.T @ (self.widest * gradient)
        size, zero = np.linalg.norm(along), self.is_zero
        if size == 0 or np.any(np.abs(along[zero]) > _NO_PART * size):
            return np.inf
        a = along[~zero] / self.singular[~zero]
        half = self.quantile * float(np.linalg.norm(a))
        if self.widening is None:
            return half
        half = max(half, self.widening.quantile * _size(a, self.widening.covariance))
        if self.widening.stationary is None:
            return half
        return max(half, self.quantile * _size(a, self.widening.stationary))

    @property
    def half_widths(self) -> np.ndarray:
        """Of every unknown, in its coordinate."""
        unit = np.eye(len(self.widest))
        return np.array([self.half_width(row) for row in unit])

    @property
    def ratios(self) -> np.ndarray:
        """Half-widths over those of white noise."""
        plain, wide = self.plain.half_widths, self.half_widths
        is_told = np.isfinite(plain) & (plain > 0)
        return np.where(is_told, wide / np.where(is_told, plain, 1.0), 1.0)

    def kinds(self) -> list[Kind]:
        """Known, part of a known combination, unknown, or at a bound."""
        found: list[Kind] = []
        for j, half in enumerate(self.plain.half_widths):
            part = np.linalg.norm(self.directions[j, ~self.is_open])
            if self.at_bound[j]:
                found.append("bound")
            elif half <= self.widest[j]:
                found.append("known")
            else:
                found.append("combination" if part > 1e-2 else "unknown")
        return found

    def trade_offs(self) -> list[tuple[int, int, float]]:
        """Pairs of known unknowns whose errors go together: correlation beyond 0.95."""
        covariance, kinds = self.plain.covariance, self.kinds()
        spread = np.sqrt(np.diag(covariance))
        known = [j for j, kind in enumerate(kinds) if kind == "known"]
        pairs = [(i, j) for i in known for j in known if i < j]
        found = [(i, j, float(covariance[i, j] / (spread[i] * spread[j]))) for i, j in pairs]
        return [(i, j, correlation) for i, j, correlation in found if abs(correlation) > TRADE_OFF]


def _size(a: np.ndarray, covariance: np.ndarray) -> float:
    """sqrt(aᵀ C a)"""
    return float(np.sqrt(max(a @ covariance @ a, 0.0)))


def rank_of(
    jacobian: np.ndarray, widest: np.ndarray, at_bound: np.ndarray, quantile: float
) -> Rank:
    """The rank of a whitened Jacobian (with the rows of real priors, without mere anchors)."""
    count, free = jacobian.shape[1], ~at_bound
    triangle = upper_triangle(jacobian[:, free] * widest[free])  # the same s and V
    _, s, Vt = np.linalg.svd(triangle)
    singular, directions = np.zeros(count), np.zeros((count, count))
    singular[: len(s)] = s
    directions[np.ix_(free, np.arange(len(s)))] = Vt.T
    for place, j in enumerate(np.flatnonzero(at_bound)):
        directions[j, len(s) + place] = 1.0
    return Rank(singular, directions, widest, at_bound, quantile)


def widest_of(coordinates: Sequence[Coordinate], z: np.ndarray) -> np.ndarray:
    """D at z."""
    return np.array([c.widest(x) for c, x in zip(coordinates, z, strict=True)])


def upper_triangle(matrix: np.ndarray) -> np.ndarray:
    """R of Q R = matrix, block by block: small ones stay in the cache, and start no threads."""
    columns = matrix.shape[1]
    size = 8 * columns
    while 0 < size < len(matrix):
        rows = -(-len(matrix) // size) * size
        padded = np.zeros((rows, columns))
        padded[: len(matrix)] = matrix
        blocks: Any = np.linalg.qr(padded.reshape(-1, size, columns), mode="r")
        matrix = blocks.reshape(-1, columns)
    triangle: Any = np.linalg.qr(matrix, mode="r")
    return triangle
