"""Least squares: Levenberg-Marquardt for many starts in one batch, SciPy's `trf` for the best.

    minimise  sum over sensors c² rho((r_s(z) / (c sigma_s))²)  +  |(z - z_0) / width|²

The last term has the width of what is known beforehand, where that was said, else `_LOOSE`: so wide
that it moves nothing that the log tells, and a direction that the log leaves open stays where the
model has it. sigma_s follows from the residuals, sensor by sensor. rho is a `Loss`, the square
unless outliers shall count less; the starts go down by squares in any case (`approach.py`).
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mime.fitting.loss import Loss
from mime.fitting.model import Model, Normal
from mime.fitting.rank import upper_triangle
from mime.fitting.states import reduced
from mime.fitting.window_descent import descended

Noise = Mapping[str, np.ndarray | float]
_LOOSE = 100.0
_LONGEST_STEP = 2.0
_LEAST_DAMPED = 1e-3
"""Of the largest curvature, what every unknown is damped by: by its own alone (Marquardt) one that
the log hardly tells is free, walks far in every step and bends the way of the others."""
_SETTLED = 1e-7
"""A start has arrived when a step gains less than this part of its cost: the best goes on."""
TIGHT = 1e-11
"""What the last step of the best start may gain of its cost."""
_MET = 1e-2
"""Of a cost: two starts that differ by less are in the same valley, and one of them goes on."""
RESOLUTION = 1e-9
"""The least noise, over the spread of a signal: what is left of a log without noise."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a descent: where its starts are."""

    def __init__(self, z: np.ndarray):
        super().__init__("interrupted")
        self.z = z


@dataclasses.dataclass(frozen=True)
class Prior:
    """Where z is beforehand, and within which width; and the bounds."""

    centre: np.ndarray
    width: np.ndarray
    low: np.ndarray
    high: np.ndarray
    is_real: np.ndarray
    """Where the width was given and is no mere anchor."""


def prior_of(model: Model) -> Prior:
    """As the coordinates say."""
    c = model.coordinates
    stds = [entry.std_of_z for entry in c]
    return Prior(
        np.array([entry.z(entry.start) for entry in c]),
        np.array([_LOOSE if std is None else std for std in stds]),
        np.array([entry.z(entry.low) for entry in c]),
        np.array([entry.z(entry.high) for entry in c]),
        np.array([std is not None for std in stds]),
    )


def first_noise(model: Model) -> dict[str, float]:
    """sigma of each sensor from third differences of its rows, which a smooth signal hardly has."""
    found: dict[str, list[np.ndarray]] = {field: [] for field in model.fields}
    given = {}
    for experiment in model.experiments:
        for sensor in experiment.sensors:
            third = np.diff(sensor.measured, 3) / np.sqrt(20.0)
            robust = 1.4826 * np.median(np.abs(third)) if len(third) else 0.0
            least = 1e-3 * np.std(sensor.measured)  # a start needs no more
            found[sensor.field].append(np.array([max(robust, least)]))
            if (noise := sensor.place.channel.noise) is not None:
                given[sensor.field] = noise * abs(sensor.place.factor)
    return {f: given.get(f, float(np.sqrt(np.mean(np.square(v))))) for f, v in found.items()}


def given_noise(model: Model) -> dict[str, float]:
    """sigma of the sensors whose noise was said."""
    return {
        s.field: s.place.channel.noise * abs(s.place.factor)
        for e in model.experiments
        for s in e.sensors
        if s.place.channel.noise is not None
    }


