"""A batch under way: many variants of a graph in one program, on all cores."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime._text import warn_user
from mime.core.monitor import exceeded, unseen
from mime.core.program import ConvergenceWarning, Program, stepper
from mime.core.recorder import Outputs, Selection, recorder
from mime.core.signals import Inputs, Signals, check_finite
from mime.core.step import SimulationState
from mime.native.folding import jit_folding
from mime.native.lowering import UNBOUNDED
from mime.native.members import OverMembers
from mime.running.divergence import at_risk, locate, poison
from mime.running.forks import warn_if_forked
from mime.running.job import tell_of_limits
from mime.running.loop import Buffer, Samples, run_chunk
from mime.running.memory import check_memory
from mime.running.progress import Pace, Progress, progress_bar
from mime.running.recording import (
    buffer_capacity,
    labels,
    parameter_values,
    sample_bytes,
    sample_times,
)
from mime.running.room import Room
from mime.running.trajectory import Divergence, Trajectory
from mime.running.variants import Variants, merged

_BUFFER_BYTES = 2**25
Fields = Mapping[str, Mapping[str, np.ndarray]]
"""`{node: {field: (member, time, ...)}}`"""


class DivergenceWarning(UserWarning):
    """Members of a batch left the finite numbers; the others are not affected."""


def batch_of(
    program: Program,
    steps: int,
    every: int,
    selection: Selection,
    *,
    parameters: Mapping[str, Any] | None = None,
    initial_state: Mapping[str, Mapping[str, Any]] | None = None,
    inputs: Inputs | None = None,
    batch_size: int | None = None,
    threads: int | None = None,
    watch: bool = False,
) -> "BatchJob":
    """A batch to be run, in the program's precision; arguments as those of `run_batch`."""
    variants = Variants(program, steps, parameters, initial_state, inputs, batch_size)
    check_finite(variants.varied_signals)
    check_finite(variants.shared_signals)
    warn_if_forked()
    return BatchJob(variants, selection, steps, every, threads, watch)


