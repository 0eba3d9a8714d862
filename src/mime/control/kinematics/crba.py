"""The composite-rigid-body algorithm: the joint-space mass matrix (Featherstone, chapter 6)."""

from jaxtyping import Float

from . import in_loops
from .recursion import FEW_ENTRIES, goes_in_loops
from .scalar import Array, Scalar, add, mul, pack, unpack
from .spatial import Frame, MassMoments
from .tree import (
    KinematicTree,
    joint_motions,
    joint_transforms,
    link_mass_moments,
)


def composite_rigid_bodies(
    tree: KinematicTree, X: list[Frame], masses: list[MassMoments]
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
            Ic[parent] = Ic[parent] + X[i].mass(Ic[i])
        f = Ic[i].momentum(S[i])
        j = i
        while j >= 0:
            entry = mul(mul(multiplier[i], multiplier[j]), f.power(S[j]))
            row, column = sorted((tree.coordinate_idxs[i], tree.coordinate_idxs[j]), reverse=True)
            # A joint and its mimic on one branch: M_ij and M_ji fall on the same diagonal entry.
            twice = 2.0 if i != j and row == column else 1.0
            M[row][column] = add(M[row][column], mul(twice, entry))
            f = X[j].wrench(f)
            j = tree.parent_idxs[j]
    for c, armature in enumerate(unpack(tree.armature)):
        M[c][c] = add(M[c][c], armature)
    return M


def mass_matrix(tree: KinematicTree, q: Float[Array, " joints"]) -> Float[Array, "joints joints"]:
    """M(q), with T = ½ q̇ᵀ M q̇. Symmetric to the last bit; the armature is on its diagonal."""
    if goes_in_loops(tree, FEW_ENTRIES, q):
        return in_loops.mass_matrix(tree, q)
    M = composite_rigid_bodies(tree, joint_transforms(tree, q), link_mass_moments(tree))
    n = tree.num_joints
    return pack([[M[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)], q)
