"""`mime.fit`: unknown parameters of a graph from logs of it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import jax
import numpy as np

from mime._text import quoted
from mime.core.arguments import instance, mapping, several, whole, wrong
from mime.core.problem import InputError
from mime.fitting.advice import advice
from mime.fitting.base_parameters import all_combinations
from mime.fitting.channel import Channel
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import Experiment, experiment
from mime.fitting.explanation import Check, checks
from mime.fitting.log import Log, LogError, as_log
from mime.fitting.model import Model, first_fineness, in_double
from mime.fitting.parameters import KINDS, kept, told
from mime.fitting.rank import Rank, rank_of
from mime.fitting.result import Estimate, Fit, Trace
from mime.fitting.solve import (
    Prior,
    estimated_noise,
    first_noise,
    given_noise,
    levenberg_marquardt,
    polish,
    prior_of,
    whitened,
)
from mime.fitting.unknown import Coordinate, Unknown
from mime.running.progress import Progress, check_progress, progress_bar
from mime.running.simulation import Simulation

_ROUNDS = 60
_NOISE_ROUNDS = 10
_STEP_ERROR = 0.03
"""What halving the steps may change, over the noise, before the fit takes finer ones."""
_FINEST = 256
_FAR = 7.0
"""A log so many times larger, or smaller, than the model with its start values is another unit."""
_SPREAD = 0.7
"""Of the starts, in logarithms: mostly within a factor of two."""


def fit(
    simulation: Simulation,
    logs: Any,
    columns: Mapping[str, str | Channel],
    unknowns: Mapping[str, Unknown | float | None] | Sequence[str],
    *,
    inputs: Mapping[str, Mapping[str, Any]] | None = None,
    by: str = "simulation",
    starts: SupportsIndex = 8,
    seed: SupportsIndex = 0,
    progress: Progress = True,
) -> Fit:
    """Unknowns of a graph from logs: values with 95 % intervals, or why there are none.

    simulation       the graph; its parameters are where the unknowns start, and their priors
    logs             a `Log` or a file, or a list of them
    columns          `{"speed": Channel("motor.rotor_angular_velocity", "rpm"), ...}`: an external
                     input drives the simulation, any other field is a sensor
    unknowns         addresses, `["motor.r_ohm", "motor.gear.ratio"]`, or with bounds and priors
                     `{"motor.r_ohm": Unknown(1.0, between=(0.1, 10.0))}`
    inputs           `{node: {input: constant}}`, external inputs that no log has
    by               "simulation": of the whole graph, from its inputs; "inverse_dynamics": of one
                     arm, from the angles of all joints and the torques that moved them
    starts, seed     how many starts are tried at once, and what draws all but the first
    progress         as in `Simulation.run`

    Each sensor's delay and noise are unknown, too, unless its `Channel` says otherwise.
    """
    instance("simulation", simulation, Simulation)
    count = whole("starts", starts, 1, most=10_000)
    random = np.random.default_rng(whole("seed", seed))
    check_progress(progress)
    columns = mapping("columns", columns, "{'column': 'node.field'}")
    given = [logs] if isinstance(logs, Log | str | dict) or hasattr(logs, "__fspath__") else logs
    chosen = [as_log(entry) for entry in several("logs", given)]
    fitted = [log for log in chosen if not log.held_out]
    if not fitted:
        raise InputError("logs: nothing to fit: every log is held out", place=("logs",))
    if instance("by", by, str) not in ("simulation", "inverse_dynamics"):
        raise wrong("by", "'simulation' or 'inverse_dynamics'", by)
    with jax.enable_x64(True):
        double = in_double(simulation)
        if by == "inverse_dynamics":
            from mime.fitting.arm import fit_torques

            return fit_torques(simulation, double, chosen, columns, unknowns, progress)
        experiments = [experiment(double, log, columns, inputs) for log in fitted]
        held = [experiment(double, log, columns, inputs) for log in chosen if log.held_out]
        _refuse_same_names([*experiments, *held])
        found = coordinates(double, unknowns, experiments)
        model = Model(double, tuple(experiments), found, first_fineness(double, experiments))
        _refuse_other_units(model)
        solved = _solve(model, count, random, progress)
        return _result(simulation, solved, held, unknowns)


@dataclasses.dataclass(frozen=True)
class _Solved:
    """The minimum, and how it was found."""

    model: Model
    z: np.ndarray
    noise: dict[str, float]
    prior: Prior
    starts: tuple[int, int]
    simulations: int
    step_error: float


def _solve(model: Model, count: int, random: np.random.Generator, progress: Progress) -> _Solved:
    prior, noise = prior_of(model), first_noise(model)
    z = prior.centre + np.vstack(
        [np.zeros(len(prior.centre)), random.normal(0.0, _SPREAD, (count - 1, len(prior.centre)))]
    )
    z = np.clip(z, prior.low, prior.high)
    with progress_bar(_ROUNDS + _NOISE_ROUNDS, 0, progress) as tell:
        ends, costs, simulations = z, np.zeros(1), 0
        if count > 1:
            ends, costs, simulations = levenberg_marquardt(
                lambda z: model.programs.normal(z, model.data), z, noise, prior, _ROUNDS, tell
            )
        if not np.isfinite(costs).any():
            raise InputError(
                "the simulation leaves the finite numbers from every start; give start values "
                "nearer to the truth, or a shorter timestep",
                place=("unknowns",),
            )
        same = int(np.count_nonzero(costs <= np.nanmin(costs) * (1 + 1e-4) + 1e-6))
        z = ends[np.argmin(costs)]
        while True:
            z, noise, more = _settled(model, z, noise, prior, tell)
            simulations += more
            error = _step_error(model, z, noise)
            if error < _STEP_ERROR or 2 * model.fineness > _FINEST:
                break
            # An error of first order falls with the step: go there at once, each stop compiles.
            times = 2 ** int(np.ceil(np.log2(error / _STEP_ERROR)))
            model = model.finer(min(max(times, 2), 16, _FINEST // model.fineness))
    return _Solved(model, z, noise, prior, (same, count), simulations, error)


def _settled(
    model: Model, z: np.ndarray, noise: dict[str, float], prior: Prior, tell: Any
) -> tuple[np.ndarray, dict[str, float], int]:
    """The minimum and the noise that agree with each other."""
    said, simulations = given_noise(model), 0
    rows = dict.fromkeys(model.fields, 0)
    spread = dict.fromkeys(model.fields, 0.0)
    for e in model.experiments:
        for s in e.sensors:
            rows[s.field] += len(s.measured)
            spread[s.field] = max(spread[s.field], float(np.std(s.measured)))
    for count in range(_NOISE_ROUNDS):
        z, more = polish(model, z, noise, prior)
        simulations += more
        residual, jacobian = model.programs.linearised(z, model.data)
        parts = {
            f: (r @ r, None, np.asarray(jacobian[f]).T @ np.asarray(jacobian[f]))
            for f, r in ((f, np.asarray(residual[f])) for f in model.fields)
        }
        new = {
            f: float(sigma)
            for f, sigma in estimated_noise(parts, rows, noise, prior, spread).items()
        }
        new |= said
        change = max(abs(new[f] / noise[f] - 1) for f in noise)
        noise = new
        tell(_ROUNDS + count + 1)
        if change < 1e-4:
            break
    return z, noise, simulations


def _step_error(model: Model, z: np.ndarray, noise: Mapping[str, float]) -> float:
    """What steps half as long change in any sensor, root mean square over its noise."""
    finer = model.finer()
    then = finer.programs.residuals(z, finer.data)
    now, _ = model.programs.linearised(z, model.data)
    changes = {f: np.asarray(now[f]) - np.asarray(then[f]) for f in model.fields}
    return max(float(np.sqrt(np.mean(np.square(changes[f])))) / noise[f] for f in changes)


def _result(simulation: Simulation, solved: _Solved, held: list[Experiment], unknowns: Any) -> Fit:
    from scipy.stats import t as student

    model, z, noise, prior = solved.model, solved.z, solved.noise, solved.prior
    residuals, _ = model.programs.linearised(z, model.data)
    _, jacobian = whitened(model, z, noise, prior)
    rows = len(jacobian) - len(z)
    real = np.concatenate([np.ones(rows, bool), prior.is_real])
    low, high = prior.low, prior.high
    at_bound = (z - low < 1e-6) | (high - z < 1e-6)
    shown = told(model.simulation, model.coordinates, z)
    turn = shown.turn(z)
    jacobian = jacobian @ turn
    is_log = np.array([c.is_log for c in shown.coordinates])
    quantile = float(student.ppf(0.975, max(rows - len(z), 1)))
    rank = rank_of(jacobian[real], is_log, at_bound, quantile)
    together = all_combinations(model.simulation, shown, rank)
    in_one = {name for found in together for name in found.unknowns}
    estimates = tuple(
        _estimate(
            c, shown.z[j], half, kind if kind != "combination" or c.name in in_one else "unknown"
        )
        for j, (c, half, kind) in enumerate(
            zip(shown.coordinates, rank.half_widths, rank.kinds(), strict=True)
        )
    )
    with_delay = [
        c.key[0] for j, c in enumerate(model.coordinates) if c.kind == "delay" and not at_bound[j]
    ]
    said = dict.fromkeys(given_noise(model), True)
    sure = {field: field in said for field in model.fields}
    names = [c.name for c in shown.coordinates]
    held_checks, held_traces = _held_out(model, held, unknowns, z, noise, with_delay)
    units = {s.field: s.place.spec.unit for e in model.experiments for s in e.sensors}
    return Fit(
        estimates,
        tuple(together),
        tuple((names[i], names[j], r) for i, j, r in rank.trade_offs()),
        rank.count_of([c.kind in KINDS for c in model.coordinates]),
        {field: (noise[field], units[field]) for field in model.fields},
        tuple(checks(model, residuals, noise, sure, with_delay)),
        held_checks,
        _covariance(shown.coordinates, shown.z, rank),
        rows,
        solved.simulations,
        solved.starts,
        max(e.period_s for e in model.experiments) / model.fineness,
        solved.step_error,
        kept(model.simulation, model.coordinates, z),
        advice(model, z, noise, jacobian[real], rank, turn),
        (*_traces(model, residuals, False), *held_traces),
        simulation,
    )


def _estimate(c: Coordinate, z: float, half: float, kind: Any) -> Estimate:
    value, ends = float(c.value(z)), (None, None)
    if kind == "known":
        low, high = c.interval(z, half)
        return Estimate(c.name, c.unit, c.kind, kind, value, low, high, c.start, c.prior)
    told = value if kind == "bound" else None
    return Estimate(c.name, c.unit, c.kind, kind, told, *ends, c.start, c.prior)


def _covariance(found: Sequence[Coordinate], z: np.ndarray, rank: Rank) -> np.ndarray:
    known = [j for j, kind in enumerate(rank.kinds()) if kind == "known"]
    slope = np.array(
        [float(found[j].value(z[j])) if found[j].is_log else found[j].scale for j in known]
    )
    return rank.covariance[np.ix_(known, known)] * np.outer(slope, slope)


def _held_out(
    model: Model,
    held: list[Experiment],
    unknowns: Any,
    z: np.ndarray,
    noise: Mapping[str, float],
    with_delay: Sequence[str],
) -> tuple[tuple[Check, ...], tuple[Trace, ...]]:
    """The logs that were not fitted, with what was found; only their own start is looked for."""
    if not held:
        return (), ()
    own = coordinates(model.simulation, unknowns, held)
    found = {c.name: z[j] for j, c in enumerate(model.coordinates)}
    test = Model(model.simulation, tuple(held), own, model.fineness)
    prior = prior_of(test)
    fixed = np.array([c.name in found for c in own])
    where = np.array([found.get(c.name, prior.centre[j]) for j, c in enumerate(own)])
    prior = dataclasses.replace(
        prior, low=np.where(fixed, where, prior.low), high=np.where(fixed, where, prior.high)
    )
    unheard = {field: float("inf") for field in test.fields if field not in noise}
    if unheard:
        raise InputError(f"logs: a held-out log has {quoted(unheard)}, and no fitted log has")
    if not fixed.all():
        ends, _, _ = levenberg_marquardt(
            lambda z: test.programs.normal(z, test.data), where[None], noise, prior, _ROUNDS
        )
        where = ends[0]
    residuals = test.programs.residuals(where, test.data)
    return (tuple(checks(test, residuals, noise, True, with_delay)), _traces(test, residuals, True))


def _traces(model: Model, residuals: Mapping[str, Any], held_out: bool) -> tuple[Trace, ...]:
    return tuple(
        Trace(
            e.name,
            s.field,
            s.place.spec.unit,
            s.positions * e.period_s,
            s.measured,
            s.measured + left,
            held_out,
        )
        for e, rest in zip(model.experiments, model.split(residuals), strict=True)
        for s, left in zip(e.sensors, rest, strict=True)
    )


def _refuse_same_names(experiments: Sequence[Experiment]) -> None:
    names = [e.name for e in experiments]
    if len(set(names)) < len(names):
        raise InputError(
            f"logs: {quoted(names)} must have names of their own; give Log(..., name=...)",
            place=("logs",),
        )


def _refuse_other_units(model: Model) -> None:
    """Far larger or smaller than the model at its start values, a log is hardly in its unit."""
    start = prior_of(model).centre
    gained = {c.key[0] for c in model.coordinates if c.kind == "gain"}
    residuals, _ = model.programs.linearised(start, model.data)
    for e, rest in zip(model.experiments, model.split(residuals), strict=True):
        for sensor, left in zip(e.sensors, rest, strict=True):
            size = float(np.sqrt(np.mean(np.square(sensor.measured + left))))
            ratio = float(np.sqrt(np.mean(sensor.measured**2))) / size if size > 0 else 1.0
            if sensor.field not in gained and not 1 / _FAR < ratio < _FAR:
                unit = sensor.place.channel.unit or sensor.place.spec.unit
                raise LogError(
                    e.file,
                    f"is {ratio:.3g} times what the model gives for {sensor.field} at the start "
                    f"values: another unit than {unit}? "
                    "Else give start values that are nearer, or Channel(..., gain=True)",
                    column=sensor.column,
                )
