"""`[nodes.NAME]` -> nodes. A node's own refusals come back with the file's name and line."""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any

from mime._text import nearest, quoted
from mime.core.node import Node
from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.nodes.actuation.motor.datasheet import Datasheet
from mime.scenarios.assemblies import find_assembly
from mime.scenarios.checking import shown
from mime.scenarios.node_types import Argument, arguments_of, find_type
from mime.scenarios.problems import Path_, Source, blamed
from mime.scenarios.tables import NodeTable, ScenarioTables
from mime.scenarios.values import referred_node, resolve

_MOST_STEPS = 2**31
DATASHEET = "datasheet"
"""The key of a catalogue motor, or of a table of figures, for types made from data sheets."""


def build_nodes(tables: ScenarioTables, source: Source) -> dict[str, Node]:
    """All nodes that can be built; what is wrong with the others is noted in `source`."""
    built: dict[str, Node] = {}
    left = dict(tables.nodes)
    while left:
        ready = [name for name, table in left.items() if not _waits_for(table) & set(left)]
        if not ready:
            for name in left:
                source.add(
                    ("nodes", name), f"refers in a circle to {quoted(_waits_for(left[name]))}"
                )
            return built
        for name in ready:
            node = _build(name, left.pop(name), tables, source, built)
            if node is not None:
                built[name] = node
    return {name: built[name] for name in tables.nodes if name in built}


def check_types(data: Mapping[str, Any], source: Source) -> None:
    """Note types that do not exist, of a file that is wrong elsewhere too."""
    for kind, find in (("nodes", find_type), ("assemblies", find_assembly)):
        tables = data.get(kind)
        for name, table in tables.items() if isinstance(tables, dict) else ():
            if isinstance(table, dict) and isinstance(table.get("type"), str):
                try:
                    find(table["type"])
                except ValueError as error:
                    source.add((kind, name, "type"), str(error))


def smallest_timestep(tables: ScenarioTables) -> float:
    """Of all nodes."""
    usual = tables.simulation.timestep
    return min((table.timestep or usual for table in tables.nodes.values()), default=usual)


def _waits_for(table: NodeTable) -> set[str]:
    values = (table.model_extra or {}).values()
    return {node for value in values if (node := referred_node(value)) is not None}


def _build(
    name: str, table: NodeTable, tables: ScenarioTables, source: Source, built: dict[str, Node]
) -> Node | None:
    path: Path_ = ("nodes", name)
    try:
        cls = find_type(table.type)
    except ValueError as error:
        source.add((*path, "type"), str(error))
        return None
    if any(node in tables.nodes and node not in built for node in _waits_for(table)):
        return None  # what is wrong with that one is told
    given = dict(table.model_extra or {})
    arguments = arguments_of(cls)
    timestep = table.timestep or tables.simulation.timestep
    before = len(source.found)
    if not timestep / smallest_timestep(tables) < _MOST_STEPS:
        words = f"{timestep:g} s is too many steps of the smallest, {smallest_timestep(tables):g} s"
        source.add((*path, "timestep"), words)
    make, sheet = _constructor(cls, path, given, source)
    values = _arguments(path, cls, arguments, given, bool(sheet), source, built)
    if "seed" in arguments and "seed" not in values:
        # Each node draws its own numbers, whatever other nodes there are.
        values["seed"] = zlib.crc32(f"{tables.simulation.seed}:{name}".encode()) & 0x7FFFFFFF
    if len(source.found) > before:
        return None
    try:
        return make(name, timestep, *sheet, **values)
    except Exception as error:  # any refusal of any package's node, whatever its type
        source.add(blamed(path, given, str(error)), _words(cls, name, error))
        return None


def _constructor(
    cls: type[Node], path: Path_, given: dict[str, Any], source: Source
) -> tuple[Any, tuple[Any, ...]]:
    """The class, or its `from_datasheet` with the data sheet that is named or written out."""
    if DATASHEET not in given or not hasattr(cls, "from_datasheet"):
        return cls, ()
    make = getattr(cls, "from_datasheet")  # noqa: B009  of some types only
    return make, (_datasheet(given.pop(DATASHEET), (*path, DATASHEET), source),)


def _datasheet(value: Any, path: Path_, source: Source) -> Datasheet | None:
    """A motor of the catalogue, or the figures of a table; None when it is neither."""
    if not isinstance(value, dict):
        if isinstance(value, str) and value in CATALOGUE:
            return CATALOGUE[value]
        near = nearest(str(value), CATALOGUE)
        source.add(path, f"no motor {shown(value)}{near} (motors: {quoted(CATALOGUE)})")
        return None
    known = {field.name for field in dataclasses.fields(Datasheet)}
    for name, figure in value.items():
        number = isinstance(figure, int | float) and not isinstance(figure, bool)
        if name not in known:
            words = f"no figure of a data sheet{nearest(name, known)}"
            source.add((*path, name), f"{words} (figures: {quoted(sorted(known))})")
        elif not number and name != "source":
            source.add((*path, name), f"must be a number, got {shown(figure)}")
    if any(name not in known for name in value):
        return None
    try:
        return Datasheet(**value)
    except Exception as error:  # what is missing, or no number
        source.add(blamed(path, value, str(error)), str(error).replace("Datasheet.__init__() ", ""))
        return None


def _arguments(
    path: Path_,
    cls: type[Node],
    arguments: Mapping[str, Argument],
    given: Mapping[str, Any],
    from_sheet: bool,
    source: Source,
    built: Mapping[str, Node],
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    keys = [*arguments, "timestep", *([DATASHEET] if hasattr(cls, "from_datasheet") else [])]
    unknown = [name for name in given if name not in arguments]
    for name in unknown:
        source.add(
            (*path, name),
            f"{cls.__name__} has no parameter {name!r}{nearest(name, keys)} "
            f"(parameters: {quoted(keys)})",
        )
    missing = [a.name for a in arguments.values() if a.required and a.name not in given]
    if missing and not from_sheet:
        units = [f"{name}{_unit(arguments[name])}" for name in missing]
        source.add(path, f"{cls.__name__} needs {', '.join(units)} as well")
    for name in given:
        if name in arguments:
            try:
                values[name] = resolve(
                    arguments[name], given[name], source.folder((*path, name)), built
                )
            except ValueError as error:
                source.add((*path, name), str(error))
    return values


def _unit(argument: Argument) -> str:
    return f" [{argument.spec.unit}]" if argument.spec and argument.spec.unit else ""


def _words(cls: type[Node], name: str, error: Exception) -> str:
    words = str(error).removeprefix(f"{cls.__name__} {name!r}: ").replace("\n", " ")
    return words if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {words}"
