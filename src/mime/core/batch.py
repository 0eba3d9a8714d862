"""`simulation.run_batch`: many variants of a graph in one program, on all cores.

The batch is cut into equal blocks, one a thread: XLA releases Python's lock.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.batch_programs import PROGRAMS, batch_program, fields_of
from mime.core.divergence import all_finite
from mime.core.progress import Pace, progress_bar
from mime.core.recording import (
    Recorded,
    Selection,
    buffer_capacity,
    labels,
    parameter_values,
    sample_bytes,
    sample_times,
)
from mime.core.run import check_finite_inputs, count_steps
from mime.core.signals import Inputs
from mime.core.simulation import ConvergenceWarning, Simulation
from mime.core.spec import InputError
from mime.core.step import SimulationState
from mime.core.text import warn_user
from mime.core.trajectory import Divergence, Trajectory
from mime.core.variants import Block, Variants, Varied

_BUFFER_BYTES = 2**25
_SMALLEST_BLOCK = {"lanes": 64, "one by one": 1}
"""Members a thread is worth starting for."""


class DivergenceWarning(UserWarning):
    """Members of a batch left the finite numbers; the others are not affected."""


def run_batch(
    simulation: Simulation,
    duration: float | None = None,
    inputs: Inputs | None = None,
    *,
    steps: int | None = None,
    parameters: Varied | None = None,
    initial_state: Varied | None = None,
    batch_size: int | None = None,
    record: Recorded = None,
    every: int = 1,
    progress: bool = True,
    threads: int | None = None,
) -> Trajectory:
    """Run many variants of a graph at once and return a trajectory with a leading member axis.

    parameters       `{node: {parameter: values}}`; values with a leading batch axis vary
    initial_state    `{node: {field: values}}`; likewise
    inputs           as in `run`, shared; or with a leading batch axis, one a member
    batch_size       the number of members, where nothing given has a batch axis to tell it
    record, every    as in `run`; with `record=()` only the final state is kept
    threads          default: one a core

    A member that leaves the finite numbers is reported by index (`trajectory.diverged`, and a
    `DivergenceWarning`); the others are what they would be without it. Equals member-by-member
    `run` to rounding.
    """
    steps = count_steps(simulation, duration, steps)
    if every < 1 or steps % every:
        raise InputError(f"every must divide the {steps} steps, got {every}")
    variants = Variants(simulation, steps, parameters, initial_state, inputs, batch_size)
    check_finite_inputs(variants.signals)
    return _BatchJob(variants, simulation.select(record), steps, every, threads).finish(progress)


class _BatchJob:
    """One batch under way: equal blocks of members, a thread each, in chunks of time."""

    def __init__(
        self, variants: Variants, selection: Selection, steps: int, every: int, threads: int | None
    ):
        self.variants, self.selection, self.steps, self.every = variants, selection, steps, every
        size, wanted = variants.size, threads or os.cpu_count() or 1
        kind = batch_program(variants.shared)
        most = size // _SMALLEST_BLOCK[kind]
        self.threads = max(1, min(wanted, most)) if threads is None else wanted
        length = -(-size // self.threads)
        # Equal blocks share one program: the last one is filled up with its last member.
        members = [
            np.arange(i * length, (i + 1) * length).clip(max=size - 1) for i in range(self.threads)
        ]
        self.blocks = [variants.block(chosen) for chosen in members]
        self.length = length
        self.axes = tuple(
            (node, tuple(fields.items())) for node, fields in sorted(variants.input_axes.items())
        )
        self.static = {"selection": selection, "axes": self.axes, "every_step": every == 1}
        # The caller's `jax.enable_x64` holds in the caller's thread only.
        self.double = jnp.result_type(float) == jnp.float64
        self.program = PROGRAMS[kind].of(variants.shared)

    def finish(self, progress: bool) -> Trajectory:
        """Run all blocks to the end, side by side."""
        size = self.length * sample_bytes(self.blocks[0].shared.nodes, self.selection)
        self.capacity = buffer_capacity(size, self.steps // self.every, _BUFFER_BYTES, 1, 1024)
        self.start = self.blocks[0].state.step
        done, pace = 0, Pace()
        with progress_bar(self.steps, 0, progress) as bar:
            while done < self.steps:
                plan = pace.plan(done, self.steps, self.every, self.capacity)
                with pace:
                    self._on_threads(partial(self._advance, done, *plan))
                records, stride, _ = plan
                done += records * stride
                pace.made(records * stride)
                bar(done)
        return self._trajectory()

    def _on_threads(self, work: Callable[[Block], None]) -> None:
        if self.threads == 1:
            work(self.blocks[0])
        else:
            list(_pool(self.threads).map(work, self.blocks))

    def _advance(self, done: int, records: int, stride: int, complete: bool, block: Block) -> None:
        with jax.enable_x64(self.double):
            block.state, outputs = self.program(
                block.parameters,
                block.state,
                block.signals,
                self.start,
                np.int32(records),
                np.int32(stride),
                capacity=self.capacity,
                **self.static,
            )
        if complete:
            block.record(outputs, self.steps // self.every, done // self.every, records)
        jax.block_until_ready(block.state)

    def _trajectory(self) -> Trajectory:
        size, simulation = self.variants.size, self.blocks[0].shared

        def joined(*parts: np.ndarray) -> np.ndarray:
            whole = parts[0] if len(parts) == 1 else np.concatenate(parts, -1)[..., :size]
            return np.moveaxis(whole, -1, 0)

        found = jax.tree.map(joined, *(block.recorded for block in self.blocks))
        fields = {node: {f: found[node][f] for f in chosen} for node, chosen in self.selection}
        first, records = int(np.asarray(self.start)), self.steps // self.every
        times = sample_times(first, self.every, records, simulation.timestep)
        stacked = _stacked([block.state for block in self.blocks], size=size)
        parameters = parameter_values(simulation.nodes)
        varied = []
        for node, values in self.variants.parameters[True].items():
            for name, value in values.items():
                parameters[node][name] = np.asarray(value)
                varied.append((node, name))
        units, descriptions = labels(simulation.nodes, self.selection)
        diverged = _find_divergence(fields, stacked, times)
        _warn(simulation, diverged, stacked, size)
        return Trajectory(
            times, fields, units, descriptions, parameters, tuple(varied), size, stacked, diverged
        )


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mime-run-batch")


@partial(jax.jit, static_argnames="size")
def _stacked(states: list[SimulationState], *, size: int) -> SimulationState:
    """The state of all members, batch axis first."""
    join = lambda *x: jnp.moveaxis(jnp.concatenate(x, -1)[..., :size], -1, 0)  # noqa: E731
    return SimulationState(states[0].step, *jax.tree.map(join, *map(fields_of, states)))


def _find_divergence(
    fields: Mapping[str, Mapping[str, np.ndarray]], state: SimulationState, times: np.ndarray
) -> dict[int, Divergence]:
    """The first sample that is not finite, of every member that has one; else its final state."""
    found: dict[int, Divergence] = {}
    for node, values in state.nodes.items():
        for field, value in values.items():
            final = np.asarray(value)
            if not all_finite(final):
                for index in np.flatnonzero(
                    ~np.isfinite(final.reshape(len(final), -1)).all(axis=1)
                ):
                    found.setdefault(int(index), Divergence(node, field, float(times[-1])))
    for node, series in fields.items():
        for field, x in series.items():
            if not all_finite(x):
                bad: np.ndarray = ~np.isfinite(x.reshape(*x.shape[:2], -1)).all(axis=2)
                for index in np.flatnonzero(bad.any(axis=1)):
                    time = float(times[bad[index].argmax()])
                    if int(index) not in found or time < found[int(index)].time_s:
                        found[int(index)] = Divergence(node, field, time)
    return dict(sorted(found.items()))


def _warn(
    simulation: Simulation, diverged: Mapping[int, Divergence], state: SimulationState, size: int
) -> None:
    if diverged:
        index, where = next(iter(diverged.items()))
        warn_user(
            DivergenceWarning(
                f"{len(diverged)} of {size} members left the finite numbers, first member {index}: "
                f"{where} or up to one sample before. See `trajectory.diverged`."
            )
        )
    for group in simulation.wiring.groups:
        failures = np.asarray(state.coupling[group.name].failures)
        if (failures > 0).any():
            warn_user(
                ConvergenceWarning(
                    f"coupling group {group.name!r} did not converge in some steps of "
                    f"{int((failures > 0).sum())} of {size} members, first member "
                    f"{int((failures > 0).argmax())}"
                )
            )
