"""Intervals where the problem is not linear enough: the profile of the likelihood.

    t(x) = sqrt(min over all others cost(z_j = x) - cost(z))        linear: t = |x - z_j| / sigma_j

The 95 % interval is where t <= q. Intervals from the Jacobian take t for a straight line. Whether
it is one is measured: along the valley that the Jacobian foresees, z ± h C e_j / C_jj, the true
cost should have risen by q². An unknown for which its root misses q by a tenth is profiled.

What may be zero and is known no better than to a factor of two has an interval of its value,
z + log(1 ± h): it contains 0 from h = 1 on.

Where residuals are not white, q is larger by the ratio of the widened interval to the plain one;
beyond a ratio of 1.5 the widened one stays. It stays, too, where the cost is rough: where a profile
goes down, ends within a quarter of the linear half-width, or finds no end in its simulations.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mime.fitting.loss import Loss
from mime.fitting.model import Model
from mime.fitting.rank import Rank
from mime.fitting.solve import Prior, cost_of, polish
from mime.fitting.unknown import WIDEST_LOG, Coordinate

LINEAR = 0.1
"""What a linear interval may be off, over its half-width, before it is profiled."""
_TOLERANCE = 5e-3
"""Of t over q, where the search for an end stops."""
_MINIMISED = 1e-7
"""What a step may still gain, over the cost: that of some thousand rows is as large."""
_FARTHEST = 4.0
"""Times the widest interval of what is known: beyond that it is open."""
_MOST = 16
_REFIT, _SIMULATIONS = 20, 150
"""Simulations that one refit, and one end of a profile, may take."""
_WIDENED = 1.5
"""Beyond this ratio an interval is that of windows, without a profile."""
_ROUGH, _LOWER = 0.25, 0.05
"""An end nearer than this part of the linear half-width is that of a rough cost; so is a cost that
falls by this part of q²."""


@dataclasses.dataclass(frozen=True)
class Interval:
    """Of one coordinate: its ends, how it was found, and how far from linear the problem is."""

    low: float
    high: float
    how: str
    """`linear`, `windows` (wider than that, residuals are not white), `profile`, or `rough`: the
    linear one, wider where residuals are not white, since the cost has no profile."""
    nonlinearity: float
    """|t / q - 1| at the ends of the linear interval, the larger one."""

    @property
    def is_profile(self) -> bool:
        """Found by fitting all others again."""
        return self.how == "profile"


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

    def is_by_value(self, j: int, half: float) -> bool:
        """An interval so wide is one of the value: its logarithm has no end on the way to 0."""
        c = self.model.coordinates[j]
        return c.is_log and c.may_be_zero and half > WIDEST_LOG

    def cost(self, z: np.ndarray) -> float:
        """The whole sum at z."""
        return cost_of(self.model, z, self.noise, self.prior, self.loss)


def linear_interval(rank: Rank, z: np.ndarray, j: int) -> Interval:
    """That of the Jacobian and of windows, for what the readings are linear in."""
    half = float(rank.half_widths[j])
    how = "windows" if half > 1.001 * float(rank.plain.half_widths[j]) else "linear"
    return Interval(float(z[j] - half), float(z[j] + half), how, 0.0)


def intervals(
    minimum: Minimum, chosen: Sequence[int], ratios: np.ndarray
) -> tuple[dict[int, Interval], int]:
    """95 % intervals of these coordinates, and how many simulations they took.

    ratios   of the widened half-widths over the plain ones
    """
    z, prior, rank, q = minimum.z, minimum.prior, minimum.rank, minimum.quantile
    halves, least, count = rank.half_widths * ratios, minimum.cost(minimum.z), 1
    covariance = rank.covariance
    found: dict[int, Interval] = {}
    for j in chosen:
        by_value = minimum.is_by_value(j, halves[j])
        ends = _by_value(halves[j]) if by_value else halves[j] * np.array([-1.0, 1.0])
        low, high = np.clip(z[j] + ends, prior.low[j], prior.high[j])
        if ratios[j] > _WIDENED:
            found[j] = Interval(float(low), float(high), "windows", 0.0)
            continue
        valley = covariance[:, j] / covariance[j, j]
        valley[j] = 1.0
        off = 0.0
        for side, end in zip((-1.0, 1.0), ends, strict=True):
            if not np.isfinite(end):  # zero is within the interval: the other end tells its shape
                continue
            there = np.clip(z + side * halves[j] * valley, prior.low, prior.high)
            there[j] = np.clip(z[j] + end, prior.low[j], prior.high[j])
            count += 1
            if there[j] == z[j] + end:  # else a bound ends it
                rise = max(minimum.cost(there) - least, 0.0)
                off = max(off, abs(np.sqrt(rise) / (ratios[j] * q) - 1.0))
        if off <= LINEAR:
            how = "windows" if ratios[j] > 1.001 else "linear"
            found[j] = Interval(float(low), float(high), how, off)
            continue
        crossed: list[float] = []
        for side in (-1.0, 1.0):
            at, more = _end(minimum, j, side, valley, least, ratios[j])
            count += more
            if at is None:
                break
            crossed.append(at)
        if len(crossed) == 2:
            found[j] = Interval(crossed[0], crossed[1], "profile", off)
        else:
            found[j] = Interval(float(low), float(high), "rough", off)
    return found, count


def is_told(c: Coordinate, rank: Rank, z: np.ndarray, j: int) -> bool:
    """Whether what may be zero has a narrow interval of its value, as the Jacobian foresees it."""
    if not (c.may_be_zero and c.is_log):
        return False
    low, high = z[j] + _by_value(float(rank.half_widths[j]))
    return c.is_narrow(float(z[j]), float(low), float(high))


def _by_value(half: float) -> np.ndarray:
    """log(1 - h) and log(1 + h): an interval of the value about as far below as above."""
    with np.errstate(divide="ignore"):
        return np.log([max(1.0 - half, 0.0), 1.0 + half])


class _RoughError(Exception):
    """The cost falls where it should rise, or its search takes too long."""


def _end(
    minimum: Minimum, j: int, side: float, valley: np.ndarray, least: float, ratio: float
) -> tuple[float | None, int]:
    """Where t = q on one side: regula falsi on t, which is nearly straight.

    Infinite if nowhere; None where the cost is rough.
    """
    z, prior, count = minimum.z, minimum.prior, 0
    q = minimum.quantile * ratio
    half = ratio * float(minimum.rank.half_widths[j])
    by_value = minimum.is_by_value(j, half)
    if by_value:
        half = float(np.log1p(half)) if side > 0 else min(half, 1.0)
    bound = prior.low[j] if side < 0 else prior.high[j]
    farthest = min(_FARTHEST * ratio * float(minimum.rank.widest[j]), abs(bound - z[j]))
    near = z

    def t_over_q(distance: float) -> float:
        nonlocal near, count
        ahead, now = side * distance, near[j] - z[j]
        moved = np.expm1(ahead) - np.expm1(now) if by_value else ahead - now
        start = np.clip(near + moved * valley, prior.low, prior.high)
        start[j] = z[j] + side * distance
        found, cost, more = polish(
            minimum.model, start, minimum.noise, prior, minimum.loss, j, _MINIMISED, _REFIT
        )
        count += more
        near = found if np.isfinite(cost) else near
        if cost < least - _LOWER * q**2 or count > _SIMULATIONS:
            raise _RoughError
        return float(np.sqrt(max(cost - least, 0.0)) / q)

    try:
        end = _crossing(t_over_q, min(half, farthest), farthest)
    except _RoughError:
        return None, count
    if end < _ROUGH * half and end < farthest:
        return None, count
    if np.isinf(end) and farthest == abs(bound - z[j]):
        end = farthest  # the bound that was given ends it
    return float(z[j] + side * end), count


def _crossing(t_over_q: Callable[[float], float], first: float, farthest: float) -> float:
    """The distance at which a rising function that starts at 0 is 1; infinite if beyond.

    A `_RoughError` where no such place is found.
    """
    inside, below, outside, above = 0.0, 0.0, np.inf, np.inf
    distance, value, falls = first, 0.0, False
    moved: list[bool] = []  # of each value, whether it was below 1
    for _ in range(_MOST):
        value = t_over_q(distance)
        if abs(value - 1.0) < _TOLERANCE:
            return distance
        moved.append(value < 1.0)
        if value < 1.0:
            falls = value < below  # towards another minimum: its far side ends the interval
            inside, below = distance, value
            if distance >= farthest:
                return np.inf
        else:
            outside, above = distance, value
        if np.isinf(outside):
            least = 1.5 if falls else 1.1
            distance = min(distance * np.clip(1.0 / max(value, 1e-3), least, 2.5), farthest)
        else:
            part = np.clip((1.0 - below) / (above - below), 0.05, 0.95)
            if moved[-3:] in ([True] * 3, [False] * 3):
                part = 0.5  # one end stays where it is: the line between them is far from t
            distance = inside + part * (outside - inside)
    if abs(value - 1.0) > LINEAR:
        raise _RoughError
    return distance
