"""One compiled program for the sound subject and the faulty one, for all timesteps and lengths."""

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.node import Node
from mime.native.folding import jit_folding

QUICK = {"xla_backend_optimization_level": 0}
"""Compiles a large program that runs for a short time in half the time."""
quick_jit = partial(jax.jit, compiler_options=QUICK)


def varying(node: Any, *names: str) -> Any:
    """The node with these parameters as arguments of a program, where they would be constants."""
    return node.with_params(**{name: getattr(node, name) for name in names})


def rollout(
    node: Any,
    inputs: Mapping[str, Any],
    samples: int,
    *,
    every: int = 1,
    dt: float | None = None,
    start: Mapping[str, Any] | None = None,
) -> dict[str, np.ndarray]:
    """The state after each `every`-th step: fields (samples, ...).

    An input is constant, or has a value per sample. `start` holds the fields that do not begin at
    their initial values, and `dt` is the timestep where it is not the node's own.

    `Program.rollout` compiles anew for every timestep and for every number of steps, which a study
    of convergence is made of: it would spend minutes on compiling. Here both are arguments, so
    that a benchmark compiles one program for each model of its subject.
    """
    room = 4096
    while room < samples:
        room *= 16  # few lengths of arrays, hence few programs
    begin = {name: jnp.asarray(value, float) for name, value in (start or {}).items()}
    spec = node.boundary_input_spec()
    series = {name: np.zeros((room, *spec[name].shape)) for name in inputs}
    for name, value in inputs.items():
        series[name][:samples] = value
    alike = copy.copy(node)
    object.__setattr__(alike, "timestep", 1.0)  # a constant of the program; `update` is given dt
    dt = node.timestep if dt is None else dt
    state = node.initial_state() | begin
    states = _program(alike, state, series, dt, samples * every, every, room=room)
    return {name: np.asarray(values)[:samples] for name, values in states.items()}


def final_state(node: Any, inputs: Mapping[str, Any], steps: int, **options: Any) -> dict[str, Any]:
    """The state after `steps` steps; options as for `rollout`."""
    states = rollout(node, inputs, 1, every=steps, **options)
    return {name: values[0] for name, values in states.items()}


def _rollout(
    node: Node, state: dict, inputs: dict, dt: Any, steps: Any, every: Any, *, room: int
) -> dict[str, Any]:
    def step(n: Any, carry: tuple[dict, dict]) -> tuple[dict, dict]:
        state, kept = carry
        state = node.update(state, {name: x[n // every] for name, x in inputs.items()}, dt)
        keep = partial(jax.lax.dynamic_update_index_in_dim, index=n // every, axis=0)
        return state, jax.tree.map(keep, kept, state)

    kept = jax.tree.map(lambda x: jnp.zeros((room, *jnp.shape(x)), x.dtype), state)
    return jax.lax.fori_loop(0, steps, step, (state, kept))[1]


_program = jit_folding(_rollout, ("room",), compiler_options=QUICK)
