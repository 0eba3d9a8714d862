"""The builder of a graph: nodes, edges, external inputs, coupling groups -> `Simulation`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mime._text import brief, quoted
from mime.core.arguments import function as checked_function
from mime.core.arguments import instance, real, text, texts, whole
from mime.core.checks import check
from mime.core.node import Node, State
from mime.core.printing import counted, graph_text
from mime.core.problem import GraphError, Problem
from mime.core.step import SimulationState
from mime.core.upward import drawer
from mime.core.wiring import CouplingGroup, Derived, Edge
from mime.running.simulation import Simulation

ACCELERATIONS = ("none", "aitken")
METHODS = ("gauss_seidel", "jacobi")


class GraphManager:
    """Collects nodes and wires in any order; `compile()` checks all of it and gives a `Simulation`.

    graph = GraphManager()
    graph.add_node(arm)
    graph.add_node(rotor)
    graph.add_edge("arm", "rotor", "end_effector_pose_world", "parent_pose_world")
    graph.add_external_input("rotor", "commanded_velocity")
    simulation = graph.compile()
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._external: list[tuple[str, str]] = []
        self._groups: list[CouplingGroup] = []
        self._derived: list[Derived] = []
        self._running: tuple[Simulation, SimulationState] | None = None

    def __repr__(self) -> str:
        counts = counted(
            edge=self._edges, external_input=self._external, coupling_group=self._groups
        )
        return graph_text("GraphManager", self._nodes, counts)

    def _repr_html_(self) -> str:
        return drawer("GraphManager.html")(self)

    def add_node(self, node: Node | Any) -> None:
        """Add a node. Its name must be its own."""
        if not isinstance(node, Node):
            raise GraphError(
                [Problem((), f"add_node takes a Node, got {type(node).__name__}: {brief(node)}")]
            )
        self._nodes.append(node)
        self._running = None

    def add_graph(self, other: "GraphManager") -> None:
        """Add all nodes, edges, inputs, groups and derived parameters of another graph."""
        instance("other", other, GraphManager)
        self._nodes += other._nodes
        self._edges += other._edges
        self._external += other._external
        self._groups += other._groups
        self._derived += other._derived
        self._running = None

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes added so far, by name."""
        return {node.name: node for node in self._nodes}

    @property
    def group_names(self) -> list[str]:
        """Names of the coupling groups added so far."""
        return [group.name for group in self._groups]

    def add_edge(
        self,
        source: str,
        target: str,
        source_field: str,
        target_field: str,
        transform: Callable[[Any], Any] | None = None,
        delay: bool = False,
    ) -> None:
        """Feed a flux of `source` to an input of `target`: of this step, or (delay) the one before.

        `transform` is a JAX function of the flux (a conversion of unit, a component, a sign).
        """
        ends = {"source": source, "target": target}
        fields = {"source_field": source_field, "target_field": target_field}
        names = {name: text(name, value) for name, value in {**ends, **fields}.items()}
        if transform is not None:
            checked_function("transform", transform)
        instance("delay", delay, bool, np.bool_)
        self._edges.append(Edge(**names, transform=transform, delay=bool(delay)))
        self._running = None

    def add_external_input(self, node: str, field: str) -> None:
        """Let the caller of a run set this input; it takes its default where none is given."""
        self._external.append((text("node", node), text("field", field)))
        self._running = None

    def add_coupling_group(
        self,
        nodes: Sequence[str],
        tolerance: float | None = None,
        max_iterations: int = 50,
        acceleration: str = "none",
        method: str = "gauss_seidel",
        name: str | None = None,
    ) -> None:
        """Iterate the cycle among `nodes` in every step: |G(x) - x| <= tolerance (1 + |x|).

        x are the fluxes on its edges. Default tolerance: 1e-9 in double, 1e-5 in single precision.

        Members run in the order given (it matters to Gauss-Seidel's speed, not to its result).
        """
        members = texts("nodes", nodes)
        label = "+".join(members) if name is None else text("name", name)
        place = f"coupling group of {quoted(members)}:"
        tolerance = None if tolerance is None else real("tolerance", tolerance)
        max_iterations = whole("max_iterations", max_iterations)
        acceleration, method = text("acceleration", acceleration), text("method", method)
        checks = (
            ("nodes", bool(members), "names of nodes", members),
            ("tolerance", tolerance is None or tolerance > 0, "> 0", tolerance),
            ("max_iterations", max_iterations >= 1, ">= 1", max_iterations),
            ("acceleration", acceleration in ACCELERATIONS, f"in {ACCELERATIONS}", acceleration),
            ("method", method in METHODS, f"in {METHODS}", method),
        )
        if problems := [
            Problem(("group", label, key), f"{key} must be {expected}, got {given!r}", label=place)
            for key, good, expected, given in checks
            if not good
        ]:
            raise GraphError(problems)
        self._groups.append(
            CouplingGroup(label, tuple(members), tolerance, max_iterations, acceleration, method)
        )
        self._running = None

    def add_derived_parameter(
        self,
        node: str,
        parameter: str,
        function: Callable[..., Any],
        sources: Sequence[str],
        reads: Sequence[str],
    ) -> None:
        """Let a parameter follow others when they are varied: `function(*source nodes)`.

        `reads` are the parameters (or effects) of the sources that it depends on. The value that
        the node was built with holds until one of them is varied.
        """
        names = text("node", node), text("parameter", parameter)
        others = tuple(texts("sources", sources)), tuple(texts("reads", reads))
        self._derived.append(Derived(*names, checked_function("function", function), *others))
        self._running = None

    def compile(self) -> Simulation:
        """Check everything and report all mistakes at once, or return the graph as a value."""
        wiring = check(self._nodes, self._edges, self._external, self._groups, self._derived)
        return Simulation({node.name: node for node in sorted(self._nodes, key=_name)}, wiring)

    def step(
        self, external_inputs: Mapping[str, Mapping[str, Any]] | None = None
    ) -> dict[str, State]:
        """Advance by one step, by hand. Returns the fluxes of every node after it."""
        if self._running is None:
            simulation = self.compile()
            self._running = simulation, simulation.init_state()
        simulation, state = self._running
        state, fluxes = simulation.step(state, external_inputs)
        self._running = simulation, state
        return fluxes

    def get_node_state(self, name: str) -> State:
        """The state of a node after the steps made by hand so far."""
        if self._running is None:
            simulation = self.compile()
            self._running = simulation, simulation.init_state()
        return dict(self._running[1].of(name))

    def to_mermaid(self) -> str:
        """The wiring as a Mermaid flow chart; delayed edges are dotted, groups are boxes."""
        grouped = {member for group in self._groups for member in group.members}
        lines, ids = ["flowchart LR"], _Ids()
        nodes = sorted(self._nodes, key=_name)
        lines += [f"  {_box(n, ids)}" for n in nodes if n.name not in grouped]
        for index, group in enumerate(self._groups):
            label = _mermaid_text(f"{group.name}: {group.method}")
            lines.append(f'  subgraph {ids[(f"group{index}",)]}["{label}"]')
            lines += [f"    {_box(n, ids)}" for n in nodes if n.name in group.members]
            lines.append("  end")
        for edge in sorted(self._edges, key=Edge.sort_key):
            label = _mermaid_text(f"{edge.source_field} → {edge.target_field}")
            arrow = f'-. "{label}" .->' if edge.delay else f'-- "{label}" -->'
            lines.append(f"  {ids[edge.source]} {arrow} {ids[edge.target]}")
        for name, field in sorted(set(self._external)):
            box = f'{ids[name, field]}(["{_mermaid_text(field)}"])'
            lines.append(f"  {box} --> {ids[name]}")
        return "\n".join(lines)


def _name(node: Node) -> str:
    return node.name


class _Ids(dict[Any, str]):
    """An id for each box of a flow chart, like its name where that can be one; no two alike."""

    _RESERVED = frozenset({"end", "graph", "subgraph", "flowchart", "style", "class", "click"})

    def __missing__(self, name: Any) -> str:
        words = name if isinstance(name, str) else "_".join(map(str, name))
        made = "".join(letter if letter.isalnum() else "_" for letter in words) or "_"
        taken = self._RESERVED.union(self.values())
        while made in taken:
            made += "_"
        self[name] = made
        return made


def _mermaid_text(words: str) -> str:
    """Words between quotes as Mermaid shows them: what it would take for markup has a code."""
    return "".join(
        letter if letter.isalnum() or letter in " _-.,:→/²·" else f"#{ord(letter)};"
        for letter in words
    )


def _box(node: Node, ids: _Ids) -> str:
    kind = f"{type(node).__name__}, {node.timestep:g} s"
    return f'{ids[node.name]}["{_mermaid_text(node.name)}<br/>{_mermaid_text(kind)}"]'
