"""The articulated-body algorithm: accelerations of given torques (Featherstone, chapter 7).

Its cost grows with the number of links, where that of a mass matrix grows with its square.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .recursion import columns, common_dtype, inward, joint_columns, outward, runs
from .rnea import LinkMotion, move_link, wrench_at_link_origin
from .scalar import Array, add, mul, reciprocal, sub, unpack
from .spatial import (
    IDENTITY,
    ZERO,
    ArticulatedInertia,
    Matrix,
    Motion,
    Vector,
    Wrench,
    acceleration_gradient,
    moments_about_origin,
)
from .tree import KinematicTree

NO_WRENCH = Wrench(ZERO, ZERO)
WEIGHTLESS = ArticulatedInertia(*[Matrix([ZERO] * 3)] * 3)


def articulated_bodies(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    tau: Float[Array, " joints"],
    gravity_world: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None,
    diagonal: Float[Array, " joints"] | None,
) -> Float[jax.Array, " joints"]:
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
    dtype = common_dtype(tree, q, qd, tau, gravity_world, F_ext, diagonal)
    qd, tau = (jnp.asarray(x, dtype) for x in (qd, tau))
    X, S = joint_columns(tree, q, dtype)
    mass = moments_about_origin(
        columns(tree.masses, dtype),
        Vector(columns(tree.coms, dtype)),
        Matrix(map(Vector, columns(tree.inertias, dtype))),
    )
    resistance = columns(tree.armature, dtype)
    if diagonal is not None:
        resistance = add(resistance, columns(diagonal, dtype))

    def move(parent: tuple[Vector, Vector, Vector], link: Any) -> tuple[Vector, Vector, Vector]:
        (w, w_dot, a), (X, S, qd) = parent, link
        moving = LinkMotion(w, w_dot, a, acceleration_gradient(w, w_dot))
        return move_link(moving, X, S, qd, 0.0)[:3]

    def release(
        beyond: tuple[ArticulatedInertia, Wrench], link: Any
    ) -> tuple[tuple[ArticulatedInertia, Wrench], Any]:
        X, S, I, p, tau, resistance = link
        I, p = I + beyond[0], p + beyond[1]
        U = I.wrench(S)
        inverse_D = reciprocal(add(U.power(S), resistance))
        u = sub(tau, p.power(S))
        share = I.released(U, inverse_D), p + U * mul(inverse_D, u)
        return (X.articulated(share[0]), X.wrench(share[1])), (U, inverse_D, u)

    def accelerate(parent: tuple[Motion, Any], link: Any) -> tuple[Motion, Any]:
        X, S, U, inverse_D, u = link
        a = X.motion_of_child(parent[0])
        qdd = mul(inverse_D, sub(u, U.power(a)))
        return a + S * qdd, qdd

    tree_runs = runs(tree.parent_idxs)
    at_rest = ZERO, ZERO, -Vector(unpack(gravity_world))
    w, w_dot, a = outward(tree_runs, move, at_rest, (X, S, qd), dtype)
    p = mass.inertial_wrench(a, acceleration_gradient(w, w_dot))
    if F_ext is not None:
        R_world = outward(tree_runs, lambda R, X: R @ X.R, IDENTITY, X, dtype)
        F = columns(F_ext, dtype)
        wrench = Wrench(Vector(F[:3]), Vector(F[3:]))
        p = p - wrench_at_link_origin(R_world, Vector(columns(tree.coms, dtype)), wrench)
    bodies = (X, S, mass.articulated(), p, tau, resistance)
    U, inverse_D, u = inward(tree_runs, release, (WEIGHTLESS, NO_WRENCH), bodies, dtype)
    no_more: tuple[Motion, Any] = Motion(ZERO, ZERO), 0.0
    return outward(tree_runs, accelerate, no_more, (X, S, U, inverse_D, u), dtype)[1]
