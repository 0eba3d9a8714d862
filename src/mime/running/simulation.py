"""A graph that people run: progress, checkpoints, divergence, batches on all cores."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np

from mime._text import quoted
from mime.core.arguments import instance, real, whole
from mime.core.printing import counted, graph_text
from mime.core.problem import InputError
from mime.core.program import MOST_STEPS, Program
from mime.core.recorder import Recorded
from mime.core.signals import Inputs, check_finite
from mime.core.step import SimulationState
from mime.core.upward import drawer
from mime.running.backend import Backend, backend
from mime.running.batch import batch_of
from mime.running.forks import warn_if_forked
from mime.running.job import Job
from mime.running.precision import in_own_precision
from mime.running.progress import Progress, check_progress
from mime.running.trajectory import Trajectory


class Simulation(Program):
    """What `GraphManager.compile` gives: a pure `Program`, and `run` and `run_batch` for people."""

    init_state = in_own_precision(Program.init_state)
    step = in_own_precision(Program.step)
    rollout = in_own_precision(Program.rollout)
    with_parameters = in_own_precision(Program.with_parameters)

    @property
    @in_own_precision
    def backend(self) -> Backend:
        """What computes this graph, native code or XLA, and why."""
        return backend(self)

    @in_own_precision
    def run(
        self,
        duration: SupportsFloat | None = None,
        inputs: Inputs | None = None,
        *,
        steps: SupportsIndex | None = None,
        record: Recorded = None,
        every: SupportsIndex = 1,
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
        progress         show how far it is when the run takes longer than a moment (a bar on a
                         terminal and in a notebook, lines elsewhere), or call a function
                         `(steps done, steps in all)` after every chunk
        checkpoint       file to keep the run's progress in, at least every `checkpoint_seconds`
        resume           go on from that file; the result is the undisturbed run's, bit for bit
        watch            look after every step whether joints and motors keep their limits; what
                         went beyond is a `LimitWarning`, and in `trajectory.warnings`
        strict           watch, and make that a `LimitError`

        Raises `DivergenceError` at the first value that is not finite, with what was computed
        before.
        """
        steps = self.count_steps(duration, steps)
        every = whole("every", every, 1, most=steps)
        check_progress(progress)
        instance("resume", resume, bool, np.bool_)
        signals = check_finite(self.signals(inputs, steps))
        selection = self.select(record)
        start = (
            self._checked_state(initial_state, steps)
            if isinstance(initial_state, SimulationState)
            else self.start_of_run(initial_state)
        )
        warn_if_forked()
        job = Job(self, start, signals, selection, steps, every, watch or strict)
        if checkpoint is not None:
            file = Path(instance("checkpoint", checkpoint, str, os.PathLike))
            seconds = real("checkpoint_seconds", checkpoint_seconds, "s", least=0)
            job.attach(file, bool(resume), seconds)
        elif resume:
            raise InputError("resume needs a checkpoint, the file to go on from", place=("resume",))
        return job.finish(progress, strict)

    @in_own_precision
    def run_batch(
        self,
        duration: SupportsFloat | None = None,
        inputs: Inputs | None = None,
        *,
        steps: SupportsIndex | None = None,
        parameters: Mapping[str, Any] | None = None,
        initial_state: Mapping[str, Mapping[str, Any]] | None = None,
        batch_size: SupportsIndex | None = None,
        record: Recorded = None,
        every: SupportsIndex = 1,
        progress: Progress = True,
        threads: SupportsIndex | None = None,
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
        watch, strict    as in `run`; a batch is not watched unless it is asked for

        A member that leaves the finite numbers is reported by index (`trajectory.diverged`, and a
        `DivergenceWarning`); the others are what they would be without it. Equals member-by-member
        `run` to rounding.
        """
        steps = self.count_steps(duration, steps)
        every = whole("every", every, 1)
        if steps % every:
            raise InputError(f"every must divide the {steps} steps, got {every}", place=("every",))
        check_progress(progress)
        threads = None if threads is None else whole("threads", threads, 1)
        batch_size = (
            None if batch_size is None else whole("batch_size", batch_size, 1, most=MOST_STEPS)
        )
        job = batch_of(
            self,
            steps,
            every,
            self.select(record),
            parameters=parameters,
            initial_state=initial_state,
            inputs=inputs,
            batch_size=batch_size,
            threads=threads,
            watch=watch or strict,
        )
        return job.finish(progress, strict)

    def __repr__(self) -> str:
        w = self.wiring
        counts = counted(edge=w.edges, external_input=w.external, coupling_group=w.groups)
        counts.append(f"steps of {self.timestep:g} s")
        return graph_text("Simulation", (self.nodes[name] for name in w.order), counts)

    def _repr_html_(self) -> str:
        return drawer("Simulation.html")(self)

    def to_mjcf(
        self,
        path: str | os.PathLike[str],
        *,
        origins: Mapping[str, str] | None = None,
        uncertainties: Mapping[str, Any] | None = None,
        mend: bool = False,
    ) -> None:
        """Write the machine of this graph for MuJoCo: springs as joints, motors as `dcmotor`.

        `origins={"arm.link[forearm].mass_kg": "fit of May"}` and `uncertainties={...: 0.02}` become
        comments beside the values. The header lists what an MJCF cannot say. Masses and inertias
        that MuJoCo does not read are refused, or with `mend` changed: see `KinematicTree.to_mjcf`.
        """
        machines: list[Any] = [n for n in self.nodes.values() if hasattr(n, "graph_to_mjcf")]
        if len(machines) != 1:
            names = quoted(node.name for node in machines)
            raise InputError(
                f"to_mjcf writes a graph with one arm or elastic joint; this one has {names}"
            )
        machines[0].graph_to_mjcf(self, path, origins, uncertainties, mend)

    def count_steps(
        self, duration: SupportsFloat | None, steps: SupportsIndex | None = None
    ) -> int:
        """The number of steps of a run; a duration in seconds must be a whole number of them."""
        if (duration is None) == (steps is None):
            raise InputError("give either duration (seconds) or steps", place=("duration",))
        if steps is None:
            assert duration is not None
            return whole_steps(duration, self.timestep)
        return _countable(whole("steps", steps, 1), "steps")

    def _checked_state(self, state: SimulationState, steps: int) -> SimulationState:
        """A state to go on from, of this graph, with room for `steps` more."""
        known = self.init_state()
        given, expected = (
            (jax.tree.structure(s), [jnp.shape(x) for x in jax.tree.leaves(s)])
            for s in (state, known)
        )
        if given != expected:
            raise InputError(
                "initial_state is not the state of this graph: other nodes, fields or shapes "
                f"(nodes {quoted(state.nodes)}, expected {quoted(self.nodes)})",
                place=("initial_state",),
            )
        if not isinstance(state.step, jax.core.Tracer):
            _countable(int(state.step) + steps, "steps")
        return state


def _countable(steps: int, name: str) -> int:
    if steps > MOST_STEPS:
        raise InputError(
            f"{name}: the run would end at step {steps:,}; steps are counted to {MOST_STEPS:,}. "
            "Take a longer timestep, or start a second run from the state reached, its step set "
            "to 0",
            place=(name,),
        )
    return steps


def whole_steps(duration: SupportsFloat, timestep: float) -> int:
    """How many steps a duration is, both in seconds; an `InputError` when it is no number."""
    duration = real("duration", duration, "s")
    exact = duration / timestep
    if exact > MOST_STEPS:
        raise InputError(
            f"duration {duration:g} s is {exact:.6g} steps of {timestep:g} s; steps are counted "
            f"to {MOST_STEPS:,}",
            place=("duration",),
        )
    steps = round(exact)
    if not abs(exact - steps) <= 1e-6 * max(1, steps):  # decimal seconds and timesteps
        raise InputError(
            f"duration {duration:g} s is {exact:.6g} steps of {timestep:g} s; "
            f"the nearest whole number gives {steps * timestep:.12g} s",
            place=("duration",),
        )
    if steps < 1:
        raise InputError(
            f"a run needs at least one step of {timestep:g} s, got {duration:g} s",
            place=("duration",),
        )
    return steps
