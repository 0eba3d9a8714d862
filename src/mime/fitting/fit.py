"""`mime.fit`: unknown parameters of a graph from logs of it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from mime._text import quoted
from mime.core.arguments import instance, mapping, whole, wrong
from mime.core.problem import InputError
from mime.fitting import hard_stops
from mime.fitting.advice import advice, longer, other_input
from mime.fitting.arm import fit_torques
from mime.fitting.base_parameters import all_combinations
from mime.fitting.channel import Channel
from mime.fitting.combinations import untold
from mime.fitting.coordinates import coordinates
from mime.fitting.divided import chosen_seconds, divided, undivided
from mime.fitting.entries import covariance_of, estimate_of, outliers_by_row, traces_of
from mime.fitting.exact import note, with_exact_motors
from mime.fitting.experiment import (
    Experiment,
    experiment,
    refuse_other_unit,
    still_sensors,
    with_common_periods,
)
from mime.fitting.explanation import Check, checks, speed_of, turned
from mime.fitting.log import as_logs
from mime.fitting.loss import NAMES, Loss
from mime.fitting.missing import missing, with_missing
from mime.fitting.model import Model, in_double
from mime.fitting.parameters import KINDS, changed_starts, kept, told
from mime.fitting.profile import Interval, Minimum, intervals, is_told, linear_interval
from mime.fitting.rank import Kind, Rank, rank_of, widest_of
from mime.fitting.rates import first_fineness, sampled_nodes, undeclared_nodes
from mime.fitting.result import Fit, FitError, FreeRun, InWindows, Trace
from mime.fitting.search import ROUNDS, Solved, at_states, solve
from mime.fitting.solve import given_noise, levenberg_marquardt, prior_of, whitened
from mime.fitting.states import reduced
from mime.fitting.unknown import Coordinate, Unknown
from mime.fitting.widening import Cut, Residual, widened
from mime.fitting.windows import AUTOMATIC, window_of
from mime.fitting.zero import at_zero, may_be_zero
from mime.running.progress import Progress, check_progress
from mime.running.simulation import Simulation

_SHOWN = ("rad", "rad/s", "m", "m/s", "°C")
"""Units of initial states that are listed."""


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
    loss: str = "linear",
    window: float | str = AUTOMATIC,
    strict: bool = False,
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
    loss             "linear": squares. "soft_l1" or "huber": outliers count less, and are told
    window           seconds: logs are simulated in windows that are no longer, each from initial
                     states of its own. "auto": the whole log if a run from the start values stays
                     within three times its signals' ranges, else the longest of 4, 2, 1 and 0.5 s
    strict           raise a `FitError` where the model does not explain the logs
    progress         as in `Simulation.run`

    Each sensor's delay and noise are unknown, too, unless its `Channel` says otherwise.
    """
    instance("simulation", simulation, Simulation)
    count = whole("starts", starts, 1, most=10_000)
    random = np.random.default_rng(whole("seed", seed))
    check_progress(progress)
    instance("strict", strict, bool, np.bool_)
    if loss not in NAMES:
        raise wrong("loss", f"one of {quoted(NAMES)}", loss)
    chosen_loss = Loss(loss)
    seconds = window_of(window)
    columns = mapping("columns", columns, "{'column': 'node.field'}")
    chosen = as_logs(logs)
    fitted = [log for log in chosen if not log.held_out]
    if not fitted:
        raise InputError("nothing to fit: every log is held out", place=("logs",), label="logs:")
    if instance("by", by, str) not in ("simulation", "inverse_dynamics"):
        raise wrong("by", "'simulation' or 'inverse_dynamics'", by)
    if by == "inverse_dynamics" and chosen_loss.is_robust:
        raise wrong("loss", "'linear' with by='inverse_dynamics'", loss)
    if by == "inverse_dynamics" and seconds is not None:
        raise wrong("window", "'auto' with by='inverse_dynamics', which simulates nothing", window)
    # OpenBLAS splits matrices as small as these among all cores and waits for each in a loop:
    # beside other work on the machine it waits far longer than it computes.
    with jax.enable_x64(True), threadpool_limits(1, "blas"):
        double, exact = with_exact_motors(in_double(simulation))
        if by == "inverse_dynamics":
            found = fit_torques(simulation, double, chosen, columns, unknowns, progress)
            return _judged(found, strict)
        read = [
            experiment(double, log, columns, inputs, chosen_loss.is_robust)
            for log in (*fitted, *(log for log in chosen if log.held_out))
        ]
        read = with_common_periods(double, read)
        experiments, held = read[: len(fitted)], read[len(fitted) :]
        _refuse_same_names([*experiments, *held])
        still = still_sensors(experiments, held)
        looked_for = coordinates(double, unknowns, experiments)
        model = Model(double, tuple(experiments), looked_for, first_fineness(double, experiments))
        start = prior_of(model).centre
        left = model.split(
            model.programs.residuals(start, model.data)
            if seconds is not None
            else model.programs.linearised(start, model.data)[0]
        )
        _refuse_other_units(model, left, chosen_loss)
        if seconds is None:
            seconds = chosen_seconds(model, start, left)
        model = divided(model, seconds, start)
        solved = solve(model, chosen_loss, count, random, progress)
        found = _result(simulation, solved, held, unknowns)
        stops = hard_stops.note(solved.model, solved.z)
        found = dataclasses.replace(found, notes=(*still, *found.notes, *note(exact), *stops))
        return _judged(found, strict)


