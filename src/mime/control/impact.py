"""Blows: what hard stops do to the velocities of a mechanism in the instant they are hit.

    v⁺ = v + H⁻¹ Jᵀ λ,      0 ≤ λ  ⊥  J v⁺ + e J v ≥ 0

Row i of J v is the speed at which stop i is left; λ_i is the impulse by which it pushes. With
v_P = argmin (u - v)ᵀ H (u - v) over all u with J u ≥ 0 this is v⁺ = v_P + e (v_P - v), Moreau's law
of impact. v_P and v - v_P are orthogonal in H, so a blow never raises the kinetic energy, however
many stops are hit at once, as long as all of them share one restitution e from 0 to 1.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mime.control.positive_definite import solve

MOST_PIVOTS = 64
"""Least-index pivoting ends by itself; states of up to 12 stops were seen to take 20 pivots."""


@partial(jax.jit, inline=True)  # traced once for each number of joints and stops
def velocities_after_blow(
    H: Float[Array, "n n"],
    v: Float[Array, " n"],
    J: Float[Array, "k n"],
    touching: Bool[Array, " k"],
    restitution: float | Float[Array, ""] = 0.0,
) -> Float[Array, " n"]:
    """v⁺ of the law above, for those rows of J whose stop is touched.

    H is what resists a change of velocity (the mass matrix) and must be positive definite; rows of
    J that are touched must be independent.
    """
    response = solve(H, J.T)  # column i: what a unit push of stop i does to the velocities
    pushes = complementary_impulses(J @ response, J @ v, touching)
    return v + (1.0 + restitution) * response @ pushes


def complementary_impulses(
    A: Float[Array, "k k"], b: Float[Array, " k"], touching: Bool[Array, " k"]
) -> Float[Array, " k"]:
    """λ with 0 ≤ λ ⊥ A λ + b ≥ 0 in the touching rows and 0 elsewhere.

    Murty's least-index pivoting (1974): guess which stops push, solve for their impulses, and let
    the first stop that pulls, or is driven into, change sides. Where A is positive definite this
    ends with the one solution. The search only decides *which* stops push; the impulses are then
    solved for once, so derivatives are those of the solution.
    """
    found = _pushing(*jax.lax.stop_gradient((A, b)), touching)
    return _impulses(A, b, found)


def _pushing(A: Array, b: Array, touching: Array) -> Array:
    scale = jnp.max(jnp.abs(jnp.where(touching, b, 0)))
    # Speeds below a few roundings of the largest are rest: they decide nothing.
    tolerance = 8 * jnp.finfo(b.dtype).eps * b.shape[0] * scale

    def wrong(pushing: Array) -> Array:
        pushes = _impulses(A, b, pushing)
        speeds = A @ pushes + b
        return touching & jnp.where(pushing, pushes < 0, speeds < -tolerance)

    def go_on(carry: tuple[Array, Array, Array]) -> Array:
        return jnp.any(carry[1]) & (carry[2] < MOST_PIVOTS)

    def pivot(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        pushing, bad, count = carry
        first = jnp.argmax(bad)
        pushing = pushing.at[first].set(~pushing[first])
        return pushing, wrong(pushing), count + 1

    none = jnp.zeros_like(touching)
    pushing, _, _ = jax.lax.while_loop(go_on, pivot, (none, wrong(none), jnp.zeros((), jnp.int32)))
    return pushing


def _impulses(A: Array, b: Array, pushing: Array) -> Array:
    """A_PP λ_P = -b_P for the pushing rows P, 0 elsewhere."""
    both = pushing[:, None] & pushing[None, :]
    system = jnp.where(both, A, jnp.eye(A.shape[0], dtype=A.dtype))
    return solve(system, jnp.where(pushing, -b, 0)[:, None])[:, 0]
