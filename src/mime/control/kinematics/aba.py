"""The articulated-body algorithm: accelerations of given torques (Featherstone, chapter 7).

Its cost grows with the number of links, where that of a mass matrix grows with its square.
"""

from .rnea import link_motions, link_wrenches
from .scalar import Scalar, add, mul, reciprocal, sub, unpack
from .spatial import ZERO, Frame, MassMoments, Vector, Wrench
from .tree import KinematicTree, joint_axes, joint_motion


def articulated_bodies(
    tree: KinematicTree,
    X: list[Frame],
    masses: list[MassMoments],
    qd: list[Scalar],
    tau: list[Scalar],
    gravity: Vector,
    F_ext: list[Wrench] | None,
    diagonal: list[Scalar],
) -> list[Scalar]:
    """q̈ of a tree without mimic joints. From the tips to the root,

        U_i = I_i S_i                                 wrench that moves joint i alone
        D_i = S_i · U_i + armature + diagonal
        u_i = tau_i - S_i · p_i
        I_p += X_i (I_i - U_i D_i⁻¹ U_iᵀ)             the body from link i on, its joint free
        p_p += X_i (p_i + U_i D_i⁻¹ u_i)

    and from the root to the tips,

        a_i = X_i⁻¹ a_p
        q̈_i = D_i⁻¹ (u_i - U_i · a_i)
        a_i += S_i q̈_i

    p_i starts as the wrench that link i needs when q̈ = 0, and a_i is the acceleration beyond that
    motion: gravity and the velocity products then appear in p alone.
    """
    n = tree.num_links
    motions = link_motions(tree, X, qd, [0.0] * n, -gravity)
    p = link_wrenches(tree, X, masses, motions, F_ext)
    I = [mass.articulated() for mass in masses]  # noqa: E741, the book's name
    S = [joint_motion(tree, i, axis) for i, axis in enumerate(joint_axes(tree))]
    U = [Wrench(ZERO, ZERO)] * n
    inverse_D, u = [0.0] * n, [0.0] * n
    resistance = [add(a, d) for a, d in zip(unpack(tree.armature), diagonal, strict=True)]
    for i in reversed(range(n)):
        U[i] = I[i].wrench(*S[i])
        inverse_D[i] = reciprocal(add(U[i].power(*S[i]), resistance[i]))
        u[i] = sub(tau[i], p[i].power(*S[i]))
        parent = tree.parent_idxs[i]
        if parent >= 0:
            I[parent] = I[parent] + X[i].articulated(I[i].released(U[i], inverse_D[i]))
            p[parent] = p[parent] + X[i].wrench(p[i] + U[i] * mul(inverse_D[i], u[i]))
    a: list[tuple[Vector, Vector]] = []
    qdd: list[Scalar] = []
    for i, parent in enumerate(tree.parent_idxs):
        linear, angular = (ZERO, ZERO) if parent < 0 else X[i].motion_of_child(*a[parent])
        qdd.append(mul(inverse_D[i], sub(u[i], U[i].power(linear, angular))))
        a.append((linear + S[i][0] * qdd[i], angular + S[i][1] * qdd[i]))
    return qdd
