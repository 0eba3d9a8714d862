"""Functions of one robot, for many of them, on all cores."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.problem import InputError
from mime.running.threads import Cut, cut_batch, on_threads

_SMALLEST_CUT = 64
"""Members from which on another thread pays (benchmarks/kinematics.py)."""


def batched(function: Callable[..., Any], threads: int | None = None) -> Callable[..., Any]:
    """`function` of arrays with a leading batch axis: the members one after another, on all cores.

        slopes = batched(jax.grad(loss))
        slopes(parameters)                      # one gradient for each of 4,096 sets of parameters

    `jax.vmap` gives the same numbers and suits short functions. Kinematics, dynamics and rollouts
    of a robot are long, and one member's values stay in registers (benchmarks/kinematics.py). Keep
    the function: it holds the program. Inside `jax.jit` it is the same loop on one core.
    `threads`: one per core by default.
    """

    @jax.jit
    def one_by_one(*args: Any) -> Any:
        return jax.lax.map(lambda member: function(*member), args)

    def call(*args: Any) -> Any:
        leaves = jax.tree.leaves(args)
        sizes = {len(x) if jnp.ndim(x) else None for x in leaves}
        if len(sizes) != 1 or None in sizes:
            shapes = ", ".join(str(jnp.shape(x)) for x in leaves)
            raise InputError(f"batched: all arguments need one leading batch axis, got {shapes}")
        if any(isinstance(x, jax.core.Tracer) for x in leaves):
            return one_by_one(*args)
        cuts = cut_batch(sizes.pop() or 0, threads, _SMALLEST_CUT)
        if len(cuts) == 1:
            return one_by_one(*args)
        plain = jax.tree.map(_plain, args)

        def run(cut: Cut) -> Any:
            mine = jax.tree.map(lambda x: x[cut.start : cut.stop], plain)
            results = jax.block_until_ready(one_by_one(*mine))
            return jax.tree.map(lambda x: x[cut.surplus :], results) if cut.surplus else results

        return jax.tree.map(lambda *x: jnp.concat(x), *on_threads(run, cuts))

    return call


def _plain(x: Any) -> Any:
    """Make it a NumPy array, which is cut without a call to JAX; random keys cannot be one."""
    is_key = isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.extended)
    return x if is_key else np.asarray(x)
