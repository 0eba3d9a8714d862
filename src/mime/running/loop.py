"""The loop that `run` and `run_batch` repeat: some samples, as one compiled program."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.core.program import Step
from mime.core.recorder import Outputs, Recorder, Selection, StepResult
from mime.core.step import SimulationState


class Samples(NamedTuple):
    """How much of a run one call makes. All are run-time values: see `run_chunk`."""

    records: Any
    """Samples to take, an int32."""
    stride: Any
    """Steps from one to the next, an int32."""
    first: Any
    """The row that the first one is written to, an int32."""


class Buffer(NamedTuple):
    """What is recorded, fixed when the program compiles."""

    selection: Selection
    capacity: int
    """Rows that there is room for."""
    every_step: bool
    """The stride is 1, and the fluxes of each step are at hand."""


Poison = Callable[..., Array]
"""0 where all values of some pytrees are finite, else NaN."""


def run_chunk(
    step: Step,
    recorder: Recorder,
    at_risk: Callable[[SimulationState, Any], Any],
    poison: Poison,
    state: SimulationState,
    samples: Samples,
    buffer: Buffer,
) -> tuple[SimulationState, Outputs, Array]:
    """Take `samples` into arrays of fixed capacity: the state after, the recorded values, and
    whether all was finite in every step, sampled or not. Rows that no sample goes to are undefined.

    One compiled program serves every duration and every chunk, so that where a run is cut
    (progress, checkpoints, resuming) cannot change a bit of its result.
    """

    def watched(state: SimulationState) -> StepResult:
        return recorder.watch(step(state))

    @partial(jax.jit, inline=True)  # its trace is kept: it is asked for its shape, and then used
    def sample_after(state: SimulationState, sum_: Array) -> tuple[SimulationState, Array, Outputs]:
        if buffer.every_step:
            state, fluxes, given = watched(state)
            outputs = recorder.of_step(state, fluxes, given)
            return state, sum_ + poison(*at_risk(state, given), outputs), outputs

        def between(_: Array, carry: Any) -> Any:
            result = watched(carry[0])
            bad = poison(*at_risk(result[0], result[2]))
            return *recorder.keep(result), carry[2] + bad

        empty = recorder.no_inputs(step, state)
        state, given, sum_ = jax.lax.fori_loop(0, samples.stride, between, (state, empty, sum_))
        outputs = recorder.of_inputs(state, given)
        return state, sum_ + poison(outputs), outputs

    def body(
        index: Array, carry: tuple[SimulationState, Array, Outputs]
    ) -> tuple[SimulationState, Array, Outputs]:
        state, sum_, outputs = sample_after(*carry[:2])
        row = samples.first + index
        return state, sum_, jax.tree.map(lambda buf, x: _put(buf, x, row), carry[2], outputs)

    start = jnp.zeros(())
    shapes = jax.eval_shape(lambda *carry: sample_after(*carry)[2], state, start)
    buffers = jax.tree.map(lambda x: jax.lax.empty((buffer.capacity, *x.shape), x.dtype), shapes)
    state, sum_, outputs = jax.lax.fori_loop(0, samples.records, body, (state, start, buffers))
    return state, outputs, sum_ == 0


def _put(buffer: Array, x: Array, row: Array) -> Array:
    start: list[Any] = [row, *[np.int32(0)] * x.ndim]
    return jax.lax.dynamic_update_slice(
        buffer, jnp.expand_dims(x, 0), start, allow_negative_indices=False
    )
