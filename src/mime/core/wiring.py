"""The checked wiring of a graph: which value reaches which input, in which order, at which rate."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from mime.core.node import Node
from mime.core.spec import Input, Output
from mime.core.text import nearest, quoted


class GraphError(ValueError):
    """Everything that is wrong with a graph, found in one pass. `problems` lists it."""

    def __init__(self, problems: list[str]):
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join([f"the graph has {count}:", *(f"  - {p}" for p in problems)]))


@dataclasses.dataclass(frozen=True)
class Edge:
    """`source.source_field` -> `target.target_field`, of this step or (delay) the one before."""

    source: str
    target: str
    source_field: str
    target_field: str
    transform: Callable[[Any], Any] | None = None
    delay: bool = False

    def __str__(self) -> str:
        return f"{self.source}.{self.source_field} -> {self.target}.{self.target_field}"

    def sort_key(self) -> tuple[Any, ...]:
        """An order that does not depend on the order of `add_edge`: float sums must not either."""
        name = getattr(self.transform, "__qualname__", repr(self.transform))
        return (self.target, self.target_field, self.source, self.source_field, self.delay, name)

    def value(self, flux: Any) -> Any:
        """The source's flux as the target receives it."""
        return flux if self.transform is None else self.transform(flux)


@dataclasses.dataclass(frozen=True)
class CouplingGroup:
    """Nodes whose same-step edges form a cycle, iterated in every step until they agree."""

    name: str
    members: tuple[str, ...]
    tolerance: float | None
    max_iterations: int
    acceleration: str
    """`none` or `aitken`."""
    method: str
    """`gauss_seidel` or `jacobi`."""


Stage = str | CouplingGroup


@dataclasses.dataclass(frozen=True)
class Wiring:
    """A graph's structure: hashable, compared by value, fixed when a program compiles."""

    timestep: float
    edges: tuple[Edge, ...]
    external: tuple[tuple[str, str], ...]
    schedule: tuple[Stage, ...]
    periods: tuple[tuple[str, int], ...]

    @property
    def groups(self) -> tuple[CouplingGroup, ...]:
        """The coupling groups in the order in which they run."""
        return tuple(stage for stage in self.schedule if isinstance(stage, CouplingGroup))

    def period(self, node: str) -> int:
        """Steps from one firing of the node to the next."""
        return dict(self.periods)[node]

    def firings(self) -> list[CouplingGroup | tuple[str, ...]]:
        """The schedule, with neighbours of one rate joined: what fires together."""
        found: list[CouplingGroup | tuple[str, ...]] = []
        for stage in self.schedule:
            last = found[-1] if found else None
            if isinstance(stage, CouplingGroup):
                found.append(stage)
            elif isinstance(last, tuple) and self.period(last[0]) == self.period(stage):
                found[-1] = (*last, stage)
            else:
                found.append((stage,))
        return found

    def edges_into(self, node: str) -> tuple[Edge, ...]:
        """The edges that end at a node."""
        return tuple(edge for edge in self.edges if edge.target == node)

    def inner_edges(self, group: CouplingGroup) -> tuple[Edge, ...]:
        """The same-step edges that a group iterates on."""
        return tuple(
            edge
            for edge in self.edges
            if not edge.delay and {edge.source, edge.target} <= set(group.members)
        )

    def held_fields(self, node: Node) -> tuple[str, ...]:
        """Fluxes that outlive a step: of a slow node, of a delayed edge, of a coupled edge."""
        if self.period(node.name) > 1:
            return tuple(sorted(node.boundary_flux_spec()))
        coupled = {edge for group in self.groups for edge in self.inner_edges(group)}
        return tuple(
            sorted(
                {
                    edge.source_field
                    for edge in self.edges
                    if edge.source == node.name and (edge.delay or edge in coupled)
                }
            )
        )


