"""What a scenario asks of its simulation: steps, inputs, initial state, what to record."""

from typing import Any

import numpy as np

from mime.core.recording import GROUP_FIELDS, default_fields, field_specs, select
from mime.core.recording import sample_bytes as bytes_of
from mime.core.run import count_steps
from mime.core.simulation import Simulation
from mime.core.spec import InputError
from mime.core.text import nearest, quoted
from mime.scenarios.checking import shown
from mime.scenarios.csv_columns import read_columns
from mime.scenarios.fields import split_field
from mime.scenarios.problems import Path_, Source
from mime.scenarios.tables import ScenarioTables
from mime.scenarios.waveforms import Csv, Ramp

_MOST_STEPS = 2**31 - 2
_MOST_BYTES = 2**33
HOLDING = "holding"
"""The key of an initial state that asks a node for its own: `state_holding(value)`."""


def check_steps(
    tables: ScenarioTables, simulation: Simulation, record: list[str], source: Source
) -> None:
    """Refuse a duration that is no whole number of steps, or more than a computer can hold."""
    path: Path_ = ("simulation", "duration")
    duration, every = tables.simulation.duration, tables.simulation.every
    if not duration / simulation.timestep <= _MOST_STEPS:
        source.add(path, f"is {duration / simulation.timestep:.3g} steps, more than {_MOST_STEPS}")
        return
    try:
        steps = count_steps(simulation, duration, None)
    except InputError as error:
        source.add(path, str(error))
        return
    if every > steps:
        source.add(("simulation", "every"), f"must be <= the run's {steps} steps, got {every}")
    if source.found:
        return
    groups = [group.name for group in simulation.wiring.groups]
    size = steps // every * bytes_of(simulation.nodes, select(simulation.nodes, groups, record))
    if size > _MOST_BYTES:
        source.add(
            ("simulation", "every"),
            f"{steps // every} samples would take {size / 2**30:.1f} GiB: record fewer fields or "
            f"steps (at most {_MOST_BYTES / 2**30:g} GiB)",
        )


def recorded_fields(tables: ScenarioTables, simulation: Simulation, source: Source) -> list[str]:
    """The fields that were asked for, and those that plots and figures of merit need."""
    wanted: dict[str, None] = {}
    given = tables.simulation.record
    if given is None:
        for name, node in simulation.nodes.items():
            wanted |= {f"{name}.{field}": None for field in default_fields(node)}
        for group in simulation.wiring.groups:
            wanted |= {f"{group.name}.{field}": None for field in GROUP_FIELDS}
    for index, field in enumerate(given or []):
        if "[" in field:
            source.add(("simulation", "record", index), "a field is recorded whole, without [...]")
        else:
            _checked(field, simulation, ("simulation", "record", index), source, wanted)
    for index, plot in enumerate(tables.plots):
        for place, field in enumerate(plot.fields):
            _checked(field, simulation, ("plots", index, "fields", place), source, wanted)
        if plot.against is not None:
            path: Path_ = ("plots", index, "against")
            entry = _checked(plot.against, simulation, path, source, wanted)
            if entry is not None and entry[0]:
                source.add(path, f"must be one component, got shape {entry[0]}: add [component]")
    for index, merit in enumerate(tables.figures_of_merit):
        path = ("figures_of_merit", index)
        entry = _checked(merit.field, simulation, (*path, "field"), source, wanted)
        if entry is not None and entry[0] and merit.needs_one_component:
            source.add(
                (*path, "field"),
                f"{merit.kind} is of one component, got shape {entry[0]}: add [component]",
            )
        if merit.kind == "rms_error":
            other = _checked(merit.reference, simulation, (*path, "reference"), source, wanted)
            if entry is not None and other is not None and entry != other:
                source.add(
                    (*path, "reference"),
                    f"has shape {other[0]} in {other[1]!r}, the field {entry[0]} in {entry[1]!r}",
                )
    return list(wanted)


