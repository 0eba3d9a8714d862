"""A column of a log: which field of the graph it is, in which unit, and how the sensor reads it.

    reading(t) = gain y(t - delay) + offset + noise        y = (reading - offset) / gain

A reading is a column, Σ w_i column_i of several, or a count of an encoder, 2 pi / counts_per_turn
radians each.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mime._text import Travels, nearest, quoted
from mime.core.arguments import instance, mapping, real, text, whole, wrong
from mime.core.problem import InputError
from mime.core.program import Program
from mime.core.recorder import field_specs
from mime.core.spec import Input, Output
from mime.scenarios.fields import Index, own_unit, picked_shape, split_field, unit_factor

_POSITIONS = ("rad", "m")
"""Units of what a counter counts on and on."""
_TURNS = ("rad", "rad/s")


@dataclasses.dataclass(frozen=True)
class Channel:
    """A column's field: `Channel("motor.current", "mA")`, or of a vector `"arm.torque[2]"`.

    A field that is an external input of the graph drives the simulation; any other is a sensor.
    Numbers of `offset` and `noise` are in the column's unit.
    """

    field: str = ""
    """None for a column that only a `mix` takes."""
    unit: str | None = None
    """Of the column; the field's own when not given."""
    delay: int = 3
    """The sensor is late by an unknown part of up to so many rows, or as early; 0: not at all."""
    offset: bool | float = False
    """What the column reads where the field is 0. True: unknown."""
    gain: bool | float = False
    """How much the column reads for each unit of the field, 32 of a motor behind a gear of 32, -1
    of a sensor the other way round. True: unknown, about 1."""
    noise: float | None = None
    """Standard deviation, in the column's unit; estimated from the log when not given."""
    counts_per_turn: float | None = None
    """The column counts so many in a turn of an angle, in the place of a unit."""
    wraps_at_bits: int | None = None
    """The column is whole numbers of so many bits. An angle is unwrapped, from a first reading
    within half of the range; of any other field the upper half are negative numbers."""
    mix: Mapping[str, float] | None = dataclasses.field(default=None, hash=False)
    """The reading is the sum of these columns, each times its number; a column with a channel of
    its own counts as what that makes of it."""

    def __post_init__(self) -> None:
        instance("field", self.field, str)
        if self.unit is not None:
            instance("unit", self.unit, str)
        object.__setattr__(self, "delay", whole("delay", self.delay, 0, most=1000))
        for name in ("offset", "gain"):
            given = getattr(self, name)
            is_said = isinstance(given, bool | np.bool_)
            object.__setattr__(self, name, bool(given) if is_said else real(name, given))
        if self.gain == 0 and self.gain is not False:
            raise wrong("gain", "a number other than 0, true or false", self.gain)
        if self.noise is not None:
            object.__setattr__(self, "noise", real("noise", self.noise, above=0))
        if self.counts_per_turn is not None:
            counts = real("counts_per_turn", self.counts_per_turn, above=0)
            object.__setattr__(self, "counts_per_turn", counts)
            if self.unit is not None:
                raise wrong("unit", "absent beside counts_per_turn, which is one", self.unit)
        if self.wraps_at_bits is not None:
            bits = whole("wraps_at_bits", self.wraps_at_bits, 2, most=52)
            object.__setattr__(self, "wraps_at_bits", bits)
        if self.mix is not None:
            self._check_mix()

    def _check_mix(self) -> None:
        given = mapping("mix", self.mix, "{'motor5': 1.0, 'motor6': 1.0}")
        if not given:
            raise wrong("mix", "columns with their numbers, {'motor5': 1.0}", given)
        weights = {text("mix", name): real(f"mix[{name!r}]", w) for name, w in given.items()}
        object.__setattr__(self, "mix", weights)
        if self.wraps_at_bits is not None:
            raise InputError(
                "wraps_at_bits belongs to a column, and mix is of several. Give it to a column of "
                "its own, as {counts_per_turn = 4096, wraps_at_bits = 12}",
                place=("wraps_at_bits",),
            )

    @property
    def known_gain(self) -> float:
        """What the column reads for each unit of the field, as far as it is known."""
        return 1.0 if isinstance(self.gain, bool) else self.gain

    @property
    def known_offset(self) -> float:
        """What the column reads where the field is 0, as far as it is known."""
        return 0.0 if isinstance(self.offset, bool) else self.offset


