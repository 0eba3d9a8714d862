"""The motor under test: the parameters and the runs that its benchmarks share."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import Fault, Subject
from mime.verification.programs import QUICK

REFERENCE = {
    "inertia_kg_m2": 1e-4,
    "kt_n_m_per_a": 0.05,
    "r_ohm": 1.0,
    "l_henry": 1e-3,
    "damping_n_m_s": 5e-4,
}
J, K, R, L, B = REFERENCE.values()
"""Of the reference motor; kt and ke are one constant K."""


def run(node: MotorNode, inputs: dict[str, float], steps: int, **initial: float) -> dict[str, Any]:
    """The state after each of `steps` steps with constant inputs, as NumPy arrays."""
    states = _states(*_arguments(node, inputs, initial), steps)
    return {name: np.asarray(value) for name, value in states.items()}


def after(node: MotorNode, inputs: dict[str, float], steps: int, **initial: float) -> dict:
    """The state after `steps` steps with constant inputs; one program for all counts of steps."""
    state = _last(*_arguments(node, inputs, initial), jnp.asarray(steps))
    return {name: float(value) for name, value in state.items()}


def _arguments(node: MotorNode, inputs: dict[str, float], initial: dict[str, float]) -> tuple:
    """All that differs between two runs as arrays, so that they share a compiled program."""
    state = node.initial_state() | {name: jnp.asarray(value) for name, value in initial.items()}
    commands = {name: jnp.asarray(value) for name, value in inputs.items()}
    # These are no leaves: dt takes the place of one, and the other is about building a node.
    alike = dataclasses.replace(node, timestep=1.0, allow_ke_kt_mismatch=True)
    return alike, state, commands, jnp.asarray(node.timestep)


@partial(jax.jit, static_argnames="steps", compiler_options=QUICK)
def _states(node: MotorNode, state: dict, inputs: dict, dt: jax.Array, steps: int) -> dict:
    def step(state: dict, _: None) -> tuple[dict, dict]:
        state = node.update(state, inputs, dt)
        return state, state

    return jax.lax.scan(step, state, length=steps)[1]


@partial(jax.jit, compiler_options=QUICK)
def _last(node: MotorNode, state: dict, inputs: dict, dt: jax.Array, steps: jax.Array) -> dict:
    return jax.lax.fori_loop(0, steps, lambda _, state: node.update(state, inputs, dt), state)


def back_emf(factor: float) -> Fault:
    """A motor whose ke is `factor` times its kt, so that energy is not conserved."""

    def apply(subject: Subject) -> Subject:
        def build(*args: Any, **parameters: Any) -> Any:
            ke = factor * parameters["kt_n_m_per_a"]
            return subject(*args, **parameters, ke_v_s_per_rad=ke, allow_ke_kt_mismatch=True)

        return build

    return Fault(f"a back-EMF constant {factor:g} times the torque constant", apply)
