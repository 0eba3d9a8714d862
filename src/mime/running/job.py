"""One run under way: chunks short enough for a person, checkpoints, and a clear end."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime._text import Travels, warn_user
from mime.core.monitor import exceeded, unseen
from mime.core.program import Program, stepper, warn_of_failures
from mime.core.recorder import Outputs, Selection, recorder
from mime.core.signals import Signals
from mime.core.step import SimulationState
from mime.native.compiled import Traced
from mime.native.folding import jit_folding
from mime.native.lowering import UNBOUNDED
from mime.running import checkpoint as checkpoints
from mime.running.checkpoint import CheckpointError, CheckpointWarning, Reached, Wanted
from mime.running.divergence import at_risk, locate, poison
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
from mime.running.trajectory import Divergence, Trajectory

_BUFFER_BYTES = 2**23
MOST_LINES = 8
"""Limits that a warning names; `trajectory.warnings` has them all."""
_FEWEST_RECORDS, _MOST_RECORDS = 2**10, 2**17


class DivergenceError(Travels, FloatingPointError):
    """A value stopped being finite. `trajectory` holds all that was computed before."""

    def __init__(self, where: Divergence, trajectory: Trajectory):
        self.where = where
        self.trajectory = trajectory
        super().__init__(
            f"{where}; {len(trajectory.time)} samples before that are kept in this error's "
            "`trajectory`. Take a smaller timestep, or check that node's parameters and inputs."
        )


class LimitWarning(UserWarning):
    """Values went beyond their limits in a run; `trajectory.warnings` holds them."""


class LimitError(Travels, ValueError):
    """The same with `strict=True`. `trajectory` holds the whole run."""

    def __init__(self, message: str, trajectory: Trajectory):
        self.trajectory = trajectory
        super().__init__(message)


class RunInterrupted(Travels, KeyboardInterrupt):
    """The user stopped a run. `trajectory` holds what was computed until then."""

    def __init__(self, what: str, trajectory: Trajectory, advice: str = ""):
        self.what, self.trajectory = what, trajectory
        super().__init__(f"{what}; {advice}" if advice else what)


def tell_of_limits(trajectory: Trajectory, strict: bool) -> None:
    """One warning, or one error, for all limits that a run or a batch passed."""
    if not trajectory.warnings:
        return
    lines = [str(found) for found in trajectory.warnings[:MOST_LINES]]
    if (rest := len(trajectory.warnings) - MOST_LINES) > 0:
        lines.append(f"and {rest} more in trajectory.warnings")
    message = "\n".join(lines)
    if strict:
        raise LimitError(message, trajectory)
    warn_user(LimitWarning(message))


class Job:
    """One run under way."""

    def __init__(
        self,
        program: Program,
        start: SimulationState,
        signals: Signals,
        selection: Selection,
        steps: int,
        every: int,
        watch: bool = True,
    ):
        self.program, self.signals, self.selection = program, signals, selection
        seen = unseen(program.nodes) if watch else {}
        if seen or start.seen:
            start = dataclasses.replace(start, seen=seen)
        self.steps, self.every, self.start = steps, every, start
        self.state, self.done, self.records = start, 0, 0
        size = sample_bytes(program.nodes, selection)
        check_memory(steps // every, size)
        self.compiled, self.variables = _compiled.compiled(program)
        self.traced: Traced | None = None
        self.buffer = Buffer(selection, UNBOUNDED, every == 1)
        room = _BUFFER_BYTES, _FEWEST_RECORDS, _MOST_RECORDS
        self.limited = buffer_capacity(size, steps // every, *room)
        self.treedef: Any = None
        self.recorded: list[np.ndarray] = []
        self.file: Path | None = None
        self.warned = False

    def _allocate(self) -> None:
        """Room for all samples, and for one that nobody asked for: the end of the last stride."""
        if self.treedef is not None:
            return
        args, fixed = self._arguments(0, 0, 0)
        if found := self.compiled.ready(*args, **fixed):
            self.traced = found[0]
            shapes = self.traced.shapes
        else:  # XLA records into buffers of some size, not into the final arrays
            self.buffer = self.buffer._replace(capacity=self.limited)
            args, fixed = self._arguments(0, 0, 0)
            shapes = jax.eval_shape(lambda: self.compiled(*args, **fixed))
        leaves, self.treedef = jax.tree.flatten(shapes[1])
        self.state_size = len(jax.tree.leaves(shapes[0]))
        count = self.steps // self.every
        self.recorded = [np.empty((count, *x.shape[1:]), x.dtype) for x in leaves]
        self.spare = [np.empty((1, *x.shape[1:]), x.dtype) for x in leaves]

    def attach(self, file: Path, resume: bool, seconds: float) -> None:
        """Keep a checkpoint in `file`; resume from it if told to; never lose unfinished work."""
        self.file, self.checkpoint_seconds = file, seconds
        self._allocate()
        self.prints = checkpoints.fingerprint(
            self.program, self.start, self.signals, self.selection, self.every
        )
        if resume:
            wanted = Wanted(self.steps, self.every, self.start, self.recorded)
            found = checkpoints.load(file, self.prints, wanted)
            self.state, self.done, self.records = found.state, found.done, found.records
        elif file.exists():
            header = checkpoints.read_header(file)
            if header["done"] < header["total"]:
                raise CheckpointError(
                    "unfinished",
                    f"{file}: an unfinished run ({header['done']} of {header['total']} steps)",
                    "pass resume=True to go on, or delete it to start anew",
                )
        self._save()

    def finish(self, progress: Progress, strict: bool = False) -> Trajectory:
        """Run to the end, in chunks short enough for a person to see and to stop."""
        pace, saved = Pace(), time.monotonic()
        with progress_bar(self.steps, self.done, progress) as bar:
            try:
                while self.done < self.steps:
                    self._next_chunk(pace)
                    bar(self.done)
                    if self.file and time.monotonic() - saved >= self.checkpoint_seconds:
                        self._save_if_possible()
                        saved = time.monotonic()
            except KeyboardInterrupt:
                self._allocate()
                self._save_if_possible()
                advice = f"resume from {self.file}" if self.file else ""
                what = f"stopped after {self.done} of {self.steps} steps"
                raise RunInterrupted(what, self._trajectory(), advice) from None
        self._save_if_possible()
        warn_of_failures(self.program, self.state, self.start)
        trajectory = self._trajectory()
        tell_of_limits(trajectory, strict)
        return trajectory

    def _next_chunk(self, pace: Pace) -> None:
        self._allocate()
        records, stride, complete = pace.plan(
            self.done, self.steps, self.every, self.buffer.capacity
        )
        with pace:
            state, finite = self._call(records, stride, complete)
        if not finite:
            self._diverged(records * stride)
        self.records += records if complete else 0
        self.done += records * stride
        self.state = state
        pace.made(records * stride)

    def _arguments(self, records: int, stride: int, first: int) -> tuple[Any, dict[str, Any]]:
        samples = Samples(np.int32(records), np.int32(stride), np.int32(first))
        args = (self.variables, self.state, self.signals, self.start.step, samples)
        return args, {"buffer": self.buffer}

    def _call(self, records: int, stride: int, complete: bool) -> tuple[SimulationState, bool]:
        """Make a chunk; what it records goes to its place if it ends with a sample."""
        place = self.recorded if complete else self.spare
        args, fixed = self._arguments(records, stride, self.records if complete else 0)
        if self.traced is not None:
            leaves = self.traced.arranged(jax.tree.leaves(args))
            results = [*[None] * self.state_size, *place, None]
            state, _, finite = self.traced.now(leaves, None, 1, results)
            return state, bool(finite)
        args, fixed = self._arguments(records, stride, 0)
        state, outputs, flag = self.compiled(*args, **fixed)
        finite = np.asarray(flag)  # waits, and sooner than `bool(flag)` does
        if complete:
            for kept, new in zip(self.recorded, jax.tree.leaves(outputs), strict=True):
                kept[self.records : self.records + records] = np.asarray(new)[:records]
        return state, bool(finite)

    def _diverged(self, steps: int) -> None:
        """Walk the failed chunk again, step by step, to name the first value that is not finite."""
        first = jnp.asarray(self.start.step)
        before, (node, field) = locate(
            self.program, self.state, self.signals, first, steps, self.selection
        )
        made = int(before.step - self.start.step)
        time_s = (int(before.step) + 1) * self.program.timestep
        # Samples of this chunk up to the failure are good: record them by running just so far.
        good = (made - self.done) // self.every
        if good and self.done % self.every == 0:
            self._call(good, self.every, True)
            self.records += good
        self.state, self.done = before, made
        raise DivergenceError(Divergence(node, field, time_s), self._trajectory())

    def _save(self) -> None:
        if self.file is not None:
            reached = Reached(self.done, self.steps, self.state, self.records)
            checkpoints.save(self.file, self.prints, reached, self.recorded)

    def _save_if_possible(self) -> None:
        """Save, or say once that there is no room: what was computed is worth more than a file."""
        try:
            self._save()
        except OSError as error:
            if not self.warned:
                self.warned = True
                warn_user(
                    CheckpointWarning(
                        f"cannot write {self.file}: {error.strerror or error}; the run goes on, "
                        "keeps its last checkpoint and tries again. Make room."
                    )
                )

    def _trajectory(self) -> Trajectory:
        data = [values[: self.records] for values in self.recorded]
        first = int(np.asarray(self.start.step))
        times = sample_times(first, self.every, self.records, self.program.timestep)
        units, descriptions = labels(self.program.nodes, self.selection)
        fields = jax.tree.unflatten(self.treedef, data)
        fields = {node: {f: fields[node][f] for f in chosen} for node, chosen in self.selection}
        state = self.state
        reached = state.step, state.nodes, state.held, state.coupling
        return Trajectory(
            times,
            fields,
            units,
            descriptions,
            parameter_values(self.program.nodes),
            final_state=SimulationState(*jax.device_put(reached)),
            warnings=tuple(exceeded(self.program.nodes, self.state.seen, self.program.timestep)),
            program=self.program,
        )


def _advance(
    program: Program,
    state: SimulationState,
    signals: Signals,
    start: Array,
    samples: Samples,
    *,
    buffer: Buffer,
) -> tuple[SimulationState, Outputs, Array]:
    """A chunk, and whether all was finite in each of its steps."""
    recorded = recorder(program.nodes, program.wiring, buffer.selection)
    step = stepper(program, signals, start)
    return run_chunk(step, recorded, at_risk(signals), poison, state, samples, buffer)


_compiled = jit_folding(_advance, static_argnames=("buffer",))
