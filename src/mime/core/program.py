"""The compiled value of a graph: a pure function from state and inputs to the next state."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, SupportsIndex, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mime._text import brief, nearest, quoted, warn_user
from mime.core.address import split_addresses
from mime.core.arguments import mapping, numbers, whole
from mime.core.coupling import CouplingReport
from mime.core.goals import foreseen_problems, goal_problems
from mime.core.node import Node, State, traced_fluxes
from mime.core.parameters import known
from mime.core.problem import InputError, ParameterError
from mime.core.recorder import Outputs, Recorded, Selection, StepResult, recorder, select
from mime.core.signals import (
    Constant,
    Inputs,
    Series,
    Signals,
    as_float_array,
    declared,
    sample,
    to_signals,
)
from mime.core.spec import Input
from mime.core.step import SimulationState, advance, gather
from mime.core.wiring import CouplingGroup, Wiring
from mime.native.folding import jit_folding
from mime.native.jaxprs import KEPT

AnyProgram = TypeVar("AnyProgram", bound="Program")


MOST_STEPS = 2**31 - 1
"""The step counter is an int32."""


class ConvergenceWarning(UserWarning):
    """A coupling group did not reach its tolerance."""


class Program(eqx.Module):
    """A graph as a value. `jax.jit`, `jax.grad` and `jax.vmap` go through all its methods."""

    nodes: dict[str, Node]
    wiring: Wiring = eqx.field(static=True)

    __getattribute__ = object.__getattribute__  # plain methods, as in `Parameterised`

    @property
    def timestep(self) -> float:
        """Seconds per step: the smallest timestep of all nodes."""
        return self.wiring.timestep

    def input_specs(self) -> dict[str, dict[str, Input]]:
        """The inputs of every node."""
        return {name: node.boundary_input_spec() for name, node in self.nodes.items()}

    def time_at(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Seconds at the start of a step."""
        return step.astype(jnp.result_type(float)) * self.timestep

    def with_parameters(self: AnyProgram, parameters: Mapping[str, Any]) -> AnyProgram:
        """The same graph with other parameters. Nothing is rebuilt.

        Keys are addresses: `{"motor.r_ohm": 2.0, "motor.gear.ratio": 5.0}`, or the same by node:
        `{"motor": {"r_ohm": 2.0, "gear.ratio": 5.0}}`. Derived parameters follow.
        """
        changed: dict[str, dict[str, Any]] = {}
        for name, parameter, value in split_addresses(parameters):
            if name not in self.nodes:
                raise InputError(
                    f"parameters: no node {name!r}{nearest(name, self.nodes)} "
                    f"({quoted(self.nodes)})",
                    place=("parameters", name),
                )
            changed.setdefault(name, {})[parameter] = value
        if not changed:
            return self
        self.wiring.refuse_derived(changed)
        nodes = self.nodes | {
            name: self.nodes[name].with_params(**values) for name, values in changed.items()
        }
        nodes = self.wiring.derive(nodes, changed)
        if problems := list(foreseen_problems(nodes, self.wiring.edges)):
            raise ParameterError("parameters", problems)
        return dataclasses.replace(self, nodes=nodes)

    def init_state(self, initial: Mapping[str, Mapping[str, Any]] | None = None) -> SimulationState:
        """The state before the first step; `{"rotor": {"angle": 1.0}}` overrides single fields.

        Held fluxes start as those of the initial states, evaluated along the same-step edges.
        """
        return _init_state(self, self.checked_initial(initial))

    def start_of_run(
        self, initial: Mapping[str, Mapping[str, Any]] | None = None
    ) -> SimulationState:
        """The same for a run that begins at once, in NumPy arrays where machine code makes them."""
        return _init_state.now(self, self.checked_initial(initial))

    def step(
        self, state: SimulationState, inputs: Mapping[str, Mapping[str, Any]] | None = None
    ) -> tuple[SimulationState, dict[str, State]]:
        """One step with the given external inputs: the new state, and the fluxes of every node."""
        external: dict[str, dict[str, Any]] = {}
        for node, field, value in declared(inputs, self.wiring.external):
            external.setdefault(node, {})[field] = as_float_array(f"{node}.{field}", value)
        after, fluxes = _step(self, state, external)
        warn_of_failures(self, after, state)
        return after, fluxes

    def rollout(
        self,
        state: SimulationState,
        inputs: Inputs | None = None,
        steps: SupportsIndex = 1,
        *,
        record: Recorded = None,
        every: SupportsIndex = 1,
        remat_every: SupportsIndex | None = None,
    ) -> tuple[SimulationState, Outputs]:
        """`steps` steps as one pure, differentiable program: final state, and the recorded fields.

        Every `every`-th step is recorded; recorded[node][field][n] belongs to the time of step
        (n + 1) every. With `remat_every=m`, reverse mode keeps one state in m and recomputes the
        steps between: memory grows with steps/m + m instead of steps.
        """
        steps = whole("steps", steps, 1, most=MOST_STEPS)
        every = whole("every", every, 1)
        remat_every = None if remat_every is None else whole("remat_every", remat_every, 1)
        for name, count in (("every", every), ("remat_every", remat_every)):
            if count is not None and steps % count:
                raise InputError(
                    f"{name} must divide the {steps} steps, got {count}", place=(name,)
                )
        if remat_every is not None and remat_every % every:
            raise InputError(
                f"remat_every ({remat_every}) must be a multiple of every ({every})",
                place=("remat_every",),
            )
        return _rollout(
            self,
            state,
            self.signals(inputs, steps),
            steps=steps,
            selection=self.select(record),
            every=every,
            remat=remat_every,
        )

    def signals(self, inputs: Inputs | None, steps: int) -> Signals:
        """The external inputs of a run of `steps` steps, checked."""
        signals = to_signals(inputs, self.wiring.external, self.input_specs(), steps)
        for node, fields in signals.items():
            for field, signal in fields.items():
                if isinstance(signal, Constant | Series):
                    self.check_goal(node, field, *jax.tree.leaves(signal))
        return signals

    def check_goal(self, node: str, field: str, values: Any, whose: str = "") -> None:
        """Refuse a goal (any axes in front) that what it is meant for cannot reach."""
        for problem in goal_problems(self.nodes, self.wiring.edges, node, field, values):
            words = f"input {node}.{field}{whose} {problem.words}"
            raise InputError(words, place=("input", node, field))

    def select(self, record: Recorded) -> Selection:
        """What a run records, checked: by default all fluxes, observable states and seen inputs."""
        groups = [group.name for group in self.wiring.groups]
        return select(self.nodes, groups, record, self.wiring.seen)

    def checked_initial(
        self, initial: Mapping[str, Mapping[str, Any]] | None
    ) -> dict[str, dict[str, Any]]:
        """Fields of a state to start from, with the names, shapes and values that nodes take."""
        form = "{'node': {'field': value}}"
        for node, fields in mapping("initial_state", initial, form).items():
            mapping(f"initial_state[{node!r}]", fields, "{'field': value}")
            if node not in self.nodes:
                raise InputError(
                    f"initial state: no node {node!r}{nearest(node, self.nodes)}",
                    place=("state", node),
                )
            spec = self.nodes[node].state_spec()
            for field in fields:
                place = ("state", node, field)
                if field not in spec:
                    raise InputError(
                        f"initial state: {node!r} has no field {field!r}{nearest(field, spec)} "
                        f"(fields: {quoted(spec)})",
                        place=place,
                    )
                value = numbers(f"initial state: {node}.{field}", fields[field])
                if (shape := np.shape(value)) != spec[field].shape:
                    raise InputError(
                        f"initial state: {node}.{field} has shape {shape}, "
                        f"expected {spec[field].shape} [{spec[field].unit}]",
                        place=place,
                    )
                if known(value) and not np.isfinite(np.asarray(value)).all():
                    raise InputError(
                        f"initial state: {node}.{field} is not finite, got {brief(value)}",
                        place=place,
                    )
            for problem in self.nodes[node].state_problems(fields):
                place = ("state", node, *problem.place)
                raise InputError(f"initial state: {node}.{problem}", place=place)
        return {node: dict(fields) for node, fields in (initial or {}).items()}


