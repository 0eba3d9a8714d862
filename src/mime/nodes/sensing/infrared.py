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

Values = float | Float[Any, "..."]


def distance_from_adc(
    adc: Values, a: Values, b: Values, c: Values, offset: Values = 0.0
) -> Float[Array, "..."]:
    """d = a - (adc - c - offset)^b; the largest, a, when no count is left."""
    _check(b)
    light = jnp.asarray(adc - c - offset)
    lit = light > 0
    return jnp.where(lit, a - jnp.where(lit, light, 1.0) ** b, a)


def adc_from_distance(
    d: Values, a: Values, b: Values, c: Values, offset: Values = 0.0
) -> Float[Array, "..."]:
    """Counts, not rounded: adc = c + offset + (a - d)^(1/b); c + offset for d >= a."""
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
