"""What a scenario asks of its simulation: steps, initial state, inputs, and fields to record."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.goals import goal_problems
from mime.core.problem import InputError, Place
from mime.core.recorder import GROUP_FIELDS, default_fields, field_specs, select
from mime.running.recording import sample_bytes
from mime.running.scene import scene
from mime.running.simulation import Simulation, whole_steps
from mime.scenarios.assemblies import Assembled, Drawing
from mime.scenarios.build_graph import Parts
from mime.scenarios.build_nodes import referred_node, smallest_timestep
from mime.scenarios.fields import is_unit_known, picked_shape, split_field, unit_factor
from mime.scenarios.merits import Comparison, Merit
from mime.scenarios.source import Source, in_words, shown
from mime.scenarios.tables import PlotTable, ScenarioTables
from mime.scenarios.waveforms import Csv, Samples, read_columns

_MOST_STEPS = 2**31 - 2
_MOST_BYTES = 2**33
_SMALL, _MOST_SEEN = 512, 2**26
"""Numbers of a field that is recorded only to be seen: at once, or in the whole run. The second are
two minutes of a map of a maze of 32 x 32 cells, 500 times a second.
"""
HOLDING = "holding"
"""The key of an initial state that asks a node for its own: `state_holding(value)`."""

Entry = tuple[tuple[int, ...], str]
"""Shape and unit of a field, or of a part of it."""


def check_steps(tables: ScenarioTables, parts: Parts, record: list[str], source: Source) -> None:
    """Refuse a duration that is no whole number of steps, or more than a computer can hold."""
    at: Place = ("simulation", "duration")
    if source.wrong(*at) or source.wrong("simulation", "timestep") or not parts.complete:
        return
    duration, every = tables.simulation.duration, tables.simulation.every
    built = (node.timestep for node in parts.nodes.values())
    timestep = min([*built, *([smallest_timestep(tables)] if tables.nodes else [])], default=None)
    if timestep is None:
        return
    if not duration / timestep <= _MOST_STEPS:
        source.add(at, f"is {duration / timestep:.3g} steps, more than {_MOST_STEPS}")
        return
    try:
        steps = whole_steps(duration, timestep)
    except InputError as error:
        source.refuse(("simulation",), error)
        return
    if every > steps:
        source.add(("simulation", "every"), f"must be <= the run's {steps} steps, got {every}")
    if source.found:
        return
    size = steps // every * sample_bytes(parts.nodes, select(parts.nodes, parts.groups, record))
    if size > _MOST_BYTES:
        source.add(
            ("simulation", "every"),
            f"{steps // every} samples would take {size / 2**30:.1f} GiB: record fewer fields or "
            f"steps (at most {_MOST_BYTES / 2**30:g} GiB)",
        )


def initial_state(
    tables: ScenarioTables, parts: Parts, assembled: Mapping[str, Assembled], source: Source
) -> dict[str, dict[str, Any]]:
    """The fields of the state that the assemblies and the scenario set."""
    states: dict[str, dict[str, Any]] = {
        node: dict(fields)
        for made in assembled.values()
        for node, fields in made.initial_state.items()
    }
    for name, given in tables.simulation.initial_state.items():
        at: Place = ("simulation", "initial_state", name)
        if not parts.is_known(name, at, source):
            continue
        node, fields = parts.nodes[name], dict(given)
        spec = node.state_spec()
        states.setdefault(name, {})
        if HOLDING in fields and HOLDING not in spec and hasattr(node, "state_holding"):
            held = fields.pop(HOLDING)
            try:
                angles = np.asarray(_first_angles(held, parts), dtype=float)
                states[name] = dict(node.state_holding(angles))
                for field, value in states[name].items():
                    if np.shape(value) != spec[field].shape:
                        words = f"must have shape {spec[field].shape}, got {np.shape(value)}"
                        raise ValueError(f"{field} {words}")
            except Exception as error:  # whatever a node says of a value that does not fit
                if referred_node(held) not in set(parts.homes) - set(parts.nodes):
                    source.add((*at, HOLDING), f"does not fit: {in_words(error)}")
        for field, value in fields.items():
            states[name][field] = value
            if field not in spec:
                known = [*spec, *([HOLDING] if hasattr(node, "state_holding") else [])]
                source.add(
                    (*at, field),
                    f"no such field of the state{nearest(field, known)} (fields: {quoted(known)})",
                )
            elif (problem := _misfit(value, spec[field].shape)) is not None:
                source.add((*at, field), f"{problem} [{spec[field].unit or '1'}]")
        if not source.wrong(*at):
            for found in node.state_problems(states[name]):
                source.note(found.inside(*at))
    return states


def _first_angles(held: Any, parts: Parts) -> Any:
    """Joint angles, or the first ones of the path that a node gives: `"node:path"`."""
    name = referred_node(held)
    if name is None:
        return held
    givers = [each for each, node in parts.nodes.items() if hasattr(node, "first_joint_angles")]
    if name not in givers:
        near = nearest(name, givers)
        raise ValueError(f"no node {name!r} with a path{near} (nodes with one: {quoted(givers)})")
    giver: Any = parts.nodes[name]
    return giver.first_joint_angles


def waveforms(tables: ScenarioTables, parts: Parts, source: Source) -> dict[str, Any]:
    """The inputs of a run: constants and functions of time."""
    inputs: dict[str, dict[str, Any]] = {}
    for name, table in tables.inputs.items():
        node, _, field = name.partition(".")
        spec = parts.nodes[node].boundary_input_spec().get(field) if node in parts.nodes else None
        if spec is None:
            continue  # told already
        at: Place = ("inputs", name)
        for key, value in table.values().items():
            problem = _misfit(value, spec.shape)
            if problem is not None and isinstance(value, list):
                source.add((*at, key), f"{problem} [{spec.unit or '1'}], or one number for all")
        if source.wrong(*at):
            continue
        if isinstance(table, Csv):
            try:
                file = source.folder((*at, "file")) / table.file
                function: Any = read_columns(table, file, spec.shape)
            except InputError as error:
                source.refuse(at, error)
                continue
        else:
            function = table.shape(spec.shape)
        inputs.setdefault(node, {})[field] = function
    return inputs


def check_goals(
    tables: ScenarioTables, inputs: Mapping[str, Any], simulation: Simulation, source: Source
) -> None:
    """Refuse inputs that lead what they are meant for to where it cannot go."""
    nodes, edges = simulation.nodes, simulation.wiring.edges
    for name, table in tables.inputs.items():
        node, _, field = name.partition(".")
        function = inputs.get(node, {}).get(field)
        if function is None or source.wrong("inputs", name) or not nodes[node].goal_inputs():
            continue  # told already, or free to go anywhere
        shape = nodes[node].boundary_input_spec()[field].shape
        taken = table.extremes(shape)
        if isinstance(function, Samples):
            taken = {"file": np.asarray(function.samples)}
        for key, values in taken.items():
            for problem in goal_problems(nodes, edges, node, field, values):
                source.add(("inputs", name, key), problem.message, problem.hint)


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


def recorded_fields(
    tables: ScenarioTables, parts: Parts, drawings: Mapping[str, Drawing], source: Source
) -> list[str]:
    """The fields that were asked for, and those that plots and figures of merit need."""
    fields = _Fields(parts, source)
    given = tables.simulation.record
    if given is None:
        fields.add_defaults()
    for index, field in enumerate(given or []):
        at: Place = ("simulation", "record", index)
        if "[" in field:
            source.add(at, "a field is recorded whole, without [...]")
        else:
            fields.find(field, at)
    for index, plot in tables.plots.items():
        if plot.drawing is None:
            _check_plot(plot, fields, ("plots", index))
        else:
            _check_drawing(plot, drawings, fields, ("plots", index))
    for index, merit in tables.figures_of_merit.items():
        _check_merit(merit, fields, ("figures_of_merit", index))
    return list(fields.wanted)


def seen_fields(tables: ScenarioTables, simulation: Simulation) -> list[str]:
    """The fields that a replay follows: they are recorded too, unless that takes very much."""
    times = tables.simulation.duration / (simulation.timestep * tables.simulation.every)
    nodes = simulation.nodes
    names = [name.rpartition(".")[::2] for name in scene(nodes, simulation.wiring).fields()]
    specs = {node: field_specs(nodes[node]) for node in {node for node, _ in names}}
    sizes = {(node, field): math.prod(specs[node][field].shape) for node, field in names}
    return [
        f"{node}.{field}"
        for (node, field), size in sizes.items()
        if size <= _SMALL or size * times <= _MOST_SEEN
    ]


class _Fields:
    """The fields that are there, and those that were asked for so far."""

    def __init__(self, parts: Parts, source: Source):
        self.parts, self.source = parts, source
        self.wanted: dict[str, None] = {}

    def add_defaults(self) -> None:
        """What a run records unless told otherwise."""
        for name, node in self.parts.nodes.items():
            self.wanted |= {f"{name}.{field}": None for field in default_fields(node)}
        for group in self.parts.groups:
            self.wanted |= {f"{group}.{field}": None for field in GROUP_FIELDS}

    def find(self, name: str, at: Place) -> Entry | None:
        """What a field's name stands for; None when nothing, which is noted."""
        try:
            node, field, index = split_field(name)
        except ValueError as error:
            self.source.refuse(at, error)
            return None
        is_group = node in self.parts.groups
        if not is_group and not self.parts.is_known(node, at, self.source):
            return None
        specs: Any = GROUP_FIELDS if is_group else field_specs(self.parts.nodes[node])
        if field not in specs:
            words = f"{node!r} has no field {field!r}{nearest(field, specs)}"
            self.source.add(at, f"{words} (fields: {quoted(specs)})")
            return None
        self.wanted[f"{node}.{field}"] = None
        if is_group:
            return (), "1"
        shape, unit = specs[field].shape, specs[field].unit
        if index is None:
            return shape, unit
        picked = picked_shape(shape, index)
        if picked is None:
            component = name[name.index("[") :]
            words = f"{node}.{field} has shape {shape}; there is no component {component}"
            self.source.add(at, words)
            return None
        return picked, unit

    def check_alike(self, entry: Entry, other: Entry, at: Place) -> None:
        """Note a field that another cannot be compared with."""
        if entry != other:
            words = f"has shape {other[0]} in {other[1]!r}, the field {entry[0]} in {entry[1]!r}"
            self.source.add(at, words)

    def check_unit(self, unit: str, wanted: str | None, at: Place) -> None:
        """Note a unit that a field cannot be shown in."""
        try:
            unit_factor(unit, wanted)
        except ValueError as error:
            self.source.refuse((*at, "unit"), error)


