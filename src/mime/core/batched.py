"""Functions of one robot, for many of them, on all cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.spec import InputError

_SMALLEST_BLOCK = 64
"""Members a thread is worth starting for: some 20 µs of work."""


def batched(function: Callable[..., Any], threads: int | None = None) -> Callable[..., Any]:
    """`function` of arrays with a leading batch axis: the members one after another, on all cores.

        slopes = batched(jax.grad(loss))
        slopes(parameters)                      # one gradient for each of 4,096 sets of parameters

    `jax.vmap` gives the same numbers and suits short functions. Kinematics, dynamics and rollouts
    of a robot are long, and one member's values stay in registers: the forward dynamics of 4,096
    six-axis arms take 0.37 µs each on a core, 0.9 with `vmap`; gradients of their rollouts differ
    more. Keep the function: it holds the program. Inside `jax.jit` it is the same loop on one core.
    `threads`: default one a core.
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
        return _on_threads(one_by_one, args, sizes.pop() or 0, threads)

    return call


def _on_threads(one_by_one: Callable[..., Any], args: Any, size: int, threads: int | None) -> Any:
    wanted = threads or min(os.cpu_count() or 1, size // _SMALLEST_BLOCK)
    if wanted < 2:
        return one_by_one(*args)
    length = -(-size // wanted)
    # Equal blocks share one program: one that would reach beyond the end begins earlier instead.
    blocks = [(i * length, min(i * length, size - length)) for i in range(wanted)]
    double = jnp.result_type(float) == jnp.float64
    args = jax.tree.map(_plain, args)

    def run(block: tuple[int, int]) -> Any:
        wanted_from, start = block
        with jax.enable_x64(double):  # the caller's holds in the caller's thread only
            mine = jax.tree.map(lambda x: x[start : start + length], args)
            results = jax.block_until_ready(one_by_one(*mine))
            surplus = wanted_from - start
            return jax.tree.map(lambda x: x[surplus:], results) if surplus else results

    return jax.tree.map(lambda *x: jnp.concat(x), *_pool(wanted).map(run, blocks))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mime-batched")


def _plain(x: Any) -> Any:
    """As a NumPy array, which is cut without a call to JAX; random keys cannot be one."""
    is_key = isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.extended)
    return x if is_key else np.asarray(x)
