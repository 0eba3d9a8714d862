"""A log of an experiment, read and checked: time, inputs and what sensors read.

Row k holds, at its time t_k, what sensors read *then* and the inputs that act *from then on*, until
t_{k+1}. (In a result of MIME, and with `inputs="until"`, inputs acted until then, since t_{k-1}.)
"""

import dataclasses
import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mime._text import brief, nearest, quoted
from mime.core.arguments import instance, mapping, real, several, text, texts, wrong
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.channel import Channel, CountError, Place
from mime.fitting.tables import LogError as LogError
from mime.fitting.tables import Table, read_table, value_at
from mime.fitting.unknown import Unknown

_TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_FEWEST_ROWS = 10
_FEWEST_DESIGNED, _MOST_DESIGNED = 20, 1_000_000
_SPIKE = 10.0
"""A value that lies so many ranges of all other values away from its neighbours is none."""


@dataclasses.dataclass(frozen=True)
class Log:
    """One experiment: a file of text, JSON, NumPy, NetCDF or Parquet, or what is in memory.

    Columns in memory are a mapping, `{"time": [...], "volts": [...]}`, a structured array or a
    DataFrame. Several files side by side are `{"angles": "q.csv", "torques": "tau.csv"}`; their
    columns are `angles.q1`, or `q1` where one file alone has it.
    """

    source: Any
    name: str = ""
    """What results call it; the file's name by default."""
    time: str = "time"
    """The column of the time."""
    time_unit: str = "s"
    columns: Mapping[str, str | Channel] | None = None
    """Columns of this log, where they are others than those given to `fit`."""
    initial: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """State at the first row, `{"motor.angular_velocity": 3.0}`: known, or `Unknown(...)`. Fields
    that are not given are as the model's own initial state, at rest."""
    inputs: str = ""
    """`"from"`: inputs of a row act from its time on. `"until"`: they acted until then."""
    held_out: bool = False
    """Not fitted: the fit is tested on it."""
    rate_hz: float | None = None
    """Rows a second, of a file without a column of the time."""
    rows: str = ""
    """Where a JSON or a .npz file has its rows: `"entries"`, `"data.samples"`."""
    names: Sequence[str] | Mapping[str, Sequence[str]] = ()
    """Of the columns of a file that has no heading; of files side by side a list for each."""
    set: Mapping[str, float | str] = dataclasses.field(default_factory=dict)
    """Parameters that were others in this experiment, `{"servo.kp": 400.0}`; `"head.kp"` is the
    value of that name in the head of the file."""
    span: Sequence[float] | None = None
    """Only the rows from one time on to before another, in seconds since the first: `(0.0, 1.5)`.
    Two logs of one file, one held out, are so told apart."""

    def __post_init__(self) -> None:
        if isinstance(self.source, str | os.PathLike):
            object.__setattr__(self, "source", path_of("source", self.source))
        elif not isinstance(self.source, Mapping | np.ndarray) and not _is_frame(self.source):
            raise wrong("source", "a path, a mapping of columns or an array", self.source)
        instance("name", self.name, str)
        text("time", self.time)
        if instance("time_unit", self.time_unit, str) not in _TIME_UNITS:
            raise LogError(
                self.label,
                f"time_unit must be one of {quoted(_TIME_UNITS)}, got {brief(self.time_unit)}",
            )
        mapping("columns", self.columns, "{'column': 'node.field'}")
        for field, value in mapping("initial", self.initial, "{'node.field': value}").items():
            instance(f"initial[{field!r}]", value, Unknown, int, float, np.number)
        if instance("inputs", self.inputs, str) not in ("", "from", "until"):
            words = f"inputs must be 'from' or 'until', got {brief(self.inputs)}"
            raise LogError(self.label, words)
        instance("held_out", self.held_out, bool, np.bool_)
        if self.rate_hz is not None:
            object.__setattr__(self, "rate_hz", real("rate_hz", self.rate_hz, "Hz", above=0))
            if (self.time, self.time_unit) != ("time", "s"):
                words = "rate_hz is of a log without a column of the time; give that or this"
                raise LogError(self.label, words)
        instance("rows", self.rows, str)
        if isinstance(self.names, Mapping):
            for part, given in mapping("names", self.names, "{'file': ['q1', 'q2']}").items():
                texts(f"names[{part!r}]", given)
        else:
            object.__setattr__(self, "names", tuple(texts("names", self.names)))
        for address, given in mapping("set", self.set, "{'node.parameter': value}").items():
            instance(f"set[{address!r}]", given, str, int, float, np.number)
        if self.span is not None:
            object.__setattr__(self, "span", _span(self.span))

    @property
    def label(self) -> str:
        """What results and errors call it."""
        return self.name or self.file

    @property
    def file(self) -> str:
        """Where to look for a row that is wrong."""
        if isinstance(self.source, Path):
            return str(self.source)
        files = self.source.values() if isinstance(self.source, Mapping) else ()
        if files and all(isinstance(file, str | os.PathLike) for file in files):
            return " + ".join(map(str, files))
        return self.name or "log"


