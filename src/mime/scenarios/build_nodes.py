"""`[nodes.NAME]` -> nodes. What a node refuses comes back at the key that it speaks of.

"model:desktop_arm_6axis"   a URDF that comes with MIME
"node:arm"                  what the node `arm` holds under the same name (its `tree`)
"node:arm.loaded_tree"      what it holds under another
"arm.urdf"                  a file, relative to the scenario's; "arm.xacro" where code is allowed
{ ratio = 20 }              an effect, of a key that takes one; `type` where there are several
"""

import dataclasses
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._files import is_file
from mime._text import nearest, quoted
from mime.control.kinematics.xacro import SUFFIX
from mime.core.node import Node
from mime.core.parameters import Effect, Parameterised
from mime.core.problem import InputError, Place, Problem
from mime.core.spec import ParameterSpec
from mime.models import model_names, model_path
from mime.scenarios.node_types import (
    Argument,
    arguments_of,
    find_type,
    names_code,
    no_such_file,
    plugged_types,
    type_in_file,
)
from mime.scenarios.source import Source, shown
from mime.scenarios.tables import NodeTable, ScenarioTables

_MOST_STEPS = 2**31
_LARGEST = 2**1023
_MODEL, _NODE = "model:", "node:"
DATASHEET = "datasheet"
"""The key of a catalogue entry, or of a table of figures, for types made from data sheets."""


def build_nodes(tables: ScenarioTables, source: Source) -> dict[str, Node]:
    """All nodes that can be built; what is wrong with the others is noted in `source`."""
    builder = _Builder(tables, source)
    left = dict(tables.nodes)
    while left:
        ready = [name for name, table in left.items() if not _waits_for(table) & set(left)]
        if not ready:
            for name in left:
                words = f"refers in a circle to {quoted(sorted(_waits_for(left[name])))}"
                source.add(("nodes", name), words)
            break
        for name in ready:
            builder.build(name, left.pop(name))
    return {name: builder.built[name] for name in tables.nodes if name in builder.built}


def smallest_timestep(tables: ScenarioTables) -> float:
    """The smallest timestep of all nodes."""
    usual = tables.simulation.timestep
    return min((table.timestep or usual for table in tables.nodes.values()), default=usual)


def referred_node(value: Any) -> str | None:
    """The node that a value refers to, if it does; `node:arm.loaded_tree` refers to `arm`."""
    refers = isinstance(value, str) and value.startswith(_NODE)
    return value.removeprefix(_NODE).partition(".")[0] if refers else None


def _waits_for(table: NodeTable) -> set[str]:
    values = (table.model_extra or {}).values()
    return {node for value in values if (node := referred_node(value)) is not None}


