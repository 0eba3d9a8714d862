"""The field of a point dipole."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

MU_0 = 1.25663706127e-6
"""Magnetic constant, N/A² (CODATA 2022)."""


def dipole_field(point: Float[Array, "3"], moment_a_m2: Float[Array, "3"]) -> Float[Array, "3"]:
    """B = mu0 / (4 pi) (3 (m . r̂) r̂ - m) / r³, T; `point` in m from the dipole."""
    r2 = point @ point
    along = 3.0 * (moment_a_m2 @ point) / r2
    return MU_0 / (4.0 * math.pi) * (along * point - moment_a_m2) / (r2 * jnp.sqrt(r2))