Step = Callable[[SimulationState], StepResult]


def stepper(program: Program, signals: Signals, start: Int[Array, ""]) -> Step:
    """One step under the run's inputs; `start` is the step at which the run began.

    Jitted only so that its trace is kept: the loops around it ask for its shape more than once.
    """

    @partial(jax.jit, inline=True)
    def one(state: SimulationState) -> StepResult:
        external = sample(signals, state.step - start, program.time_at(state.step))
        return advance(program.nodes, program.wiring, state, external)

    return one


def _scan(
    program: Program,
    state: SimulationState,
    signals: Signals,
    *,
    steps: int,
    selection: Selection,
    every: int,
    remat: int | None,
) -> tuple[SimulationState, Outputs]:
    # A gradient computes each step again instead of keeping all that went on inside it: states are
    # all that goes to memory (benchmarks/gradient.py). A scan keeps the two computations apart by
    # itself, hence `prevent_cse=False`.
    one = jax.checkpoint(
        stepper(program, signals, state.step),
        prevent_cse=False,
        policy=jax.checkpoint_policies.save_only_these_names(KEPT),
    )
    record = recorder(program.nodes, program.wiring, selection)

    def sample_after(state: SimulationState, _: None) -> tuple[SimulationState, Outputs]:
        if every == 1:
            state, fluxes, given = one(state)
            return state, record.of_step(state, fluxes, given)
        given = record.no_inputs(one, state)
        (state, given), _ = jax.lax.scan(
            lambda carry, _: (record.keep(one(carry[0])), None), (state, given), length=every
        )
        return state, record.of_inputs(state, given)

    def segment(state: SimulationState, _: None) -> tuple[SimulationState, Outputs]:
        return jax.lax.scan(sample_after, state, length=(remat or steps) // every)

    if remat is None:
        return segment(state, None)
    state, outputs = jax.lax.scan(jax.checkpoint(segment), state, length=steps // remat)
    return state, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), outputs)


