"""The builder of a graph: nodes, edges, external inputs, coupling groups -> `Simulation`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mime.core.checks import check
from mime.core.node import Node, State
from mime.core.problem import GraphError, Problem
from mime.core.step import SimulationState
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

    def add_node(self, node: Node | Any) -> None:
        """Add a node. Its name must be its own."""
        if not isinstance(node, Node):
            raise GraphError(
                [Problem((), f"add_node takes a Node, got {type(node).__name__}: {node!r}")]
            )
        self._nodes.append(node)
        self._running = None

    def add_graph(self, other: "GraphManager") -> None:
        """Add all nodes, edges, inputs, groups and derived parameters of another graph."""
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
        self._edges.append(Edge(source, target, source_field, target_field, transform, delay))
        self._running = None

    def add_external_input(self, node: str, field: str) -> None:
        """Let the caller of a run set this input; it takes its default where none is given."""
        self._external.append((node, field))
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
        label, place = name or "+".join(nodes), f"coupling group of {list(nodes)}:"
        checks = (
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
            CouplingGroup(label, tuple(nodes), tolerance, max_iterations, acceleration, method)
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
        self._derived.append(Derived(node, parameter, function, tuple(sources), tuple(reads)))
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
        lines = ["flowchart LR"]
        lines += [f"  {_box(n)}" for n in sorted(self._nodes, key=_name) if n.name not in grouped]
        for index, group in enumerate(self._groups):
            lines.append(f'  subgraph group{index}["{group.name}: {group.method}"]')
            lines += [f"    {_box(n)}" for n in self._nodes if n.name in group.members]
            lines.append("  end")
        for edge in sorted(self._edges, key=Edge.sort_key):
            label = f"{edge.source_field} → {edge.target_field}"
            arrow = f'-. "{label}" .->' if edge.delay else f'-- "{label}" -->'
            lines.append(f"  {_id(edge.source)} {arrow} {_id(edge.target)}")
        for name, field in sorted(set(self._external)):
            lines.append(f'  {_id(name)}_{_id(field)}(["{field}"]) --> {_id(name)}')
        return "\n".join(lines)


def _name(node: Node) -> str:
    return node.name


def _id(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _box(node: Node) -> str:
    return f'{_id(node.name)}["{node.name}<br/>{type(node).__name__}, {node.timestep:g} s"]'
