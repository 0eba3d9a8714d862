"""What a scenario asks of its simulation: steps, inputs, initial state."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.problem import InputError
from mime.core.recorder import select
from mime.running.recording import sample_bytes as bytes_of
from mime.running.simulation import Simulation
from mime.scenarios.assemblies import Assembled
from mime.scenarios.checking import shown
from mime.scenarios.csv_columns import read_columns
from mime.scenarios.problems import Path_, Source
from mime.scenarios.tables import ScenarioTables
from mime.scenarios.values import referred_node
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
        steps = simulation.count_steps(duration)
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


def initial_state(
    tables: ScenarioTables,
    simulation: Simulation,
    assembled: Mapping[str, Assembled],
    source: Source,
) -> dict[str, dict[str, Any]]:
    """The fields of the state that the assemblies and the scenario set."""
    states: dict[str, dict[str, Any]] = {
        node: dict(fields)
        for made in assembled.values()
        for node, fields in made.initial_state.items()
    }
    for name, given in tables.simulation.initial_state.items():
        path: Path_ = ("simulation", "initial_state", name)
        if name not in simulation.nodes:
            known = list(simulation.nodes)
            source.add(path, f"no node {name!r}{nearest(name, known)} (nodes: {quoted(known)})")
            continue
        node, fields = simulation.nodes[name], dict(given)
        spec = node.state_spec()
        states.setdefault(name, {})
        if HOLDING in fields and HOLDING not in spec and hasattr(node, "state_holding"):
            try:
                held = _first_angles(fields.pop(HOLDING), simulation.nodes)
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


def _first_angles(held: Any, nodes: Mapping[str, Any]) -> Any:
    """Joint angles, or the first ones of the path that a node gives: `"node:path"`."""
    name = referred_node(held)
    if name is None:
        return held
    givers = [each for each, node in nodes.items() if hasattr(node, "first_joint_angles")]
    if name not in givers:
        near = nearest(name, givers)
        raise ValueError(f"no node {name!r} with a path{near} (nodes with one: {quoted(givers)})")
    return nodes[name].first_joint_angles


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
                function: Any = read_columns(
                    table, source.folder((*path, "file")) / table.file, spec.shape
                )
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