_rollout = jit_folding(_scan, static_argnames=("steps", "selection", "every", "remat"))


@jit_folding
def _init_state(program: Program, initial: Mapping[str, Mapping[str, Any]]) -> SimulationState:
    wiring = program.wiring
    nodes: dict[str, State] = {}
    fluxes: dict[str, State] = {}
    held: dict[str, State] = {}
    for stage in wiring.schedule:
        for name in stage.members if isinstance(stage, CouplingGroup) else (stage,):
            node = program.nodes[name]
            fresh = node.initial_state()
            given = initial.get(name, {})
            nodes[name] = {
                f: jnp.asarray(given.get(f, v), jnp.result_type(v)) for f, v in fresh.items()
            }
            inputs = gather(wiring, node, fluxes, {}, {})
            fluxes[name] = traced_fluxes(node, nodes[name], inputs, node.timestep)
    for name, node in program.nodes.items():
        if fields := wiring.held_fields(node):
            held[name] = {field: fluxes[name][field] for field in fields}
    reports = {group.name: CouplingReport.start() for group in wiring.groups}
    return SimulationState(jnp.zeros((), jnp.int32), nodes, held, reports)


@jit_folding
def _step(
    program: Program, state: SimulationState, external: Mapping[str, Mapping[str, Any]]
) -> tuple[SimulationState, dict[str, State]]:
    after, fluxes, _ = advance(program.nodes, program.wiring, state, external)
    return after, fluxes


def warn_of_failures(program: Program, after: SimulationState, before: SimulationState) -> None:
    """Warn of every group that failed to converge between two states. Silent under a transform."""
    for group in program.wiring.groups:
        report = after.coupling[group.name]
        if isinstance(report.failures, jax.core.Tracer):
            continue
        new = int(report.failures) - int(before.coupling[group.name].failures)
        if new > 0:
            time = float(report.first_failure) * program.timestep
            warn_user(
                ConvergenceWarning(
                    f"coupling group {group.name!r} did not converge in {new} step(s), first at "
                    f"t = {time:g} s; last residual {float(report.residual):.3g} after "
                    f"{int(report.iterations)} iterations (max_iterations={group.max_iterations}). "
                    "Allow more, accelerate with 'aitken', or take a smaller timestep."
                )
            )
