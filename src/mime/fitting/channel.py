"""A column of a log: which field of the graph it is, in which unit, and how the sensor reads it.

reading(t) = gain y(t - delay) + offset + noise
"""

import dataclasses
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.arguments import instance, real, text, whole
from mime.core.problem import InputError
from mime.core.program import Program
from mime.core.recorder import field_specs
from mime.core.spec import Input, Output
from mime.scenarios.fields import Index, picked_shape, split_field, unit_factor


@dataclasses.dataclass(frozen=True)
class Channel:
    """A column's field: `Channel("motor.current", "mA")`, or of a vector `"arm.torque[2]"`.

    A field that is an external input of the graph drives the simulation; any other is a sensor.
    """

    field: str
    unit: str | None = None
    """Of the column; the field's own when not given."""
    delay: int = 3
    """The sensor is late by an unknown part of up to so many rows, or as early; 0: not at all."""
    offset: bool = False
    """The sensor has an unknown offset."""
    gain: bool = False
    """The sensor has an unknown gain, about 1."""
    noise: float | None = None
    """Standard deviation, in the column's unit; estimated from the log when not given."""

    def __post_init__(self) -> None:
        text("field", self.field)
        if self.unit is not None:
            instance("unit", self.unit, str)
        object.__setattr__(self, "delay", whole("delay", self.delay, 0, most=1000))
        for name in ("offset", "gain"):
            instance(name, getattr(self, name), bool, np.bool_)
        if self.noise is not None:
            object.__setattr__(self, "noise", real("noise", self.noise, above=0))


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
    factor: float
    """A value of the column times this is one in the field's unit."""

    def of(self, values: Any) -> Any:
        """The number among the field's values over time."""
        return values[(slice(None), *self.index)]


def place(program: Program, column: str, given: "str | Channel") -> Place:
    """Find a column's field in the graph; an `InputError` names the nearest."""
    where = f"columns[{column!r}]"
    channel = Channel(given) if isinstance(given, str) else instance(where, given, Channel)
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
    try:
        factor = 1.0 / unit_factor(spec.unit, channel.unit)
    except ValueError as error:
        raise InputError(f"{error}", place=("columns", column), label=f"{where}:") from None
    return Place(channel, node, name, index or (), spec, is_input, factor)
