"""The checks of a graph: its wiring, or everything that is wrong with it."""

import heapq
from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp

from mime._text import nearest, quoted
from mime.core.goals import foreseen_problems
from mime.core.node import Node
from mime.core.problem import GraphError, Problem
from mime.core.spec import Input, Output
from mime.core.wiring import CouplingGroup, Derived, Edge, Stage, Wiring


def check(
    nodes: Iterable[Node],
    edges: Iterable[Edge],
    external: Iterable[tuple[str, str]],
    groups: Iterable[CouplingGroup],
    derived: Iterable[Derived] = (),
) -> Wiring:
    """The wiring of a graph, or a `GraphError` that lists every mistake and what to do about it."""
    nodes, groups = list(nodes), list(groups)
    edges = sorted(edges, key=Edge.sort_key)
    external = sorted(set(external))
    by_name = {node.name: node for node in nodes}
    problems = _naming(nodes, groups, by_name)
    if not nodes:
        raise GraphError([Problem((), "there are no nodes", "Add one")])
    inputs = {name: node.boundary_input_spec() for name, node in by_name.items()}
    fluxes = {name: node.boundary_flux_spec() for name, node in by_name.items()}
    problems += [_at(edge, found) for edge in edges for found in _ends(edge, inputs, fluxes)]
    sound = [edge for edge in edges if not _ends(edge, inputs, fluxes)]
    for edge in sound:
        problems += _fit(
            edge, fluxes[edge.source][edge.source_field], inputs[edge.target][edge.target_field]
        )
    for node, field in external:
        place, label = ("input", node, field), f"external input {node}.{field}:"
        if node not in inputs:
            problems.append(Problem(place, _unknown("node", node, inputs), label=label))
        elif field not in inputs[node]:
            problems.append(Problem(place, _unknown("input", field, inputs[node]), label=label))
    problems += _sources(sound, external, inputs)
    timestep, periods, rate_problems = _rates(nodes)
    schedule, cycle_problems = _schedule(sorted(by_name), sound, groups)
    problems += [*rate_problems, *_group_rates(groups, periods), *cycle_problems]
    if not problems:
        problems += foreseen_problems(by_name, sound)
    if problems:
        raise GraphError(problems)
    periods_by_name = tuple(sorted(periods.items()))
    seen = tuple(at for at in external if _is_followed(by_name[at[0]], at[1]))
    return Wiring(
        timestep, tuple(edges), tuple(external), schedule, periods_by_name, tuple(derived), seen
    )


def _is_followed(node: Node, field: str) -> bool:
    """Whether a node's drawing follows an input, and no flux or state of the same name."""
    try:
        fields = node.drawing().fields()
    except Exception:  # of whoever wrote the node: `scene` tells, when it is drawn
        return False
    own = {*node.boundary_flux_spec(), *node.state_spec()} if field in fields else {field}
    return field not in own


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    return f"unknown {kind} {name!r}{nearest(name, known)} ({kind}s: {quoted(sorted(known))})"


def _at(edge: Edge, message: str, hint: str = "") -> Problem:
    return Problem(("edge", edge), message, hint, label=f"edge {edge}:")


def _in_group(name: str, message: str, hint: str = "") -> Problem:
    return Problem(("group", name), message, hint, label=f"coupling group {name!r}:")


def _naming(
    nodes: list[Node], groups: list[CouplingGroup], by_name: Mapping[str, Node]
) -> list[Problem]:
    names = [node.name for node in nodes]
    problems = []
    for name in sorted(by_name):
        if (count := names.count(name)) > 1:
            message, hint = f"is the name of {count} nodes", "Give each its own name"
            problems.append(Problem(("node", name), message, hint, label=repr(name)))
    member_of: dict[str, str] = {}
    for group in groups:
        if group.name in by_name or [g.name for g in groups].count(group.name) > 1:
            problems.append(_in_group(group.name, "the name is taken", "Choose another"))
        for member in group.members:
            if member not in by_name:
                problems.append(_in_group(group.name, _unknown("node", member, by_name)))
            elif member in member_of:
                message = f"node {member!r} is in the coupling group {member_of[member]!r} too"
                problems.append(_in_group(group.name, message, "Merge the two"))
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