@dataclasses.dataclass(frozen=True)
class Scale:
    """Numbers of a column as numbers in the field's unit:  y = factor column - shift."""

    column: str
    factor: float
    shift: float
    bits: int | None
    is_position: bool
    """It wraps where it goes on; else its upper half is negative."""

    @property
    def zero(self) -> float:
        """What the column reads where the field is 0."""
        return self.shift / self.factor


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a channel leads in a graph: one number of a field of a node."""

    channel: Channel
    node: str
    name: str
    """Of the field, without its node."""
    index: Index
    spec: Input | Output
    is_input: bool
    scale: Scale
    parts: tuple[tuple[float, Scale], ...] = ()
    """What a mix is of: how often each counts."""

    @property
    def factor(self) -> float:
        """A change of the column times this is one in the field's unit."""
        return self.scale.factor

    @property
    def unit(self) -> str:
        """The unit of the column."""
        is_count = self.channel.counts_per_turn is not None
        return "counts" if is_count else self.channel.unit or self.spec.unit

    def of(self, values: Any) -> Any:
        """The number among the field's values over time."""
        return values[(slice(None), *self.index)]

    def readings(self, numbers: Callable[[str], np.ndarray]) -> np.ndarray:
        """What the column reads, in its own unit; `numbers` has the columns of the file."""
        if not self.parts:
            return _unwrapped(self.scale, numbers(self.scale.column))
        columns = [_unwrapped(part, numbers(part.column)) for _, part in self.parts]
        terms = [
            weight * (part.factor * column - part.shift)
            for (weight, part), column in zip(self.parts, columns, strict=True)
        ]
        return np.sum(terms, axis=0)

    def values(self, readings: np.ndarray) -> np.ndarray:
        """Readings in the unit of the field, without known gain and offset."""
        return self.scale.factor * readings - self.scale.shift

    def reading(self, value: float) -> float:
        """What the column reads for a value of the field."""
        return float((value + self.scale.shift) / self.scale.factor)


class CountError(Travels, ValueError):
    """A column that is not of the whole numbers that it is said to be: the row, and why."""

    def __init__(self, column: str, row: int, words: str):
        self.column, self.row = column, row
        super().__init__(words)


def _unwrapped(scale: Scale, column: np.ndarray) -> np.ndarray:
    """The column without the jumps of a counter of so many bits."""
    if scale.bits is None:
        return column
    whole_range = 2.0**scale.bits
    there = np.flatnonzero(np.isfinite(column))
    seen = column[there]
    wrong = (seen != np.round(seen)) | (seen < -whole_range / 2) | (seen >= whole_range)
    if wrong.any():
        at = int(np.argmax(wrong))
        words = (
            f"must be a whole number of {scale.bits} bits, from 0 to {whole_range - 1:.0f} or from "
            f"{-whole_range / 2:.0f} on, got {seen[at]:g}"
        )
        raise CountError(scale.column, int(there[at]), words)
    found = column.copy()
    if not scale.is_position:
        found[there] = np.where(seen >= whole_range / 2, seen - whole_range, seen)
    elif len(seen):
        first = seen[0] - whole_range * np.round((seen[0] - scale.zero) / whole_range)
        steps = np.diff(seen)
        steps -= whole_range * np.round(steps / whole_range)
        found[there] = np.cumsum(np.concatenate([[first], steps]))
    return found


def channel_of(name: str, given: "str | Channel") -> Channel:
    """A channel, or what one is made of."""
    return (
        Channel(given) if isinstance(given, str) else instance(f"columns[{name!r}]", given, Channel)
    )


def fields_of(columns: Mapping[str, "str | Channel"]) -> dict[str, Channel]:
    """The columns that are a field of the graph; the others are parts of a mix."""
    channels = {name: channel_of(name, given) for name, given in columns.items()}
    mixed = {part for channel in channels.values() for part in channel.mix or ()}
    for name, channel in channels.items():
        if not channel.field:
            _refuse_part(name, channel, name in mixed)
    return {name: channel for name, channel in channels.items() if channel.field}