def _judged(found: Fit, strict: bool) -> Fit:
    """Raise a `FitError` for a strict fit that leaves something unexplained."""
    if strict and not found.is_explained:
        raise FitError(f"the model does not explain the logs, and the fit is strict.\n{found}")
    return found


def _result(simulation: Simulation, solved: Solved, held: list[Experiment], unknowns: Any) -> Fit:
    from scipy.special import stdtrit

    model, z, noise, prior, loss = solved.model, solved.z, solved.noise, solved.prior, solved.loss
    residuals, _ = model.linearised(z)
    over, jacobian = whitened(model, z, noise, prior, loss)
    rows, above = model.count, len(jacobian) - len(z)  # between them the prior of initial states
    slopes = jacobian[:rows].copy()
    jacobian[:rows] *= _informed(model, over[:rows], loss)[:, None]
    real = np.concatenate([np.ones(above, bool), prior.is_real])
    low, high = prior.low, prior.high
    quantile = float(stdtrit(max(rows - len(z), 1), 0.975))
    is_zero = at_zero(model, z, noise, prior, loss, quantile)
    at_bound = (z - low < 1e-6) | (high - z < 1e-6) | is_zero
    zeros = [
        c.name
        for c, none in zip(model.coordinates, is_zero.tolist(), strict=True)
        if none and may_be_zero(model.simulation, c.name)
    ]
    shown = told(model.simulation, model.coordinates, z)
    turn = shown.turn(z)

    def rank_by(found: Sequence[Coordinate], z: np.ndarray, jacobian: np.ndarray) -> Rank:
        return rank_of(jacobian[real], widest_of(found, z), at_bound, quantile)

    looked_for = rank_by(model.coordinates, z, jacobian)
    jacobian = jacobian @ turn
    rank = widened(
        rank_by(shown.coordinates, shown.z, jacobian),
        _left(model, over[:rows], loss),
        jacobian[:above],
        jacobian[above:][prior.is_real],
        _cut(model, z, noise, loss),
    )
    together = all_combinations(model.simulation, shown, rank)
    more_together, of_names = untold(shown.coordinates, rank, together)
    in_one = {name for found in together for name in found.unknowns} | set(of_names)
    first, second = loss.information(over[:rows])
    minimum = Minimum(model, z, noise, prior, loss, looked_for, quantile * np.sqrt(second / first))
    known = [
        j
        for j, (c, kind) in enumerate(zip(shown.coordinates, rank.kinds(), strict=True))
        if kind == "known" or (kind != "bound" and is_told(c, rank, shown.z, j))
    ]
    in_body = [j for j in known if shown.coordinates[j].kind == "body"]
    ratios = rank.ratios
    found, more = intervals(minimum, [j for j in known if j not in in_body], ratios)
    found |= {j: linear_interval(rank, shown.z, j) for j in in_body}
    kinds = [
        _kind(kind, c, float(shown.z[j]), found.get(j), c.name in in_one)
        for j, (c, kind) in enumerate(zip(shown.coordinates, rank.kinds(), strict=True))
    ]
    each = enumerate(shown.coordinates)
    estimates = tuple(
        dataclasses.replace(e, value=0.0) if e.name in zeros else e
        for e in (estimate_of(c, shown.z[j], found.get(j), kinds[j]) for j, c in each)
    )
    bounded = {f: loss.bounded(residuals[f], noise[f]) for f in model.fields}
    with_delay = [
        c.key[0] for j, c in enumerate(model.coordinates) if c.kind == "delay" and not at_bound[j]
    ]
    said = dict.fromkeys(given_noise(model), True)
    sure = {field: field in said for field in model.fields}
    names = [c.name for c in shown.coordinates]
    held_checks, held_traces, held_model = _held_out(solved, held, unknowns, with_delay)
    units = {s.field: s.place.spec.unit for e in model.experiments for s in e.sensors}
    return Fit(
        estimates=estimates,
        combinations=tuple(together),
        trade_offs=tuple(
            (names[i], names[j], r)
            for i, j, r in rank.trade_offs()
            if kinds[i] == kinds[j] == "known"
        ),
        rank=rank.count_of([c.kind in KINDS for c in model.coordinates]),
        noise={field: (noise[field], units[field]) for field in model.fields},
        checks=with_missing(
            _with_signs(model, checks(model.whole, bounded, noise, sure, with_delay)),
            lambda: missing(
                model,
                z,
                loss.psi(over[:rows]),
                slopes[:, ~at_bound],
                noise,
                lambda columns: _without_states(model, z, noise, loss, columns),
            ),
        ),
        held_out=held_checks,
        covariance=covariance_of(shown.coordinates, shown.z, rank, kinds),
        rows=rows,
        simulations=solved.simulations + more,
        starts=solved.starts,
        is_complete=solved.is_complete,
        timestep=max(e.period_s for e in model.experiments) / model.fineness,
        is_extrapolated=model.extrapolates,
        step_error=solved.step_error,
        kept=kept(model.simulation, model.coordinates, z) | dict.fromkeys(zeros, 0.0),
        advice=advice(model, z, noise, jacobian[real], rank.plain, turn),
        longer=longer(model, rank.plain),
        other_input=None
        if model.windows is not None
        else other_input(model, z, noise, jacobian[rows:][prior.is_real], rank.plain, turn),
        loss=loss.name,
        outliers=outliers_by_row(model.whole, residuals, noise),
        sampled=sampled_nodes(model.simulation),
        undeclared=undeclared_nodes(
            model.simulation, model.experiments[0].period_s / model.fineness
        ),
        traces=(*traces_of(model.whole, residuals, False), *held_traces),
        windows=_in_windows(model, z, held_model),
        model=simulation,
        notes=(
            *changed_starts(model.simulation, model.coordinates),
            *_more_together(more_together, of_names),
        ),
    )


