"""One step of a graph, traced: the schedule, the gathering of inputs, rates and coupling groups."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Int

from mime.core.coupling import CouplingReport, fixed_point
from mime.core.node import Node, State, traced_fluxes, traced_update
from mime.core.text import nearest, quoted
from mime.core.wiring import CouplingGroup, Wiring


class SimulationState(eqx.Module):
    """All that a simulation carries from one step to the next."""

    step: Int[Array, ""]
    """Steps made so far; the time is `step` times the wiring's timestep."""
    nodes: dict[str, State]
    held: dict[str, State]
    """Fluxes that outlive their step: of slow nodes, of delayed and of coupled edges."""
    coupling: dict[str, CouplingReport]

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
    nodes, reports = dict(state.nodes), dict(state.coupling)
    fluxes: dict[str, State] = {}
    inputs: dict[str, dict[str, Any]] = {}
    for stage in wiring.schedule:
        fire = _group if isinstance(stage, CouplingGroup) else _single
        fire(elements, wiring, stage, state, external, nodes, fluxes, inputs, reports)
    held = {
        name: {field: fluxes[name][field] for field in kept} for name, kept in state.held.items()
    }
    return SimulationState(state.step + 1, nodes, held, reports), fluxes, inputs


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


def _single(
    elements: Mapping[str, Node],
    wiring: Wiring,
    name: Any,
    state: SimulationState,
    external: Mapping[str, Any],
    nodes: dict[str, State],
    fluxes: dict[str, State],
    inputs: dict[str, dict[str, Any]],
    reports: dict[str, CouplingReport],
) -> None:
    """Fire one node; between the firings of a slow one, hold its state and fluxes."""
    node, period = elements[name], wiring.period(name)
    inputs[name] = gather(wiring, node, fluxes, state.held, external)
    if period == 1:
        nodes[name], fluxes[name] = _fire(node, nodes[name], inputs[name])
        return
    nodes[name], fluxes[name] = jax.lax.cond(
        state.step % period == 0,
        lambda: _fire(node, nodes[name], inputs[name]),
        lambda: (nodes[name], state.held[name]),
    )


def _fire(node: Node, state: State, inputs: Mapping[str, Any]) -> tuple[State, State]:
    after = traced_update(node, state, inputs, node.timestep)
    spec = node.boundary_flux_spec()
    fluxes = traced_fluxes(node, after, inputs, node.timestep)
    return after, {field: fluxes[field] for field in spec}


def _group(
    elements: Mapping[str, Node],
    wiring: Wiring,
    group: Any,
    state: SimulationState,
    external: Mapping[str, Any],
    nodes: dict[str, State],
    fluxes: dict[str, State],
    inputs: dict[str, dict[str, Any]],
    reports: dict[str, CouplingReport],
) -> None:
    """Iterate a group's members from the state at the step's start until their fluxes agree."""
    inner = [(edge.source, edge.source_field) for edge in wiring.inner_edges(group)]
    start = {name: nodes[name] for name in group.members}
    outside = dict(fluxes)

    def once(x: dict[str, State]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        latest, after, given = {**outside, **x}, {}, {}
        for name in group.members:
            now = latest if group.method == "gauss_seidel" else {**outside, **x}
            given[name] = gather(wiring, elements[name], now, state.held, external)
            after[name], latest[name] = _fire(elements[name], start[name], given[name])
        return after, {name: latest[name] for name in group.members}, given

    def coupled(all_fluxes: Mapping[str, State]) -> dict[str, State]:
        picked: dict[str, State] = {}
        for name, field in inner:
            picked.setdefault(name, {})[field] = all_fluxes[name][field]
        return picked

    def iterate() -> tuple[Any, ...]:
        x, count, residual, converged = fixed_point(
            lambda x: coupled(once(x)[1]), coupled(state.held), group
        )
        return *once(x), reports[group.name].after(state.step, count, residual, converged)

    period = wiring.period(group.members[0])
    if period == 1:
        after, latest, given, report = iterate()
    else:
        given = {
            m: gather(
                wiring,
                elements[m],
                {**outside, **coupled(state.held)},
                state.held,
                external,
            )
            for m in group.members
        }
        after, latest, report = jax.lax.cond(
            state.step % period == 0,
            lambda: (lambda r: (r[0], r[1], r[3]))(iterate()),
            lambda: (start, {m: state.held[m] for m in group.members}, reports[group.name]),
        )
    nodes |= after
    fluxes |= latest
    inputs |= given
    reports[group.name] = report
