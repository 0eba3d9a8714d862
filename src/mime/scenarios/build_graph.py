"""`[[edges]]`, `[[coupling]]` and `[inputs]` -> a graph; refusals come back with their lines."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.node import Node
from mime.core.problem import GraphError, Place, Problem
from mime.core.wiring import Edge
from mime.running.graph import GraphManager
from mime.running.simulation import Simulation
from mime.scenarios.assemblies import Assembled
from mime.scenarios.source import Source
from mime.scenarios.tables import EdgeTable, ScenarioTables


@dataclasses.dataclass(frozen=True)
class Transform:
    """y = scale x[component], without any code in the scenario. Equal ones compare equal."""

    component: int | tuple[int, ...] | None
    scale: float

    def __post_init__(self) -> None:
        # A checkpoint tells transforms apart by their qualified name.
        object.__setattr__(self, "__qualname__", repr(self))

    def __call__(self, x: Any) -> Any:
        if isinstance(self.component, tuple):
            _within(max(self.component), x)
            x = x[np.array(self.component)]
        elif self.component is not None:
            _within(self.component, x)
            x = x[self.component]
        return self.scale * x


def _within(component: int, x: Any) -> None:
    if not x.ndim or component >= x.shape[0]:
        raise IndexError(f"component {component} is not in it")


@dataclasses.dataclass(frozen=True)
class Parts:
    """What could be built of a scenario: the rest of the file is checked against it."""

    nodes: Mapping[str, Node]
    homes: Mapping[str, Place]
    """The table of each node, also of those that could not be built."""
    groups: tuple[str, ...]
    complete: bool
    """True when all assemblies were built, so that no other nodes can be meant."""

    @classmethod
    def of(
        cls,
        tables: ScenarioTables,
        nodes: Mapping[str, Node],
        assembled: Mapping[str, Assembled],
        source: Source,
    ) -> "Parts":
        """The nodes of the file and of its assemblies."""
        homes: dict[str, Place] = {name: ("nodes", name) for name in source.names("nodes")}
        built = dict(nodes)
        for name, made in assembled.items():
            built |= made.graph.nodes
            homes |= dict.fromkeys(made.graph.nodes, ("assemblies", name))
        groups = [group.name or "+".join(group.nodes) for group in tables.coupling.values()]
        groups += [name for made in assembled.values() for name in made.graph.group_names]
        complete = set(assembled) == set(source.names("assemblies"))
        return cls(dict(sorted(built.items())), homes, tuple(groups), complete)

    def is_known(self, name: str, place: Place, source: Source) -> bool:
        """True for a node that was built. One that nobody has heard of is noted."""
        if name not in self.homes and self.complete:
            known = [*self.homes, *self.groups]
            source.add(place, f"no node {name!r}{nearest(name, known)} (nodes: {quoted(known)})")
        return name in self.nodes


def build_graph(
    tables: ScenarioTables, parts: Parts, assembled: Mapping[str, Assembled], source: Source
) -> tuple[GraphManager, Simulation | None]:
    """The graph of all that could be built, compiled; None when it is refused, which is noted."""
    graph = GraphManager()
    places: dict[Place, Place] = {("node", name): home for name, home in parts.homes.items()}
    made = {name for each in assembled.values() for name in each.graph.nodes}
    for name, node in parts.nodes.items():
        if name not in made:
            graph.add_node(node)
    for each in assembled.values():
        graph.add_graph(each.graph)
    for index, group in tables.coupling.items():
        at: Place = ("coupling", index)
        members = [name for name in group.nodes if parts.is_known(name, (*at, "nodes"), source)]
        label = group.name or "+".join(group.nodes)
        graph.add_coupling_group(members, **group.model_dump(exclude={"nodes", "name"}), name=label)
        places["group", label] = at
    fluxes = {name: node.boundary_flux_spec() for name, node in parts.nodes.items()}
    inputs = {name: node.boundary_input_spec() for name, node in parts.nodes.items()}
    for index, table in tables.edges.items():
        at = ("edges", index)
        spoilt = source.wrong(*at)
        first = _end(table.source, "flux", fluxes, parts, (*at, "from"), source)
        second = _end(table.to, "input", inputs, parts, (*at, "to"), source)
        if first and second and not spoilt:
            # Where a group is wrong, its cycles must not be told on top of that.
            delay = table.delay or source.wrong("coupling")
            edge = Edge(first[0], second[0], first[1], second[1], _transform(table), delay)
            graph.add_edge(*(getattr(edge, field.name) for field in dataclasses.fields(edge)))
            places["edge", edge] = at
            places.setdefault(("input", *second), at)
    for name in source.names("inputs"):
        at = ("inputs", name)
        end = _end(name, "input", inputs, parts, at, source)
        if end:
            graph.add_external_input(*end)
            places["input", *end] = at
    if not parts.nodes:
        return graph, None
    try:
        return graph, graph.compile()
    except GraphError as error:
        for problem in error.problems:
            _note(problem, places, tables, source)
        return graph, None


def _note(
    problem: Problem, places: Mapping[Place, Place], tables: ScenarioTables, source: Source
) -> None:
    """Note a graph's problem at the table that its place belongs to."""
    kind, *rest = problem.place
    if rest[-1] == "timestep" and _timestep_is_wrong(tables, source):
        return
    where = next((p for n in (3, 2) if (p := places.get(problem.place[:n]))), None)
    if where is None and kind == "edge":  # within an assembly
        where = places["node", rest[0].target]
    more = problem.place[2:] if kind == "node" and where and where[0] == "nodes" else ()
    source.note(dataclasses.replace(problem, place=(*(where or ()), *more)))


def _timestep_is_wrong(tables: ScenarioTables, source: Source) -> bool:
    return source.wrong("simulation", "timestep") or any(
        source.wrong("nodes", name, "timestep") for name in tables.nodes
    )


def _transform(edge: EdgeTable) -> Transform | None:
    if edge.component is None and edge.scale is None and not edge.negate:
        return None
    component = tuple(edge.component) if isinstance(edge.component, list) else edge.component
    scale = 1.0 if edge.scale is None else edge.scale
    return Transform(component, -scale if edge.negate else scale)


def _end(
    name: str,
    what: str,
    specs: Mapping[str, Iterable[str]],
    parts: Parts,
    at: Place,
    source: Source,
) -> tuple[str, str] | None:
    """Node and field that a name stands for; None when there is none, or it is not built."""
    node, _, field = name.partition(".")
    if not node or not field:
        source.add(at, f"must be 'node.field', got {name!r}")
    elif parts.is_known(node, at, source):
        if field in specs[node]:
            return node, field
        known = f"{what}es" if what == "flux" else f"{what}s"
        words = f"{node!r} has no {what} {field!r}{nearest(field, specs[node])}"
        source.add(at, f"{words} ({known}: {quoted(specs[node])})")
    return None
