"""Many steps as one program: the pure, differentiable rollout, and the chunk that `run` repeats."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from mime.core.folding import jit_folding
from mime.core.node import traced_fluxes
from mime.core.recording import Recorded, Selection, observe
from mime.core.signals import Inputs, Signals, sample, to_signals
from mime.core.simulation import Simulation
from mime.core.spec import InputError
from mime.core.step import SimulationState, advance

Outputs = dict[str, dict[str, Array]]


def rollout(
    simulation: Simulation,
    state: SimulationState,
    inputs: Inputs | None,
    steps: int,
    record: Recorded,
    every: int,
    remat_every: int | None,
) -> tuple[SimulationState, Outputs]:
    """See `Simulation.rollout`."""
    for name, count in (("every", every), ("remat_every", remat_every)):
        if count is not None and (count < 1 or steps % count):
            raise InputError(f"{name} must divide the {steps} steps, got {count}")
    if remat_every is not None and remat_every % every:
        raise InputError(f"remat_every ({remat_every}) must be a multiple of every ({every})")
    signals = to_signals(inputs, simulation.wiring.external, simulation.input_specs(), steps)
    selection = simulation.select(record)
    return _rollout(
        simulation, state, signals, steps=steps, selection=selection, every=every, remat=remat_every
    )


def _scan(
    simulation: Simulation,
    state: SimulationState,
    signals: Signals,
    *,
    steps: int,
    selection: Selection,
    every: int,
    remat: int | None,
) -> tuple[SimulationState, Outputs]:
    # A gradient computes each step again instead of keeping all that went on inside it: states are
    # all that goes to memory, and the gradient of an arm's rollout takes 4 instead of 11 times the
    # rollout. (A scan keeps the two computations apart by itself: `prevent_cse`.)
    one = jax.checkpoint(stepper(simulation, signals, state.step), prevent_cse=False)
    watched = watched_nodes(simulation, selection)

    def sample_after(state: SimulationState, _: None) -> tuple[SimulationState, Outputs]:
        if every == 1:
            state, fluxes, given = one(state)
            return state, observe(simulation.nodes, selection, state, fluxes, given)
        given = empty_inputs(one, state, watched)
        (state, given), _ = jax.lax.scan(
            lambda carry, _: (_keep(one(carry[0]), watched), None), (state, given), length=every
        )
        return state, observe_again(simulation, selection, state, given)

    def segment(state: SimulationState, _: None) -> tuple[SimulationState, Outputs]:
        return jax.lax.scan(sample_after, state, length=(remat or steps) // every)

    if remat is None:
        return segment(state, None)
    state, outputs = jax.lax.scan(jax.checkpoint(segment), state, length=steps // remat)
    return state, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), outputs)


_rollout = jit_folding(_scan, static_argnames=("steps", "selection", "every", "remat"))

Step = Callable[[SimulationState], tuple[SimulationState, dict[str, Any], dict[str, Any]]]


def stepper(simulation: Simulation, signals: Signals, start: Int[Array, ""]) -> Step:
    """One step under the run's inputs; `start` is the step at which the run began.

    Jitted only so that its trace is kept: the loops around it ask for its shape more than once.
    """

    @partial(jax.jit, inline=True)
    def one(state: SimulationState) -> tuple[SimulationState, dict[str, Any], dict[str, Any]]:
        external = sample(signals, state.step - start, simulation.time_at(state.step))
        return advance(simulation.nodes, simulation.wiring, state, external)

    return one


def chunk(
    one: Step,
    look: Callable[[SimulationState, dict[str, Any], dict[str, Any]], Outputs],
    look_again: Callable[[SimulationState, dict[str, Any]], Outputs],
    watched: tuple[str, ...],
    state: SimulationState,
    records: Int[Array, ""],
    stride: Int[Array, ""],
    capacity: int,
    every_step: bool,
) -> tuple[SimulationState, Outputs]:
    """`records` samples, `stride` steps apart, into buffers of fixed `capacity`.

    Both counts are run-time values: one compiled program serves every duration and every chunk, so
    that where a run is cut (progress, checkpoints, resuming) cannot change a bit of its result.
    """
    empty = empty_inputs(one, state, watched)

    def sample_after(state: SimulationState) -> tuple[SimulationState, Outputs]:
        if every_step:
            state, fluxes, given = one(state)
            return state, look(state, fluxes, given)
        state, given = jax.lax.fori_loop(
            0, stride, lambda _, carry: _keep(one(carry[0]), watched), (state, empty)
        )
        return state, look_again(state, given)

    def body(
        index: Array, carry: tuple[SimulationState, Outputs]
    ) -> tuple[SimulationState, Outputs]:
        state, outputs = sample_after(carry[0])
        put = jax.lax.dynamic_update_index_in_dim
        return state, jax.tree.map(lambda buf, x: put(buf, x, index, 0), carry[1], outputs)

    shapes = jax.eval_shape(lambda s: sample_after(s)[1], state)
    buffers = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), shapes)
    return jax.lax.fori_loop(0, records, body, (state, buffers))


def observe_again(
    simulation: Simulation, selection: Selection, state: SimulationState, given: dict[str, Any]
) -> Outputs:
    """The recorded values from a state and the inputs that led to it."""
    fluxes = {}
    for name in watched_nodes(simulation, selection):
        node = simulation.nodes[name]
        slow = simulation.wiring.period(name) > 1
        fluxes[name] = (
            state.held[name]
            if slow
            else traced_fluxes(node, state.nodes[name], given[name], node.timestep)
        )
    return observe(simulation.nodes, selection, state, fluxes, given)


def watched_nodes(simulation: Simulation, selection: Selection) -> tuple[str, ...]:
    """Nodes of which something is recorded."""
    return tuple(name for name, _ in selection if name in simulation.nodes)


def _keep(
    result: tuple[SimulationState, dict[str, Any], dict[str, Any]], watched: tuple[str, ...]
) -> tuple[SimulationState, dict[str, Any]]:
    state, _, given = result
    return state, {name: jax.tree.map(jnp.asarray, given[name]) for name in watched}


def empty_inputs(one: Step, state: SimulationState, watched: tuple[str, ...]) -> dict[str, Any]:
    """Zeros in the structure of the watched nodes' inputs, to start a loop with."""
    shapes = jax.eval_shape(lambda s: _keep(one(s), watched)[1], state)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
