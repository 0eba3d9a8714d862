"""Small positive definite systems inside a loop: plain operations, no call of a library."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def solve(A: Float[Array, "n n"], B: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """X = A⁻¹ B of a symmetric, positive definite A;   A dX = dB - dA X

    Derivatives are those of the equations, and not of the elimination.
    """
    return jax.lax.custom_linear_solve(
        lambda X: A @ X, B, lambda _, right: _eliminated(A, right), symmetric=True
    )


def solve_held(
    H: Float[Array, "n n"],
    b: Float[Array, " n"],
    added: Float[Array, " n"],
    held: Bool[Array, " n"],
) -> Float[Array, " n"]:
    """x of (H + diag(added)) x = b, with x_j = b_j where j is `held`.

    The rows and columns of what is held are those of the unit matrix: b has what they do to others.
    """
    either = held[:, None] | held[None, :]
    A = jnp.where(either, jnp.eye(H.shape[0], dtype=H.dtype), H + jnp.diag(added))
    return solve(A, b[:, None])[:, 0]


@partial(jax.jit, inline=True)  # traced once for each size
def _eliminated(A: Array, B: Array) -> Array:
    """A⁻¹ B by Gauss and Jordan, which needs no pivots where A is positive definite."""
    n = A.shape[0]

    def eliminate(k: Array, rows: Array) -> Array:
        row = rows[k] / rows[k, k]
        return (rows - jnp.outer(rows[:, k], row)).at[k].set(row)

    return jax.lax.fori_loop(0, n, eliminate, jnp.concatenate([A, B], 1))[:, n:]