def _checked(
    name: str, simulation: Simulation, path: Path_, source: Source, wanted: dict[str, None]
) -> tuple[tuple[int, ...], str] | None:
    """Shape and unit of what a field's name stands for."""
    try:
        node, field, index = split_field(name)
    except ValueError as error:
        source.add(path, str(error))
        return None
    groups = {group.name: GROUP_FIELDS for group in simulation.wiring.groups}
    known: dict[str, Any] = {**groups, **simulation.nodes}
    if node not in known:
        source.add(path, f"no node {node!r}{nearest(node, known)} (nodes: {quoted(known)})")
        return None
    specs: Any = groups.get(node) or field_specs(simulation.nodes[node])
    if field not in specs:
        source.add(
            path,
            f"{node!r} has no field {field!r}{nearest(field, specs)} (fields: {quoted(specs)})",
        )
        return None
    wanted[f"{node}.{field}"] = None
    if node in groups:
        return (), "1"
    shape, unit = specs[field].shape, specs[field].unit
    if index is None:
        return shape, unit
    if len(index) != len(shape) or any(i >= n for i, n in zip(index, shape, strict=True)):
        source.add(path, f"{node}.{field} has shape {shape}; there is no component {list(index)}")
        return None
    return (), unit


def initial_state(
    tables: ScenarioTables, simulation: Simulation, source: Source
) -> dict[str, dict[str, Any]]:
    """The fields of the state that the scenario sets."""
    states: dict[str, dict[str, Any]] = {}
    for name, given in tables.simulation.initial_state.items():
        path: Path_ = ("simulation", "initial_state", name)
        if name not in simulation.nodes:
            known = list(simulation.nodes)
            source.add(path, f"no node {name!r}{nearest(name, known)} (nodes: {quoted(known)})")
            continue
        node, fields = simulation.nodes[name], dict(given)
        spec = node.state_spec()
        states[name] = {}
        if HOLDING in fields and HOLDING not in spec and hasattr(node, "state_holding"):
            held = fields.pop(HOLDING)
            try:
                states[name] = dict(node.state_holding(np.asarray(held, dtype=float)))
            except Exception as error:  # whatever a node says of a value that does not fit
                source.add((*path, HOLDING), f"does not fit: {str(error).splitlines()[0]}")
        for field, value in fields.items():
            states[name][field] = value
            if field not in spec:
                known = [*spec, *([HOLDING] if hasattr(node, "state_holding") else [])]
                source.add(
                    (*path, field),
                    f"no such field of the state{nearest(field, known)} (fields: {quoted(known)})",
                )
            elif (problem := _misfit(value, spec[field].shape)) is not None:
                source.add((*path, field), f"{problem} [{spec[field].unit or '1'}]")
    return states


def waveforms(tables: ScenarioTables, simulation: Simulation, source: Source) -> dict[str, Any]:
    """The inputs of a run: constants and functions of time."""
    inputs: dict[str, dict[str, Any]] = {}
    for name, table in tables.inputs.items():
        node, _, field = name.partition(".")
        if (node, field) not in simulation.wiring.external:
            continue  # told already
        spec = simulation.input_specs()[node][field]
        path: Path_ = ("inputs", name)
        before = len(source.found)
        for key, value in table.values().items():
            problem = _misfit(value, spec.shape)
            if problem is not None and isinstance(value, list):
                source.add((*path, key), f"{problem} [{spec.unit or '1'}], or one number for all")
        if isinstance(table, Ramp) and not table.end > table.begin:
            source.add((*path, "end"), f"must be > begin = {table.begin:g} s, got {table.end:g}")
        if len(source.found) > before:
            continue
        if isinstance(table, Csv):
            try:
                function: Any = read_columns(table, source.file.parent / table.file, spec.shape)
            except ValueError as error:
                key = "file" if str(error).startswith("cannot read") else "column"
                source.add((*path, key), str(error))
                continue
        else:
            function = table.shape(spec.shape)
        inputs.setdefault(node, {})[field] = function
    return inputs


def _misfit(value: Any, shape: tuple[int, ...]) -> str | None:
    """What keeps a value from being an array of finite numbers of that shape."""
    try:
        array = np.asarray(value, dtype=float)
        whole = not _has_odd(value) and bool(np.all(np.isfinite(array)))
    except (TypeError, ValueError, OverflowError):
        return f"must be numbers of shape {shape}, got {shown(value)}"
    if array.shape != shape or not whole:
        return f"must be finite numbers of shape {shape}, got {shown(value)}"
    return None


def _has_odd(value: Any) -> bool:
    """Strings and booleans, which NumPy would take for numbers."""
    if isinstance(value, list):
        return any(_has_odd(entry) for entry in value)
    return isinstance(value, str | bool)