@dataclasses.dataclass(frozen=True)
class Rows:
    """The numbers of a log, in the units of its columns; NaN where a sensor has none."""

    label: str
    file: str
    time_s: np.ndarray
    columns: Mapping[str, np.ndarray]
    """By channel."""
    lines: np.ndarray
    """The line of the file (or the index) of each row."""
    until: bool
    """Inputs acted until their row's time."""
    head: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Single values that the file has beside its rows."""


def as_logs(value: Any) -> list[Log]:
    """Logs, or what they are made of: one, or a list of them."""
    is_one = isinstance(value, Log | str | os.PathLike | dict | np.ndarray) or _is_frame(value)
    return [_as_log(entry) for entry in ([value] if is_one else several("logs", value))]


def _as_log(value: Any) -> Log:
    if isinstance(value, Log) or _is_frame(value):
        return value if isinstance(value, Log) else Log(value)
    return Log(instance("logs", value, str, os.PathLike, dict, np.ndarray))


def _span(value: Any) -> tuple[float, float]:
    ends = several("span", value)
    if len(ends) != 2:
        raise wrong("span", "two times, (0.0, 1.5)", value)
    first = real("span[0]", ends[0], "s", least=0.0)
    return first, real("span[1]", ends[1], "s", above=first)


def _is_frame(value: Any) -> bool:
    """A DataFrame, of pandas or of what looks like it."""
    return hasattr(value, "to_numpy") and hasattr(value, "columns")


def files_of(pattern: str, folder: Path) -> list[Path]:
    """The file of this name; else those that `*`, `?` and `[...]` stand for, in order."""
    file = folder / pattern
    if file.exists() or not any(sign in pattern for sign in "*?["):
        return [file]
    found = sorted(glob.glob(pattern, root_dir=folder, recursive=True))
    if not found:
        raise LogError(str(file), "no such files")
    return [folder / name for name in found]


def read_rows(
    log: Log, inputs: Mapping[str, Place], sensors: Mapping[str, Place], spikes: bool = False
) -> Rows:
    """The rows of a log, checked, with what each channel reads; a `LogError` says what is wrong."""
    table = read_table(log.source, log.file, log.rows, log.names)
    file, places = table.file, {**inputs, **sensors}
    found = {name: _readings(table, name, where) for name, where in places.items()}
    if log.rate_hz is None:
        time_of, time = log.time, table.numbers(log.time, True) * _TIME_UNITS[log.time_unit]
    else:
        time_of = next(iter(places))
        time = np.arange(len(found[time_of])) / log.rate_hz
    lines = np.arange(len(time)) if table.lines is None else table.lines
    for name, values in found.items():
        if values.shape != time.shape:
            words = f"has {len(values)} rows, and {time_of!r} has {len(time)}"
            raise LogError(file, words, column=name)
    _check_time(file, log.time, time, lines)
    within = ""
    if log.span is not None:
        first, last = log.span
        since = time - time[:1]
        kept = (first <= since) & (since < last)
        within = f" between {first:g} and {last:g} s"
        time, lines = time[kept], lines[kept]
        found = {name: values[kept] for name, values in found.items()}
    if len(time) < _FEWEST_ROWS:
        words = f"has {len(time)} rows{within}; a fit takes {_FEWEST_ROWS} or more"
        raise LogError(file, words)
    for name in inputs:
        _check_finite(file, name, found[name], lines)
    for name in sensors:
        _check_sensor(file, name, found[name], lines)
        if not spikes:
            _refuse_spike(file, name, found[name], lines)
    until = log.inputs == "until" or (table.is_result and log.inputs != "from")
    return Rows(log.label, file, time, found, lines, until, table.head)


def _readings(table: Table, name: str, where: Place) -> np.ndarray:
    try:
        return where.readings(table.numbers)
    except CountError as error:
        line = error.row if table.lines is None else int(table.lines[error.row])
        raise LogError(table.file, f"{error}", line, error.column) from None
    except ValueError as error:
        if isinstance(error, LogError):
            raise
        columns = quoted(part.column for _, part in where.parts)
        raise LogError(table.file, f"its columns {columns} differ in rows", column=name) from None


def settings(log: Log, head: Mapping[str, Any]) -> dict[str, float]:
    """What a log sets, as numbers: `"head.kp"` is looked up."""
    found = {}
    for address, given in log.set.items():
        value: Any = given
        if isinstance(given, str):
            name = given.removeprefix("head.")
            value = value_at(head, name)
            near = nearest(name, map(str, head))
            known = f"head: {quoted(map(str, head))}" if head else "the file has no head"
            if name == given:
                words = f"must be a number or 'head.{name}', got {brief(given)}"
                raise LogError(log.file, f"set {address!r} {words} ({known})")
            if value is None:
                raise LogError(log.file, f"set {address!r}: no {given!r}{near} ({known})")
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iuf":
            value, is_number = value.item(), True
        if not is_number or isinstance(value, bool) or not np.isfinite(float(value)):
            words = f"must be a finite number, got {brief(value, 60)}"
            raise LogError(log.file, f"set {address!r} = {given!r} {words}")
        found[address] = float(value)
    return found


def _check_time(label: str, name: str, time: np.ndarray, lines: np.ndarray) -> None:
    _check_finite(label, name, time, lines)
    forward = np.diff(time) > 0
    if not forward.all():
        at = int(np.argmin(forward)) + 1
        how = "repeats" if time[at] == time[at - 1] else "goes back from"
        words = f"must increase from row to row; {time[at]:.9g} s {how} {time[at - 1]:.9g} s"
        raise LogError(label, words, int(lines[at]), name)


def _check_finite(label: str, name: str, values: np.ndarray, lines: np.ndarray) -> None:
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        words = f"must have a finite number in every row, got {values[at]:g}"
        raise LogError(label, words, int(lines[at]), name)


def _check_sensor(label: str, name: str, values: np.ndarray, lines: np.ndarray) -> None:
    if np.isinf(values).any():
        words = "must be finite, got inf"
        raise LogError(label, words, int(lines[np.argmax(np.isinf(values))]), name)
    there = np.flatnonzero(np.isfinite(values))
    if len(there) < _FEWEST_ROWS:
        words = f"has values in {len(there)} rows; a fit takes {_FEWEST_ROWS} or more"
        raise LogError(label, words, column=name)


def _refuse_spike(label: str, name: str, values: np.ndarray, lines: np.ndarray) -> None:
    """A spike is alone: its neighbours are near each other, and the range without it is small."""
    there = np.flatnonzero(np.isfinite(values))
    seen = values[there]
    middle = np.abs(seen[1:-1] - 0.5 * (seen[:-2] + seen[2:]))
    at = int(np.argmax(middle)) + 1
    others = np.delete(seen, at)
    if middle[at - 1] > _SPIKE * np.ptp(others) > 0:
        words = (
            f"is {seen[at]:g}, and all other values are within {others.min():g} and "
            f"{others.max():g}: a spike, or another unit in this row. Empty the cell, correct it, "
            'or fit with loss="soft_l1"'
        )
        raise LogError(label, words, int(lines[there[at]]), name)


def count_rows(duration_s: float, period_s: float) -> int:
    """How many rows an experiment is to have; an `InputError` where these are too few or many."""
    rows = round(duration_s / period_s)
    if not _FEWEST_DESIGNED <= rows <= _MOST_DESIGNED:
        raise InputError(
            f"{duration_s:g} s in rows of {period_s:g} s are {rows:,} rows; an experiment has "
            f"{_FEWEST_DESIGNED} to {_MOST_DESIGNED:,}",
            place=("duration",),
            label="duration:",
        )
    return rows