def _informed(model: Model, over: np.ndarray, loss: Loss) -> np.ndarray:
    """mean psi' / sqrt(mean psi²) of each row's sensor: what its row of the Jacobian is worth."""
    worth, first = np.ones(len(over)), 0
    for field in model.fields:
        count = sum(
            len(s.measured) for e in model.experiments for s in e.sensors if s.field == field
        )
        slope, square = loss.information(over[first : first + count])
        worth[first : first + count] = slope / np.sqrt(square) if square > 0 else 1.0
        first += count
    return worth


def _more_together(count: int, names: Sequence[str]) -> tuple[str, ...]:
    """What is known and has no simple name."""
    if not count:
        return ()
    more = f"{count} more combination{'s' * (count > 1)}"
    are = "are" if count > 1 else "is"
    return (f"{more} of {', '.join(names)} {are} known, and {are} no product of three",)


def _left(model: Model, over: np.ndarray, loss: Loss) -> list[Residual]:
    """What is left of every sensor in every log; outliers as far as the loss counts them."""
    found, first, said = [], 0, given_noise(model)
    for field in model.fields:
        parts, start = [], first
        for number, e in enumerate(model.whole.experiments):
            for s in (s for s in e.sensors if s.field == field):
                last = first + len(s.measured)
                parts.append((number, s.positions * e.period_s, loss.psi(over[first:last])))
                first = last
        _, square = loss.information(over[start:first])
        size = np.sqrt(square) if square > 0 else 1.0
        found += [Residual(i, field, t, values / size, field in said) for i, t, values in parts]
    return found


def _cut(model: Model, z: np.ndarray, noise: Mapping[str, float], loss: Loss) -> Cut | None:
    """How the rows lie in windows; None where logs were simulated as a whole."""
    if model.windows is None:
        return None
    found = reduced(model, z, noise, loss)
    seconds = [e.intervals * e.period_s for e in model.experiments]
    return Cut(found.window, np.array(seconds), found.r[model.count :])


def _without_states(
    model: Model, z: np.ndarray, noise: Mapping[str, float], loss: Loss, columns: np.ndarray
) -> np.ndarray:
    """Columns of all rows without what initial states of windows would make of them."""
    if model.windows is None:
        return columns
    return reduced(model, z, noise, loss).without_states(columns)


def _in_windows(
    model: Model, z: np.ndarray, held: tuple[Model, np.ndarray] | None
) -> InWindows | None:
    """How many windows there were, and what runs of the whole logs leave."""
    if (windows := model.windows) is None:
        return None
    runs = _free_runs(model, z, False)
    if held is not None:
        runs += _free_runs(*held, True)
    sampled = sampled_nodes(model.simulation)
    free: dict[bool, list[str]] = {True: [], False: []}
    for (node, field, index), is_free in zip(
        windows.slots, np.any(windows.is_free, axis=0), strict=True
    ):
        if is_free:
            unit = model.simulation.nodes[node].state_spec()[field].unit
            is_shown = unit in _SHOWN and node not in sampled
            free[is_shown].append(f"{node}.{field}{list(index) if index else ''}")
    return InWindows(
        windows.seconds,
        len(windows.first),
        len(held[0].experiments) if held is not None else 0,
        tuple(free[True]),
        runs,
        tuple(free[False]),
    )


