"""The tables of a scenario file, checked one by one: what is wrong with one hides no other.

pydantic checks them; what a node takes, the node checks.
"""

import dataclasses
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mime._text import nearest, quoted
from mime.core.problem import Place
from mime.scenarios.fields import TEXT_PATTERN, Words
from mime.scenarios.merits import MERITS, Merit, UnknownMerit
from mime.scenarios.source import Source, shown
from mime.scenarios.validation import LETTERS, NAME_PATTERN, PATTERNS, validated
from mime.scenarios.waveforms import WAVEFORMS, Waveform

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
MOST_NODES = 500
_LARGEST_SINGLE = 3.4028e38


class Table(BaseModel):
    """A table whose keys are all known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SimulationTable(Table):
    """`[simulation]`"""

    duration: Positive
    """Seconds."""
    timestep: Positive
    """Seconds; of every node that has none of its own."""
    precision: Literal["single", "double"] = "double"
    record: list[str] | None = None
    """`node.field` names; all fluxes and observable states when not given."""
    every: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    """Record every n-th step."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """The seed of every node that draws random numbers and has none of its own."""
    initial_state: dict[str, dict[str, Any]] = {}


class NodeTable(BaseModel):
    """`[nodes.NAME]`: a type, and whatever its constructor takes."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    type: str
    timestep: Positive | None = None


