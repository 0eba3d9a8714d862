"""`simulation.run`: a rollout for people, with progress, checkpoints and a clear end."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from mime.core import checkpoint as checkpoints
from mime.core.checkpoint import CheckpointError, Progress
from mime.core.divergence import all_finite, is_finite, locate
from mime.core.folding import jit_folding
from mime.core.progress import Pace, progress_bar
from mime.core.recording import (
    Recorded,
    Selection,
    buffer_capacity,
    labels,
    observe,
    parameter_values,
    sample_bytes,
    sample_times,
)
from mime.core.rollout import Outputs, chunk, observe_again, stepper, watched_nodes
from mime.core.signals import Constant, Inputs, Series, Signals, to_signals
from mime.core.simulation import Simulation, warn_of_failures
from mime.core.spec import InputError
from mime.core.step import SimulationState
from mime.core.trajectory import Divergence, Trajectory

_BUFFER_BYTES = 2**23
_FEWEST_RECORDS, _MOST_RECORDS = 2**10, 2**17


class DivergenceError(FloatingPointError):
    """A value stopped being finite. `trajectory` holds all that was computed before."""

    def __init__(self, where: Divergence, trajectory: Trajectory):
        self.where = where
        self.trajectory = trajectory
        super().__init__(
            f"{where}; {len(trajectory.time)} samples before that are kept in this error's "
            "`trajectory`. Take a smaller timestep, or check that node's parameters and inputs."
        )


class RunInterrupted(KeyboardInterrupt):
    """The user stopped a run. `trajectory` holds what was computed until then."""

    def __init__(self, message: str, trajectory: Trajectory):
        self.trajectory = trajectory
        super().__init__(message)


def run(
    simulation: Simulation,
    duration: float | None = None,
    inputs: Inputs | None = None,
    *,
    steps: int | None = None,
    record: Recorded = None,
    every: int = 1,
    initial_state: SimulationState | Mapping[str, Mapping[str, Any]] | None = None,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
    resume: bool = False,
) -> Trajectory:
    """Run for `duration` seconds (or a number of `steps`) and return the recorded fields over time.

    inputs           `{node: {input: constant | array over the steps | function of time}}`
    record, every    fields to record (default: fluxes and observable states), at every k-th step
    initial_state    overrides `{node: {field: value}}`, or the `final_state` of an earlier run
    progress         show a bar on a terminal when the run takes longer than a moment
    checkpoint       file to keep the run's progress in, at least every `checkpoint_seconds`
    resume           go on from that file; the result is the undisturbed run's, bit for bit

    Raises `DivergenceError` at the first value that is not finite, with what was computed before.
    """
    steps = count_steps(simulation, duration, steps)
    if every < 1:
        raise InputError(f"every must be >= 1, got {every}")
    signals = to_signals(inputs, simulation.wiring.external, simulation.input_specs(), steps)
    check_finite_inputs(signals)
    selection = simulation.select(record)
    start = (
        initial_state
        if isinstance(initial_state, SimulationState)
        else simulation.init_state(initial_state)
    )
    job = _Job(simulation, start, signals, selection, steps, every)
    file = None if checkpoint is None else Path(checkpoint)
    if file is not None:
        job.attach(file, resume, checkpoint_seconds)
    elif resume:
        raise InputError("resume=True needs checkpoint=path, the file to go on from")
    return job.finish(progress)


def count_steps(simulation: Simulation, duration: float | None, steps: int | None) -> int:
    """The number of steps of a run; a duration must be a whole number of them."""
    if (duration is None) == (steps is None):
        raise InputError("give either duration (seconds) or steps")
    if steps is None:
        assert duration is not None
        exact = duration / simulation.timestep
        steps = round(exact)
        if not abs(exact - steps) <= 1e-6 * max(1, steps):  # decimal seconds over decimal timesteps
            raise InputError(
                f"duration {duration:g} s is {exact:.6g} steps of {simulation.timestep:g} s; "
                f"the nearest whole number gives {steps * simulation.timestep:.12g} s"
            )
    if steps < 1:
        raise InputError(f"a run needs at least one step, got {steps}")
    return steps


def check_finite_inputs(signals: Signals) -> None:
    """Refuse an input with a NaN before it is blamed on a node."""
    for node, fields in signals.items():
        for field, signal in fields.items():
            values = {Constant: "value", Series: "values"}.get(type(signal))
            if values and not np.isfinite(array := np.asarray(getattr(signal, values))).all():
                index = np.argwhere(~np.isfinite(array))[0].tolist()
                raise InputError(f"input {node}.{field} is not finite at index {index}")


class _Job:
    """One run under way."""

    def __init__(
        self,
        simulation: Simulation,
        start: SimulationState,
        signals: Signals,
        selection: Selection,
        steps: int,
        every: int,
    ):
        self.simulation, self.signals, self.selection = simulation, signals, selection
        self.steps, self.every, self.start = steps, every, start
        self.state, self.done, self.records = start, 0, 0
        size = sample_bytes(simulation.nodes, selection)
        self.capacity = buffer_capacity(
            size, steps // every, _BUFFER_BYTES, _FEWEST_RECORDS, _MOST_RECORDS
        )
        self.program = _program.of(simulation)
        self.treedef: Any = None
        self.recorded: list[np.ndarray] = []
        self.file: Path | None = None

    def _allocate(self, outputs: Outputs | None = None) -> None:
        """Room for all samples, in the structure of a chunk's `outputs`."""
        if self.treedef is None:
            found = outputs if outputs is not None else jax.eval_shape(lambda: self._call(0, 0)[1])
            leaves, self.treedef = jax.tree.flatten(found)
            count = self.steps // self.every
            self.recorded = [np.empty((count, *x.shape[1:]), x.dtype) for x in leaves]

    def attach(self, file: Path, resume: bool, seconds: float) -> None:
        """Keep a checkpoint in `file`; resume from it if told to; never lose unfinished work."""
        self.file, self.checkpoint_seconds = file, seconds
        self._allocate()
        self.prints = checkpoints.fingerprint(
            self.simulation, self.start, self.signals, self.selection, self.every
        )
        if resume:
            found = checkpoints.load(file, self.prints, self.start, self.recorded)
            self.state, self.done, self.records = found.state, found.done, found.records
        elif file.exists():
            header = checkpoints.read_header(file)
            if header["done"] < header["total"]:
                raise CheckpointError(
                    f"{file}: an unfinished run ({header['done']} of {header['total']} steps); "
                    "pass resume=True to go on, or delete it to start anew"
                )
        self._save()

    def finish(self, progress: bool) -> Trajectory:
        """Run to the end, in chunks short enough for a person to see and to stop."""
        pace, saved = Pace(), time.monotonic()
        with progress_bar(self.steps, self.done, progress) as bar:
            try:
                while self.done < self.steps:
                    self._chunk(pace)
                    bar(self.done)
                    if self.file and time.monotonic() - saved >= self.checkpoint_seconds:
                        self._save()
                        saved = time.monotonic()
            except KeyboardInterrupt:
                self._allocate()
                self._save()
                kept = f"; resume from {self.file}" if self.file else ""
                message = f"stopped after {self.done} of {self.steps} steps{kept}"
                raise RunInterrupted(message, self._trajectory()) from None
        self._save()
        warn_of_failures(self.simulation, self.state, self.start)
        return self._trajectory()

    def _chunk(self, pace: Pace) -> None:
        records, stride, complete = pace.plan(self.done, self.steps, self.every, self.capacity)
        with pace:
            state, outputs, flag = self._call(records, stride)
            finite = np.asarray(flag)  # waits; `bool(flag)` would take six times as long
        self._allocate(outputs)
        samples = [np.asarray(x)[:records] for x in jax.tree.leaves(outputs)] if complete else []
        if not (finite and all(map(all_finite, samples))):
            self._diverged(records * stride)
        for kept, new in zip(self.recorded, samples, strict=False):
            kept[self.records : self.records + records] = new
        self.records += records if complete else 0
        self.done += records * stride
        self.state = state
        pace.made(records * stride)

    def _call(self, records: int, stride: int) -> tuple[SimulationState, Outputs, Array]:
        return self.program(
            self.state,
            self.signals,
            self.start.step,
            np.int32(records),
            np.int32(stride),
            selection=self.selection,
            capacity=self.capacity,
            every_step=self.every == 1,
        )

    def _diverged(self, steps: int) -> None:
        """Walk the failed chunk again, step by step, to name the first value that is not finite."""
        before, (node, field) = locate(
            self.simulation, self.state, self.signals, self.start.step, steps
        )
        made = int(before.step - self.start.step)
        time_s = (int(before.step) + 1) * self.simulation.timestep
        # Samples of this chunk up to the failure are good: record them by running just so far.
        good = (made - self.done) // self.every
        if good and self.done % self.every == 0:
            _, outputs, _ = self._call(good, self.every)
            for kept, new in zip(self.recorded, jax.tree.leaves(outputs), strict=True):
                kept[self.records : self.records + good] = np.asarray(new)[:good]
            self.records += good
        self.state, self.done = before, made
        raise DivergenceError(Divergence(node, field, time_s), self._trajectory())

    def _save(self) -> None:
        if self.file is not None:
            progress = Progress(self.done, self.steps, self.state, self.records)
            checkpoints.save(self.file, self.prints, progress, self.recorded)

    def _trajectory(self) -> Trajectory:
        data = [values[: self.records] for values in self.recorded]
        first = int(np.asarray(self.start.step))
        times = sample_times(first, self.every, self.records, self.simulation.timestep)
        units, descriptions = labels(self.simulation.nodes, self.selection)
        fields = jax.tree.unflatten(self.treedef, data)
        fields = {node: {f: fields[node][f] for f in chosen} for node, chosen in self.selection}
        return Trajectory(
            times,
            fields,
            units,
            descriptions,
            parameter_values(self.simulation.nodes),
            final_state=self.state,
        )


def _chunk(
    simulation: Simulation,
    state: SimulationState,
    signals: Signals,
    start: Array,
    records: Array,
    stride: Array,
    *,
    selection: Selection,
    capacity: int,
    every_step: bool,
) -> tuple[SimulationState, Outputs, Array]:
    """A chunk, and whether the state after it is finite."""
    after, outputs = chunk(
        stepper(simulation, signals, start),
        lambda *now: observe(simulation.nodes, selection, *now),
        lambda *after: observe_again(simulation, selection, *after),
        watched_nodes(simulation, selection),
        state,
        records,
        stride,
        capacity,
        every_step,
    )
    return after, outputs, is_finite(after)


_program = jit_folding(_chunk, static_argnames=("selection", "capacity", "every_step"))
