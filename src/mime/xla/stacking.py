"""Arrays made of scalars, in the form that XLA's CPU compiler handles well."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

_MOST_SELECTS = 32


def stack_scalars(scalars: Sequence[Any]) -> Array:
    """`jnp.stack` of scalars, as a chain of selects when they are few.

    XLA's CPU compiler fuses a concatenation with the code that makes its operands, and evaluates
    what they share anew for each (benchmarks/ray_casting.py).
    """
    if len(scalars) > _MOST_SELECTS:
        return jnp.stack([jnp.asarray(x) for x in scalars])
    dtype = jnp.result_type(*scalars)
    index = jax.lax.iota(np.int32, len(scalars))
    result = jnp.full(len(scalars), scalars[-1], dtype)
    for i in reversed(range(len(scalars) - 1)):
        result = jnp.where(index == i, scalars[i], result)
    return result
