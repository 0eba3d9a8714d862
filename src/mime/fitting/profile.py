"""Intervals where the problem is not linear enough: the profile of the likelihood.

    t(x) = sqrt(min over all others cost(z_j = x) - cost(z))        linear: t = |x - z_j| / sigma_j

The 95 % interval is where t <= q. Intervals from the Jacobian take t for a straight line. Whether
it is one is measured: along the valley that the Jacobian foresees, z ± h C e_j / C_jj, the true
cost should have risen by q². An unknown for which its root misses q by a tenth is profiled.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mime.fitting.loss import Loss
from mime.fitting.model import Model
from mime.fitting.rank import Rank
from mime.fitting.solve import Prior, polish, whitened

LINEAR = 0.1
"""What a linear interval may be off, over its half-width, before it is profiled."""
_TOLERANCE = 5e-3
"""Of t over q, where the search for an end stops."""
_MINIMISED = 1e-7
"""What a step may still gain, over the cost: that of some thousand rows is as large."""
_FARTHEST = 4.0
"""Times the widest interval of what is known: beyond that it is open."""
_MOST = 12


@dataclasses.dataclass(frozen=True)
class Interval:
    """Of one coordinate: its ends, how it was found, and how far from linear the problem is."""

    low: float
    high: float
    is_profile: bool
    nonlinearity: float
    """|t / q - 1| at the ends of the linear interval, the larger one."""


@dataclasses.dataclass(frozen=True)
class Minimum:
    """Where a fit has ended, and all that its cost is made of."""

    model: Model
    z: np.ndarray
    noise: Mapping[str, float]
    prior: Prior
    loss: Loss
    rank: Rank
    quantile: float
    """q: t at the end of a 95 % interval."""

    def cost(self, z: np.ndarray) -> float:
        """The whole sum at z."""
        r, _ = whitened(self.model, z, self.noise, self.prior)
        rows = len(r) - len(z)
        return self.loss.cost(r[:rows]) + float(r[rows:] @ r[rows:])


def linear_interval(rank: Rank, z: np.ndarray, j: int) -> Interval:
    """That of the Jacobian, for what the readings are linear in."""
    half = float(rank.half_widths[j])
    return Interval(float(z[j] - half), float(z[j] + half), False, 0.0)


def intervals(minimum: Minimum, chosen: Sequence[int]) -> tuple[dict[int, Interval], int]:
    """95 % intervals of these coordinates, and how many simulations they took."""
    z, prior, rank, q = minimum.z, minimum.prior, minimum.rank, minimum.quantile
    halves, least, count = rank.half_widths, minimum.cost(minimum.z), 1
    covariance = rank.covariance
    found: dict[int, Interval] = {}
    for j in chosen:
        valley = covariance[:, j] / covariance[j, j]
        valley[j] = 1.0
        off = 0.0
        for side in (-1.0, 1.0):
            there = np.clip(z + side * halves[j] * valley, prior.low, prior.high)
            count += 1
            if there[j] == z[j] + side * halves[j] * valley[j]:  # else a bound ends it
                rise = max(minimum.cost(there) - least, 0.0)
                off = max(off, abs(np.sqrt(rise) / q - 1.0))
        if off <= LINEAR:
            ends = np.clip(z[j] + halves[j] * np.array([-1.0, 1.0]), prior.low[j], prior.high[j])
            found[j] = Interval(float(ends[0]), float(ends[1]), False, off)
            continue
        low, more = _end(minimum, j, -1.0, valley, least)
        high, still = _end(minimum, j, 1.0, valley, least)
        count += more + still
        found[j] = Interval(low, high, True, off)
    return found, count


def _end(
    minimum: Minimum, j: int, side: float, valley: np.ndarray, least: float
) -> tuple[float, int]:
    """Where t = q on one side: regula falsi on t, which is nearly straight; infinite if nowhere."""
    z, prior, count = minimum.z, minimum.prior, 0
    bound = prior.low[j] if side < 0 else prior.high[j]
    farthest = min(_FARTHEST * float(minimum.rank.widest[j]), abs(bound - z[j]))
    near = z

    def t_over_q(distance: float) -> float:
        nonlocal near, count
        moved = side * distance - (near[j] - z[j])
        start = np.clip(near + moved * valley, prior.low, prior.high)
        start[j] = z[j] + side * distance
        near, cost, more = polish(
            minimum.model, start, minimum.noise, prior, minimum.loss, j, _MINIMISED
        )
        count += more
        return float(np.sqrt(max(cost - least, 0.0)) / minimum.quantile)

    first = min(float(minimum.rank.half_widths[j]), farthest)
    end = _crossing(t_over_q, first, farthest)
    if np.isinf(end) and farthest == abs(bound - z[j]):
        end = farthest  # the bound that was given ends it
    return float(z[j] + side * end), count


def _crossing(t_over_q: Callable[[float], float], first: float, farthest: float) -> float:
    """The distance at which a rising function that starts at 0 is 1; infinite if beyond."""
    inside, below, outside, above = 0.0, 0.0, np.inf, np.inf
    distance = first
    for _ in range(_MOST):
        value = t_over_q(distance)
        if abs(value - 1.0) < _TOLERANCE:
            return distance
        if value < 1.0:
            inside, below = distance, value
            if distance >= farthest:
                return np.inf
        else:
            outside, above = distance, value
        if np.isinf(outside):
            distance = min(distance * np.clip(1.0 / max(value, 1e-3), 1.1, 2.5), farthest)
        else:
            part = np.clip((1.0 - below) / (above - below), 0.05, 0.95)
            distance = inside + part * (outside - inside)
    return distance
