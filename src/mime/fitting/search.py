"""The search of a fit: many starts, the best of them refined, its noise and its steps settled."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mime.core.problem import InputError
from mime.fitting.approach import ROUNDS as _APPROACH
from mime.fitting.approach import approached
from mime.fitting.divided import carried_again
from mime.fitting.loss import Loss
from mime.fitting.model import Model
from mime.fitting.rates import FINEST, STEP_ERROR
from mime.fitting.solve import (
    RESOLUTION,
    TIGHT,
    Interrupted,
    Prior,
    estimated_noise,
    first_noise,
    given_noise,
    levenberg_marquardt,
    polish,
    prior_of,
    whitened,
)
from mime.fitting.states import Cost, reduced
from mime.fitting.states import estimated_noise as estimated_with_states
from mime.running.progress import Progress, progress_bar

ROUNDS = 60
_NOISE_ROUNDS = 10
_NEAR, _BESIDE, _REFIT = 0.01, 0.3, 30
"""Rows from a whole number within which a kink is looked for; rows to either side at which a
descent from it starts; how many simulations that takes at most."""
_KINK, _LOWER = 1.2, 1e-3
"""By which factor the slopes on the two sides of a kink differ, and by how much another minimum
must be lower."""
_SPREAD = 0.7
"""Of the starts, in logarithms: mostly within a factor of two."""
_LOOSE, _AGREED = 1e-4, 1e-2
"""What the last step of windows may gain of its cost, as long as the noise changes by more."""
_NOTHING = 1e-2
"""Of its start value: where a positive unknown is so small, the cost is flat."""


@dataclasses.dataclass(frozen=True)
class Solved:
    """The minimum, and how it was found."""

    model: Model
    z: np.ndarray
    noise: dict[str, float]
    prior: Prior
    loss: Loss
    starts: tuple[int, int]
    simulations: int
    step_error: float
    is_complete: bool


def solve(
    model: Model, loss: Loss, count: int, random: np.random.Generator, progress: Progress
) -> Solved:
    """Many starts at once, the best refined, its noise and its steps settled."""
    prior, noise = prior_of(model), first_noise(model)
    z = prior.centre + np.vstack(
        [np.zeros(len(prior.centre)), random.normal(0.0, _SPREAD, (count - 1, len(prior.centre)))]
    )
    z = np.clip(z, prior.low, prior.high)
    with progress_bar(_APPROACH + ROUNDS + _NOISE_ROUNDS, 0, progress) as tell:
        if model.windows is None:
            ends, costs, simulations, is_complete = _descended(model, z, noise, prior, tell)
        else:
            ends, costs, simulations, is_complete = _with_states(model, z, noise, prior, loss, tell)
        if not np.isfinite(costs).any():
            raise InputError(
                "the simulation leaves the finite numbers from every start; give start values "
                "nearer to the truth, or a shorter timestep",
                place=("unknowns",),
            )
        same = int(np.count_nonzero(costs <= np.nanmin(costs) * (1 + 1e-4) + 1e-6))
        z, at_kinks = ends[np.argmin(costs)], True
        if model.windows is not None or loss.is_robust:
            noise = _left(model, z, noise, loss)
        while True:
            z, noise, more = _settled(model, z, noise, prior, loss, tell)
            simulations += more
            if at_kinks:
                beyond, more = _beyond_kinks(model, z, noise, prior, loss)
                simulations, at_kinks = simulations + more, False
                if beyond is not None:
                    z = beyond
                    continue
            if model.windows is not None:
                starts = reduced(model, z, noise, loss).starts
                model = carried_again(model, z, starts)
                z, noise, more = _settled(model, z, noise, prior, loss, tell)
                model = at_states(model, z, noise, loss)
                simulations += more
            error = _step_error(model, z, noise, loss)
            if error < STEP_ERROR:
                break
            if 2 * model.fineness > FINEST:
                better = model.finer().extrapolated()
                if model.extrapolates or _step_error(better, z, noise, loss) > 0.5 * error:
                    break
                model = better
                continue
            # An error of first order falls with the step: go there at once, each stop compiles.
            times = 2 ** int(np.ceil(np.log2(error / STEP_ERROR)))
            model = model.finer(min(max(times, 2), 16, FINEST // model.fineness))
    return Solved(model, z, noise, prior, loss, (same, count), simulations, error, is_complete)


def _descended(
    model: Model, z: np.ndarray, noise: Mapping[str, float], prior: Prior, tell: Any
) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """Where starts end, their costs, how often it simulated; False if Ctrl-C has stopped them."""

    def normal(z: np.ndarray) -> Any:
        return model.normal(z, model.counted(1.0))

    try:
        near, first = approached(model, z, noise, prior, tell)
        ends, costs, more = levenberg_marquardt(
            normal,
            near,
            noise,
            prior,
            ROUNDS,
            lambda done: tell(_APPROACH + done),
            apart=model.is_wide,
        )
        return ends, costs, first + more, True
    except Interrupted as stopped:
        ends, costs, more = levenberg_marquardt(normal, stopped.z, noise, prior, 0)
        return ends, costs, more, False


def _with_states(
    model: Model, z: np.ndarray, noise: Mapping[str, float], prior: Prior, loss: Loss, tell: Any
) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """The same of windows, each start with initial states of its own."""
    costs, is_complete, simulations = np.full(len(z), np.inf), True, 0
    try:
        z, simulations = approached(model, z, noise, prior, tell)
    except Interrupted as stopped:
        z, is_complete = stopped.z, False
    each, same = np.unique(z, axis=0, return_inverse=True)
    lefts = [_left(model, start, noise, loss) for start in each]
    least = min(lefts, key=lambda left: sum(left[f] / noise[f] for f in noise))
    ends, found = each.copy(), np.full(len(each), np.inf)
    for i, start in enumerate(each):
        model.reduced.clear()
        try:
            ends[i], found[i], more = near_minimum(model, start, least, prior, loss, is_complete)
        except KeyboardInterrupt:
            is_complete = False
            continue
        simulations += more
        tell(_APPROACH + ROUNDS * (i + 1) // len(each))
    costs = found[same.reshape(-1)]
    model.reduced.clear()
    return ends[same.reshape(-1)], costs, simulations + len(each), is_complete


def near_minimum(
    model: Model,
    start: np.ndarray,
    noise: Mapping[str, float],
    prior: Prior,
    loss: Loss,
    is_complete: bool,
) -> tuple[np.ndarray, float, int]:
    """Where a start of windows ends, its cost, and how often it simulated.

    Where a positive unknown has gone to nothing the cost is flat, and its slope leads nowhere: the
    others are fitted with it at its start value, then all of them from there.
    """
    most = ROUNDS if is_complete else 1

    def polished(z: np.ndarray, held: int | None = None) -> tuple[np.ndarray, float, int]:
        return polish(model, z, noise, prior, loss, held, _LOOSE, most)

    z, cost, count = polished(start)
    for j, c in enumerate(model.coordinates):
        is_positive = c.is_log and c.kind == "parameter"
        if not (is_complete and is_positive and c.value(z[j]) < _NOTHING * c.start):
            continue
        other = z.copy()
        other[j] = c.z(c.start)
        other, _, first = polished(other, j)
        other, lower, second = polished(other)
        count += first + second
        if lower < cost:
            z, cost = other, lower
    return z, cost, count


def _left(model: Model, z: np.ndarray, noise: Mapping[str, float], loss: Loss) -> dict[str, float]:
    """The noise, or what is left if that is more: to it all rows are outliers of a wrong model."""
    residual, _ = model.linearised(z)
    each = {f: np.asarray(residual[f]) for f in model.fields}
    left = {f: np.sqrt(loss.squares(r, noise[f]) / len(r)) for f, r in each.items()}
    return {f: max(noise[f], float(left[f])) for f in model.fields} | given_noise(model)


def _settled(
    model: Model, z: np.ndarray, noise: dict[str, float], prior: Prior, loss: Loss, tell: Any
) -> tuple[np.ndarray, dict[str, float], int]:
    """The minimum and the noise that agree with each other."""
    said, simulations = given_noise(model), 0
    rows = dict.fromkeys(model.fields, 0)
    spread = dict.fromkeys(model.fields, 0.0)
    for e in model.whole.experiments:
        for s in e.sensors:
            rows[s.field] += len(s.measured)
            spread[s.field] = max(spread[s.field], float(np.std(s.measured)))
    is_loose = model.windows is not None
    for count in range(_NOISE_ROUNDS):
        tolerance = _LOOSE if is_loose else TIGHT
        z, _, more = polish(model, z, noise, prior, loss, tolerance=tolerance)
        simulations += more
        new = _estimated(model, z, noise, prior, loss, rows)
        new = {f: max(sigma, RESOLUTION * spread[f]) for f, sigma in new.items()}
        new |= said
        change = max(abs(new[f] / noise[f] - 1) for f in noise)
        noise = new
        tell(_APPROACH + ROUNDS + count + 1)
        if change < 1e-4 and not is_loose:
            break
        is_loose = is_loose and change > _AGREED
    return z, noise, simulations


def _beyond_kinks(
    model: Model, z: np.ndarray, noise: Mapping[str, float], prior: Prior, loss: Loss
) -> tuple[np.ndarray | None, int]:
    """A lower minimum beyond a kink of the cost, None if none is found; how often it simulated.

    Where inputs jump with the rows, readings have a kink at a delay of a whole number of rows: on
    its two sides they tell the delay differently well, and each side may have a minimum.
    """
    if loss.is_robust:
        return None, 0
    delays = [j for j, c in enumerate(model.coordinates) if c.kind == "delay"]
    near = [j for j in delays if abs(z[j] - round(z[j])) < _NEAR]
    if not near:
        return None, 0
    r, _ = whitened(model, z, noise, prior, loss)
    least, best, count = float(r @ r), None, 1
    for j in near:
        starts = []
        for side in (-1.0, 1.0):
            start = z.copy()
            start[j] = np.clip(round(z[j]) + side * _NEAR, prior.low[j], prior.high[j])
            starts.append(start)
        told = [
            float(np.linalg.norm(whitened(model, at, noise, prior, loss)[1][:, j])) for at in starts
        ]
        count += 2
        for start, side in zip(starts, (-1.0, 1.0), strict=True):
            if max(told) < _KINK * min(told):
                break
            start[j] = np.clip(round(z[j]) + side * _BESIDE, prior.low[j], prior.high[j])
            there, cost, more = polish(model, start, noise, prior, loss, most=_REFIT)
            count += more
            if cost < least - _LOWER:
                least, best = cost, there
    return best, count


def _estimated(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    prior: Prior,
    loss: Loss,
    rows: Mapping[str, int],
) -> dict[str, float]:
    """The noise that residuals at the minimum have."""
    if model.windows is not None:
        information = np.diag(prior.width**-2.0)
        found = reduced(model, z, noise, loss)
        return estimated_with_states(model, found, noise, information, loss)
    residual, jacobian = model.programs.linearised(z, model.data)
    parts = {}
    for f in model.fields:
        r, J = np.asarray(residual[f]), np.asarray(jacobian[f])
        parts[f] = loss.squares(r, noise[f]), None, J.T @ J
    least = dict.fromkeys(model.fields, 0.0)
    return {f: float(s) for f, s in estimated_noise(parts, rows, noise, prior, least).items()}


def at_states(model: Model, z: np.ndarray, noise: Mapping[str, float], loss: Loss) -> Model:
    """Windows that start from their best initial states at z; any other model as it is."""
    if model.windows is None:
        return model
    found = reduced(model, z, noise, loss)
    windows = dataclasses.replace(model.windows, starts=found.starts)
    model = dataclasses.replace(model, windows=windows)
    model.reduced[z.tobytes(), *Cost(model, noise, loss).key] = found
    return model


def _step_error(model: Model, z: np.ndarray, noise: Mapping[str, float], loss: Loss) -> float:
    """What steps half as long change in any sensor, root mean square over its noise.

    Of windows without what their initial states would take of it.
    """
    finer = model.finer()
    then = finer.programs.residuals(z, finer.data)
    now, _ = model.linearised(z)
    changes = {f: (np.asarray(now[f]) - np.asarray(then[f])) / noise[f] for f in model.fields}
    if model.windows is not None:
        whole = np.concatenate([changes[f] for f in model.fields])[:, None]
        left = reduced(model, z, noise, loss).without_states(whole)[:, 0]
        ends = np.cumsum([len(changes[f]) for f in model.fields])[:-1]
        changes = dict(zip(model.fields, np.split(left, ends), strict=True))
    return max(float(np.sqrt(np.mean(np.square(changes[f])))) for f in changes)
