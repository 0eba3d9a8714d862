"""Linear equations with the zeros of a tree's mass matrix."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from mime.control.kinematics.ltdl import solve_ltdl
from mime.control.kinematics.recursion import Loops, walk
from mime.control.kinematics.tree import KinematicTree, ancestor_mask
from mime.control.positive_definite import solve

Solve = Callable[[jax.Array, jax.Array], jax.Array]


def coupled_joints(tree: KinematicTree) -> Bool[np.ndarray, "joints joints"]:
    """False where M is 0 for every q: joints of different branches."""
    coordinates = np.array(tree.coordinate_idxs)
    mask = np.zeros((tree.num_joints, tree.num_joints), dtype=bool)
    for i, row in enumerate(ancestor_mask(tree.parent_idxs)):
        mask[coordinates[i], coordinates[row]] = True
    return mask | mask.T


def solver(tree: KinematicTree, q: Float[jax.Array, " joints"], extra: tuple[int, ...]) -> Solve:
    """A⁻¹ b of a positive definite A with M's zeros; `extra` rows follow, each coupled to a joint.

    By LᵀDL from the tips on, or where the tree's recursions are loops by a loop over a full matrix.
    """
    if isinstance(walk(tree, q), Loops):
        return lambda A, b: solve(A, b[:, None])[:, 0]
    n, e = tree.num_joints, len(extra)
    mask = np.eye(n + e, dtype=bool)
    mask[:n, :n] = coupled_joints(tree)
    for row, joint in enumerate(extra):
        mask[n + row, joint] = True

    def solve_sparse(A: jax.Array, b: jax.Array) -> jax.Array:
        M = [[A[i, j] if mask[i, j] else 0.0 for j in range(i + 1)] for i in range(n + e)]
        return jnp.stack(solve_ltdl(M, list(b)))

    return solve_sparse
