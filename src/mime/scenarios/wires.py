"""`[[edges]]`, `[[coupling]]` and `[inputs]` -> a graph; refusals come back with their lines."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.node import Node
from mime.core.problem import GraphError
from mime.running.graph import GraphManager
from mime.running.simulation import Simulation
from mime.scenarios.assemblies import Assembled
from mime.scenarios.problems import Path_, Source
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


def build_graph(
    tables: ScenarioTables,
    nodes: Mapping[str, Node],
    assembled: Mapping[str, Assembled],
    source: Source,
) -> tuple[GraphManager, Simulation | None]:
    """The graph of these nodes, compiled; None when something is wrong, noted in `source`."""
    graph = GraphManager()
    homes: dict[str, Path_] = {name: ("nodes", name) for name in tables.nodes}
    places: dict[str, Path_] = {}
    for node in nodes.values():
        graph.add_node(node)
    for name, made in assembled.items():
        graph.add_graph(made.graph)
        homes |= dict.fromkeys(made.graph.node_names, ("assemblies", name))
    if len(assembled) < len(tables.assemblies):
        return graph, None  # which nodes there would be is not known
    for index, edge in enumerate(tables.edges):
        ends = _ends(edge, homes, ("edges", index), source)
        if ends is not None:
            (from_node, flux), (to_node, field) = ends
            graph.add_edge(from_node, to_node, flux, field, _transform(edge), edge.delay)
            places.setdefault(f"{edge.source} -> {edge.to}", ("edges", index))
    for index, group in enumerate(tables.coupling):
        unknown = [name for name in group.nodes if name not in homes]
        for name in unknown:
            source.add(("coupling", index, "nodes"), _no_node(name, homes))
        if unknown:
            continue
        options = group.model_dump(exclude={"nodes"})
        graph.add_coupling_group(group.nodes, **options)
        places[f"coupling group {group.name or '+'.join(group.nodes)!r}"] = ("coupling", index)
    for name in tables.inputs:
        path: Path_ = ("inputs", name)
        end = _end(name, homes, path, source)
        if end is not None:
            graph.add_external_input(*end)
            places[f"external input {name}"] = path
            places[f"{name} is replacive"] = path
    if len(nodes) < len(tables.nodes):
        return graph, None
    places |= {f"node {name!r}": home for name, home in homes.items()}
    try:
        return graph, graph.compile()
    except GraphError as error:
        for problem in map(str, error.problems):
            found = [
                (problem.find(words), path) for words, path in places.items() if words in problem
            ]
            _add(source, min(found, default=(0, ()), key=_first), problem)
        return graph, None


def _first(found: tuple[int, Path_]) -> int:
    return found[0]


def _add(source: Source, found: tuple[int, Path_], problem: str) -> None:
    for pattern, words in _IN_TOML:
        problem = re.sub(pattern, words, problem)
    source.add(found[1], problem)


_IN_TOML = (
    (r"pass delay=True|delay=True", "delay = true"),
    (r"add_coupling_group\((\[.*?\])\)", r"[[coupling]] nodes = \1"),
    (r"pass a transform that makes it fit", "name a `component`"),
    (r"pass a transform that converts it", "convert it with `scale`"),
)


def _transform(edge: EdgeTable) -> Transform | None:
    if edge.component is None and edge.scale is None and not edge.negate:
        return None
    component = tuple(edge.component) if isinstance(edge.component, list) else edge.component
    scale = 1.0 if edge.scale is None else edge.scale
    return Transform(component, -scale if edge.negate else scale)


def _ends(
    edge: EdgeTable, nodes: Iterable[str], path: Path_, source: Source
) -> tuple[tuple[str, str], tuple[str, str]] | None:
    first = _end(edge.source, nodes, (*path, "from"), source)
    second = _end(edge.to, nodes, (*path, "to"), source)
    if isinstance(edge.component, list) and not edge.component:
        source.add((*path, "component"), "must name one component or more, got []")
        return None
    return None if first is None or second is None else (first, second)


def _end(name: str, nodes: Iterable[str], path: Path_, source: Source) -> tuple[str, str] | None:
    node, dot, field = name.partition(".")
    if not dot or not node or not field:
        source.add(path, f"must be 'node.field', got {name!r}")
    elif node not in nodes:
        source.add(path, _no_node(node, nodes))
    else:
        return node, field
    return None


def _no_node(name: str, nodes: Iterable[str]) -> str:
    return f"no node {name!r}{nearest(name, nodes)} (nodes: {quoted(nodes)})"
