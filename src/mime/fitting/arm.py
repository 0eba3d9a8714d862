"""A `Fit` of an arm by its inverse dynamics: rank, base parameters, and bodies that exist."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mime.core.problem import InputError
from mime.fitting.base_parameters import all_combinations
from mime.fitting.bounded import Region, region_of
from mime.fitting.channel import Channel
from mime.fitting.coordinates import coordinates
from mime.fitting.entries import covariance_of, estimate_of, outliers_by_row, traces_of
from mime.fitting.experiment import refuse_other_unit, still_sensors
from mime.fitting.explanation import checks
from mime.fitting.inverse_dynamics import (
    Found,
    Rows,
    TorqueModel,
    linearised,
    settled_motion,
    solve,
)
from mime.fitting.log import Log
from mime.fitting.missing import with_missing
from mime.fitting.missing_torques import missing_torques
from mime.fitting.model import Model
from mime.fitting.motion_advice import other_motion
from mime.fitting.parameters import KINDS, Told, changed_starts, kept, told
from mime.fitting.profile import Interval, linear_interval
from mime.fitting.rank import Kind, Rank, rank_of, widest_of
from mime.fitting.result import Fit
from mime.fitting.solve import given_noise
from mime.fitting.torques import Run, arm_of, joint_of, read_run
from mime.fitting.unknown import Coordinate
from mime.fitting.widening import Residual, are_white, widened_by
from mime.running.progress import Progress, progress_bar
from mime.running.simulation import Simulation

_ROUNDS = 25
_MATTERS = 0.01
"""The part of chi² that bodies which exist may cost before it is said."""
_QUIETER = 0.05
"""A motion of half as many pieces is taken where the noise of torques falls by this part, on
average. Under white noise of the angles it does not fall."""


def fit_torques(
    simulation: Simulation,
    double: Simulation,
    logs: Sequence[Log],
    columns: Mapping[str, str | Channel],
    unknowns: Any,
    progress: Progress,
) -> Fit:
    """What `fit` does with by="inverse_dynamics"."""
    runs = [read_run(double, log, columns) for log in logs if not log.held_out]
    held = [read_run(double, log, columns) for log in logs if log.held_out]
    arm = arm_of(double, logs[0].columns or columns).name
    fitted, tested = ([run.experiment for run in of] for of in (runs, held))
    still = still_sensors(fitted, tested)
    looked_for = coordinates(double, unknowns, fitted)
    _refuse_others(arm, looked_for)
    shown = _linear(looked_for, told(double, looked_for, _starts(looked_for)))
    model = TorqueModel(double, arm, shown)
    record = Model(double, tuple(fitted), looked_for, 1)
    _refuse_other_units(model, runs)
    with progress_bar(_ROUNDS, 0, progress) as tell:
        stds = _stds(looked_for)
        region = region_of(double, shown.coordinates, shown.z, stds, _of_bodies(looked_for))
        said = given_noise(record)
        found, factor = _coarsened(
            lambda runs: solve(model, runs, said, stds, region, tell), runs, said
        )
    if factor > 1:
        held = [run.coarser(factor) for run in held]
    result = _result(simulation, model, record, found, region, held, looked_for, factor)
    return dataclasses.replace(result, notes=(*still, *result.notes))


def _coarsened(
    solved: Callable[[Sequence[Run]], Found], runs: Sequence[Run], said: Mapping[str, float]
) -> tuple[Found, int]:
    """The minimum, and how many times fewer pieces its motion has than its angles ask for."""
    found, factor = solved(runs), 1
    while not are_white(_left(found, said)):
        coarser = [run.coarser(2 * factor) for run in runs]
        if [run.motion.pieces for run in coarser] == [run.motion.pieces for run in found.runs]:
            break  # the fewest
        other = solved(coarser)
        if _loudness(other) > _loudness(found) - _QUIETER:
            break
        found, factor = other, 2 * factor
    return found, factor


def _loudness(found: Found) -> float:
    """Mean of log sigma_tau over the sensors."""
    return float(np.mean(np.log(list(found.noise.values()))))


def _starts(looked_for: Sequence[Coordinate]) -> np.ndarray:
    return np.array([c.z(c.start) for c in looked_for])


def _refuse_others(arm: str, looked_for: Sequence[Coordinate]) -> None:
    for c in looked_for:
        if c.kind in KINDS and c.key[0].partition(".")[0] != arm:
            raise InputError(
                f"{c.name} is none of {arm!r}, and by='inverse_dynamics' knows no other "
                "node. Fit it by='simulation'",
                place=("unknowns", c.key[0]),
                label="unknowns:",
            )


def _linear(looked_for: Sequence[Coordinate], shown: Told) -> Told:
    """The same with every parameter in units of half its start: torques are linear in most."""
    found = tuple(
        dataclasses.replace(c, is_log=False, scale=0.5 * c.start) if c.is_log else c
        for c in shown.coordinates
    )

    def of(z: Any) -> Any:
        u = shown.of(z)
        values = [
            old.value(u[j]) / new.scale if old.is_log else u[j]
            for j, (old, new) in enumerate(zip(shown.coordinates, found, strict=True))
        ]
        return jnp.stack(values)

    return Told(found, np.asarray(of(jnp.asarray(_starts(looked_for)))), of)


def _stds(looked_for: Sequence[Coordinate]) -> np.ndarray:
    """Of what is told, where something was known beforehand; bodies have theirs in their cones.

    A relative std of a logarithm is twice that of a value in units of half its start.
    """
    return np.array(
        [
            np.inf
            if c.std_of_z is None or c.kind == "body"
            else c.std_of_z * (2.0 if c.is_log else 1.0)
            for c in looked_for
        ]
    )


def _of_bodies(looked_for: Sequence[Coordinate]) -> dict[str, float]:
    """What is known beforehand of bodies, a part of their size: that of their logarithms."""
    return {
        c.key[0]: c.std_of_z
        for c in looked_for
        if c.kind == "body" and c.is_log and c.std_of_z is not None
    }


def _result(
    simulation: Simulation,
    model: TorqueModel,
    record: Model,
    found: Found,
    region: Region,
    held: Sequence[Run],
    looked_for: tuple[Coordinate, ...],
    factor: int,
) -> Fit:
    from scipy.special import stdtrit

    arm: Any = model.simulation.nodes[model.arm]
    shown = dataclasses.replace(model.shown, z=found.u)
    count = _values(found)
    quantile = float(stdtrit(max(count - len(found.R), 1), 0.975))
    at_bound = region.at_bound(found.u)
    square = np.zeros((len(found.u),) * 2)
    square[: len(found.R)] = found.R
    rank = rank_of(square, widest_of(shown.coordinates, found.u), at_bound, quantile)
    said = given_noise(record)
    if not are_white(_left(found, said)):
        rank = widened_by(rank, found.windows, found.slopes, found.held)
    together = all_combinations(model.simulation, shown, rank)
    in_one = {name for c in together for name in c.unknowns}
    each = [_inside(region, linear_interval(rank, found.u, j), j) for j in range(len(found.u))]
    kinds: list[Kind] = []
    for j, (c, kind) in enumerate(zip(shown.coordinates, rank.kinds(), strict=True)):
        is_narrow = c.is_narrow(found.u[j], each[j].low, each[j].high)
        is_alone = kind == "combination" and c.name not in in_one
        if kind != "bound" and is_narrow and (kind == "known" or c.may_be_zero):
            kinds.append("known")
        else:
            kinds.append("unknown" if is_alone or kind == "known" else kind)
    estimates = tuple(
        estimate_of(c, found.u[j], each[j], kinds[j]) for j, c in enumerate(shown.coordinates)
    )
    names = [c.name for c in shown.coordinates]
    units = {s.field: s.place.spec.unit for e in record.experiments for s in e.sensors}
    residuals = _by_field(record, found.rows)
    with_delay = [
        c.key[0]
        for c, is_held in zip(shown.coordinates, at_bound, strict=True)
        if c.kind == "delay" and not is_held
    ]
    sure = {field: field in said for field in record.fields}
    held_checks: tuple[Any, ...] = ()
    held_traces: tuple[Any, ...] = ()
    if held:
        test = Model(model.simulation, tuple(run.experiment for run in held), (), 1)
        fields = [field for field in test.fields if field not in found.noise]
        if fields:
            raise InputError(f"logs: a held-out log has {fields}, and no fitted log has")
        left = _by_field(test, settled_motion(model, held, found.u, found.noise))
        moved = [_motion_of(run) for run in held]
        held_checks = tuple(checks(test, left, found.noise, True, with_delay, moved))
        held_traces = traces_of(test, left, True)
    return Fit(
        estimates=estimates,
        combinations=tuple(together),
        trade_offs=tuple(
            (names[i], names[j], r)
            for i, j, r in rank.trade_offs()
            if kinds[i] == kinds[j] == "known"
        ),
        rank=rank.count_of([c.kind in KINDS for c in shown.coordinates]),
        noise={field: (found.noise[field], units[field]) for field in record.fields},
        checks=with_missing(
            checks(
                record,
                residuals,
                found.noise,
                sure,
                with_delay,
                [_motion_of(r) for r in found.runs],
            ),
            lambda: missing_torques(found, rank, arm),
        ),
        held_out=held_checks,
        covariance=covariance_of(shown.coordinates, found.u, rank, kinds),
        rows=count,
        simulations=found.rounds,
        starts=(1, 1),
        timestep=max(e.period_s for e in record.experiments),
        step_error=0.0,
        kept=kept(model.simulation, shown.coordinates, found.u),
        other_motion=other_motion(
            arm, found.runs[0], shown.coordinates, found.noise, found.R, rank
        ),
        outliers=outliers_by_row(record, residuals, found.noise),
        traces=(*traces_of(record, residuals, False), *held_traces),
        model=simulation,
        how=_how(found, rank, shown, factor),
        notes=changed_starts(model.simulation, looked_for),
    )


def _motion_of(run: Run) -> dict[str, np.ndarray]:
    """Angles, speeds and accelerations of all joints at the rows of each sensor."""
    period = run.experiment.period_s
    return {
        s.field: run.motion.at(s.positions * period)[:, :3].reshape(len(s.positions), -1)
        for s in run.experiment.sensors
    }


def _inside(region: Region, interval: Interval, j: int) -> Interval:
    """The same without values that cannot be."""
    low, high = max(interval.low, region.low[j]), min(interval.high, region.high[j])
    return dataclasses.replace(interval, low=float(low), high=float(high))


def _left(found: Found, said: Mapping[str, float]) -> list[Residual]:
    """What is left of every torque, over its noise; `said` are those whose noise is known."""
    return [
        Residual(
            i, part.field, part.time_s, part.left / found.noise[part.field], part.field in said
        )
        for i, run in enumerate(found.rows)
        for part in run
    ]


def _values(found: Found) -> int:
    return sum(len(part.left) for run in found.rows for part in run)


def _by_field(record: Model, rows: Sequence[Sequence[Rows]]) -> dict[str, np.ndarray]:
    parts: dict[str, list[np.ndarray]] = {field: [] for field in record.fields}
    for run in rows:
        for part in run:
            parts[part.field].append(part.left)
    return {field: np.concatenate(found) for field, found in parts.items()}


def _how(found: Found, rank: Rank, shown: Told, factor: int) -> str:
    from scipy.special import chdtri

    run = found.runs[0]
    angles = max(float(run.motion.noise.max()) for run in found.runs)
    count = sum(c.kind in KINDS for c in shown.coordinates)
    felt = rank.felt([c.kind in KINDS for c in shown.coordinates])
    words = (
        f"by inverse dynamics: the torques feel {felt} combinations of the {count} parameters; the "
        f"motion is a spline of {run.motion.pieces} pieces, found together with them in "
        f"{found.rounds} rounds; noise of the angles {angles:.2g} rad"
    )
    if factor > 1:
        words += (
            f"\nthe noise of the angles is not white: a spline of {factor} times as many pieces "
            "would explain the torques less well"
        )
    if found.price > max(chdtri(max(rank.count, 1), 1e-3), _MATTERS * _values(found)):
        words += (
            f"\nbodies that exist fit worse than sums of moments alone would (chi² "
            f"{found.price:.0f} more): something moves that the model does not have, or friction "
            "is another"
        )
    return words


def _refuse_other_units(model: TorqueModel, runs: Sequence[Run]) -> None:
    gained = {c.key[0] for c in model.shown.coordinates if c.kind == "gain"}
    for run in runs:
        rows = linearised(model, run, model.shown.z)
        for sensor, part in zip(run.experiment.sensors, rows, strict=True):
            if sensor.field not in gained:
                speed = run.motion.at(part.time_s)[:, 1, joint_of(sensor.place)]
                made = sensor.measured + part.left
                refuse_other_unit(run.experiment, sensor, made, False, speed)
