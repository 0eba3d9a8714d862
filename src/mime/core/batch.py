"""`simulation.run_batch`: many variants of a graph in one program, on all cores.

The batch is cut into equal blocks, one a thread: XLA releases Python's lock.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.core.batch_programs import PROGRAMS, batch_program, fields_of
from mime.core.progress import Pace, progress_bar
from mime.core.recording import Recorded, Selection, labels, parameter_values, sample_bytes
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
        self.program = PROGRAMS[kind]

    def finish(self, progress: bool) -> Trajectory:
        """Run all blocks to the end, side by side."""
        block = self.blocks[0]
        size = self.length * sample_bytes(block.shared.nodes, self.selection)
        self.capacity = max(1, min(1024, _BUFFER_BYTES // size, self.steps // self.every))
        start = block.state.step
        _, outputs = self._call(block, start, 0, 0)  # compiles, once for all blocks
        self.treedef: Any = jax.tree.structure(outputs)
        done, pace = 0, Pace()
        with progress_bar(self.steps, 0, progress) as bar, ThreadPoolExecutor(self.threads) as pool:
            while done < self.steps:
                records, stride, complete = pace.plan(done, self.steps, self.every, self.capacity)
                with pace:
                    jobs = [
                        pool.submit(self._advance, block, start, records, stride, complete)
                        for block in self.blocks
                    ]
                    for job in jobs:
                        job.result()
                done += records * stride
                pace.made(records * stride)
                bar(done)
        return self._trajectory()

    def _advance(
        self, block: Block, start: Array, records: int, stride: int, complete: bool
    ) -> None:
        with jax.enable_x64(self.double):
            block.state, outputs = self._call(block, start, records, stride)
        if complete:
            block.samples.append([np.asarray(x)[:records] for x in jax.tree.leaves(outputs)])
        jax.block_until_ready(block.state)

    def _call(self, block: Block, start: Array, records: int, stride: int) -> Any:
        return self.program(
            block.shared,
            block.parameters,
            block.state,
            block.signals,
            start,
            np.int32(records),
            np.int32(stride),
            capacity=self.capacity,
            **self.static,
        )

    def _trajectory(self) -> Trajectory:
        size, simulation = self.variants.size, self.blocks[0].shared
        columns = [
            np.concatenate([np.concatenate([s[i] for s in b.samples]) for b in self.blocks], -1)[
                ..., :size
            ]
            for i in range(self.treedef.num_leaves)
        ]
        found = jax.tree.unflatten(self.treedef, [np.moveaxis(x, -1, 0) for x in columns])
        fields = {node: {f: found[node][f] for f in chosen} for node, chosen in self.selection}
        first = int(self.blocks[0].state.step) - self.steps
        times = (
            first + self.every * np.arange(1, self.steps // self.every + 1)
        ) * simulation.timestep
        join = lambda *x: jnp.moveaxis(jnp.concatenate(x, -1)[..., :size], -1, 0)  # noqa: E731
        parts = [fields_of(block.state) for block in self.blocks]
        stacked = SimulationState(self.blocks[0].state.step, *jax.tree.map(join, *parts))
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


def _find_divergence(
    fields: Mapping[str, Mapping[str, np.ndarray]], state: SimulationState, times: np.ndarray
) -> dict[int, Divergence]:
    """The first sample that is not finite, of every member that has one; else its final state."""
    found: dict[int, Divergence] = {}
    for node, values in state.nodes.items():
        for field, final in values.items():
            if final.dtype.kind == "f":
                for index in np.flatnonzero(
                    ~np.isfinite(final.reshape(len(final), -1)).all(axis=1)
                ):
                    found.setdefault(int(index), Divergence(node, field, float(times[-1])))
    for node, series in fields.items():
        for field, x in series.items():
            if x.dtype.kind == "f" and x.size:
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
