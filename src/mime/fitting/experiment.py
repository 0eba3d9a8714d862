"""A log as the simulation needs it: inputs for every step, and sensors' rows in periods of the log.

    position p_k = (t_k - t_0) / period        interval j is from p = j to j + 1

Inputs are held between rows; a step takes their mean over the step, which is their value where rows
are a whole number of steps apart.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.address import find
from mime.core.problem import InputError, ParameterError
from mime.core.program import Program
from mime.core.signals import as_float_array, declared
from mime.fitting.channel import Channel, Place, fields_of, place
from mime.fitting.log import Log, LogError, Rows, read_rows, settings
from mime.fitting.sampled import commensurate, is_commensurate
from mime.fitting.unknown import Unknown
from mime.scenarios.fields import Index, picked_shape, split_field

_JITTER = 1e-3
"""Rows nearer to a whole number of periods than this are there: what printed times leave."""
_LONGEST_GAP = 10.0
"""Periods over which the last input is taken to hold."""
_SAME_PERIOD = 1.5
"""Times the shortest, up to which periods of logs that have none of their own are made one."""
_ALIKE, _PIECES = 0.7, 50
"""The correlation of a log in another unit with the model, by medians over so many pieces."""
_SIGN, _FRICTION = 0.02, 0.5
"""Of the largest speed, where the sign of a friction is 0.76; the part of a torque's variance from
which on it is friction."""
_FAR = 7.0
"""A log so many times larger, or smaller, than the model with its start values is another unit."""


@dataclasses.dataclass(frozen=True)
class Sensor:
    """The rows of one sensor in one experiment that are compared with the simulation."""

    column: str
    place: Place
    positions: np.ndarray
    measured: np.ndarray
    """In the unit of the field."""
    lines: np.ndarray
    """Rows of the file, as an editor counts them; indices of a log in memory."""

    @property
    def field(self) -> str:
        """What the sensor measures, the same in all experiments."""
        return self.place.channel.field


@dataclasses.dataclass(frozen=True)
class Start:
    """A field of the state at the first row (or one number of it)."""

    node: str
    field: str
    index: Index
    unit: str
    value: float | Unknown


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One log, ready to be simulated."""

    name: str
    file: str
    period_s: float
    intervals: int
    is_uniform: bool
    """Rows are whole periods apart: inputs change between intervals only. Not so where no step
    divides both a period and the timestep of what is sampled."""
    positions: np.ndarray
    """Of all rows."""
    driven: Mapping[tuple[str, str], np.ndarray]
    """Inputs by node and field, one entry a row, holding until the next row."""
    sensors: tuple[Sensor, ...]
    starts: tuple[Start, ...]
    settings: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Parameters that were others in this experiment than in the graph, by address."""

    def inputs(self, steps_per_interval: int) -> dict[str, dict[str, np.ndarray]]:
        """The inputs of every step."""
        edges = np.arange(self.intervals * steps_per_interval + 1) / steps_per_interval
        found: dict[str, dict[str, np.ndarray]] = {}
        for (node, field), rows in self.driven.items():
            if self.is_uniform:
                at = np.searchsorted(self.positions, edges[:-1], side="right") - 1
                found.setdefault(node, {})[field] = rows[at]
                continue
            times = np.append(self.positions, max(self.intervals, self.positions[-1]))
            shape = (-1, *(1,) * (rows.ndim - 1))
            area = np.cumsum(rows * np.diff(times).reshape(shape), axis=0)  # the last row holds on
            area = np.concatenate([np.zeros((1, *rows.shape[1:])), area])
            flat = area.reshape(len(area), -1)
            each = [np.interp(edges, times, column) for column in flat.T]
            means = np.diff(np.stack(each, axis=1), axis=0) * steps_per_interval
            found.setdefault(node, {})[field] = means.reshape(-1, *rows.shape[1:])
        return found


def experiment(
    program: Program,
    log: Log,
    columns: Mapping[str, str | Channel],
    inputs: Mapping[str, Mapping[str, Any]] | None = None,
    spikes: bool = False,
) -> Experiment:
    """Read a log for a graph; a `LogError` or an `InputError` says what is wrong with it.

    Spikes are refused unless they are said to be allowed: a robust loss can live with them.
    """
    given = log.columns or columns
    places = {name: place(program, name, c, given) for name, c in fields_of(given).items()}
    logged = [name for name, where in places.items() if where.is_input]
    sensors = [name for name in places if name not in logged]
    if not sensors:
        raise InputError(
            "no sensor among them: nothing to fit", place=("columns",), label="columns:"
        )
    twice = {w.channel.field for w in places.values()}
    if len(twice) < len(places):
        raise InputError("two columns name the same field", place=("columns",), label="columns:")
    rows = read_rows(
        log,
        {name: places[name] for name in logged},
        {name: places[name] for name in sensors},
        spikes,
    )
    time = rows.time_s
    driven = _constants(program, inputs, len(time))
    driven |= _driven(places, logged, rows.columns, driven)
    period = float(np.median(np.diff(time)))
    values = {name: rows.columns[name] for name in sensors}
    if rows.until:  # the first row's inputs began a period before it
        time = np.concatenate([[time[0] - period], time])
        driven = {key: np.concatenate([row, row[-1:]]) for key, row in driven.items()}
        values = {name: np.concatenate([[np.nan], column]) for name, column in values.items()}
    positions = (time - time[0]) / period
    gap = int(np.argmax(np.diff(positions)))
    if (length := positions[gap + 1] - positions[gap]) > _LONGEST_GAP:
        line = int(rows.lines[min(gap + 1 - rows.until, len(rows.lines) - 1)])
        words = (
            f"nothing is logged for {length * period:.3g} s before this row, {length:.0f} periods: "
            "the inputs in between are not known. Make two logs of it, the second with "
            "`initial` states that are Unknown"
        )
        raise LogError(rows.file, words, line, log.time)
    whole = np.round(positions)
    slope = float(positions @ whole / (whole @ whole))  # the period itself is printed with an error
    is_uniform = bool(np.all(np.abs(positions / slope - whole) < _JITTER))
    is_uniform = is_uniform and is_commensurate(program, period * slope)
    if is_uniform:  # to nine digits, so that logs of one rate share a program
        positions, period = whole, float(f"{period * slope:.9g}")
    else:  # no period is the rows' own: one that suits what is sampled
        grid = commensurate(program, period)
        positions, period = positions * (period / grid), grid
    found = tuple(
        sensor_rows(rows, name, places[name], positions, values[name]) for name in sensors
    )
    starts = tuple(_start(program, field, value) for field, value in log.initial.items())
    intervals = int(np.ceil(positions[-1] - _JITTER))
    return Experiment(
        rows.label,
        rows.file,
        period,
        intervals,
        is_uniform,
        positions,
        driven,
        found,
        starts,
        _settings(program, log, rows),
    )


def with_common_periods(program: Program, found: Sequence[Experiment]) -> list[Experiment]:
    """Experiments whose rows are no whole periods apart, with periods that they share.

    Any period near the rows' own is as good, and what has one period is simulated side by side.
    """
    free = sorted(e.period_s for e in found if not e.is_uniform)
    common: dict[float, float] = {}
    while free:
        near = [period for period in free if period < _SAME_PERIOD * free[0]]
        grid = commensurate(program, near[len(near) // 2])
        common |= dict.fromkeys(near, grid)
        free = free[len(near) :]
    return [e if e.is_uniform else _with_period(e, common[e.period_s]) for e in found]


def _with_period(e: Experiment, period_s: float) -> Experiment:
    ratio = e.period_s / period_s
    sensors = (dataclasses.replace(s, positions=s.positions * ratio) for s in e.sensors)
    positions = e.positions * ratio
    return dataclasses.replace(
        e,
        period_s=period_s,
        positions=positions,
        intervals=int(np.ceil(positions[-1] - _JITTER)),
        sensors=tuple(sensors),
    )


def _settings(program: Program, log: Log, rows: Rows) -> dict[str, float]:
    """What the log sets, checked against the graph: one number each, in its range."""
    found = settings(log, rows.head)
    for address, value in found.items():
        at: dict[str, Any] = {"place": ("set", address), "label": f"set[{address!r}]:"}
        node, _, rest = address.partition(".")
        if node not in program.nodes:
            near = nearest(node, program.nodes)
            raise InputError(f"no node {node!r}{near} ({quoted(program.nodes)})", **at)
        try:
            now = find(program.nodes[node], rest).of(program.nodes[node])
            if now is None or np.ndim(now) > 0:
                what = "is absent from the model" if now is None else f"has shape {np.shape(now)}"
                raise InputError(f"{address} {what}; set takes one number, [0] of an array", **at)
            program.with_parameters({address: value})
        except ParameterError as error:
            raise InputError(f"{error}", **at) from None
    return dict(sorted(found.items()))  # logs that set the same share a program


def _constants(program: Program, inputs: Any, rows: int) -> dict[tuple[str, str], np.ndarray]:
    """Inputs that are said to be constant, in every row."""
    found = {}
    for node, field, value in declared(inputs, program.wiring.external):
        held = np.asarray(as_float_array(f"{node}.{field}", value), float)
        if held.shape != (shape := program.input_specs()[node][field].shape):
            raise InputError(
                f"{node}.{field} has shape {held.shape}, expected {shape}: a constant",
                place=("inputs", node, field),
                label="inputs:",
            )
        found[node, field] = np.tile(held, (rows, *(1,) * held.ndim))
    return found


def _driven(
    places: Mapping[str, Place],
    inputs: list[str],
    columns: Mapping[str, np.ndarray],
    constants: Mapping[tuple[str, str], np.ndarray],
) -> dict[tuple[str, str], np.ndarray]:
    """Inputs that are logged; numbers of a field that are not stay as they are constant."""
    driven: dict[tuple[str, str], np.ndarray] = {}
    for name in inputs:
        where, values = places[name], columns[name]
        key = where.node, where.name
        if key not in driven:
            default = where.spec.default_value(float)  # type: ignore[union-attr]
            held = np.tile(default, (len(values), *(1,) * default.ndim))
            driven[key] = np.array(constants.get(key, held))
        driven[key][(slice(None), *where.index)] = where.values(values)
    return driven


def sensor_rows(
    rows: Rows, column: str, where: Place, positions: np.ndarray, values: np.ndarray
) -> Sensor:
    """The rows that stay within the log whatever the delay; the first is where it starts."""
    delay = where.channel.delay
    used = np.isfinite(values)
    used &= (positions >= 1 + delay) & (positions <= positions[-1] - delay)
    if np.count_nonzero(used) < 3:
        words = f"has too few rows for a delay of up to {delay} rows"
        raise LogError(rows.file, words, column=column)
    # With inputs that acted until a row, the first position is the start, before any row.
    lines = np.concatenate([rows.lines[:1], rows.lines]) if rows.until else rows.lines
    return Sensor(column, where, positions[used], where.values(values[used]), lines[used])


def still_sensors(fitted: Sequence[Experiment], held_out: Sequence[Experiment]) -> tuple[str, ...]:
    """What to note of logs in which a sensor does not move; a `LogError` where it never does."""
    moves: dict[str, int] = {}
    still: dict[str, list[tuple[Experiment, Sensor]]] = {}
    for e in fitted:
        for s in e.sensors:
            is_still = bool(np.ptp(s.measured) == 0)
            moves[s.field] = moves.get(s.field, 0) + (not is_still)
            if is_still:
                still.setdefault(s.field, []).append((e, s))
    for field, of in still.items():
        if not moves[field]:
            e, s = of[0]
            reads = s.place.reading(s.measured[0]) + 0.0
            logs = "" if len(of) == 1 else f", and moves in none of the {len(of)} fitted logs"
            raise LogError(
                e.file,
                f"is {reads:g} in every row{logs}: a sensor that does not move tells nothing",
                column=s.column,
            )
    for e in held_out:
        for s in e.sensors:
            if s.field in moves and np.ptp(s.measured) == 0:
                still.setdefault(s.field, []).append((e, s))
    count = len(fitted) + len(held_out)
    return tuple(
        f"column {of[0][1].column!r} does not move in {len(of)} of {count} logs "
        f"({', '.join(e.name for e, _ in of)}); it moves in others, so they are kept"
        for of in still.values()
    )


def ranges_of(experiments: Sequence[Experiment]) -> dict[str, float]:
    """The largest range of each sensor in one log."""
    found: dict[str, float] = {}
    for e in experiments:
        for s in e.sensors:
            found[s.field] = max(found.get(s.field, 0.0), float(np.ptp(s.measured)))
    return found


def _start(program: Program, name: str, value: Any) -> Start:
    at = ("initial", name)
    try:
        node, field, index = split_field(name)
    except ValueError as error:
        raise InputError(f"{error}", place=at, label="initial:") from None
    if node not in program.nodes:
        near = nearest(node, program.nodes)
        raise InputError(
            f"no node {node!r}{near} ({quoted(program.nodes)})", place=at, label="initial:"
        )
    spec = program.nodes[node].state_spec()
    if field not in spec:
        raise InputError(
            f"the state of {node!r} has no field {field!r}{nearest(field, spec)} ({quoted(spec)})",
            place=at,
            label="initial:",
        )
    if picked_shape(spec[field].shape, index or ()) != ():
        raise InputError(
            f"{name} must be one number; {node}.{field} has shape {spec[field].shape}",
            place=at,
            label="initial:",
        )
    given = value if isinstance(value, Unknown) else float(value)
    return Start(node, field, index or (), spec[field].unit, given)


def refuse_other_unit(
    experiment: Experiment,
    sensor: Sensor,
    made: np.ndarray,
    with_outliers: bool,
    speed: np.ndarray | None = None,
) -> None:
    """Refuse a log that is like the model at its start values, and far from its size.

    Where it is not like it the start values are far off, a free run has left the log, or the model
    magnifies what its encoders round. Where most of it is friction, which follows the `speed` of
    its joint, the start value of that is far off.
    """
    if speed is not None and _is_friction(sensor.measured, speed):
        return
    logged, slow = _slow(sensor.measured), _slow(made)
    a, b = logged - np.mean(logged), slow - np.mean(slow)
    if not abs(a @ b) > _ALIKE * np.sqrt((a @ a) * (b @ b)):
        return
    whole = _size(sensor.measured, with_outliers) / max(_size(made, with_outliers), 1e-300)
    of_slow = float(np.sqrt((a @ a) / (b @ b)))
    times_the_model = min(whole, of_slow, key=lambda x: abs(np.log(x)) if x > 0 else np.inf)
    if (whole > 1) != (of_slow > 1) or 1.0 / _FAR < times_the_model < _FAR:
        return
    unit = sensor.place.unit
    largest = int(np.argmax(np.abs(sensor.measured)))
    raise LogError(
        experiment.file,
        f"is {sensor.place.reading(sensor.measured[largest]):.4g} {unit} here, its largest; all of "
        f"it is {times_the_model:.3g} times what the model gives for {sensor.field} at the start "
        f"values: another unit than {unit}? "
        "Else give start values that are nearer, or Channel(..., gain=True)",
        int(sensor.lines[largest]),
        sensor.column,
    )


def _is_friction(measured: np.ndarray, speed: np.ndarray) -> bool:
    """Whether c sign(w) + b w and a constant have most of a torque's or a current's variance."""
    fastest = float(np.max(np.abs(speed), initial=0.0))
    if not fastest > 0:
        return False
    w = speed / fastest
    columns = np.stack([np.tanh(w / _SIGN), w, np.ones_like(w)], axis=1)
    found, *_ = np.linalg.lstsq(columns, measured, rcond=None)
    left = measured - columns @ found
    return bool(found[0] > 0 and left @ left < (1.0 - _FRICTION) * len(left) * np.var(measured))


def _slow(values: np.ndarray) -> np.ndarray:
    """Medians over a fiftieth of the log: what is left of a signal without noise and spikes."""
    rows = max(1, len(values) // _PIECES)
    return np.array([np.median(part) for part in np.array_split(values, -(-len(values) // rows))])


def _size(values: np.ndarray, with_outliers: bool) -> float:
    """Root mean square; of all but the largest twentieth where outliers are expected."""
    squares = np.sort(np.square(values))
    kept = len(squares) - len(squares) // 20 if with_outliers else len(squares)
    return float(np.sqrt(np.mean(squares[:kept])))