class _Builder:
    """Builds one node after another; a value can refer to those that are built."""

    def __init__(self, tables: ScenarioTables, source: Source):
        self.tables, self.source = tables, source
        self.built: dict[str, Node] = {}
        self.plugged = plugged_types()

    def build(self, name: str, table: NodeTable) -> None:
        """Build a node, or note what is wrong with it."""
        before = len(self.source.found)
        node = self._node(name, table, ("nodes", name))
        if node is not None and len(self.source.found) == before:
            self.built[name] = node

    def _node(self, name: str, table: NodeTable, at: Place) -> Node | None:
        try:
            cls = self._type(table.type, (*at, "type"))
        except ValueError as error:
            self.source.refuse((*at, "type"), error)
            return None
        if (_waits_for(table) & set(self.source.names("nodes"))) - set(self.built):
            return None  # what is wrong with that one is told
        before = len(self.source.found)
        timestep = table.timestep or self.tables.simulation.timestep
        smallest = smallest_timestep(self.tables)
        if not timestep / smallest < _MOST_STEPS:
            words = f"{timestep:g} s is too many steps of the smallest, {smallest:g} s"
            self.source.add((*at, "timestep"), words)
        extra = table.model_extra or {}
        given = {key: value for key, value in extra.items() if "[" not in key}
        entries = {key: value for key, value in extra.items() if "[" in key}
        make: Any = cls
        sheet: tuple[Any, ...] = ()
        if DATASHEET in given and hasattr(cls, "from_datasheet"):
            make = getattr(cls, "from_datasheet")  # noqa: B009  of some types only
            sheet = (self._datasheet(cls, given.pop(DATASHEET), (*at, DATASHEET)),)
        values = self._arguments(cls, given, at, complete=not sheet)
        if "seed" in arguments_of(cls) and "seed" not in values:
            # Each node draws its own numbers, whatever other nodes there are.
            seed = self.tables.simulation.seed
            values["seed"] = zlib.crc32(f"{seed}:{name}".encode()) & 0x7FFFFFFF
        if len(self.source.found) > before:
            return None
        try:
            return self._with_entries(make(name, timestep, *sheet, **values), entries, at)
        except Exception as error:  # any refusal of any package's node, whatever its type
            file = getattr(error, "filename", None)
            named = [key for key, value in values.items() if file and str(value) == str(file)]
            self.source.refuse((*at, *named), error)
            return None

    def _type(self, name: str, at: Place) -> type[Node]:
        """The node type of that name; code in a file is run where that was allowed."""
        if not names_code(name):
            return find_type(name, self.plugged)
        self._allow_code(name)
        return type_in_file(name, self.source.folder(at))

    def _allow_code(self, name: str) -> None:
        if not self.source.allow_code:
            words = f"{shown(name)} is code, which MIME runs only when told to"
            hint = "Read the file, then add --allow-code (allow_code=True in load_scenario)"
            raise InputError("", [Problem((), words, hint)])

    def _file(self, value: Any, at: Place) -> Path:
        """The file that a value names; xacro is code."""
        file = _file(value, self.source.folder(at))
        if file.suffix.lower() == SUFFIX:
            self._allow_code(file.name)
        return file

    def _arguments(
        self, cls: type[Parameterised], given: Mapping[str, Any], at: Place, complete: bool = True
    ) -> dict[str, Any]:
        """What the constructor of a node or an effect is given; problems are noted."""
        arguments = arguments_of(cls)
        keys = [*arguments, *(["timestep"] if issubclass(cls, Node) else [])]
        keys += [DATASHEET] if hasattr(cls, "from_datasheet") else []
        inner = [
            f"{name}.{parameter}"
            for name, kinds in cls.effect_types().items()
            for kind in kinds
            for parameter in arguments_of(kind)
        ]
        unknown = [name for name in given if name not in arguments]
        for name in unknown:
            words = f"{cls.__name__} has no parameter {name!r}{nearest(name, [*keys, *inner])}"
            words = cls.now(name) or f"{words} (parameters: {quoted(keys)})"
            self.source.add((*at, name), words)
        missing = [
            f"{argument.name}{_unit(argument)}"
            for argument in arguments.values()
            if argument.required and argument.name not in given
            # what is there under a wrong name is told by that name
            if not nearest(argument.name, unknown)
        ]
        if missing and complete:
            self.source.add(at, f"{cls.__name__} needs {', '.join(missing)} as well")
        values = {}
        for name in given:
            if name in arguments:
                place = (*at, name)
                try:
                    values[name] = self._value(cls, arguments[name], given[name], place)
                except ValueError as error:
                    self.source.refuse(place, error)
        return values

    def _value(self, cls: type[Parameterised], argument: Argument, value: Any, at: Place) -> Any:
        """The argument that a value stands for; a `ValueError` says why it is none."""
        node = referred_node(value)
        if node is not None:
            return self._of_node(value.partition(".")[2] or argument.name, node)
        if argument.name in cls.effect_types():
            return self._effect(cls.effect_types()[argument.name], value, at)
        if argument.is_file:
            return self._file(value, at)
        if argument.spec is not None:
            if problem := _number_problem(argument.spec, value):
                raise ValueError(problem)
        elif not argument.required:
            _check_option(argument.default, value)
        elif "str" in str(argument.annotation) and not isinstance(value, str):
            raise ValueError(f"must be a string, got {shown(value)}")
        return _frozen(self._with_files(value, at))

    def _with_files(self, value: Any, at: Place) -> Any:
        """A value whose tables, at any depth, name files by `urdf_path`; these are found."""
        if isinstance(value, list):
            return [self._with_files(entry, (*at, k)) for k, entry in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        found = {name: self._with_files(entry, (*at, name)) for name, entry in value.items()}
        if "urdf_path" in value:
            try:
                found["urdf_path"] = self._file(value["urdf_path"], at)
            except ValueError as error:
                self.source.refuse((*at, "urdf_path"), error)
        return found

    def _of_node(self, name: str, node: str) -> Any:
        if node not in self.built:
            known = self.source.names("nodes")
            raise ValueError(f"no node {node!r}{nearest(node, known)} (nodes: {quoted(known)})")
        if not hasattr(self.built[node], name):
            raise ValueError(f"node {node!r} ({type(self.built[node]).__name__}) has no {name!r}")
        return getattr(self.built[node], name)

    def _effect(self, kinds: tuple[type[Effect], ...], value: Any, at: Place) -> Effect | None:
        """The effect that a table describes; None when it describes none, which is noted."""
        if not isinstance(value, Mapping):
            raise ValueError(f"must be a table, got {shown(value)}")
        by_name = {kind.__name__: kind for kind in kinds}
        given = dict(value)
        name = given.pop("type", kinds[0].__name__ if len(kinds) == 1 else None)
        if not isinstance(name, str) or name not in by_name:
            what = "the key is missing" if name is None else f"no such effect: {shown(name)}"
            words = f"{what}{nearest(str(name), by_name)}, expected one of {quoted(by_name)}"
            self.source.add((*at, "type"), words)
            return None
        before = len(self.source.found)
        values = self._arguments(by_name[name], given, at)
        if len(self.source.found) > before:
            return None
        try:
            return by_name[name](**values)
        except Exception as error:  # any refusal of any package's effect
            self.source.refuse(at, error)
            return None

    def _with_entries(self, node: Node, entries: Mapping[str, Any], at: Place) -> Node:
        """The node with other values of entries that have names: `"link[forearm].mass_kg" = 2`."""
        for address, value in entries.items():
            if _are_numbers(value):
                node = node.with_params(**{address: value})
            else:
                self.source.add((*at, address), f"must be a number, got {shown(value)}")
        return node

    def _datasheet(self, cls: Any, value: Any, at: Place) -> Any:
        """An entry of the type's catalogue, or the figures of a table; None when it is neither."""
        sheets: Mapping[str, Any] = cls.datasheets
        if not isinstance(value, dict):
            if isinstance(value, str) and value in sheets:
                return sheets[value]
            word, near = cls.__name__.removesuffix("Node").lower(), nearest(str(value), sheets)
            self.source.add(at, f"no {word} {shown(value)}{near} ({word}s: {quoted(sheets)})")
            return None
        kind = type(next(iter(sheets.values())))
        fields = {field.name: field for field in dataclasses.fields(kind)}
        before = len(self.source.found)
        for name, figure in value.items():
            number = isinstance(figure, int | float) and not isinstance(figure, bool)
            if name not in fields:
                words = f"no figure of a data sheet{nearest(name, fields)}"
                self.source.add((*at, name), f"{words} (figures: {quoted(sorted(fields))})")
            elif not number and not name.endswith("source"):
                self.source.add((*at, name), f"must be a number, got {shown(figure)}")
        for name, field in fields.items():
            if field.default is dataclasses.MISSING and name not in value:
                self.source.add((*at, name), "the key is missing")
        if len(self.source.found) > before:
            return None
        try:
            return kind(**value)
        except ValueError as error:
            self.source.refuse(at, error)
            return None


def _unit(argument: Argument) -> str:
    return f" [{argument.spec.unit}]" if argument.spec and argument.spec.unit else ""


def _file(value: Any, folder: Path) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(f"must be a file's name or 'model:NAME', got {shown(value)}")
    if value.startswith(_MODEL):
        name = value.removeprefix(_MODEL)
        known = model_names()
        if name not in known:
            raise ValueError(f"no model {name!r}{nearest(name, known)} (models: {quoted(known)})")
        return model_path(name)
    file = folder / value
    if not is_file(file):
        raise ValueError(f"{no_such_file(value, folder)}; 'model:NAME' is a bundled one")
    return file


def _number_problem(spec: ParameterSpec, value: Any) -> str | None:
    """What the spec alone can tell; infinity and shapes that depend on others are the node's."""
    leaves = list(_leaves(value))
    if not leaves or not _are_numbers(value):
        return f"must be a number [{spec.unit or '1'}], got {shown(value)}"
    numbers = np.array(leaves, dtype=float)
    if np.any(np.isnan(numbers)) or not spec.allows(numbers[np.isfinite(numbers)]):
        return f"must be {spec.expected()}, got {shown(value)}"
    if spec.shape is not None and not isinstance(value, Mapping) and spec.shape != _shape(value):
        return f"must have shape {spec.shape}, got {_shape(value)}: {shown(value)}"
    return None


def _shape(value: Any) -> tuple[int, ...] | None:
    try:
        return np.shape(value)
    except ValueError:  # rows of different lengths
        return None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping | list):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(entry)
    else:
        yield value


def _are_numbers(value: Any) -> bool:
    """True when all leaves are numbers that a float can hold; TOML's integers have no end."""
    return all(
        isinstance(leaf, float) or (type(leaf) is int and abs(leaf) < _LARGEST)
        for leaf in _leaves(value)
    )


def _check_option(default: Any, value: Any) -> None:
    """An option is of its default's type; a whole number will do for a float."""
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
    wanted = type(default)
    if wanted not in words:
        return
    fits = type(value) is wanted or (wanted is float and type(value) is int)
    if not fits:
        raise ValueError(f"must be {words[wanted]}, got {shown(value)}")


def _frozen(value: Any) -> Any:
    """Lists as tuples: options of a node are hashed."""
    if isinstance(value, list):
        return tuple(_frozen(entry) for entry in value)
    if isinstance(value, Mapping):
        return {name: _frozen(entry) for name, entry in value.items()}
    return value