def _fit(edge: Edge, source: Output, target: Input) -> list[Problem]:
    """Shape (after the transform) and unit (without one) must be the target's."""
    problems = []
    shape = source.shape
    if edge.transform is not None:
        try:
            argument = jax.ShapeDtypeStruct(source.shape, jnp.result_type(float))
            shape = jax.eval_shape(edge.transform, argument).shape
        except Exception as error:  # whatever the user's function raises is the finding
            return [_at(edge, f"its transform fails on shape {source.shape}: {error}")]
    if shape != target.shape:
        what = "its transform gives" if edge.transform else "its source has"
        message = f"{what} shape {shape}, the input expects {target.shape}"
        hint = "Make it fit with a `transform` (in a scenario file: a `component`)"
        problems.append(_at(edge, message, hint))
    if edge.transform is None and _plain(source.unit) != _plain(target.unit):
        message = f"unit {source.unit or '1'!r} into an input in {target.unit or '1'!r}"
        hint = "Convert it with a `transform` (in a scenario file: a `scale`)"
        problems.append(_at(edge, message, hint))
    return problems


def _plain(unit: str) -> str:
    """A unit without the liberties of spelling: `N m`, `N*m` and `N·m` are one."""
    return unit.replace("*", "·").replace(" ", "·").replace("·", "") if unit != "1" else ""


def _sources(
    edges: list[Edge], external: list[tuple[str, str]], inputs: Mapping[str, Mapping[str, Input]]
) -> list[Problem]:
    """A replacive input has one source at most."""
    problems = []
    sources: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        sources.setdefault((edge.target, edge.target_field), []).append(str(edge))
    for given in external:
        sources.setdefault(given, []).append("an external input")
    for node, spec in inputs.items():
        for field, entry in spec.items():
            found = sources.get((node, field), [])
            if entry.coupling == "replacive" and len(found) > 1:
                message = f"is replacive and has {len(found)} sources ({'; '.join(found)})"
                place, label = ("input", node, field), f"{node}.{field}"
                problems.append(Problem(place, message, "Keep one", label))
    return problems


def _rates(nodes: list[Node]) -> tuple[float, dict[str, int], list[Problem]]:
    """Base timestep, firing period of every node in steps, and timesteps that do not fit."""
    base = min(node.timestep for node in nodes)
    fastest = min(node.name for node in nodes if node.timestep == base)
    periods, problems = {}, []
    for node in sorted({node.name: node for node in nodes}.values(), key=lambda n: n.name):
        ratio = node.timestep / base
        period = round(ratio)
        periods[node.name] = period
        if abs(ratio - period) > 1e-9 * ratio:  # decimal timesteps divide to within a few ulp
            message = f"timestep {node.timestep:g} s is {ratio:.6g} times the smallest ({base:g} s"
            message += f" of {fastest!r}), not a whole multiple"
            hint, label = f"The nearest that fits is {period * base:.12g} s", f"node {node.name!r}:"
            problems.append(Problem(("node", node.name, "timestep"), message, hint, label))
    return base, periods, problems


def _group_rates(groups: list[CouplingGroup], periods: Mapping[str, int]) -> list[Problem]:
    found = []
    for group in groups:
        if len({periods[member] for member in group.members if member in periods}) > 1:
            message = f"its members run at different rates ({quoted(sorted(group.members))})"
            found.append(_in_group(group.name, message, "Give them one timestep"))
    return found


def _schedule(
    names: list[str], edges: list[Edge], groups: list[CouplingGroup]
) -> tuple[tuple[Stage, ...], list[Problem]]:
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
            message = f"{edge}: the node reads its own flux of the same step"
            hint = "Set `delay` to read that of the step before"
            problems.append(Problem(("edge", edge), message, hint, "undeclared cycle:"))
    order: list[Stage] = []
    by_key = {key[stage]: stage for stage in waits_for}
    missing = {stage: len(sources) for stage, sources in waits_for.items()}
    ready = sorted(key[stage] for stage, count in missing.items() if count == 0)
    followers: dict[Stage, list[Stage]] = {stage: [] for stage in waits_for}
    for stage, sources in waits_for.items():
        for source in sources:
            followers[source].append(stage)
    while ready:  # a heap: the first by name of those that wait for nothing any more
        order.append(stage := by_key[heapq.heappop(ready)])
        for follower in followers[stage]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(ready, key[follower])
    rest = [stage for stage, count in missing.items() if count > 0]
    if rest:
        problems.append(_spell_cycle(rest, waits_for, key))
    return tuple(order), problems


def _spell_cycle(
    rest: list[Stage], waits_for: Mapping[Stage, Mapping[Stage, Edge]], key: Mapping[Stage, str]
) -> Problem:
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
    hint = "Break it by setting `delay` on one of these edges, or iterate it in a coupling group "
    hint += f"of {members}"
    return Problem(("edge", cycle[0]), "; ".join(map(str, cycle)), hint, "undeclared cycle:")
