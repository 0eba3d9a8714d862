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

from mime._files import is_file
from mime._text import nearest, quoted
from mime.core.problem import InputError, Place, ProblemError
from mime.running.graph import GraphManager
from mime.running.trajectory import Trajectory
from mime.scenarios.node_types import no_such_file
from mime.scenarios.source import Source, in_words
from mime.scenarios.tables import ScenarioTables
from mime.scenarios.validation import validated

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
    """Pictures that `[[plots]]` name by `drawing = "NAME.drawing"`."""


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """What a scenario tells an assembly beside its own keys."""

    timestep: float
    """Seconds, of `[simulation]`."""
    seed: int
    """The seed of an assembly without one of its own; it differs from name to name."""
    folder: Callable[[str], Path]
    """Where the file that a key names is looked for."""

    def file(self, key: str, name: str) -> Path:
        """The file that a key names; an `InputError` when there is none."""
        file = self.folder(key) / name
        if "\0" in name or not is_file(file):
            raise InputError(no_such_file(name, self.folder(key)), place=(key,))
        return file


class Assembly(BaseModel):
    """Derive from it: fields are keys with their types, defaults and ranges."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    type: str

    @abstractmethod
    def build(self, surroundings: Surroundings) -> Assembled:
        """The graph, or an error; of an `InputError` the place is the key that is wrong."""
        raise NotImplementedError


def build_assemblies(tables: ScenarioTables, source: Source) -> dict[str, Assembled]:
    """All assemblies that can be built; what is wrong with the others is noted in `source`."""
    built: dict[str, Assembled] = {}
    owners = {name: f"[nodes.{name}]" for name in tables.nodes}
    for name, table in tables.assemblies.items():
        path: Place = ("assemblies", name)
        made = _build(table.model_dump(), name, tables, source)
        if made is None:
            continue
        clash = [node for node in made.graph.nodes if node in owners]
        if clash:
            others = ", ".join(dict.fromkeys(owners[node] for node in clash))
            source.add(path, f"makes {quoted(clash)}, as does {others}", "Rename or remove one")
        owners |= dict.fromkeys(made.graph.nodes, f"[assemblies.{name}]")
        if not clash:
            built[name] = made
    return built


def _build(
    given: dict[str, Any], name: str, tables: ScenarioTables, source: Source
) -> Assembled | None:
    at: Place = ("assemblies", name)
    try:
        cls = find_assembly(given["type"])
    except ValueError as error:
        source.refuse((*at, "type"), error)
        return None
    table = validated(cls, given, source, at)
    if table is None or source.wrong(*at):
        return None
    seed = zlib.crc32(f"{tables.simulation.seed}:{name}".encode()) & 0x7FFFFFFF

    def folder(key: str) -> Path:
        return source.folder((*at, key))

    try:
        return table.build(Surroundings(tables.simulation.timestep, seed, folder))
    except ProblemError as error:
        # Its own places are keys. Those of its nodes are too, where it hands parameters on.
        for problem in error.problems:
            place = problem.place if set(problem.place[:1]) & set(cls.model_fields) else ()
            words = f"{error.where}: {problem}" if error.where else problem.words
            source.add((*at, *place), words)
    except Exception as error:  # any refusal of any package's assembly, whatever its type
        source.add(at, in_words(error))
    return None


def all_drawings(assembled: Mapping[str, Assembled]) -> dict[str, Drawing]:
    """All drawings by `assembly.drawing`, as plots name them."""
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
