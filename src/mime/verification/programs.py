"""One compiled program for the sound subject and the faulty one, for all timesteps and lengths."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.node import Node
from mime.xla.folding import jit_folding

QUICK = {"xla_backend_optimization_level": 0}
"""Compiles a large program that runs for a short time in half the time."""
quick_jit = partial(jax.jit, compiler_options=QUICK)


def varying(node: Any, *names: str) -> Any:
    """The node with these parameters as arguments of a program, where they would be constants."""
    return node.with_params(**{name: getattr(node, name) for name in names})


def _rollout(
    node: Node, start: dict, inputs: dict, dt: Any, every: Any, *, samples: int
) -> dict[str, Any]:
    def step(_: Any, state: dict) -> dict:
        return node.update(state, inputs, dt)

    def sample(state: dict, _: None) -> tuple[dict, dict]:
        state = jax.lax.fori_loop(0, every, step, state)
        return state, state

    return jax.lax.scan(sample, start, length=samples)[1]


_programs = {
    quick: jit_folding(_rollout, ("samples",), compiler_options=QUICK if quick else {})
    for quick in (False, True)
}


def rollout(
    node: Any,
    start: dict[str, Any],
    inputs: dict[str, Any],
    samples: int,
    every: int = 1,
    dt: float | None = None,
    quick: bool = False,
) -> dict[str, np.ndarray]:
    """The state after each `every`-th step with constant inputs; `dt` other than the node's."""
    dt = node.timestep if dt is None else dt
    states = _programs[quick](node, start, inputs, dt, every, samples=samples)
    return jax.tree.map(np.asarray, states)


def at_rest(node: Any, **values: Any) -> dict[str, Any]:
    """The node's initial state with some of its fields at other values."""
    given = {name: jnp.asarray(value, float) for name, value in values.items()}
    return node.initial_state() | given