def _free_runs(model: Model, z: np.ndarray, held_out: bool) -> tuple[FreeRun, ...]:
    assert model.windows is not None, "it is a model of windows"
    whole = undivided(model, model.windows.starts)
    left = whole.split(whole.programs.residuals(z, whole.data))
    return tuple(
        FreeRun(
            e.name,
            s.field,
            s.place.spec.unit,
            float(np.sqrt(np.mean(np.square(r)))) if np.isfinite(r).all() else float("inf"),
            float(np.std(s.measured)),
            held_out,
        )
        for e, rest in zip(whole.experiments, left, strict=True)
        for s, r in zip(e.sensors, rest, strict=True)
    )


def _kind(kind: Kind, c: Coordinate, z: float, interval: Interval | None, in_one: bool) -> Kind:
    """As the rank says; but what its interval leaves too wide is not known."""
    if interval is not None:
        return "known" if c.is_narrow(z, interval.low, interval.high) else "unknown"
    return "unknown" if kind == "combination" and not in_one else kind


def _held_out(
    solved: Solved, held: list[Experiment], unknowns: Any, with_delay: Sequence[str]
) -> tuple[tuple[Check, ...], tuple[Trace, ...], tuple[Model, np.ndarray] | None]:
    """The logs that were not fitted, with what was found; only their own start is looked for."""
    if not held:
        return (), (), None
    model, z, noise, loss = solved.model, solved.z, solved.noise, solved.loss
    own = coordinates(model.simulation, unknowns, held)
    found = {c.name: z[j] for j, c in enumerate(model.coordinates)}
    test = Model(
        model.simulation, tuple(held), own, model.fineness, extrapolates=model.extrapolates
    )
    prior = prior_of(test)
    fixed = np.array([c.name in found for c in own])
    where = np.array([found.get(c.name, prior.centre[j]) for j, c in enumerate(own)])
    prior = dataclasses.replace(
        prior, low=np.where(fixed, where, prior.low), high=np.where(fixed, where, prior.high)
    )
    unheard = {field: float("inf") for field in test.fields if field not in noise}
    if unheard:
        raise InputError(f"logs: a held-out log has {quoted(unheard)}, and no fitted log has")
    if model.windows is not None:
        test = divided(test, model.windows.seconds, where)
    if not fixed.all():
        ends, _, _ = levenberg_marquardt(
            lambda z: test.normal(z, test.counted(1.0)), where[None], noise, prior, ROUNDS
        )
        where = ends[0]
    test = at_states(test, where, noise, loss)
    residuals = test.programs.residuals(where, test.data)
    bounded = {f: loss.bounded(residuals[f], noise[f]) for f in test.fields}
    found_checks = tuple(checks(test.whole, bounded, noise, True, with_delay))
    return found_checks, traces_of(test.whole, residuals, True), (test, where)


def _refuse_same_names(experiments: Sequence[Experiment]) -> None:
    names = [e.name for e in experiments]
    if len(set(names)) < len(names):
        raise InputError(
            f"{quoted(names)} must have names of their own; give Log(..., name=...)",
            place=("logs",),
            label="logs:",
        )


def _with_signs(model: Model, found: Sequence[Check]) -> tuple[Check, ...]:
    """Sensors that are not explained and go against the model at its start values say so."""
    if all(check.is_explained for check in found):
        return tuple(found)
    residuals, _ = model.linearised(prior_of(model).centre)
    against = {}
    whole = model.whole
    for e, rest in zip(whole.experiments, whole.split(residuals), strict=True):
        for sensor, left in zip(e.sensors, rest, strict=True):
            if words := turned(sensor, sensor.measured + left):
                against[e.name, sensor.field] = (words,)
    return tuple(
        dataclasses.replace(check, seen=against.get((check.log, check.field), ()) + check.seen)
        for check in found
    )


def _refuse_other_units(
    model: Model, residuals: Sequence[Sequence[np.ndarray]], loss: Loss
) -> None:
    """Refuse a log of the shape of the model at its start values, and far from its size.

    Where it has another shape, the start values are far off, or the free run leaves the log.
    """
    gained = {c.key[0] for c in model.coordinates if c.kind == "gain"}
    for e, rest in zip(model.experiments, residuals, strict=True):
        for sensor, left in zip(e.sensors, rest, strict=True):
            if sensor.field in gained:
                continue
            measured = [s.measured for s in e.sensors]
            is_force = sensor.place.spec.unit in ("N·m", "A")
            speed = speed_of(e, sensor, measured) if is_force else None
            refuse_other_unit(e, sensor, sensor.measured + left, loss.is_robust, speed)
