"""The loop that `run` and `run_batch` repeat: some samples, as one compiled program."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from mime.core.program import Step
from mime.core.recorder import Outputs, Recorder, Selection, StepResult
from mime.core.step import SimulationState


class Samples(NamedTuple):
    """How much of a run one call makes. Both are run-time values: see `run_chunk`."""

    records: Any
    """Samples to take, an int32."""
    stride: Any
    """Steps from one to the next, an int32."""


class Buffer(NamedTuple):
    """What is recorded, fixed when the program compiles."""

    selection: Selection
    capacity: int
    """Samples that one call has room for."""
    every_step: bool
    """The stride is 1, and the fluxes of each step are at hand."""


def run_chunk(
    step: Step, recorder: Recorder, state: SimulationState, samples: Samples, buffer: Buffer
) -> tuple[SimulationState, Outputs]:
    """Take `samples` into buffers of fixed capacity: the state after, and the recorded values.

    One compiled program serves every duration and every chunk, so that where a run is cut
    (progress, checkpoints, resuming) cannot change a bit of its result.
    """
    empty = recorder.no_inputs(step, state)

    def watched(state: SimulationState) -> StepResult:
        return recorder.watch(step(state))

    def sample_after(state: SimulationState) -> tuple[SimulationState, Outputs]:
        if buffer.every_step:
            state, fluxes, given = watched(state)
            return state, recorder.of_step(state, fluxes, given)
        state, given = jax.lax.fori_loop(
            0, samples.stride, lambda _, carry: recorder.keep(watched(carry[0])), (state, empty)
        )
        return state, recorder.of_inputs(state, given)

    def body(
        index: Array, carry: tuple[SimulationState, Outputs]
    ) -> tuple[SimulationState, Outputs]:
        state, outputs = sample_after(carry[0])
        put = jax.lax.dynamic_update_index_in_dim
        return state, jax.tree.map(lambda buf, x: put(buf, x, index, 0), carry[1], outputs)

    shapes = jax.eval_shape(lambda s: sample_after(s)[1], state)
    buffers = jax.tree.map(lambda x: jnp.zeros((buffer.capacity, *x.shape), x.dtype), shapes)
    return jax.lax.fori_loop(0, samples.records, body, (state, buffers))
