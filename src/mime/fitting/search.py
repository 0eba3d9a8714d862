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
from mime.fitting.states import estimated_noise as estimated_with_states
from mime.fitting.states import reduced
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
        ends, costs, simulations, is_complete = _descended(model, z, noise, prior, tell)
        if not np.isfinite(costs).any():
            raise InputError(
                "the simulation leaves the finite numbers from every start; give start values "
                "nearer to the truth, or a shorter timestep",
                place=("unknowns",),
            )
        same = int(np.count_nonzero(costs <= np.nanmin(costs) * (1 + 1e-4) + 1e-6))
        z, at_kinks = ends[np.argmin(costs)], True
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
    for count in range(_NOISE_ROUNDS):
        z, _, more = polish(model, z, noise, prior, loss)
        simulations += more
        new = _estimated(model, z, noise, prior, loss, rows)
        new = {f: max(sigma, RESOLUTION * spread[f]) for f, sigma in new.items()}
        new |= said
        change = max(abs(new[f] / noise[f] - 1) for f in noise)
        noise = new
        tell(_APPROACH + ROUNDS + count + 1)
        if change < 1e-4:
            break
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
    starts = reduced(model, z, noise, loss).starts
    return dataclasses.replace(model, windows=dataclasses.replace(model.windows, starts=starts))


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