class AssemblyTable(BaseModel):
    """`[assemblies.NAME]`: a type, and the keys of that type, which it checks itself."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    type: str


class EdgeTable(Table):
    """`[[edges]]`: a flux into an input, of this step or the one before."""

    source: str = Field(alias="from")
    to: str
    delay: bool = False
    component: (
        Annotated[int, Field(ge=0)]
        | Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
        | None
    ) = None
    """Which component of a vector, or which ones, from 0."""
    scale: Number | None = None
    negate: bool = False


class CouplingTable(Table):
    """`[[coupling]]`: nodes that are iterated in every step until they agree."""

    nodes: Annotated[list[str], Field(min_length=2)]
    tolerance: Positive | None = None
    max_iterations: Annotated[int, Field(ge=1, le=2**31 - 1)] = 50
    acceleration: Literal["none", "aitken"] = "none"
    method: Literal["gauss_seidel", "jacobi"] = "gauss_seidel"
    name: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None


class PlotTable(Table):
    """`[[plots]]`: fields over time or over others, or a drawing of an assembly."""

    title: Words = ""
    fields: Annotated[list[str], Field(min_length=1)] | None = None
    against: str | list[str] | None = None
    """A field for all, or one for each."""
    minus: list[str] | None = None
    """What is taken from each field: the plot is of the differences."""
    unit: str | None = None
    """The unit in which all fields are shown that can be."""
    drawing: str | None = None
    """`assembly.drawing`, instead of fields."""

    def over(self) -> list[str]:
        """What each field is drawn over; nothing when that is time."""
        if self.against is None or isinstance(self.against, list):
            return self.against or []
        return [self.against] * len(self.fields or [])


@dataclasses.dataclass(frozen=True)
class ScenarioTables:
    """The tables of a scenario file: those with a name by name, those of a list by index.

    While a file is checked it holds what can be used of it: a key that is wrong is left out.
    """

    title: str
    description: str
    simulation: SimulationTable
    nodes: dict[str, NodeTable]
    assemblies: dict[str, AssemblyTable]
    edges: dict[int, EdgeTable]
    coupling: dict[int, CouplingTable]
    inputs: dict[str, Waveform]
    plots: dict[int, PlotTable]
    figures_of_merit: dict[int, Merit]


Choose = Callable[[Mapping[str, Any], Place, Source], type[BaseModel] | None]
"""The model of a table, which may depend on its `kind`."""


def checked_tables(source: Source) -> ScenarioTables:
    """What can be used of a file; every problem is noted in `source`."""
    known = [field.name for field in dataclasses.fields(ScenarioTables)]
    for name in source.data:
        if name not in known:
            source.add((name,), f"unknown key{nearest(name, known)} (keys: {quoted(known)})")
    if not (source.found or source.data.get("nodes") or source.data.get("assemblies")):
        source.add((), "nothing to simulate: add a table [nodes.NAME] or [assemblies.NAME]")
    for name in ("title", "description"):
        if not isinstance(value := source.data.get(name, ""), str):
            source.add((name,), f"must be a string, got {shown(value)}")
        elif any(unicodedata.category(letter) == "Cc" and letter not in "\n\t" for letter in value):
            source.add((name,), f"{PATTERNS[TEXT_PATTERN]}, got {shown(value)}")
    for name, most in (("nodes", MOST_NODES), ("assemblies", MOST_NODES)):
        if (count := len(source.names(name))) > most:
            source.add(
                (name,), f"{count:,} of them, more than the {most:,} that a scenario can have"
            )
            source.stop_if_any()
    _check_precision(source)
    nodes = _named("nodes", NodeTable, source)
    return ScenarioTables(
        title=str(source.data.get("title", "")),
        description=str(source.data.get("description", "")),
        simulation=_simulation(nodes, source),
        nodes=nodes,
        assemblies=_named("assemblies", AssemblyTable, source),
        edges=_each("edges", list, lambda *_: EdgeTable, source),
        coupling=_each("coupling", list, lambda *_: CouplingTable, source),
        inputs=_each("inputs", dict, _by_kind(WAVEFORMS), source),
        plots=_each("plots", list, lambda *_: PlotTable, source),
        figures_of_merit=_each("figures_of_merit", list, _by_kind(MERITS, UnknownMerit), source),
    )


def _check_precision(source: Source) -> None:
    """Note numbers that single precision does not have, where that is asked for."""
    table = source.data.get("simulation")
    if not isinstance(table, Mapping) or table.get("precision") != "single":
        return
    left: list[tuple[Place, Any]] = [((), source.data)]
    beyond = False
    while left:
        place, value = left.pop()
        if isinstance(value, Mapping | list):
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            left += [((*place, key), inner) for key, inner in items]
        elif isinstance(value, int | float) and _LARGEST_SINGLE < abs(value) < math.inf:
            words = f'{shown(value)} is too large for precision = "single"'
            source.add(place, words, f'Take "double", or at most {_LARGEST_SINGLE:g}')
            beyond = True
    if beyond:
        source.stop_if_any()  # as infinity it would be refused once more


def _simulation(nodes: Mapping[str, NodeTable], source: Source) -> SimulationTable:
    """The table, with numbers that serve to check the rest where its own are wrong."""
    table = source.data.get("simulation", {})
    if "simulation" not in source.data:
        if not nearest("simulation", [name for name in source.data if source.wrong(name)]):
            source.add(("simulation",), "the table is missing")
    elif not isinstance(table, Mapping):
        source.add(("simulation",), f"must be a table, got {shown(table)}")
    else:
        validated(SimulationTable, table, source, ("simulation",))
    step = min((node.timestep for node in nodes.values() if node.timestep), default=1e-3)
    sound = {
        name: value
        for name, value in (table.items() if isinstance(table, Mapping) else ())
        if name in SimulationTable.model_fields and not source.wrong("simulation", name)
    }
    return SimulationTable(**{"duration": step, "timestep": step, **sound})


def _named(name: str, model: type[BaseModel], source: Source) -> dict[str, Any]:
    whose = "a node" if name == "nodes" else "an assembly"
    found = _each(name, dict, lambda *_: model, source)
    for key in source.names(name):
        if not re.fullmatch(NAME_PATTERN, key):
            source.add((name, key), f"{whose}'s name has {LETTERS}")
            found.pop(key, None)
    return found


def _by_kind(kinds: Mapping[str, type[BaseModel]], other: type[BaseModel] | None = None) -> Choose:
    """Choose a table's model by its key `kind`."""

    def choose(table: Mapping[str, Any], at: Place, source: Source) -> type[BaseModel] | None:
        kind, place = table.get("kind"), (*at, "kind")
        if isinstance(kind, str) and kind in kinds:
            return kinds[kind]
        if kind is None:
            source.add(place, f"the key is missing, expected one of {quoted(sorted(kinds))}")
        else:
            near = nearest(str(kind), kinds)
            source.add(place, f"{shown(kind)} is unknown{near}, expected {quoted(sorted(kinds))}")
        return other

    return choose


def _each(name: str, form: type[Any], choose: Choose, source: Source) -> dict[Any, Any]:
    """The tables of a table or of a list, each checked."""
    section = source.data.get(name, form())
    if not isinstance(section, form):
        words = "a list of tables" if form is list else "a table"
        source.add((name,), f"must be {words}, got {shown(section)}")
        return {}
    found: dict[Any, Any] = {}
    for key, table in enumerate(section) if form is list else section.items():
        place: Place = (name, key)
        if not isinstance(table, dict):
            source.add(place, f"must be a table, got {shown(table)}")
            continue
        model = choose(table, place, source)
        checked = None if model is None else validated(model, table, source, place)
        if checked is not None:
            found[key] = checked
    return found