def levenberg_marquardt(
    normal: Callable[[np.ndarray], Normal],
    z: np.ndarray,
    noise: Noise | Callable[[Normal], Noise],
    prior: Prior,
    rounds: int,
    tell: Callable[[int], None] = lambda done: None,
    least_gain: float = _SETTLED,
    apart: bool = False,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Go down from every row of z at once: the ends, their costs, and how often it simulated.

    The noise may follow from what is left where each of them is. Ctrl-C is `Interrupted`.

    apart    `normal` takes any number of rows: those that have arrived, or that are where another
             one is (`_meeting`), are left out
    """
    z = np.clip(z, prior.low, prior.high)
    damping: np.ndarray = np.full(len(z), 1e-3)
    sigma = noise if callable(noise) else lambda parts: noise
    count, same = 0, np.arange(len(z))
    if apart:
        _, first, number = np.unique(z, axis=0, return_index=True, return_inverse=True)
        same = first[number.reshape(-1)]
    settled = same < np.arange(len(z))
    simulated = len(np.unique(same))
    try:
        parts = normal(z[np.unique(same)])
        if apart:
            number = np.searchsorted(np.unique(same), same)
            parts = {f: tuple(np.asarray(x)[number] for x in own) for f, own in parts.items()}
        sums = _weighted(parts, z, sigma(parts), prior)
        for count in range(rounds):
            cost, slope, curvature = sums
            held = ((z <= prior.low) & (slope > 0)) | ((z >= prior.high) & (slope < 0))
            step = _step(slope, curvature, damping, held)
            ahead = np.clip(z + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), prior.low, prior.high)
            ahead = np.where(settled[:, None], z, ahead)
            rows = np.flatnonzero(~settled) if apart else np.arange(len(z))
            new = _placed(normal(ahead[rows]), parts, rows)
            simulated += len(rows)
            there = _weighted(new, ahead, sigma(parts), prior)[0]
            better = there < cost
            promised = np.abs(_promised(ahead - z, slope, curvature))  # a bound may cut a step
            gain = np.where(better, cost - there, promised)
            settled |= (gain < least_gain * cost + 1e-9) | (damping > 1e10)
            z = np.where(better[:, None], ahead, z)
            damping = np.where(better, damping * 0.2, damping * 8.0).clip(1e-12)
            parts = {
                f: tuple(_either(better, *pair) for pair in zip(new[f], parts[f])) for f in parts
            }
            sums = _weighted(parts, z, sigma(parts), prior)
            if apart:
                same = _meeting(z, sums, same)
                settled |= same < np.arange(len(z))
            tell(count + 1)
            if settled.all():
                break
    except KeyboardInterrupt:
        raise Interrupted(z) from None
    return z[same], sums[0][same], simulated


def _placed(new: Normal, parts: Normal, rows: np.ndarray) -> Normal:
    """All rows: the new ones in their places, the others as they were."""
    if len(rows) == len(next(iter(parts.values()))[0]):
        return new
    found = {}
    for field, old in parts.items():
        copies = tuple(np.array(x) for x in old)
        for copy, values in zip(copies, new[field], strict=True):
            copy[rows] = values
        found[field] = copies
    return found


def _meeting(z: np.ndarray, sums: Any, same: np.ndarray) -> np.ndarray:
    """For each row the first one that is in the same place: the parabola says so on its way.

    (z_i - z_j)' C_j (z_i - z_j) and the costs differ by less than `_MET` of the cost.
    """
    cost, _, curvature = sums
    same = same.copy()
    leaders: list[int] = []
    for i in range(len(z)):
        if same[i] < i:
            same[i] = same[same[i]]
            continue
        for j in leaders:
            off = z[i] - z[j]
            apart = off @ curvature[j] @ off
            if max(apart, abs(cost[i] - cost[j])) < _MET * cost[j] < np.inf:
                same[i] = j
                break
        else:
            leaders.append(i)
    return same


def _either(where: np.ndarray, one: Any, other: Any) -> np.ndarray:
    """Members of the one where it is so, else of the other."""
    return np.where(where.reshape(-1, *(1,) * (np.ndim(one) - 1)), one, other)


def _weighted(parts: Any, z: np.ndarray, noise: Any, prior: Prior) -> Any:
    """Cost, slope and curvature of the whole sum; a simulation that failed costs infinity."""
    off = (z - prior.centre) / prior.width
    cost: np.ndarray = np.sum(off**2, axis=1)
    slope = off / prior.width
    curvature = np.broadcast_to(np.diag(prior.width**-2.0), (len(z), *2 * z.shape[1:])).copy()
    for field, (squares, g, A) in parts.items():
        weight = np.broadcast_to(1.0 / np.square(noise[field]), (len(z),))
        cost = cost + weight * np.asarray(squares)
        slope = slope + weight[:, None] * np.asarray(g)
        curvature = curvature + weight[:, None, None] * np.asarray(A)
    sound = np.isfinite(cost) & np.isfinite(curvature).all(axis=(1, 2))
    cost = np.where(sound, cost, np.inf)
    return (
        cost,
        np.where(sound[:, None], slope, 0.0),
        np.where(sound[:, None, None], curvature, np.eye(z.shape[1])),
    )


def _step(
    slope: np.ndarray, curvature: np.ndarray, damping: np.ndarray, held: np.ndarray
) -> np.ndarray:
    diagonal = np.einsum("bii->bi", curvature)
    diagonal = np.maximum(diagonal, _LEAST_DAMPED * diagonal.max(axis=1, keepdims=True))
    free = ~held
    A = curvature * free[:, :, None] * free[:, None, :]
    A = A + np.einsum("bi,ij->bij", damping[:, None] * diagonal + held, np.eye(slope.shape[1]))
    return -np.linalg.solve(A, (slope * free)[..., None])[..., 0]


def _promised(dz: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """What a step would gain if the cost were a parabola."""
    return -np.einsum("bi,bi->b", dz, 2.0 * slope + np.einsum("bij,bj->bi", curvature, dz))


def polish(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    prior: Prior,
    loss: Loss,
    held: int | None = None,
    tolerance: float = TIGHT,
    most: int = 60,
) -> tuple[np.ndarray, float, int]:
    """The nearest minimum by SciPy's `trf`, its cost, and how often it simulated (`most` times).

    Of windows by `joint.py`, their initial states with it.

    A start at which the simulation diverges is returned, at an infinite cost.

    On whitened residuals and their exact Jacobian; z[held], if given, stays where it is.
    """
    from scipy.optimize import least_squares

    if model.windows is not None:
        return descended(model, z, noise, prior, loss, held, tolerance, most)
    kept: dict[bytes, Any] = {}
    free = np.arange(len(z)) != held
    rows = model.count

    def whole(part: np.ndarray) -> np.ndarray:
        found = z.copy()
        found[free] = part
        return found

    def at(part: np.ndarray) -> Any:
        if part.tobytes() not in kept:
            kept.clear()
            r, J = whitened(model, whole(part), noise, prior, loss)
            J = J[:, free]
            if not loss.is_robust:
                # Q R = [J r]: R has the same JᵀJ, Jᵀr and r·r, in as many rows as columns.
                triangle = upper_triangle(np.column_stack([J, r]))
                r, J = triangle[:, -1], triangle[:, :-1]
            kept[part.tobytes()] = r, J
        return kept[part.tobytes()]

    if not free.any():
        return z, cost_of(model, z, noise, prior, loss), 1
    low, high = prior.low[free], prior.high[free]
    start = np.clip(z[free], low + 1e-9, high - 1e-9)
    if not np.isfinite(at(start)[0]).all():
        return whole(start), np.inf, 1
    found = least_squares(
        lambda part: at(part)[0],
        start,
        lambda part: at(part)[1],
        bounds=(low, high),
        method="trf",
        x_scale="jac",
        loss=loss.for_scipy(rows),
        f_scale=loss.scale,
        ftol=tolerance,
        xtol=100 * tolerance,
        gtol=100 * tolerance,
        max_nfev=most,
    )
    return whole(found.x), 2.0 * float(found.cost), int(found.nfev)


def cost_of(
    model: Model, z: np.ndarray, noise: Mapping[str, float], prior: Prior, loss: Loss
) -> float:
    """The whole sum at z."""
    r, _ = whitened(model, z, noise, prior, loss)
    rows = model.count
    return loss.cost(r[:rows]) + float(r[rows:] @ r[rows:])


def whitened(
    model: Model, z: np.ndarray, noise: Mapping[str, float], prior: Prior, loss: Loss
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals over noise and their Jacobian, with the rows of the prior at the end.

    Of windows at their best initial states, whose own prior has its rows before that of z.
    """
    if model.windows is not None:
        found = reduced(model, z, noise, loss)
        off = (z - prior.centre) / prior.width
        return np.concatenate([found.r, off]), np.vstack([found.J, np.diag(1.0 / prior.width)])
    residual, jacobian = model.programs.linearised(z, model.data)
    r = [np.asarray(residual[field]) / noise[field] for field in model.fields]
    J = [np.asarray(jacobian[field]) / noise[field] for field in model.fields]
    r.append((z - prior.centre) / prior.width)
    J.append(np.diag(1.0 / prior.width))
    return np.concatenate(r), np.concatenate(J)


def estimated_noise(
    parts: Any, rows: Mapping[str, int], noise: Mapping[str, Any], prior: Prior, spread: Any
) -> dict[str, Any]:
    """sigma_s² = |r_s|² / (n_s - p_s), p_s the share of the unknowns that sensor s has fitted."""
    width = prior.width
    total: Any = np.diag(width**-2.0)
    for field, (_, _, A) in parts.items():
        total = total + np.asarray(A) / np.square(np.asarray(noise[field])[..., None, None])
    inverse = np.linalg.inv(total)
    found = {}
    for field, (squares, _, A) in parts.items():
        scaled = np.asarray(A) / np.square(np.asarray(noise[field])[..., None, None])
        share = np.einsum("...ij,...ji->...", inverse, scaled)
        sigma = np.sqrt(np.asarray(squares) / np.maximum(rows[field] - share, 1.0))
        found[field] = np.maximum(sigma, RESOLUTION * spread[field])
    return found
