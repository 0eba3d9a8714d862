"""A batch under way: many variants of a graph in one program, on all cores."""

import dataclasses
from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mime._text import warn_user
from mime.core.monitor import SeenByNode, exceeded, unseen
from mime.core.program import ConvergenceWarning, Program
from mime.core.recorder import Selection
from mime.core.step import SimulationState
from mime.running.batch_programs import batch_program, fields_of, walk_member
from mime.running.divergence import first_bad, members_finite, watched
from mime.running.job import tell_of_limits
from mime.running.loop import Buffer, Samples
from mime.running.memory import check_memory
from mime.running.progress import Pace, Progress, progress_bar
from mime.running.recording import (
    buffer_capacity,
    labels,
    parameter_values,
    sample_bytes,
    sample_times,
)
from mime.running.threads import cut_batch, on_threads
from mime.running.trajectory import Divergence, Trajectory
from mime.running.variants import Block, Variants
from mime.xla.folding import jit_folding

_BUFFER_BYTES = 2**25


class DivergenceWarning(UserWarning):
    """Members of a batch left the finite numbers; the others are not affected."""


class BatchJob:
    """One batch under way: equal blocks of members, one per thread, in chunks of time."""

    def __init__(
        self,
        variants: Variants,
        selection: Selection,
        steps: int,
        every: int,
        threads: int | None,
        watch: bool = False,
    ):
        self.variants, self.selection, self.steps, self.every = variants, selection, steps, every
        self.sample_bytes = sample_bytes(variants.shared.nodes, selection)
        check_memory(steps // every, self.sample_bytes, variants.size)
        kind = batch_program(variants.shared)
        self.cuts = cut_batch(variants.size, threads, kind.smallest_cut)
        self.blocks = [variants.block(np.arange(cut.start, cut.stop)) for cut in self.cuts]
        for block in self.blocks if watch else []:
            block.state = dataclasses.replace(block.state, seen=self._unseen(block))
        self.axes = tuple(
            (node, tuple(fields.items())) for node, fields in sorted(variants.input_axes.items())
        )
        self.compiled = kind.compiled.of(variants.shared)

    def _unseen(self, block: Block) -> SeenByNode:
        """For each member of a block, its axis last."""
        size = jax.tree.leaves(block.state.nodes)[0].shape[-1]
        return jax.tree.map(
            lambda x: jnp.broadcast_to(x[..., None], (*x.shape, size)),
            unseen(self.variants.shared.nodes),
        )

    def finish(self, progress: Progress, strict: bool = False) -> Trajectory:
        """Run all blocks to the end, side by side."""
        length = self.cuts[0].stop - self.cuts[0].start
        size = length * self.sample_bytes
        capacity = buffer_capacity(size, self.steps // self.every, _BUFFER_BYTES, 1, 1024)
        self.buffer = Buffer(self.selection, capacity, self.every == 1)
        self.start = self.blocks[0].state.step
        done, pace = 0, Pace()
        with progress_bar(self.steps, 0, progress) as bar:
            while done < self.steps:
                plan = pace.plan(done, self.steps, self.every, self.buffer.capacity)
                with pace:
                    on_threads(partial(self._advance, done, *plan), self.blocks)
                records, stride, _ = plan
                done += records * stride
                pace.made(records * stride)
                bar(done)
        trajectory = self._trajectory()
        tell_of_limits(trajectory, strict)
        return trajectory

    def _advance(self, done: int, records: int, stride: int, complete: bool, block: Block) -> None:
        before = block.state
        block.state, outputs, flags = self.compiled(
            block.parameters,
            before,
            block.signals,
            self.start,
            Samples(np.int32(records), np.int32(stride)),
            axes=self.axes,
            buffer=self.buffer,
        )
        finite = np.asarray(flags)  # waits
        if complete:
            taken = block.record(outputs, self.steps // self.every, done // self.every, records)
            finite = members_finite(taken, finite)
        if not finite.all():
            self._note_divergence(block, before, np.flatnonzero(~finite), records * stride)

    def _note_divergence(
        self, block: Block, before: SimulationState, members: np.ndarray, steps: int
    ) -> None:
        """Walk a chunk again, for each member that left the finite numbers in it: where it did."""
        program = self.variants.shared
        for member in members.tolist():
            if member not in block.diverged:
                step, flags = walk_member(
                    program,
                    block.parameters,
                    before,
                    block.signals,
                    self.start,
                    np.int32(member),
                    np.int32(steps),
                    axes=self.axes,
                    watched=watched(program, self.selection),
                )
                time_s = (int(step) + 1) * program.timestep
                block.diverged[member] = Divergence(*first_bad(program, flags), time_s)

    def _trajectory(self) -> Trajectory:
        size, program = self.variants.size, self.variants.shared
        surplus = tuple(cut.surplus for cut in self.cuts)

        def joined(*parts: np.ndarray) -> np.ndarray:
            own = [part[..., extra:] for part, extra in zip(parts, surplus, strict=True)]
            return np.moveaxis(own[0] if len(own) == 1 else np.concatenate(own, -1), -1, 0)

        found = jax.tree.map(joined, *(block.recorded for block in self.blocks))
        fields = {node: {f: found[node][f] for f in chosen} for node, chosen in self.selection}
        first, records = int(np.asarray(self.start)), self.steps // self.every
        times = sample_times(first, self.every, records, program.timestep)
        stacked = _stacked([block.state for block in self.blocks], surplus=surplus)
        parameters = parameter_values(program.nodes)
        varied = []
        for node, values in self.variants.parameters.varied.items():
            for name, value in values.items():
                parameters[node][name] = np.asarray(value)
                varied.append((node, name))
        units, descriptions = labels(program.nodes, self.selection)
        diverged = {
            cut.start + member: where
            for cut, block in zip(self.cuts, self.blocks, strict=True)
            for member, where in block.diverged.items()
        }
        diverged = dict(sorted(diverged.items()))
        _warn(program, diverged, stacked, size)
        return Trajectory(
            times,
            fields,
            units,
            descriptions,
            parameters,
            tuple(varied),
            size,
            dataclasses.replace(stacked, seen={}),
            diverged,
            tuple(exceeded(program.nodes, stacked.seen, program.timestep)),
        )


def _stack(states: list[SimulationState], *, surplus: tuple[int, ...]) -> SimulationState:
    """The state of all members, batch axis first."""

    def join(*parts: jax.Array) -> jax.Array:
        own = [part[..., extra:] for part, extra in zip(parts, surplus, strict=True)]
        return jnp.moveaxis(jnp.concatenate(own, -1), -1, 0)

    return SimulationState(states[0].step, *jax.tree.map(join, *map(fields_of, states)))


_stacked = jit_folding(_stack, static_argnames=("surplus",))


def _warn(
    program: Program, diverged: Mapping[int, Divergence], state: SimulationState, size: int
) -> None:
    if diverged:
        index, where = next(iter(diverged.items()))
        warn_user(
            DivergenceWarning(
                f"{len(diverged)} of {size} members left the finite numbers, first member {index}: "
                f"{where}. See `trajectory.diverged`."
            )
        )
    for group in program.wiring.groups:
        failures = np.asarray(state.coupling[group.name].failures)
        if (failures > 0).any():
            warn_user(
                ConvergenceWarning(
                    f"coupling group {group.name!r} did not converge in some steps of "
                    f"{int((failures > 0).sum())} of {size} members, first member "
                    f"{int((failures > 0).argmax())}"
                )
            )
