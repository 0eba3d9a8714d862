"""A log of an experiment, read and checked: time, inputs and what sensors read.

Row k holds, at its time t_k, what sensors read *then* and the inputs that act *from then on*, until
t_{k+1}. (In a result of MIME, and with `inputs="until"`, inputs acted until then, since t_{k-1}.)
"""

import csv
import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._files import is_file
from mime._text import Travels, brief, nearest, quoted, shortened
from mime.core.arguments import instance, mapping, text
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.channel import Channel
from mime.fitting.unknown import Unknown

_TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
_FEWEST_ROWS = 10
_FEWEST_DESIGNED, _MOST_DESIGNED = 20, 1_000_000
_SPIKE = 10.0
"""A value that lies so many ranges of all other values away from its neighbours is none."""


class LogError(Travels, ValueError):
    """A log that cannot be used: which file, row and column, what was found, what to do."""

    def __init__(self, file: str, words: str, row: int | None = None, column: str | None = None):
        self.file, self.row, self.column = file, row, column
        where = file if row is None else f"{file}:{row}"
        what = "" if column is None else f"column {column!r} "
        super().__init__(shortened(f"{where}: {what}{words}"))


@dataclasses.dataclass(frozen=True)
class Log:
    """One experiment: a CSV or NetCDF file, or columns in memory (`{"time": [...], ...}`)."""

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

    def __post_init__(self) -> None:
        if not isinstance(self.source, Mapping):
            object.__setattr__(self, "source", path_of("source", self.source))
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

    @property
    def label(self) -> str:
        """What results and errors call it."""
        return self.name or self.file

    @property
    def file(self) -> str:
        """Where to look for a row that is wrong."""
        return self.name or "log" if isinstance(self.source, Mapping) else str(self.source)


@dataclasses.dataclass(frozen=True)
class Rows:
    """The numbers of a log, in the units of its columns; NaN where a sensor has none."""

    label: str
    file: str
    time_s: np.ndarray
    columns: Mapping[str, np.ndarray]
    lines: np.ndarray
    """The line of the file (or the index) of each row."""
    until: bool
    """Inputs acted until their row's time."""


def as_log(value: Any) -> Log:
    """A log, or what one is made of."""
    return value if isinstance(value, Log) else Log(instance("logs", value, str, os.PathLike, dict))


def read_rows(log: Log, inputs: list[str], sensors: list[str], spikes: bool = False) -> Rows:
    """The rows of a log with the columns asked for, checked; a `LogError` says what is wrong."""
    wanted = [log.time, *inputs, *sensors]
    is_result = False
    if isinstance(log.source, Mapping):
        found = _in_memory(log, wanted)
        lines = np.arange(len(found[log.time]))
    elif not is_file(log.source):
        raise LogError(str(log.source), "no such file")
    elif log.source.suffix.lower() in (".nc", ".nc4", ".h5", ".hdf5"):
        found, is_result = _from_netcdf(log, wanted)
        lines = np.arange(len(found[log.time]))
    else:
        found, lines = _from_csv(log, wanted)
    file, time = log.file, found.pop(log.time) * _TIME_UNITS[log.time_unit]
    if len(time) < _FEWEST_ROWS:
        raise LogError(file, f"has {len(time)} rows; a fit takes {_FEWEST_ROWS} or more")
    _check_time(file, log.time, time, lines)
    for name in inputs:
        _check_finite(file, name, found[name], lines)
    for name in sensors:
        _check_sensor(file, name, found[name], lines)
        if not spikes:
            _refuse_spike(file, name, found[name], lines)
    until = log.inputs == "until" or (is_result and log.inputs != "from")
    return Rows(log.label, file, time, found, lines, until)


def _in_memory(log: Log, wanted: list[str]) -> dict[str, np.ndarray]:
    found = {}
    for name in wanted:
        if name not in log.source:
            _refuse_column(log, name, list(map(str, log.source)))
        try:
            found[name] = np.asarray(log.source[name], dtype=float)
        except (TypeError, ValueError):
            words = f"must be numbers, got {brief(log.source[name])}"
            raise LogError(log.file, words, column=name) from None
        if found[name].ndim != 1 or found[name].shape != found[wanted[0]].shape:
            words = (
                f"has shape {found[name].shape}, expected one value for each of the "
                f"{found[wanted[0]].size} rows"
            )
            raise LogError(log.file, words, column=name)
    return found


def _from_netcdf(log: Log, wanted: list[str]) -> tuple[dict[str, np.ndarray], bool]:
    import xarray

    try:
        with xarray.open_dataset(log.source, engine="h5netcdf", decode_times=False) as dataset:
            table = {str(name): dataset[name].values for name in dataset.variables}
            kind = str(dataset.attrs.get("format", ""))
    except (OSError, ValueError, KeyError) as error:
        words = " ".join(str(error).split())
        raise LogError(str(log.source), f"cannot be read as NetCDF: {words}") from error
    in_memory = dataclasses.replace(log, source=table, name=log.file)
    return _in_memory(in_memory, wanted), kind.startswith("MIME trajectory")


def _from_csv(log: Log, wanted: list[str]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    file = Path(log.source)
    try:
        text = file.read_text(encoding="utf-8-sig")
        lines = [
            (number, line)
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        if not lines:
            raise LogError(str(file), "is empty")
        heading = lines[0][1]
        mark = max(",;\t", key=heading.count)
        table = list(csv.reader([line for _, line in lines], delimiter=mark))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LogError(str(file), f"cannot be read: {error}") from error
    names = [name.strip() for name in table[0]]
    for name in wanted:
        if name not in names:
            _refuse_column(log, name, names)
        if names.count(name) > 1:
            raise LogError(str(file), "is there more than once", lines[0][0], name)
    chosen = {name: names.index(name) for name in wanted}
    found = {name: np.empty(len(table) - 1) for name in wanted}
    for row, (number, _) in enumerate(lines[1:]):
        cells = table[row + 1]
        if len(cells) != len(names):
            words = f"has {len(cells)} cells, expected {len(names)}, as the first row has"
            raise LogError(str(file), words, number)
        for name, at in chosen.items():
            found[name][row] = _number(str(file), number, name, cells[at], name == log.time)
    return found, np.array([number for number, _ in lines[1:]])


def _number(file: str, row: int, column: str, cell: str, is_time: bool) -> float:
    """A cell's number; NaN for an empty one, which says that nothing was measured."""
    if not cell.strip():
        return np.nan
    try:
        value = float(cell)
    except ValueError:
        hint = "; write a point for the decimal comma" if _DECIMAL_COMMA.fullmatch(cell) else ""
        raise LogError(file, f"must be a number, got {brief(cell)}{hint}", row, column) from None
    if not np.isfinite(value):
        hint = "" if is_time else "; leave the cell empty where a sensor has no value"
        raise LogError(file, f"must be finite, got {cell.strip()}{hint}", row, column)
    return value


def _refuse_column(log: Log, name: str, names: list[str]) -> None:
    words = f"has no column {name!r}{nearest(name, names)} (columns: {quoted(names)})"
    if name == log.time:
        words += '. Say which of them has the time: time = "..."'
    raise LogError(log.file, words, column=None)


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
    seen = values[there]
    if np.ptp(seen) == 0:
        words = f"is {seen[0] + 0.0:g} in every row: a sensor that does not move tells nothing"
        raise LogError(label, words, int(lines[there[0]]), name)


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
