"""The composite-rigid-body algorithm: the joint-space mass matrix (Featherstone, chapter 6)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from mime.control.kinematics.fk import link_frames
from mime.control.kinematics.joints import felt_moments, joint_frames, joint_motions
from mime.control.kinematics.recursion import Loops, Unrolled, Walk, walk
from mime.control.kinematics.scalar import Array, Scalar, add, mul, unpack
from mime.control.kinematics.spatial import IDENTITY, NO_MASS, Frame, MassMoments, Motion, Wrench
from mime.control.kinematics.transmission import reflected
from mime.control.kinematics.tree import KinematicTree, ancestor_mask, path_to_root
from mime.native.straight import kernel_function


def joint_momenta(walk: Walk, X: Any, S: Any, masses: Any) -> Any:
    """f_i = Ic_i S_i: the momentum of all that joint i moves when only that joint moves.

    Ic_i is link i and all beyond it as one body: Ic_p += X_i Ic_i, from the tips to the root.
    """

    def join(
        beyond: MassMoments, X: Frame, S: Motion, mass: MassMoments
    ) -> tuple[Callable, Wrench]:
        Ic = mass + beyond
        return lambda: X.mass(Ic), Ic.momentum(S)

    return walk.inward(join, NO_MASS, X, S, masses)


def lower_triangle(
    walk: Unrolled, X: list[Frame], S: list[Motion], momenta: list[Wrench]
) -> list[list[Scalar]]:
    """M_ij = S_j · f,   f <- X_j f   for j from i up to the root, f the momentum of joint i.

    Joints of different branches share no entry: it stays a constant 0, and what it would multiply
    is never traced.
    """
    tree = walk.tree
    M: list[list[Scalar]] = [[0.0] * (c + 1) for c in range(tree.num_joints)]
    multiplier = unpack(tree.mimic_multiplier, walk.dtype)
    for i, f in enumerate(momenta):
        path = path_to_root(tree, i)
        for j in path:
            entry = mul(mul(multiplier[i], multiplier[j]), f.power(S[j]))
            row, column = sorted((tree.coordinate_idxs[i], tree.coordinate_idxs[j]), reverse=True)
            # A joint and its mimic on one branch: M_ij and M_ji fall on the same diagonal entry.
            twice = 2.0 if i != j and row == column else 1.0
            M[row][column] = add(M[row][column], mul(twice, entry))
            if j != path[-1]:
                f = X[j].wrench(f)
    for row, column, inertia in reflected(tree, walk.dtype):
        M[row][column] = add(M[row][column], inertia)
    return M


@kernel_function()
def mass_matrix(tree: KinematicTree, q: Float[Array, " joints"]) -> Float[Array, "joints joints"]:
    """M(q), with T = ½ q̇ᵀ M q̇. Symmetric to the last bit; rotors are in it."""
    links = walk(tree, q)
    X, S = joint_frames(links, q), joint_motions(links)
    momenta = joint_momenta(links, X, S, felt_moments(links))
    if isinstance(links, Loops):
        return _products(links, X, S, momenta)
    M = lower_triangle(links, X, S, momenta)
    n = tree.num_joints
    whole = [[M[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    return links.array(whole, q).reshape(n, n)


def _products(walk: Loops, X: Any, S: Any, momenta: Any) -> jax.Array:
    """M_ij = S_j · f_i for all i and j at once, both seen at the root: there no f has to move."""

    def at_root(frame: Frame, S: Motion, f: Wrench) -> tuple[Motion, Wrench]:
        R, p = frame
        turned = Motion(R @ S.linear, R @ S.angular)
        return Frame(IDENTITY, -p).motion_of_child(turned), frame.wrench(f)

    S, f = walk.each(at_root, link_frames(walk, X), S, momenta)
    six = lambda parts: walk.rows([x for part in parts for x in part])  # noqa: E731
    M = six(f).T @ six(S)
    moves = ancestor_mask(walk.tree.parent_idxs)
    M = jnp.where(moves, M, jnp.where(moves.T, M.T, 0.0))
    return M + jnp.diag(jnp.asarray(walk.tree.armature, walk.dtype))
