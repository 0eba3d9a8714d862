"""The composite-rigid-body algorithm: the joint-space mass matrix (Featherstone, chapter 6)."""

from jaxtyping import Float

from mime.control.kinematics import in_loops
from mime.control.kinematics.recursion import UNROLLED_MASSES, use_loops
from mime.control.kinematics.scalar import Array, Scalar, add, mul, pack, unpack
from mime.control.kinematics.spatial import Frame, MassMoments, Motion
from mime.control.kinematics.tree import (
    KinematicTree,
    joint_motions,
    joint_transforms,
    link_mass_moments,
    path_to_root,
)
from mime.xla.keep_call import Call, inline


def composite_rigid_bodies(
    tree: KinematicTree, X: list[Frame], masses: list[MassMoments], call: Call = inline
) -> list[list[Scalar]]:
    """`mass_matrix` on scalars, lower triangle only:

        Ic_p += X_i Ic_i                              link i and all beyond it, as one body
        f = Ic_i S_i                                  its momentum when only joint i moves
        M_ij = S_j · f,   f <- X_j f                  for j from i up to the root

    Joints of different branches share no entry: it stays a constant 0, and what it would multiply
    is never traced.
    """
    M: list[list[Scalar]] = [[0.0] * (c + 1) for c in range(tree.num_joints)]
    S = joint_motions(tree)
    multiplier = unpack(tree.mimic_multiplier)
    Ic = list(masses)
    for i in reversed(range(tree.num_links)):
        parent = tree.parent_idxs[i]
        if parent >= 0:
            Ic[parent] = call(_with_carried, Ic[parent], X[i], Ic[i])
        path = path_to_root(tree, i)
        powers = call(_powers, Ic[i], [X[j] for j in path], [S[j] for j in path])
        for j, power in zip(path, powers, strict=True):
            entry = mul(mul(multiplier[i], multiplier[j]), power)
            row, column = sorted((tree.coordinate_idxs[i], tree.coordinate_idxs[j]), reverse=True)
            # A joint and its mimic on one branch: M_ij and M_ji fall on the same diagonal entry.
            twice = 2.0 if i != j and row == column else 1.0
            M[row][column] = add(M[row][column], mul(twice, entry))
    for c, armature in enumerate(unpack(tree.armature)):
        M[c][c] = add(M[c][c], armature)
    return M


def _with_carried(own: MassMoments, X: Frame, beyond: MassMoments) -> MassMoments:
    return own + X.mass(beyond)


def _powers(Ic: MassMoments, X: list[Frame], S: list[Motion]) -> list[Scalar]:
    """S_j · f at each joint from the first to the root, f the momentum that the first gives."""
    f, powers = Ic.momentum(S[0]), []
    for X_j, S_j in zip(X, S, strict=True):
        powers.append(f.power(S_j))
        f = X_j.wrench(f)
    return powers


def mass_matrix(tree: KinematicTree, q: Float[Array, " joints"]) -> Float[Array, "joints joints"]:
    """M(q), with T = ½ q̇ᵀ M q̇. Symmetric to the last bit; the armature is on its diagonal."""
    if use_loops(tree, UNROLLED_MASSES, q):
        return in_loops.mass_matrix(tree, q)
    M = composite_rigid_bodies(tree, joint_transforms(tree, q), link_mass_moments(tree))
    n = tree.num_joints
    return pack([[M[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)], q)