class BatchJob:
    """One batch under way: all members, in chunks of time."""

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
        self.threads, self.size = threads, variants.size
        self.sample_bytes = sample_bytes(variants.shared.nodes, selection)
        check_memory(steps // every, self.sample_bytes, variants.size)
        state = variants.initial_states(threads)
        seen: Any = unseen(variants.shared.nodes) if watch else {}
        seen = jax.tree.map(lambda x: np.broadcast_to(x, (self.size, *np.shape(x))), seen)
        self.state, self.start = (*fields_of(state)[:3], seen), np.asarray(state.step)[0]
        self.diverged: dict[int, Divergence] = {}
        self.compiled = OverMembers(_chunk, variants.shared)
        self.recorded: list[np.ndarray] = []

    def finish(self, progress: Progress, strict: bool = False) -> Trajectory:
        """Run all members to the end."""
        self.choose()
        with progress_bar(self.steps, 0, progress) as bar:
            fields = self.run(Pace(), Room(), bar)
        trajectory = self._trajectory(fields)
        tell_of_limits(trajectory, strict)
        return trajectory

    def part(self, rows: slice) -> "BatchJob":
        """Some of the members, as a batch of their own. Whether machine code runs it is chosen."""
        part = copy.copy(self)
        part.variants = self.variants.part(rows)
        part.size = part.variants.size
        part.state = jax.tree.map(lambda x: x[rows], self.state)
        part.diverged, part.recorded = {}, []
        return part

    def run(self, pace: Pace, room: Room, tell: Callable[[int], None]) -> Fields:
        """Make all steps: the samples, (member, time, ...), in the room's memory."""
        self.room = room
        if self.native:
            self._allocate(self.shapes)
        done = 0
        while done < self.steps:
            plan = pace.plan(done, self.steps, self.every, self.buffer.capacity)
            with pace:
                self._advance(done, *plan)
            records, stride, _ = plan
            done += records * stride
            pace.made(records * stride)
            tell(done)
        found = jax.tree.unflatten(self.treedef, self.recorded)
        return {node: {f: found[node][f] for f in chosen} for node, chosen in self.selection}

    def choose(self) -> None:
        """Machine code records straight into the final arrays; XLA into buffers of some size."""
        size, count = self.size * self.sample_bytes, self.steps // self.every
        self.buffer = Buffer(self.selection, UNBOUNDED, self.every == 1)
        arguments = self._arguments(0, 0, 0, 0)
        one = self.compiled.shapes(*arguments, members=self.size, buffer=self.buffer)
        self.native = one is not None
        if one is None:
            limited = buffer_capacity(size, count, _BUFFER_BYTES, 1, 1024)
            self.buffer = self.buffer._replace(capacity=limited)
        else:
            self.shapes = one[1]

    def _arguments(self, done: int, records: int, stride: int, first: int) -> tuple[Any, ...]:
        varied = self.variants.parameters.varied, self.state, self.variants.varied_signals
        samples = Samples(*np.array([records, stride, first], np.int32))
        common = self.variants.shared_signals, self.start, samples
        return varied, np.int32(self.start + done), *common

    def _advance(self, done: int, records: int, stride: int, complete: bool) -> None:
        first, before = done // self.every, self.state
        results = None
        if self.native:
            # Steps after the last sample have no row of their own.
            rows = self.recorded
            if not complete:
                rows = [np.empty((self.size, 1, *x.shape[2:]), x.dtype) for x in rows]
            results = [*[None] * len(jax.tree.leaves(self.state)), *rows, None]
        self.state, outputs, finite = self.compiled(
            *self._arguments(done, records, stride, first if self.native and complete else 0),
            members=self.size,
            threads=self.threads,
            results=results,
            buffer=self.buffer,
        )
        if not self.native:
            if not self.recorded:
                self._allocate(jax.tree.map(lambda x: x[0], outputs))
            for kept, new in zip(self.recorded, jax.tree.leaves(outputs), strict=True):
                if complete:
                    kept[:, first : first + records] = new[:, :records]
        for member in np.flatnonzero(~finite).tolist():
            if member not in self.diverged:
                step = int(self.start + done)
                self.diverged[member] = self._walk(member, before, step, records * stride)

    def _allocate(self, of_member: Any) -> None:
        count = self.steps // self.every
        leaves, self.treedef = jax.tree.flatten(of_member)
        shapes = [((self.size, count, *x.shape[1:]), np.dtype(x.dtype)) for x in leaves]
        self.recorded = self.room.arrays(shapes)

    def _walk(self, member: int, before: Any, step: int, steps: int) -> Divergence:
        """Walk a chunk again for a member that left the finite numbers in it: where it did."""
        program, signals = self.variants.member(member)
        step_and_fields = np.int32(step), *jax.tree.map(lambda x: x[member], before)
        state = SimulationState(*jax.device_put(step_and_fields))
        last, where = locate(
            program, state, signals, jnp.asarray(self.start), steps, self.selection
        )
        return Divergence(*where, (int(last.step) + 1) * program.timestep)

    def _trajectory(self, fields: Fields) -> Trajectory:
        program = self.variants.shared
        records = self.steps // self.every
        times = sample_times(int(self.start), self.every, records, program.timestep)
        last = np.int32(self.start + self.steps)
        final = SimulationState(*jax.device_put((last, *self.state)))
        parameters = parameter_values(program.nodes)
        varied = []
        for node, values in self.variants.parameters.varied.items():
            for name, value in values.items():
                parameters[node][name] = np.asarray(value)
                varied.append((node, name))
        units, descriptions = labels(program.nodes, self.selection)
        diverged = dict(sorted(self.diverged.items()))
        warn_of_members(program, diverged, final.coupling, self.size)
        return Trajectory(
            times,
            fields,
            units,
            descriptions,
            parameters,
            tuple(varied),
            self.size,
            dataclasses.replace(final, seen={}),
            diverged,
            tuple(exceeded(program.nodes, final.seen, program.timestep)),
            program,
        )


def fields_of(state: SimulationState) -> tuple[Any, Any, Any, Any]:
    """All of a state that has a batch axis."""
    return state.nodes, state.held, state.coupling, state.seen


def _chunk_of_member(
    shared: Program,
    varied: Any,
    step: Array,
    common: Signals,
    start: Array,
    samples: Samples,
    *,
    buffer: Buffer,
) -> tuple[Any, Outputs, Array]:
    """A chunk of one member: the program of a single run, with its own parameters and inputs."""
    parameters, fields, own = varied
    program, signals = shared.with_parameters(parameters), merged(common, own)
    after, outputs, finite = run_chunk(
        stepper(program, signals, start),
        recorder(program.nodes, shared.wiring, buffer.selection),
        at_risk(signals),
        poison,
        SimulationState(step, *fields),
        samples,
        buffer,
    )
    return fields_of(after), outputs, finite


_chunk = jit_folding(_chunk_of_member, static_argnames=("buffer",))


def warn_of_members(
    program: Program, diverged: Mapping[int, Divergence], coupling: Mapping[str, Any], size: int
) -> None:
    """Tell of members that left the finite numbers, or whose coupling groups did not converge."""
    if diverged:
        index, where = next(iter(diverged.items()))
        warn_user(
            DivergenceWarning(
                f"{len(diverged)} of {size} members left the finite numbers, first member {index}: "
                f"{where}. See `trajectory.diverged`."
            )
        )
    for group in program.wiring.groups:
        failures = np.asarray(coupling[group.name].failures)
        if (failures > 0).any():
            warn_user(
                ConvergenceWarning(
                    f"coupling group {group.name!r} did not converge in some steps of "
                    f"{int((failures > 0).sum())} of {size} members, first member "
                    f"{int((failures > 0).argmax())}"
                )
            )
