"""One step of a graph, traced: the schedule, the gathering of inputs, rates and coupling groups."""

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Int

from mime._text import nearest, quoted
from mime.core.coupling import CouplingReport, fixed_point
from mime.core.monitor import SeenByNode
from mime.core.node import Node, State, traced_fluxes, traced_update
from mime.core.wiring import CouplingGroup, Wiring


class SimulationState(eqx.Module):
    """All that a simulation carries from one step to the next; after a run, arrays of NumPy."""

    step: Int[Any, ""]
    """Steps made so far; the time is `step` times the wiring's timestep."""
    nodes: dict[str, dict[str, Any]]
    """The state of each node, by name."""
    held: dict[str, dict[str, Any]]
    """Fluxes that outlive their step: of slow nodes, of delayed and of coupled edges."""
    coupling: dict[str, CouplingReport]
    seen: SeenByNode = eqx.field(default_factory=dict)
    """What a run has seen of the nodes' monitors; empty outside of runs, and where none has any."""

    def of(self, node: str) -> State:
        """The state of one node."""
        if node not in self.nodes:
            raise KeyError(
                f"no node {node!r}{nearest(node, self.nodes)} (nodes: {quoted(self.nodes)})"
            )
        return self.nodes[node]


def advance(
    elements: Mapping[str, Node],
    wiring: Wiring,
    state: SimulationState,
    external: Mapping[str, Mapping[str, Any]],
) -> tuple[SimulationState, dict[str, State], dict[str, dict[str, Any]]]:
    """One step along the schedule: the new state, and the fluxes and inputs of every node."""
    step = _Step(elements, wiring, state, external)
    for firing in wiring.firings():
        if isinstance(firing, CouplingGroup):
            step.group(firing)
        else:
            step.singles(firing)
    held = {
        name: {field: step.fluxes[name][field] for field in kept}
        for name, kept in state.held.items()
    }
    after = SimulationState(state.step + 1, step.nodes, held, step.reports, state.seen)
    return after, step.fluxes, step.inputs


def gather(
    wiring: Wiring,
    node: Node,
    now: Mapping[str, Mapping[str, Any]],
    before: Mapping[str, Mapping[str, Any]],
    external: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The inputs of a node: edges (of this step or the one before) plus external ones, summed."""
    terms: dict[str, list[Any]] = {}
    for edge in wiring.edges_into(node.name):
        source = (before if edge.delay else now).get(edge.source, {})
        if edge.source_field in source:
            terms.setdefault(edge.target_field, []).append(edge.value(source[edge.source_field]))
    for field, value in external.get(node.name, {}).items():
        terms.setdefault(field, []).append(value)
    return {field: sum(values[1:], start=values[0]) for field, values in terms.items()}


class _Step:
    """A step under way: what the nodes visited so far have become."""

    def __init__(
        self,
        elements: Mapping[str, Node],
        wiring: Wiring,
        before: SimulationState,
        external: Mapping[str, Mapping[str, Any]],
    ):
        self.elements, self.wiring, self.before, self.external = elements, wiring, before, external
        self.nodes, self.reports = dict(before.nodes), dict(before.coupling)
        self.fluxes: dict[str, State] = {}
        self.inputs: dict[str, dict[str, Any]] = {}

    def singles(self, names: tuple[str, ...]) -> None:
        """Fire nodes of one rate; between the firings of slow ones, hold their states and fluxes.

        Together, since every branch of a program costs by itself.
        """
        start = {name: self.nodes[name] for name in names}
        earlier = dict(self.fluxes)

        def fire() -> tuple[dict[str, State], dict[str, State]]:
            after: dict[str, State] = {}
            fluxes: dict[str, State] = {}
            now = ChainMap(fluxes, earlier)
            for name in names:
                given = self._gather(name, now)
                after[name], fluxes[name] = _fire(self.elements[name], start[name], given)
            return after, fluxes

        def hold() -> tuple[dict[str, State], dict[str, State]]:
            return start, {name: self.before.held[name] for name in names}

        after, fluxes = self._at_its_rate(names[0], fire, hold)
        self.nodes |= after
        self.fluxes |= fluxes
        self.inputs |= {name: self._gather(name, self.fluxes) for name in names}

    def group(self, group: CouplingGroup) -> None:
        """Iterate a group's members from the step's start until the fluxes between them agree."""
        inner = [(edge.source, edge.source_field) for edge in self.wiring.inner_edges(group)]
        start = {name: self.nodes[name] for name in group.members}
        outside = dict(self.fluxes)

        def coupled(all_fluxes: Mapping[str, State]) -> dict[str, State]:
            picked: dict[str, State] = {}
            for name, field in inner:
                picked.setdefault(name, {})[field] = all_fluxes[name][field]
            return picked

        def once(x: dict[str, State]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
            latest, after, given = {**outside, **x}, {}, {}
            for name in group.members:
                now = latest if group.method == "gauss_seidel" else {**outside, **x}
                given[name] = self._gather(name, now)
                after[name], latest[name] = _fire(self.elements[name], start[name], given[name])
            return after, {name: latest[name] for name in group.members}, given

        def iterate() -> tuple[Any, ...]:
            x, count, residual, converged = fixed_point(
                lambda x: coupled(once(x)[1]), coupled(self.before.held), group
            )
            report = self.reports[group.name]
            return *once(x), report.after(self.before.step, count, residual, converged)

        def hold() -> tuple[Any, ...]:
            kept = {name: self.before.held[name] for name in group.members}
            now = {**outside, **coupled(kept)}
            given = {name: self._gather(name, now) for name in group.members}
            return start, kept, given, self.reports[group.name]

        after, latest, given, report = self._at_its_rate(group.members[0], iterate, hold)
        self.nodes |= after
        self.fluxes |= latest
        self.inputs |= given
        self.reports[group.name] = report

    def _gather(self, name: str, now: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        return gather(self.wiring, self.elements[name], now, self.before.held, self.external)

    def _at_its_rate(self, name: str, fire: Callable[[], Any], hold: Callable[[], Any]) -> Any:
        """Fire in every step, or in every k-th and hold between: not computed then."""
        period = self.wiring.period(name)
        return fire() if period == 1 else jax.lax.cond(self.before.step % period == 0, fire, hold)


def _fire(node: Node, state: State, inputs: Mapping[str, Any]) -> tuple[State, State]:
    after = traced_update(node, state, inputs, node.timestep)
    fluxes = traced_fluxes(node, after, inputs, node.timestep)
    return after, {field: fluxes[field] for field in node.boundary_flux_spec()}