def check(
    nodes: Iterable[Node],
    edges: Iterable[Edge],
    external: Iterable[tuple[str, str]],
    groups: Iterable[CouplingGroup],
) -> Wiring:
    """The wiring of a graph, or a `GraphError` that lists every mistake and what to do about it."""
    nodes, groups = list(nodes), list(groups)
    edges = sorted(edges, key=Edge.sort_key)
    external = sorted(set(external))
    by_name = {node.name: node for node in nodes}
    problems = _naming(nodes, groups, by_name)
    if not nodes:
        raise GraphError(["there are no nodes: add one with add_node"])
    inputs = {name: node.boundary_input_spec() for name, node in by_name.items()}
    fluxes = {name: node.boundary_flux_spec() for name, node in by_name.items()}
    problems += [f"edge {edge}: {found}" for edge in edges for found in _ends(edge, inputs, fluxes)]
    sound = [edge for edge in edges if not _ends(edge, inputs, fluxes)]
    for edge in sound:
        problems += _fit(
            edge, fluxes[edge.source][edge.source_field], inputs[edge.target][edge.target_field]
        )
    for node, field in external:
        if node not in inputs:
            problems.append(f"external input {node}.{field}: {_unknown('node', node, inputs)}")
        elif field not in inputs[node]:
            problems.append(
                f"external input {node}.{field}: {_unknown('input', field, inputs[node])}"
            )
    problems += _sources(sound, external, inputs)
    timestep, periods, rate_problems = _rates(nodes)
    problems += rate_problems
    problems += _group_rates(groups, periods)
    schedule, cycle_problems = _schedule(sorted(by_name), sound, groups)
    problems += cycle_problems
    if problems:
        raise GraphError(problems)
    return Wiring(timestep, tuple(edges), tuple(external), schedule, tuple(sorted(periods.items())))


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    return f"unknown {kind} {name!r}{nearest(name, known)} ({kind}s: {quoted(sorted(known))})"


def _naming(
    nodes: list[Node], groups: list[CouplingGroup], by_name: Mapping[str, Node]
) -> list[str]:
    names = [node.name for node in nodes]
    problems = [
        f"{names.count(name)} nodes are named {name!r}: give each its own name"
        for name in sorted(by_name)
        if names.count(name) > 1
    ]
    member_of: dict[str, str] = {}
    for group in groups:
        if group.name in by_name or [g.name for g in groups].count(group.name) > 1:
            problems.append(f"coupling group {group.name!r}: the name is taken, choose another")
        for member in group.members:
            if member not in by_name:
                problems.append(
                    f"coupling group {group.name!r}: {_unknown('node', member, by_name)}"
                )
            elif member in member_of:
                problems.append(
                    f"node {member!r} is in the coupling groups {member_of[member]!r} and "
                    f"{group.name!r}: merge the two"
                )
            member_of[member] = group.name
    return problems


def _ends(
    edge: Edge,
    inputs: Mapping[str, Mapping[str, Input]],
    fluxes: Mapping[str, Mapping[str, Output]],
) -> list[str]:
    """What is wrong with the names at an edge's two ends."""
    found = []
    if edge.source not in fluxes:
        found.append(_unknown("node", edge.source, fluxes))
    elif edge.source_field not in fluxes[edge.source]:
        found.append(_unknown("flux", edge.source_field, fluxes[edge.source]))
    if edge.target not in inputs:
        found.append(_unknown("node", edge.target, inputs))
    elif edge.target_field not in inputs[edge.target]:
        found.append(_unknown("input", edge.target_field, inputs[edge.target]))
    return found


def _fit(edge: Edge, source: Output, target: Input) -> list[str]:
    """Shape (after the transform) and unit (without one) must be the target's."""
    problems = []
    shape = source.shape
    if edge.transform is not None:
        try:
            argument = jax.ShapeDtypeStruct(source.shape, jnp.result_type(float))
            shape = jax.eval_shape(edge.transform, argument).shape
        except Exception as error:  # whatever the user's function raises is the finding
            return [f"edge {edge}: its transform fails on shape {source.shape}: {error}"]
    if shape != target.shape:
        what = "its transform gives" if edge.transform else "its source has"
        problems.append(
            f"edge {edge}: {what} shape {shape}, the input expects {target.shape}: "
            "pass a transform that makes it fit"
        )
    if edge.transform is None and _plain(source.unit) != _plain(target.unit):
        problems.append(
            f"edge {edge}: unit {source.unit or '1'!r} into an input in {target.unit or '1'!r}: "
            "pass a transform that converts it"
        )
    return problems


