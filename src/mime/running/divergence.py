"""Where a run stopped being finite."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.core.program import Program, Step, stepper
from mime.core.recorder import Selection, field_specs
from mime.core.signals import Function, Signals
from mime.core.step import SimulationState
from mime.native.folding import jit_folding


def at_risk(signals: Signals) -> Callable[[SimulationState, Any], Any]:
    """What may stop being finite in a step: state, held fluxes, inputs that functions give.

    (Constants and arrays over time are checked before a run.)
    """
    functions = [
        (node, field)
        for node, fields in signals.items()
        for field, signal in fields.items()
        if isinstance(signal, Function)
    ]
    return lambda state, given: (
        state.nodes,
        state.held,
        [given[node][field] for node, field in functions],
    )


def poison(*values: Any) -> Array:
    """What a loop adds up in every step, over all values x:

        sum of x - x  =  0 where all is finite, else NaN, which no later addition heals.

    That is two additions per value, and no comparison. Values by node are added up by a function
    that all nodes with such values share.
    """
    by_node: dict[str, dict[int, Any]] = {}
    for part in values:
        for node, its in part.items() if isinstance(part, Mapping) else [("", part)]:
            leaves = [jnp.asarray(x) for x in jax.tree.leaves(its)]
            floating = {id(x): x for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)}
            by_node.setdefault(node, {}).update(floating)  # what is named twice is added once
    total = jnp.zeros(())
    for found in by_node.values():
        if found:
            total = jax.lax.add(total, _poison(list(found.values())).astype(total.dtype))
    return total


@jax.jit
def _poison(values: list[Array]) -> Array:
    total = jnp.zeros((), values[0].dtype)
    for x in values:
        zero = jax.lax.sub(x, x)
        zero = jax.lax.reduce_sum(zero, tuple(range(x.ndim))) if x.ndim else zero
        total = jax.lax.add(total, zero.astype(total.dtype))
    return total


def locate(
    program: Program,
    state: SimulationState,
    signals: Signals,
    start: Array,
    steps: int,
    selection: Selection,
) -> tuple[SimulationState, tuple[str, str]]:
    """Walk `steps` steps again: the last finite state, and the first (node, field) that is not."""
    before, flags = _walk(
        program, state, signals, start, np.int32(steps), watched=watched(program, selection)
    )
    return before, first_bad(program, flags)


def watched(program: Program, selection: Selection) -> Selection:
    """The fluxes that matter: those that are recorded or that feed another node."""
    fed = tuple((edge.source, (edge.source_field,)) for edge in program.wiring.edges)
    return (*selection, *fed)


def first_bad(program: Program, flags: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """The first (node, field) whose flag is down, along the schedule: inputs, states, fluxes."""
    fields = {name: list(field_specs(program.nodes[name])) for name in program.wiring.order}
    fields |= {group.name: ["residual"] for group in program.wiring.groups}
    bad = (
        (name, field)
        for name, known in fields.items()
        for field in known
        if not flags[name].get(field, True)
    )
    return next(bad, ("?", "?"))  # two programs may round a value at the edge of infinity apart


Flags = dict[str, dict[str, Array]]


def walk(
    one: Step, state: SimulationState, steps: Array, watched: Selection
) -> tuple[SimulationState, Flags]:
    """The last finite state, and which inputs, states and fluxes are finite one step later."""

    def flags(state: SimulationState) -> tuple[SimulationState, Flags]:
        after, all_fluxes, given = one(state)
        fluxes: dict[str, dict[str, Any]] = {}
        for name, chosen in watched:
            known = all_fluxes.get(name, {})
            fluxes.setdefault(name, {}).update({f: known[f] for f in chosen if f in known})
        found: Flags = {name: {} for name in (*after.nodes, *after.coupling)}
        reports = {name: {"residual": report.residual} for name, report in after.coupling.items()}
        for values in (given, after.nodes, after.held, fluxes, reports):
            for name, fields in values.items():
                for field, x in fields.items():
                    good = found[name].get(field, jnp.ones((), bool))
                    found[name][field] = good & jnp.isfinite(x).all()
        return after, found

    last = state.step + steps

    def go_on(carry: tuple[SimulationState, SimulationState, Flags]) -> Array:
        return jnp.all(jnp.stack(jax.tree.leaves(carry[2]))) & (carry[1].step < last)

    def body(
        carry: tuple[SimulationState, SimulationState, Flags],
    ) -> tuple[SimulationState, SimulationState, Flags]:
        _, after, _ = carry
        return after, *flags(after)

    before, _, found = jax.lax.while_loop(go_on, body, (state, *flags(state)))
    return before, found


def _walk_run(
    program: Program,
    state: SimulationState,
    signals: Signals,
    start: Array,
    steps: Array,
    *,
    watched: Selection,
) -> tuple[SimulationState, Flags]:
    return walk(stepper(program, signals, start), state, steps, watched)


_walk = jit_folding(_walk_run, static_argnames=("watched",))
