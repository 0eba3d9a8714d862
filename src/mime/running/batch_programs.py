"""The two ways to run a block of members, and which one suits a graph.

In lanes, the batch is the last axis of every array inside the loop, and one operation handles all
members: that is what vector units are for. But XLA writes every intermediate value of a long step
to memory, or computes it anew for each value that needs it. One by one, a member's whole run stays
in registers and in the first cache. benchmarks/motor.py and benchmarks/arm.py measure both;
`mime.xla` tells the whole story.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import jaxprs_in_params
from jaxtyping import Array

from mime.core.program import Program, Step
from mime.core.recorder import Outputs, Recorder, Selection, StepResult, recorder
from mime.core.signals import Signals, sample
from mime.core.step import SimulationState, advance
from mime.running.divergence import Flags, poison_of, walk
from mime.running.loop import Buffer, Samples, run_chunk
from mime.native.folding import MOST_PROGRAMS, Folding, jit_folding, split

_LONG_STEP = 100
"""Operations from which on members run faster one after the other (benchmarks/arm.py)."""


def step_size(program: Program) -> int | None:
    """Count the operations by which a step advances the state, once per structure.

    None stands for a step with loops of its own: members may need different numbers of turns.
    """
    key = split(program)[0]
    if (known := _sizes.get(key, -1)) != -1:
        return known
    state = program.init_state()
    jaxpr = jax.make_jaxpr(lambda s: advance(program.nodes, program.wiring, s, {})[0])(state).jaxpr
    if len(_sizes) >= MOST_PROGRAMS:
        _sizes.clear()
    _sizes[key] = size = _size(jaxpr)
    return size


_sizes: dict[Any, int | None] = {}


def _size(jaxpr: Any) -> int | None:
    """Equations between the inputs and the outputs: no dead code, nothing that stays the same."""
    varies = {id(variable) for variable in jaxpr.invars}
    varying = []
    for equation in jaxpr.eqns:
        if any(id(variable) in varies for variable in equation.invars):
            varies |= {id(variable) for variable in equation.outvars}
            varying.append(equation)
    wanted = {id(variable) for variable in jaxpr.outvars}
    count = 0
    for equation in reversed(varying):
        if any(id(variable) in wanted for variable in equation.outvars):
            wanted |= {id(variable) for variable in equation.invars}
            inner = [_size(inside) for inside in jaxprs_in_params(equation.params)] or [1]
            if equation.primitive.name in ("scan", "while") or None in inner:
                return None
            count += sum(size or 0 for size in inner)
    return count


def _step_of_all(
    shared: Program, parameters: Any, signals: Signals, start: Array, axes: Any
) -> Step:
    """`advance` for a block: the batch is the last axis of all but the step counter."""
    input_axes = {node: dict(fields) for node, fields in axes}

    @partial(jax.jit, inline=True)  # as in `stepper`: keeps the trace
    def one(state: SimulationState) -> StepResult:
        def member(parameters: Any, fields: Any, external: Any) -> Any:
            nodes = shared.with_parameters(parameters).nodes
            member_state = SimulationState(state.step, *fields)
            after, fluxes, given = advance(nodes, shared.wiring, member_state, external)
            return fields_of(after), fluxes, given

        external = sample(signals, state.step - start, shared.time_at(state.step))
        mapped = jax.vmap(member, in_axes=(-1, -1, input_axes), out_axes=-1)
        after, fluxes, given = mapped(parameters, fields_of(state), external)
        return SimulationState(state.step + 1, *after), fluxes, given

    return one


def fields_of(state: SimulationState) -> tuple[Any, Any, Any, Any]:
    """All of a state that has a batch axis."""
    return state.nodes, state.held, state.coupling, state.seen


def _lanes(
    shared: Program,
    parameters: Any,
    state: SimulationState,
    signals: Signals,
    start: Array,
    samples: Samples,
    *,
    axes: Any,
    buffer: Buffer,
) -> tuple[SimulationState, Outputs, Array]:
    """Run every operation on all members: each scalar of the physics is one lane of them."""

    def of_members(which: str) -> Callable[..., Outputs]:
        def observed(state: SimulationState, *rest: Any) -> Outputs:
            def member(parameters: Any, fields: Any, *rest: Any) -> Outputs:
                nodes = shared.with_parameters(parameters).nodes
                one: Any = getattr(recorder(nodes, shared.wiring, buffer.selection), which)
                return one(SimulationState(state.step, *fields), *rest)

            mapped = jax.vmap(member, in_axes=-1, out_axes=-1)
            return mapped(parameters, fields_of(state), *rest)

        return observed

    def watch(result: StepResult) -> StepResult:
        state, fluxes, given = result
        if not state.seen:
            return result

        def member(parameters: Any, fields: Any, given: Any) -> Any:
            nodes = shared.with_parameters(parameters).nodes
            its = recorder(nodes, shared.wiring, buffer.selection)
            return its.watch((SimulationState(state.step, *fields), {}, given))[0].seen

        seen = jax.vmap(member, in_axes=-1, out_axes=-1)(parameters, fields_of(state), given)
        return dataclasses.replace(state, seen=seen), fluxes, given

    watched = recorder(shared.nodes, shared.wiring, buffer.selection).watched
    return run_chunk(
        _step_of_all(shared, parameters, signals, start, axes),
        Recorder(watched, of_members("of_step"), of_members("of_inputs"), watch),
        poison_of(signals, member_axis=True),
        state,
        samples,
        buffer,
    )


def _one_by_one(
    shared: Program,
    parameters: Any,
    state: SimulationState,
    signals: Signals,
    start: Array,
    samples: Samples,
    *,
    axes: Any,
    buffer: Buffer,
) -> tuple[SimulationState, Outputs, Array]:
    """`_lanes` with a loop over the members outside, each in the program of a single run."""

    def member(its: tuple[Array, Any, Any]) -> tuple[Any, Outputs, Array]:
        index, parameters, fields = its
        program = shared.with_parameters(parameters)
        after, outputs, finite = run_chunk(
            _step_of_one(program, signals, start, axes, index),
            recorder(program.nodes, shared.wiring, buffer.selection),
            poison_of(signals),
            SimulationState(state.step, *fields),
            samples,
            buffer,
        )
        return fields_of(after), outputs, finite

    first = partial(jax.tree.map, lambda x: jnp.moveaxis(x, -1, 0))
    last = partial(jax.tree.map, lambda x: jnp.moveaxis(x, 0, -1))
    fields = first(fields_of(state))
    members = jax.tree.leaves(fields)[0].shape[0]
    its = jnp.arange(members), first(parameters), fields
    after, outputs, finite = jax.lax.map(member, its)
    step = state.step + samples.records * samples.stride
    return SimulationState(step, *last(after)), last(outputs), finite


def _step_of_one(program: Program, signals: Signals, start: Array, axes: Any, index: Array) -> Step:
    """`advance` for one member: its input is the `index`-th where the members' differ."""
    input_axes = {node: dict(fields) for node, fields in axes}

    @partial(jax.jit, inline=True)  # as in `stepper`: keeps the trace
    def one(state: SimulationState) -> StepResult:
        given = sample(signals, state.step - start, program.time_at(state.step))
        external = {
            node: {
                field: value if input_axes[node][field] is None else value[..., index]
                for field, value in values.items()
            }
            for node, values in given.items()
        }
        return advance(program.nodes, program.wiring, state, external)

    return one


