"""Linear equations with the zeros of a tree's mass matrix."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float

from mime.control.kinematics.ltdl import solve_ltdl
from mime.control.kinematics.recursion import Loops, walk
from mime.control.kinematics.scalar import Scalar
from mime.control.kinematics.transmission import moved_by_drives
from mime.control.kinematics.tree import KinematicTree, ancestor_mask
from mime.control.positive_definite import solve_held

Solve = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]


def coupled_joints(tree: KinematicTree) -> Bool[np.ndarray, "joints joints"]:
    """False where M is 0 for every q: joints of different branches without a drive in common."""
    coordinates = np.array(tree.coordinate_idxs)
    mask = np.zeros((tree.num_joints, tree.num_joints), dtype=bool)
    for i, row in enumerate(ancestor_mask(tree.parent_idxs)):
        mask[coordinates[i], coordinates[row]] = True
    moves = moved_by_drives(tree)
    return mask | mask.T | (moves.T @ moves)


def solver(tree: KinematicTree, q: Float[jax.Array, " joints"], extra: tuple[int, ...]) -> Solve:
    """x of (H + diag(added)) x = b for H with M's zeros, with x_j = b_j where j is `held`.

    H is positive definite. `extra` rows follow those of the joints, each coupled to one of them.
    By LᵀDL from the tips on, or where the tree's recursions are loops by a loop over a full matrix.
    """
    if isinstance(walk(tree, q), Loops):
        return solve_held
    n, e = tree.num_joints, len(extra)
    mask = np.eye(n + e, dtype=bool)
    mask[:n, :n] = coupled_joints(tree)
    for row, joint in enumerate(extra):
        mask[n + row, joint] = True

    def solve_sparse(H: jax.Array, b: jax.Array, added: jax.Array, held: jax.Array) -> jax.Array:
        zero, one = H.dtype.type(0), H.dtype.type(1)
        extra_of, is_held = list(added), list(held)

        def entry(i: int, j: int) -> Scalar:
            if not mask[i, j]:
                return 0.0
            if i == j:
                return lax.select(is_held[i], one, H[i, i] + extra_of[i])
            return lax.select(is_held[i] | is_held[j], zero, H[i, j])

        A = [[entry(i, j) for j in range(i + 1)] for i in range(n + e)]
        return jnp.stack(solve_ltdl(A, list(b)))

    return solve_sparse