def _plain(unit: str) -> str:
    """A unit without the liberties of spelling: `N m`, `N*m` and `N·m` are one."""
    return unit.replace("*", "·").replace(" ", "·").replace("·", "") if unit != "1" else ""


def _sources(
    edges: list[Edge],
    external: list[tuple[str, str]],
    inputs: Mapping[str, Mapping[str, Input]],
) -> list[str]:
    """A replacive input has one source at most."""
    problems = []
    for node, spec in inputs.items():
        for field, entry in spec.items():
            found = [str(e) for e in edges if (e.target, e.target_field) == (node, field)]
            found += ["an external input"] * ((node, field) in external)
            if entry.coupling == "replacive" and len(found) > 1:
                problems.append(
                    f"{node}.{field} is replacive and has {len(found)} sources "
                    f"({'; '.join(found)}): keep one"
                )
    return problems


def _rates(nodes: list[Node]) -> tuple[float, dict[str, int], list[str]]:
    """Base timestep, firing period of every node in steps, and timesteps that do not fit."""
    base = min(node.timestep for node in nodes)
    fastest = min(node.name for node in nodes if node.timestep == base)
    periods, problems = {}, []
    for node in sorted({node.name: node for node in nodes}.values(), key=lambda n: n.name):
        ratio = node.timestep / base
        period = round(ratio)
        periods[node.name] = period
        if abs(ratio - period) > 1e-9 * ratio:  # decimal timesteps divide to within a few ulp
            problems.append(
                f"node {node.name!r}: timestep {node.timestep:g} s is {ratio:.6g} times the "
                f"smallest ({base:g} s of {fastest!r}), not a whole multiple: the nearest that "
                f"fits is {period * base:.12g} s"
            )
    return base, periods, problems


def _group_rates(groups: list[CouplingGroup], periods: Mapping[str, int]) -> list[str]:
    return [
        f"coupling group {group.name!r}: its members run at different rates "
        f"({quoted(sorted(group.members))}): give them one timestep"
        for group in groups
        if len({periods[member] for member in group.members if member in periods}) > 1
    ]


def _schedule(
    names: list[str], edges: list[Edge], groups: list[CouplingGroup]
) -> tuple[tuple[Stage, ...], list[str]]:
    """Topological order of the same-step edges, groups contracted; unique, as ties go by name."""
    stage_of: dict[str, Stage] = {name: name for name in names}
    stage_of |= {member: group for group in groups for member in group.members if member in names}
    key = {
        stage: stage if isinstance(stage, str) else min(stage.members)
        for stage in stage_of.values()
    }
    now = [edge for edge in edges if not edge.delay]
    waits_for: dict[Stage, dict[Stage, Edge]] = {stage: {} for stage in stage_of.values()}
    problems = []
    for edge in now:
        source, target = stage_of[edge.source], stage_of[edge.target]
        if source != target:
            waits_for[target].setdefault(source, edge)
        elif isinstance(source, str):
            problems.append(
                f"undeclared cycle: {edge}: the node reads its own flux of the same step; "
                "pass delay=True to read that of the step before"
            )
    order: list[Stage] = []
    while ready := [s for s in waits_for if s not in order and set(waits_for[s]) <= set(order)]:
        order.append(min(ready, key=lambda stage: key[stage]))
    rest = [stage for stage in waits_for if stage not in order]
    if rest:
        problems.append(_spell_cycle(rest, waits_for, key))
    return tuple(order), problems


def _spell_cycle(
    rest: list[Stage], waits_for: Mapping[Stage, Mapping[Stage, Edge]], key: Mapping[Stage, str]
) -> str:
    """Walk backwards among stages that wait for each other until one repeats."""
    stage = min(rest, key=lambda s: key[s])
    walked: list[Stage] = []
    edges: list[Edge] = []
    while stage not in walked:
        walked.append(stage)
        source = min((s for s in waits_for[stage] if s in rest), key=lambda s: key[s])
        edges.append(waits_for[stage][source])
        stage = source
    cycle = edges[walked.index(stage) :][::-1]
    members = sorted({edge.source for edge in cycle} | {edge.target for edge in cycle})
    return (
        f"undeclared cycle: {'; '.join(map(str, cycle))}: break it with delay=True on one of these "
        f"edges, or iterate it with add_coupling_group({members})"
    )
