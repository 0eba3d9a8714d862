"""The compiled value of a graph: a pure function from state and inputs to the next state."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mime.core.coupling import CouplingReport
from mime.core.folding import jit_folding
from mime.core.node import Node, State, traced_fluxes
from mime.core.recording import Recorded, Selection, select
from mime.core.signals import Inputs, as_float_array, declared
from mime.core.spec import Input, InputError
from mime.core.step import SimulationState, advance, gather
from mime.core.text import nearest, quoted, warn_user
from mime.core.trajectory import Trajectory
from mime.core.wiring import CouplingGroup, Wiring


class ConvergenceWarning(UserWarning):
    """A coupling group did not reach its tolerance."""


class Simulation(eqx.Module):
    """A graph as a value. `jax.jit`, `jax.grad` and `jax.vmap` go through all its methods but `run`
    and `run_batch`, which are for people: progress, divergence, checkpoints, batches on all cores.
    """

    nodes: dict[str, Node]
    wiring: Wiring = eqx.field(static=True)

    __getattribute__ = object.__getattribute__  # plain methods, as in `Node`

    @property
    def timestep(self) -> float:
        """Seconds a step: the smallest timestep of all nodes."""
        return self.wiring.timestep

    def input_specs(self) -> dict[str, dict[str, Input]]:
        """The inputs of every node."""
        return {name: node.boundary_input_spec() for name, node in self.nodes.items()}

    def time_at(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Seconds at the start of a step."""
        return step.astype(jnp.result_type(float)) * self.timestep

    def with_parameters(self, parameters: Mapping[str, Mapping[str, Any]]) -> "Simulation":
        """The same graph with other parameters: `{"rotor": {"r_ohm": 2.0}}`. Nothing is rebuilt."""
        if not parameters:
            return self
        nodes = dict(self.nodes)
        for name, values in parameters.items():
            if name not in nodes:
                raise InputError(
                    f"parameters: no node {name!r}{nearest(name, nodes)} ({quoted(nodes)})"
                )
            nodes[name] = nodes[name].with_params(**values)
        return dataclasses.replace(self, nodes=nodes)

    def init_state(self, initial: Mapping[str, Mapping[str, Any]] | None = None) -> SimulationState:
        """The state before the first step; `{"rotor": {"angle": 1.0}}` overrides single fields.

        Held fluxes start as those of the initial states, evaluated along the same-step edges.
        """
        return _init_state(self, self._checked_initial(initial))

    def step(
        self, state: SimulationState, inputs: Mapping[str, Mapping[str, Any]] | None = None
    ) -> tuple[SimulationState, dict[str, State]]:
        """One step with the given external inputs: the new state, and the fluxes of every node."""
        external: dict[str, dict[str, Array]] = {}
        for node, field, value in declared(inputs, self.wiring.external):
            external.setdefault(node, {})[field] = as_float_array(f"{node}.{field}", value)
        after, fluxes = _step(self, state, external)
        warn_of_failures(self, after, state)
        return after, fluxes

    def rollout(
        self,
        state: SimulationState,
        inputs: Inputs | None = None,
        steps: int = 1,
        *,
        record: Recorded = None,
        every: int = 1,
        remat_every: int | None = None,
    ) -> tuple[SimulationState, dict[str, dict[str, Array]]]:
        """`steps` steps as one pure, differentiable program: final state, and the recorded fields.

        Every `every`-th step is recorded; recorded[node][field][n] belongs to the time of step
        (n + 1) every. With `remat_every=m`, reverse mode keeps one state in m and recomputes the
        steps between: memory grows with steps/m + m instead of steps.
        """
        from mime.core.rollout import rollout

        return rollout(self, state, inputs, steps, record, every, remat_every)

    def run(
        self, duration: float | None = None, inputs: Inputs | None = None, **options: Any
    ) -> Trajectory:
        """Run for `duration` seconds and return what was recorded. See `mime.core.run.run`."""
        from mime.core.run import run

        return run(self, duration, inputs, **options)

    def run_batch(
        self, duration: float | None = None, inputs: Inputs | None = None, **options: Any
    ) -> Trajectory:
        """Run many variants at once, on all cores. See `mime.core.batch.run_batch`."""
        from mime.core.batch import run_batch

        return run_batch(self, duration, inputs, **options)

    def select(self, record: Recorded) -> Selection:
        """What a run records, checked: by default all fluxes and observable states."""
        return select(self.nodes, [group.name for group in self.wiring.groups], record)

    def _checked_initial(
        self, initial: Mapping[str, Mapping[str, Any]] | None
    ) -> dict[str, dict[str, Any]]:
        for node, fields in (initial or {}).items():
            if node not in self.nodes:
                raise InputError(f"initial state: no node {node!r}{nearest(node, self.nodes)}")
            spec = self.nodes[node].state_spec()
            for field in fields:
                if field not in spec:
                    raise InputError(
                        f"initial state: {node!r} has no field {field!r}{nearest(field, spec)} "
                        f"(fields: {quoted(spec)})"
                    )
                if (shape := np.shape(fields[field])) != spec[field].shape:
                    raise InputError(
                        f"initial state: {node}.{field} has shape {shape}, "
                        f"expected {spec[field].shape} [{spec[field].unit}]"
                    )
        return {node: dict(fields) for node, fields in (initial or {}).items()}


@jit_folding
def _init_state(
    simulation: Simulation, initial: Mapping[str, Mapping[str, Any]]
) -> SimulationState:
    wiring = simulation.wiring
    nodes: dict[str, State] = {}
    fluxes: dict[str, State] = {}
    held: dict[str, State] = {}
    for stage in wiring.schedule:
        for name in stage.members if isinstance(stage, CouplingGroup) else (stage,):
            node = simulation.nodes[name]
            fresh = node.initial_state()
            given = initial.get(name, {})
            nodes[name] = {
                f: jnp.asarray(given.get(f, v), jnp.result_type(v)) for f, v in fresh.items()
            }
            inputs = gather(wiring, node, fluxes, {}, {})
            fluxes[name] = traced_fluxes(node, nodes[name], inputs, node.timestep)
    for name, node in simulation.nodes.items():
        if fields := wiring.held_fields(node):
            held[name] = {field: fluxes[name][field] for field in fields}
    reports = {group.name: CouplingReport.start() for group in wiring.groups}
    return SimulationState(jnp.zeros((), jnp.int32), nodes, held, reports)


@jit_folding
def _step(
    simulation: Simulation, state: SimulationState, external: Mapping[str, Mapping[str, Any]]
) -> tuple[SimulationState, dict[str, State]]:
    after, fluxes, _ = advance(simulation.nodes, simulation.wiring, state, external)
    return after, fluxes


def warn_of_failures(
    simulation: Simulation, after: SimulationState, before: SimulationState
) -> None:
    """Warn of every group that failed to converge between two states. Silent under a transform."""
    for group in simulation.wiring.groups:
        report = after.coupling[group.name]
        if isinstance(report.failures, jax.core.Tracer):
            continue
        new = int(report.failures) - int(before.coupling[group.name].failures)
        if new > 0:
            time = float(report.first_failure) * simulation.timestep
            warn_user(
                ConvergenceWarning(
                    f"coupling group {group.name!r} did not converge in {new} step(s), first at "
                    f"t = {time:g} s; last residual {float(report.residual):.3g} after "
                    f"{int(report.iterations)} iterations (max_iterations={group.max_iterations}). "
                    "Allow more, accelerate with 'aitken', or take a smaller timestep."
                )
            )