def _walk_member(
    shared: Program,
    parameters: Any,
    state: SimulationState,
    signals: Signals,
    start: Array,
    index: Array,
    steps: Array,
    *,
    axes: Any,
    watched: Selection,
) -> tuple[Array, Flags]:
    """Where one member of a block leaves the finite numbers: the step before, and what does."""
    parameters, fields = jax.tree.map(lambda x: x[..., index], (parameters, fields_of(state)))
    program = shared.with_parameters(parameters)
    one = _step_of_one(program, signals, start, axes, index)
    before, flags = walk(one, SimulationState(state.step, *fields), steps, watched)
    return before.step, flags


walk_member = jit_folding(_walk_member, static_argnames=("axes", "watched"))


@dataclasses.dataclass(frozen=True)
class BatchProgram:
    """One of the two ways, compiled."""

    compiled: Folding
    smallest_cut: int
    """Members from which on another thread pays (benchmarks/motor.py, benchmarks/arm.py)."""


def _compile(function: Callable[..., Any], smallest_cut: int) -> BatchProgram:
    return BatchProgram(jit_folding(function, static_argnames=("axes", "buffer")), smallest_cut)


LANES = _compile(_lanes, smallest_cut=64)
ONE_BY_ONE = _compile(_one_by_one, smallest_cut=1)


def batch_program(program: Program) -> BatchProgram:
    """How a thread runs its members."""
    size = step_size(program)
    return LANES if size is not None and size < _LONG_STEP else ONE_BY_ONE
