"""Forward dynamics: the accelerations that given torques cause.

Small trees take the mass matrix with a sparse LᵀDL, unrolled; larger ones the articulated bodies,
in loops. `in_loops` has the times of both: the mass matrix is faster up to 10 links, where it takes
three times as long to compile; at 12 XLA's fusion has been seen to explode (1751 µs a step).
"""

from jaxtyping import Float

from .aba import articulated_bodies
from .crba import composite_rigid_bodies
from .recursion import FEW_SOLVED, goes_in_loops
from .rnea import inverse_dynamics, unpack_wrenches
from .scalar import Array, Scalar, add, is_constant, mul, pack, reciprocal, sub, unpack
from .spatial import Vector
from .tree import KinematicTree, joint_transforms, link_mass_moments


def forward_dynamics(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    tau: Float[Array, " joints"],
    gravity_world: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None = None,
    diagonal: Float[Array, " joints"] | None = None,
) -> Float[Array, " joints"]:
    """M(q) q̈ = tau - c(q, q̇) - g(q) + Σ J_iᵀ F_i, solved for q̈.

    `tau` is the whole torque on the joint, friction included. `diagonal` is added to that of M:
    implicit friction f over a step dt is `diagonal = f·dt`, an extra rotor is its armature.
    """
    if goes_in_loops(tree, FEW_SOLVED, q, qd, tau):
        return articulated_bodies(tree, q, qd, tau, gravity_world, F_ext, diagonal)
    X = joint_transforms(tree, q)
    masses = link_mass_moments(tree)
    bias = inverse_dynamics(
        tree,
        X,
        masses,
        unpack(qd),
        [0.0] * tree.num_joints,
        Vector(unpack(gravity_world)),
        None if F_ext is None else unpack_wrenches(F_ext),
    )
    M = composite_rigid_bodies(tree, X, masses)
    if diagonal is not None:
        for c, extra in enumerate(unpack(diagonal)):
            M[c][c] = add(M[c][c], extra)
    return pack(
        solve_ltdl(M, [sub(t, b) for t, b in zip(unpack(tau), bias, strict=True)]), q, qd, tau
    )


def solve_ltdl(M: list[list[Scalar]], b: list[Scalar]) -> list[Scalar]:
    """M x = b by M = Lᵀ D L, from the tips to the root (Featherstone 2008, section 6.5).

    `M` is its lower triangle. In this order a tree's zeros never fill in, and a constant 0 costs
    nothing: the sparsity of branches needs no code of its own.
    """
    n = len(b)
    L, x = [list(row) for row in M], list(b)
    inverse_D: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        inverse_D[k] = reciprocal(L[k][k])
        for i in reversed(range(k)):
            if is_constant(L[k][i]) and L[k][i] == 0.0:
                continue
            factor = mul(L[k][i], inverse_D[k])
            for j in range(i + 1):
                L[i][j] = sub(L[i][j], mul(factor, L[k][j]))
            x[i] = sub(x[i], mul(factor, x[k]))
            L[k][i] = factor
    for k in range(n):
        x[k] = mul(x[k], inverse_D[k])
        for i in range(k):
            x[k] = sub(x[k], mul(L[k][i], x[i]))
    return x