def _check_merit(merit: Merit, fields: _Fields, at: Place) -> None:
    known = [*fields.source.names("nodes"), *fields.source.names("assemblies")]
    first = (merit.limits_of or "").partition(".")[0]
    if merit.limits_of is not None and first not in known:
        words = f"must begin with a node or an assembly, got {shown(merit.limits_of)}"
        fields.source.add((*at, "limits_of"), f"{words}{nearest(first, known)}; {quoted(known)}")
    entry = fields.find(merit.field, (*at, "field"))
    if entry is not None and not fields.source.wrong(*at, "kind"):
        fields.check_unit(merit.own_unit(entry[1]), merit.unit, at)
        if entry[0] and merit.needs_one_component:
            words = f"{merit.kind} is of one component, got shape {entry[0]}: add [component]"
            fields.source.add((*at, "field"), words)
    if isinstance(merit, Comparison):
        other = fields.find(merit.reference, (*at, "reference"))
        if entry is not None and other is not None:
            fields.check_alike(entry, other, (*at, "reference"))


def _check_plot(plot: PlotTable, fields: _Fields, at: Place) -> None:
    source = fields.source
    if plot.fields is None:
        if not source.wrong(*at):
            source.add(at, "key 'fields' is missing (or 'drawing', of an assembly)")
        return
    entries = [fields.find(field, (*at, "fields", i)) for i, field in enumerate(plot.fields)]
    units = [entry[1] for entry in entries if entry is not None]
    if len(units) == len(entries) and not any(is_unit_known(unit, plot.unit) for unit in units):
        fields.check_unit(units[0], plot.unit, at)
    for key, others in (("against", plot.over()), ("minus", plot.minus or [])):
        if others and len(others) != len(entries):
            source.add((*at, key), f"must be one for each of {len(entries)} fields, got {others}")
            continue
        many = isinstance(getattr(plot, key), list)
        for place, (name, entry) in enumerate(zip(others, entries)):
            here: Place = (*at, key, place) if many else (*at, key)
            other = fields.find(name, here)
            if other is not None and key == "against" and other[0]:
                source.add(here, f"must be one component, got shape {other[0]}: add [component]")
            elif other is not None and key == "minus" and entry is not None:
                fields.check_alike(entry, other, here)


def _check_drawing(
    plot: PlotTable, drawings: Mapping[str, Drawing], fields: _Fields, at: Place
) -> None:
    for key in ("fields", "against", "minus", "unit"):
        if getattr(plot, key) is not None:
            fields.source.add((*at, key), "a drawing has its own: take the key out")
    if plot.drawing in drawings:
        fields.wanted |= dict.fromkeys(drawings[str(plot.drawing)].fields)
    elif fields.parts.complete:
        near = nearest(str(plot.drawing), drawings)
        words = f"no drawing {plot.drawing!r}{near} (drawings: {quoted(drawings)})"
        fields.source.add((*at, "drawing"), words)
