"""`[inputs."node.field"]`: what an input does over time, and the function of time it becomes.

Each kind is a table that pydantic checks and an `equinox.Module` whose numbers are arguments of the
compiled program: two scenarios that differ in an amplitude share one program.
"""

import csv
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from mime._files import is_file
from mime._text import nearest, quoted
from mime.core.problem import InputError

Finite = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Hertz = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Value = Finite | list[Finite] | list[list[Finite]]
"""A number for all components of an input, or one for each."""


class Shape(eqx.Module):
    """u(t)"""

    @abstractmethod
    def __call__(self, t: Any) -> Array:
        """Its value at the time t in seconds."""


class Waveform(BaseModel):
    """One kind of input over time."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: str

    def shape(self, size: tuple[int, ...]) -> Any:
        """The function of time for an input of the given shape."""
        raise NotImplementedError

    def with_numbers(self, numbers: Mapping[str, Any], size: tuple[int, ...]) -> Any:
        """The function of time with other numbers of some keys, which may be traced."""
        return self.model_copy(update=dict(numbers)).shape(size)

    def takes_number(self, key: str) -> bool:
        """Whether the key is a number in `shape`, so that `with_numbers` takes another."""
        is_key = key in type(self).model_fields
        return is_key and (key in self.values() or isinstance(getattr(self, key), int | float))

    def unit_of(self, key: str, unit: str) -> str:
        """The unit of a key that takes a number, of an input in some unit."""
        if key in self.values():
            return unit
        units = {"scale": "", "phase_rad": "rad"}
        return "Hz" if key.endswith("_hz") else units.get(key, "s")

    def values(self) -> dict[str, Any]:
        """The keys that hold values of the input, with its shape."""
        return {}

    def extremes(self, size: tuple[int, ...]) -> dict[str, Any]:
        """The values between which the input stays, by the key that decides them."""
        return {key: np.broadcast_to(value, size) for key, value in self.values().items()}


class Constant(Waveform):
    """u = value"""

    kind: Literal["constant"]
    value: Value

    def shape(self, size: tuple[int, ...]) -> Any:
        return _full(self.value, size)

    def values(self) -> dict[str, Any]:
        return {"value": self.value}


class _Ramp(Shape):
    before: Array
    after: Array
    begin_s: Array
    duration_s: Array

    def __call__(self, t: Any) -> Array:
        # A step is a ramp of no length: the guarded divisor never is zero.
        length = jnp.where(self.duration_s > 0, self.duration_s, 1.0)
        part = jnp.clip((t - self.begin_s) / length, 0.0, 1.0)
        part = jnp.where(self.duration_s > 0, part, jnp.where(t < self.begin_s, 0.0, 1.0))
        return self.before + part * (self.after - self.before)


class Step(Waveform):
    """u = before until `at`, then after"""

    kind: Literal["step"]
    after: Value
    before: Value = 0.0
    at: Seconds = 0.0

    def shape(self, size: tuple[int, ...]) -> Any:
        return _Ramp(_full(self.before, size), _full(self.after, size), _full(self.at), _full(0.0))

    def values(self) -> dict[str, Any]:
        return {"before": self.before, "after": self.after}


class Ramp(Waveform):
    """u goes from before to after in a straight line between `begin` and `end`"""

    kind: Literal["ramp"]
    after: Value
    before: Value = 0.0
    begin: Seconds = 0.0
    end: Seconds

    @field_validator("end")
    @classmethod
    def _is_later(cls, end: float, others: ValidationInfo) -> float:
        begin = others.data.get("begin", 0.0)
        if not end > begin:
            raise ValueError(f"must be > begin = {begin:g} s")
        return end

    def shape(self, size: tuple[int, ...]) -> Any:
        ends = _full(self.before, size), _full(self.after, size)
        return _Ramp(*ends, _full(self.begin), _full(self.end - self.begin))

    def values(self) -> dict[str, Any]:
        return {"before": self.before, "after": self.after}


class _Sweep(Shape):
    amplitude: Array
    offset: Array
    phase_rad: Array
    begin_hz: Array
    slope_hz_per_s: Array
    end_s: Array

    def __call__(self, t: Any) -> Array:
        swept = jnp.minimum(t, self.end_s)
        # Turns: the integral of f(t); after the sweep the last frequency goes on.
        turns = (self.begin_hz + 0.5 * self.slope_hz_per_s * swept) * swept
        turns = turns + (self.begin_hz + self.slope_hz_per_s * self.end_s) * (t - swept)
        return self.offset + self.amplitude * jnp.sin(2.0 * np.pi * turns + self.phase_rad)


class Sine(Waveform):
    """u = offset + amplitude sin(2 pi frequency_hz t + phase_rad)"""

    kind: Literal["sine"]
    amplitude: Value
    frequency_hz: Hertz
    offset: Value = 0.0
    phase_rad: Finite = 0.0

    def shape(self, size: tuple[int, ...]) -> Any:
        values = _full(self.amplitude, size), _full(self.offset, size), _full(self.phase_rad)
        return _Sweep(*values, _full(self.frequency_hz), _full(0.0), _full(0.0))

    def values(self) -> dict[str, Any]:
        return {"amplitude": self.amplitude, "offset": self.offset}

    def extremes(self, size: tuple[int, ...]) -> dict[str, Any]:
        return _swing(self.amplitude, self.offset, size)


class Chirp(Waveform):
    """u = offset + amplitude sin(phase), its frequency from begin_hz to end_hz over `duration`"""

    kind: Literal["chirp"]
    amplitude: Value
    begin_hz: Hertz
    end_hz: Hertz
    duration: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    offset: Value = 0.0

    def shape(self, size: tuple[int, ...]) -> Any:
        values = _full(self.amplitude, size), _full(self.offset, size), _full(0.0)
        slope = (self.end_hz - self.begin_hz) / self.duration
        return _Sweep(*values, _full(self.begin_hz), _full(slope), _full(self.duration))

    def values(self) -> dict[str, Any]:
        return {"amplitude": self.amplitude, "offset": self.offset}

    def extremes(self, size: tuple[int, ...]) -> dict[str, Any]:
        return _swing(self.amplitude, self.offset, size)


class _Pulses(Shape):
    high: Array
    low: Array
    period_s: Array
    width_s: Array
    delay_s: Array

    def __call__(self, t: Any) -> Array:
        into = jnp.mod(t - self.delay_s, self.period_s)
        on = (t >= self.delay_s) & (into < self.width_s)
        return jnp.where(on, self.high, self.low)


class PulseTrain(Waveform):
    """u = high during `width` of every `period`, from `delay` on; else low"""

    kind: Literal["pulse_train"]
    high: Value
    low: Value = 0.0
    period: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    width: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delay: Seconds = 0.0

    def shape(self, size: tuple[int, ...]) -> Any:
        values = _full(self.high, size), _full(self.low, size)
        return _Pulses(*values, _full(self.period), _full(self.width), _full(self.delay))

    def values(self) -> dict[str, Any]:
        return {"high": self.high, "low": self.low}


class _Lines(Shape):
    """u = u_0 + Σ (u_{k+1} - u_k) clip((t - t_k) / (t_{k+1} - t_k), 0, 1): one ramp a line."""

    times_s: Array
    points: Array

    def __call__(self, t: Any) -> Array:
        u = self.points[0]
        for k in range(len(self.points) - 1):
            begin, end = self.times_s[k], self.times_s[k + 1]
            part = jnp.clip((t - begin) / (end - begin), 0.0, 1.0)
            u = u + part * (self.points[k + 1] - self.points[k])
        return u


class Points(Waveform):
    """u in straight lines through `scale` times `points` at `times`; held beyond them"""

    kind: Literal["points"]
    times: Annotated[list[Seconds], Field(min_length=2)]
    points: list[Value]
    """One for each time: a number for all components, or one for each."""
    scale: Finite = 1.0

    @field_validator("times")
    @classmethod
    def _increase(cls, times: list[float]) -> list[float]:
        if not np.all(np.diff(times) > 0):
            raise ValueError("must increase from one to the next")
        return times

    @model_validator(mode="after")
    def _as_many(self) -> "Points":
        if len(self.points) != len(self.times):
            raise ValueError(f"has {len(self.times)} times and {len(self.points)} points")
        return self

    def shape(self, size: tuple[int, ...]) -> Any:
        scaled = [self.scale * np.asarray(point, float) for point in self.points]
        points = jnp.stack([_full(point, size) for point in scaled])
        return _Lines(_full(self.times, (len(self.times),)), points)

    def values(self) -> dict[str, Any]:
        return {f"points[{k}]": value for k, value in enumerate(self.points)}

    def extremes(self, size: tuple[int, ...]) -> dict[str, Any]:
        points = np.stack([np.broadcast_to(point, size) for point in self.points])
        return {"points": self.scale * np.stack([points.min(axis=0), points.max(axis=0)])}


class Csv(Waveform):
    """u from columns of a CSV file, against its time column; held before the first and last row"""

    kind: Literal["csv"]
    file: str
    column: str | list[str]
    """A column for all components, or one for each."""
    time_column: str = "time"
    scale: Finite = 1.0

    def takes_number(self, key: str) -> bool:
        return False  # it is made of its file


class Samples(Shape):
    """Values at given times, straight lines between them."""

    times_s: Array
    samples: Array

    def __call__(self, t: Any) -> Array:
        n = len(self.times_s)
        after = jnp.clip(jnp.searchsorted(self.times_s, t, side="right"), 1, n - 1)
        t0, t1 = self.times_s[after - 1], self.times_s[after]
        part = jnp.clip((t - t0) / (t1 - t0), 0.0, 1.0)
        return self.samples[after - 1] + part * (self.samples[after] - self.samples[after - 1])


WAVEFORMS: dict[str, type[Waveform]] = {
    "constant": Constant,
    "step": Step,
    "ramp": Ramp,
    "sine": Sine,
    "chirp": Chirp,
    "pulse_train": PulseTrain,
    "points": Points,
    "csv": Csv,
}


def _full(value: Any, size: tuple[int, ...] = ()) -> Array:
    """A number, or one a component, at the shape of the input."""
    return jnp.broadcast_to(jnp.asarray(value, jnp.result_type(float)), size)


def _swing(amplitude: Value, offset: Value, size: tuple[int, ...]) -> dict[str, Any]:
    swing, middle = (np.broadcast_to(value, size) for value in (amplitude, offset))
    return {"amplitude": np.stack([middle + swing, middle - swing])}


def read_columns(table: Csv, file: Path, size: tuple[int, ...]) -> Samples:
    """The input that a `csv` table asks for; an `InputError` says what is wrong with which key."""
    names = [table.column] if isinstance(table.column, str) else table.column
    if isinstance(table.column, list) and size != (len(names),):
        raise InputError(
            f"names {len(names)} columns for an input of shape {size}", place=("column",)
        )
    if not is_file(file):
        raise InputError(f"cannot read {file}: no such file", place=("file",))
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            rows = [row for row in csv.reader(opened) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {file}: {error}", place=("file",)) from error
    if not rows:
        raise InputError(f"{file} is empty", place=("file",))
    header = [name.strip() for name in rows[0]]
    for key, name in [("time_column", table.time_column), *(("column", name) for name in names)]:
        if name not in header:
            raise InputError(
                f"{file} has no column {name!r}{nearest(name, header)} (columns: {quoted(header)})",
                place=(key,),
            )
    chosen = [header.index(name) for name in [table.time_column, *names]]
    numbers = np.array([_numbers(file, row, line, chosen) for line, row in enumerate(rows[1:], 2)])
    if len(numbers) < 2:
        rows_found = f"{file} has {len(numbers)} rows of numbers; it takes two or more"
        raise InputError(rows_found, place=("file",))
    times = numbers[:, 0]
    if not np.all(np.diff(times) > 0):
        row = int(np.argmin(np.diff(times) > 0)) + 3
        raise InputError(
            f"{file}:{row}: column {table.time_column!r} must increase from row to row",
            place=("time_column",),
        )
    values = table.scale * (numbers[:, 1] if isinstance(table.column, str) else numbers[:, 1:])
    if isinstance(table.column, str):
        values = np.broadcast_to(values.reshape(-1, *(1,) * len(size)), (len(values), *size))
    dtype = jnp.result_type(float)
    return Samples(jnp.asarray(times, dtype), jnp.asarray(values, dtype))


def _numbers(file: Path, row: list[str], line: int, chosen: list[int]) -> list[float]:
    try:
        numbers = [float(row[column]) for column in chosen]
    except (ValueError, IndexError) as error:
        words = f"{file}:{line}: not a number in every column: {row}"
        raise InputError(words, place=("column",)) from error
    if not np.all(np.isfinite(numbers)):
        raise InputError(f"{file}:{line}: values must be finite, got {row}", place=("column",))
    return numbers
