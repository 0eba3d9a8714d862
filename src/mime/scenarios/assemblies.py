"""`[assemblies.NAME]`: several nodes, wired and at their starting state, from a few words.

An assembly is a pydantic model: its fields are the keys of the table, `build` makes the graph.
Another package plugs one in by entry point: `[project.entry-points."mime.assemblies"]` with
`crane = "my_package.crane:Crane"`.
"""

import dataclasses
import importlib
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from mime._text import nearest, quoted
from mime.running.graph import GraphManager
from mime.running.trajectory import Trajectory
from mime.scenarios.checking import validated
from mime.scenarios.problems import Path_, Source, blamed
from mime.scenarios.tables import ScenarioTables
from mime.scenarios.values import is_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUP = "mime.assemblies"
_OWN = {"mouse": "mime.scenarios.mouse:MouseAssembly"}


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A picture of a run that only the assembly knows how to draw."""

    fields: tuple[str, ...]
    """`node.field` of all that it needs to have recorded."""
    draw: Callable[[Trajectory], "Figure"]


@dataclasses.dataclass(frozen=True)
class Assembled:
    """What an assembly makes of its table."""

    graph: GraphManager
    initial_state: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    drawings: Mapping[str, Drawing] = dataclasses.field(default_factory=dict)
    """For `[[plots]]` with `drawing = "NAME.drawing"`."""


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """What a scenario tells an assembly beside its own keys."""

    timestep: float
    """Seconds, of `[simulation]`."""
    seed: int
    """For an assembly without one of its own; differs from name to name."""
    folder: Callable[[str], Path]
    """Where the file that a key names is looked for."""

    def file(self, key: str, name: str) -> Path:
        """The file that a key names; a `WrongKeyError` when there is none."""
        file = self.folder(key) / name
        if "\0" in name or not is_file(file):
            raise WrongKeyError(key, f"no such file: {file} (names are relative to the scenario)")
        return file


class WrongKeyError(ValueError):
    """A refusal of an assembly that says which of its keys is wrong."""

    def __init__(self, key: str, message: str):
        self.key = key
        super().__init__(message)


class Assembly(BaseModel):
    """Derive from it: fields are keys with their types, defaults and ranges."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    type: str

    @abstractmethod
    def build(self, surroundings: Surroundings) -> Assembled:
        """The graph; a `ValueError` (or `WrongKeyError`) says why there is none."""
        raise NotImplementedError


def build_assemblies(tables: ScenarioTables, source: Source) -> dict[str, Assembled]:
    """All assemblies that can be built; what is wrong with the others is noted in `source`."""
    built: dict[str, Assembled] = {}
    owners = {name: f"[nodes.{name}]" for name in tables.nodes}
    for name, table in tables.assemblies.items():
        path: Path_ = ("assemblies", name)
        made = _build(table.model_dump(), name, tables, source)
        if made is None:
            continue
        clash = [node for node in made.graph.node_names if node in owners]
        for node in clash:
            source.add(path, f"makes a node {node!r}, and so does {owners[node]}: rename that one")
        owners |= dict.fromkeys(made.graph.node_names, f"[assemblies.{name}]")
        if not clash:
            built[name] = made
    return built


def _build(
    given: dict[str, Any], name: str, tables: ScenarioTables, source: Source
) -> Assembled | None:
    path: Path_ = ("assemblies", name)
    try:
        cls = find_assembly(given["type"])
    except ValueError as error:
        source.add((*path, "type"), str(error))
        return None
    table = validated(cls, given, source, path)
    if table is None:
        return None
    seed = zlib.crc32(f"{tables.simulation.seed}:{name}".encode()) & 0x7FFFFFFF

    def folder(key: str) -> Path:
        return source.folder((*path, key))

    try:
        return table.build(Surroundings(tables.simulation.timestep, seed, folder))
    except Exception as error:  # any refusal of any package's assembly, whatever its type
        where = (*path, error.key) if isinstance(error, WrongKeyError) else None
        words = str(error).replace("\n", " ")
        if not isinstance(error, ValueError | OSError):
            words = f"{type(error).__name__}: {words}"
        source.add(where or blamed(path, given, words), words)
        return None


def all_drawings(assembled: Mapping[str, Assembled]) -> dict[str, Drawing]:
    """By `assembly.drawing`, as plots name them."""
    return {
        f"{name}.{drawing}": made.drawings[drawing]
        for name, made in assembled.items()
        for drawing in made.drawings
    }


def assembly_names() -> list[str]:
    """What `type` can be: MIME's own assemblies, then those of other packages."""
    return [*_OWN, *plugged_assemblies()]


def plugged_assemblies() -> dict[str, EntryPoint]:
    """Entry points of other packages' assemblies, not yet loaded. MIME's own names win."""
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in _OWN}


def find_assembly(name: str) -> type[Assembly]:
    """The assembly of that name; a `ValueError` names the nearest, or what a plug-in lacks."""
    if name in _OWN:
        return _load(_OWN[name])
    plugged = plugged_assemblies()
    if name not in plugged:
        known = assembly_names()
        raise ValueError(
            f"no assembly {name!r}{nearest(name, known)}, expected one of {quoted(known)}"
        )
    entry = plugged[name]
    try:
        found = entry.load()
    except Exception as error:  # whatever another package raises is the finding
        raise ValueError(
            f"assembly {name!r} of {entry.value!r} does not load: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Assembly)):
        raise ValueError(f"entry point {name!r}: {entry.value!r} is not a subclass of Assembly")
    return found


def _load(place: str) -> type[Assembly]:
    module, _, name = place.partition(":")
    found: type[Assembly] = getattr(importlib.import_module(module), name)
    return found
