"""A graph that people run: progress, checkpoints, divergence, batches on all cores."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mime.core.problem import InputError
from mime.core.program import Program
from mime.core.recorder import Recorded
from mime.core.signals import Inputs, check_finite
from mime.core.step import SimulationState
from mime.running.batch import BatchJob
from mime.running.job import Job
from mime.running.progress import Progress
from mime.running.trajectory import Trajectory
from mime.running.variants import Variants


class Simulation(Program):
    """What `GraphManager.compile` gives: a pure `Program`, and `run` and `run_batch` for people."""

    def run(
        self,
        duration: float | None = None,
        inputs: Inputs | None = None,
        *,
        steps: int | None = None,
        record: Recorded = None,
        every: int = 1,
        initial_state: SimulationState | Mapping[str, Mapping[str, Any]] | None = None,
        progress: Progress = True,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 30.0,
        resume: bool = False,
        watch: bool = True,
        strict: bool = False,
    ) -> Trajectory:
        """Run for `duration` seconds (or a number of `steps`): the recorded fields over time.

        inputs           `{node: {input: constant | array over the steps | function of time}}`
        record, every    fields to record (default: fluxes and observable states), at every k-th
                         step
        initial_state    overrides `{node: {field: value}}`, or the `final_state` of an earlier run
        progress         show a bar on a terminal when the run takes longer than a moment, or call
                         a function `(steps done, steps in all)` after every chunk
        checkpoint       file to keep the run's progress in, at least every `checkpoint_seconds`
        resume           go on from that file; the result is the undisturbed run's, bit for bit
        watch            look after every step whether joints and motors keep their limits; what
                         went beyond is a `LimitWarning`, and in `trajectory.warnings`
        strict           watch, and make that a `LimitError`

        Raises `DivergenceError` at the first value that is not finite, with what was computed
        before.
        """
        steps = self.count_steps(duration, steps)
        if every < 1:
            raise InputError(f"every must be >= 1, got {every}", place=("every",))
        signals = check_finite(self.signals(inputs, steps))
        selection = self.select(record)
        start = (
            initial_state
            if isinstance(initial_state, SimulationState)
            else self.init_state(initial_state)
        )
        job = Job(self, start, signals, selection, steps, every, watch or strict)
        if checkpoint is not None:
            job.attach(Path(checkpoint), resume, checkpoint_seconds)
        elif resume:
            raise InputError("resume needs a checkpoint, the file to go on from", place=("resume",))
        return job.finish(progress, strict)

    def run_batch(
        self,
        duration: float | None = None,
        inputs: Inputs | None = None,
        *,
        steps: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        initial_state: Mapping[str, Mapping[str, Any]] | None = None,
        batch_size: int | None = None,
        record: Recorded = None,
        every: int = 1,
        progress: Progress = True,
        threads: int | None = None,
        watch: bool = False,
        strict: bool = False,
    ) -> Trajectory:
        """Run many variants at once, on all cores: a trajectory with a leading member axis.

        parameters       `{"motor.gear.ratio": values}` or `{"motor": {"gear.ratio": values}}`;
                         values with a leading batch axis vary, others are shared
        initial_state    `{node: {field: values}}`; likewise
        inputs           as in `run`, shared; or with a leading batch axis, one per member
        batch_size       the number of members, where nothing given has a batch axis to tell it
        record, every    as in `run`; with `record=()` only the final state is kept
        progress         as in `run`
        threads          one per core by default
        watch, strict    as in `run`; a batch is not watched unless it is asked for, since that can
                         make a step of an arm a quarter slower

        A member that leaves the finite numbers is reported by index (`trajectory.diverged`, and a
        `DivergenceWarning`); the others are what they would be without it. Equals member-by-member
        `run` to rounding.
        """
        steps = self.count_steps(duration, steps)
        if every < 1 or steps % every:
            raise InputError(f"every must divide the {steps} steps, got {every}", place=("every",))
        variants = Variants(self, steps, parameters, initial_state, inputs, batch_size)
        check_finite(variants.signals)
        job = BatchJob(variants, self.select(record), steps, every, threads, watch or strict)
        return job.finish(progress, strict)

    def count_steps(self, duration: float | None, steps: int | None = None) -> int:
        """The number of steps of a run; a duration in seconds must be a whole number of them."""
        if (duration is None) == (steps is None):
            raise InputError("give either duration (seconds) or steps", place=("duration",))
        if steps is None:
            assert duration is not None
            return whole_steps(duration, self.timestep)
        if steps < 1:
            raise InputError(f"a run needs at least one step, got {steps}", place=("duration",))
        return steps


def whole_steps(duration: float, timestep: float) -> int:
    """How many steps a duration is, both in seconds; an `InputError` when it is no number."""
    exact = duration / timestep
    steps = round(exact)
    if not abs(exact - steps) <= 1e-6 * max(1, steps):  # decimal seconds and timesteps
        raise InputError(
            f"duration {duration:g} s is {exact:.6g} steps of {timestep:g} s; "
            f"the nearest whole number gives {steps * timestep:.12g} s",
            place=("duration",),
        )
    if steps < 1:
        raise InputError(f"a run needs at least one step, got {steps}", place=("duration",))
    return steps
