"""Infrared range sensors: counts of a converter from a distance, and back.

    d = a - (adc - c - offset)^b,   adc = c + offset + (a - d)^(1/b)

The reflected light falls steeply with distance, and a, b, c are fitted to one sensor: d in metres,
`offset` the counts that ambient light adds.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import ParameterError

Number = float | Float[Any, "..."]


def distance_from_adc(
    adc: Number, a: Number, b: Number, c: Number, offset: Number = 0.0
) -> Float[Array, "..."]:
    """d = a - (adc - c - offset)^b; a, the largest, when no count is left."""
    _check(b)
    light = jnp.asarray(adc - c - offset)
    lit = light > 0
    return jnp.where(lit, a - jnp.where(lit, light, 1.0) ** b, a)


def adc_from_distance(
    d: Number, a: Number, b: Number, c: Number, offset: Number = 0.0
) -> Float[Array, "..."]:
    """adc = c + offset + (a - d)^(1/b), counts that are not rounded; c + offset for d >= a."""
    _check(b)
    near = jnp.asarray(a - d)
    seen = near > 0
    light = jnp.where(seen, jnp.where(seen, near, 1.0) ** (1.0 / b), 0.0)
    return c + offset + light


def _check(b: Any) -> None:
    if not isinstance(b, jax.core.Tracer) and not np.all(np.asarray(b) > 0):
        raise ParameterError(
            f"infrared sensor: b must be > 0, else light would grow with distance; got {b}"
        )