def _refuse_part(name: str, channel: Channel, is_mixed: bool) -> None:
    """What has no field is a part of a mix, and no more than that."""
    where = {"place": ("columns", name), "label": f"columns[{name!r}]:"}
    if not is_mixed:
        words = "has no field, and no mix takes it. Give field = 'node.field'"
        raise InputError(words, **where)  # type: ignore[arg-type]
    unknown = [key for key in ("gain", "offset") if getattr(channel, key) is True]
    if unknown or channel.mix is not None or channel.noise is not None:
        what = quoted([*unknown, *(k for k in ("mix", "noise") if getattr(channel, k) is not None)])
        words = f"has no field, and so no {what}. Give them to the column whose mix takes it"
        raise InputError(words, **where)  # type: ignore[arg-type]


def place(
    program: Program,
    column: str,
    given: "str | Channel",
    columns: Mapping[str, "str | Channel"] = {},
) -> Place:
    """Find a column's field in the graph; an `InputError` names the nearest.

    columns    all of them: what the parts of a mix are
    """
    where = f"columns[{column!r}]"
    channel = channel_of(column, given)
    try:
        node, name, index = split_field(channel.field)
    except ValueError as error:
        raise InputError(f"{error}", place=("columns", column), label=f"{where}:") from None
    if node not in program.nodes:
        known = quoted(program.nodes)
        raise InputError(
            f"no node {node!r}{nearest(node, program.nodes)} ({known})",
            place=("columns", column),
            label=f"{where}:",
        )
    is_input = (node, name) in program.wiring.external
    specs: dict[str, Any] = field_specs(program.nodes[node])
    if name not in specs:
        raise InputError(
            f"{node!r} has no field {name!r}{nearest(name, specs)} ({quoted(specs)})",
            place=("columns", column),
            label=f"{where}:",
        )
    if name in program.input_specs()[node] and not is_input:
        raise InputError(
            f"{channel.field} is an input that an edge or its default sets. Declare it "
            "with add_external_input(node, field), or log a flux or a state instead",
            place=("columns", column),
            label=f"{where}:",
        )
    spec = specs[name]
    if picked_shape(spec.shape, index or ()) != ():
        raise InputError(
            f"must be one number of {node}.{name}, which has shape {spec.shape}; "
            f"write {node}.{name}[0]",
            place=("columns", column),
            label=f"{where}:",
        )
    unknown = [key for key in ("gain", "offset") if getattr(channel, key) is True]
    unknown += ["noise"] if channel.noise is not None else []
    if is_input and unknown:
        raise InputError(
            f"{channel.field} is an input, which is taken as exact: it has no unknown gain or "
            f"offset and no noise, got {quoted(unknown)}. Give numbers, or let a parameter of the "
            "graph be unknown",
            place=("columns", column),
            label=f"{where}:",
        )
    found = Place(channel, node, name, index or (), spec, is_input, Scale(column, 1, 0, None, True))
    return scaled(found, column, columns)


def scaled(place: Place, column: str, columns: Mapping[str, "str | Channel"]) -> Place:
    """A place with what turns its column, or those of its mix, into the field's unit."""
    channel = place.channel
    scale = _scale(column, column, channel, place.spec.unit)
    parts = []
    for name, weight in (channel.mix or {}).items():
        own = (
            Channel() if name == column or name not in columns else channel_of(name, columns[name])
        )
        if own.mix is not None:
            words = f"{name!r} is a mix itself; write the columns that it is of"
            raise InputError(words, place=("columns", column, "mix"), label=f"columns[{column!r}]:")
        parts.append((weight, _scale(column, name, own, None)))
    return dataclasses.replace(place, scale=scale, parts=tuple(parts))


def _scale(of: str, column: str, channel: Channel, unit: str | None) -> Scale:
    """How a column's numbers become those of a field in `unit`; of a part, of its unit's own."""
    at = {"place": ("columns", of), "label": f"columns[{of!r}]:"}
    if unit is None:
        shown = "rad" if channel.counts_per_turn is not None else channel.unit
        unit = None if shown is None else own_unit(shown) or shown
    if channel.counts_per_turn is not None:
        if unit not in _TURNS:
            words = f"counts_per_turn is of an angle or its rate, and {channel.field} is in {unit}"
            raise InputError(words, **at)  # type: ignore[arg-type]
        factor = 2.0 * math.pi / channel.counts_per_turn
    else:
        try:
            factor = 1.0 if unit is None else 1.0 / unit_factor(unit, channel.unit)
        except ValueError as error:
            raise InputError(f"{error}", **at) from None  # type: ignore[arg-type]
    factor /= channel.known_gain
    shift = factor * channel.known_offset
    return Scale(column, factor, shift, channel.wraps_at_bits, unit in _POSITIONS)
