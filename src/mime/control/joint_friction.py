"""Dry friction of many coupled joints in one implicit step: joints that stick stick exactly."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.control.positive_definite import solve

SWEEPS = 30
"""Sweeps of coordinate descent. They only have to find *which* joints stick; the rest is solved."""


def coulomb_step(
    H: Float[Array, "n n"], v_free: Float[Array, " n"], impulse: Float[Array, " n"]
) -> Float[Array, " n"]:
    """v = argmin ½ (v - v_free)ᵀ H (v - v_free) + Σ impulse_i |v_i|

    The velocities after a step with dry friction: H = M + dt·(viscous) is what resists a change of
    velocity, v_free the result without dry friction, impulse_i = dt·tau_c,i the most that friction
    can take. The minimum is the implicit step H (v - v_free) = -impulse sign(v), with any value of
    magnitude up to the impulse where v_i = 0: a joint at rest stays at exactly 0 until it is pushed
    harder than its friction.

    Coordinate descent (soft thresholding) finds the sticking joints; the others are then solved for
    in one go, which makes the result exact and its gradient that of the true solution.
    """
    n = v_free.shape[0]
    p = H @ v_free  # the momentum to be shared out

    def sweep(_: Array, v: Float[Array, " n"]) -> Float[Array, " n"]:
        for i in range(n):
            rest = p[i] - H[i] @ v + H[i, i] * v[i]
            v = v.at[i].set(_soft(rest, impulse[i]) / H[i, i])
        return v

    found = jax.lax.fori_loop(0, SWEEPS, sweep, jax.lax.stop_gradient(v_free))
    found = jax.lax.stop_gradient(found)
    slips = found != 0
    both = slips[:, None] & slips[None, :]
    A = jnp.where(both, H, jnp.eye(n, dtype=H.dtype))
    b = jnp.where(slips, p - impulse * jnp.sign(found), 0)
    return jnp.where(slips, solve(A, b[:, None])[:, 0], 0)


def _soft(x: Array, threshold: Array) -> Array:
    return jnp.sign(x) * jnp.maximum(jnp.abs(x) - threshold, 0)
