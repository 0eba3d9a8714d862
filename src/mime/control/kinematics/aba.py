"""The articulated-body algorithm: accelerations of given torques (Featherstone, chapter 7).

Its cost grows with the number of links, where that of a mass matrix grows with its square. Gravity
and the products of velocities enter as the wrenches that the links need when q̈ = 0; q̈ is then what
the torques add to that motion.
"""

from typing import Any, NamedTuple, no_type_check

import jax
import jax.numpy as jnp
from jaxtyping import Float

from mime.control.kinematics.in_loops import link_masses, link_motions, wrenches_from_outside
from mime.control.kinematics.placement import Links, placed
from mime.control.kinematics.recursion import Run, columns, common_dtype, inward, outward, runs
from mime.control.kinematics.scalar import Array, Scalar, add, mul, reciprocal, sub, unpack
from mime.control.kinematics.spatial import (
    NO_WRENCH,
    ZERO,
    Frame,
    MassMoments,
    Matrix,
    Motion,
    Vector,
    Wrench,
    cross_matrix,
    symmetric,
)
from mime.control.kinematics.tree import KinematicTree
from mime.xla.keep_call import keep_call


@no_type_check
class ArticulatedInertia(NamedTuple):
    """[F; N] = [[A, B], [Bᵀ, C]] [a; ẇ] of a body with joints in it: A and C are symmetric."""

    A: Matrix
    B: Matrix
    C: Matrix

    def with_mass(self, mass: MassMoments) -> "ArticulatedInertia":
        """The inertia plus that of a rigid body, [[m 1, [h]×ᵀ], [[h]×, I]]."""
        (A, B, C), m, I = self, mass.mass, mass.inertia()
        return ArticulatedInertia(
            symmetric(lambda i, j: add(A[i][j], m if i == j else 0.0)),
            B + cross_matrix(mass.first).T,
            symmetric(lambda i, j: add(C[i][j], I[i][j])),
        )

    def wrench(self, motion: Motion) -> Wrench:
        a, w_dot = motion
        return Wrench(self.A @ a + self.B @ w_dot, self.B.T @ a + self.C @ w_dot)

    def released(self, U: Wrench, inverse_D: Scalar) -> "ArticulatedInertia":
        """I - U D⁻¹ Uᵀ"""
        (A, B, C), (F, N) = self, U
        F_D, N_D = U * inverse_D
        return ArticulatedInertia(
            symmetric(lambda i, j: sub(A[i][j], mul(F[i], F_D[j]))),
            Matrix(row - N_D * F_i for row, F_i in zip(B, F, strict=True)),
            symmetric(lambda i, j: sub(C[i][j], mul(N[i], N_D[j]))),
        )

    def shifted(self, r: Vector) -> "ArticulatedInertia":
        """The inertia about the origin of the parent, in which this body's origin lies at r."""
        (A, B, C), rx = self, cross_matrix(r)
        B_p = B - A @ rx
        left, right = rx @ B_p, B.T @ rx
        C_p = symmetric(lambda i, j: add(C[i][j], sub(left[i][j], right[i][j])))
        return ArticulatedInertia(A, B_p, C_p)


WEIGHTLESS = ArticulatedInertia(*[Matrix([ZERO] * 3)] * 3)


class Bodies(NamedTuple):
    """The links of a tree in a configuration, each with all beyond it, its joint free."""

    tree_runs: list[Run]
    links: Links
    mass: MassMoments
    """The moments of each link, in world axes."""
    U: Wrench
    D_inv: jax.Array


def articulated_bodies(
    tree: KinematicTree, q: Float[Array, " joints"], diagonal: Float[Array, " joints"] | None
) -> Bodies:
    """Go from the tips to the root of a tree without mimic joints,

    U_i = I_i S_i                                 wrench that moves joint i alone
    D_i = S_i · U_i + armature + diagonal
    I_p += X_i (I_i - U_i D_i⁻¹ U_iᵀ)             the body from link i on, its joint free
    """
    dtype, tree_runs = common_dtype(tree, q, diagonal), runs(tree.parent_idxs)
    resistance = columns(tree.armature, dtype)
    if diagonal is not None:
        resistance = add(resistance, columns(diagonal, dtype))
    links = placed(tree, q, dtype, tree_runs)
    mass = keep_call(Frame.mass, Frame(links.pose.R, ZERO), link_masses(tree, dtype))

    def release(beyond: ArticulatedInertia, link: Any) -> Any:
        X, S, mass, resistance = link
        I = beyond.with_mass(mass)
        U = I.wrench(S)
        inverse_D = reciprocal(add(U.power(S), resistance))
        return I.released(U, inverse_D).shifted(X.r), (U, inverse_D)

    bodies = links.X, links.S, mass, resistance
    U, inverse_D = inward(tree_runs, release, WEIGHTLESS, bodies, dtype)
    return Bodies(tree_runs, links, mass, U, inverse_D)


def solve_bodies(bodies: Bodies, tau: Float[Array, " joints"], p: Wrench = NO_WRENCH) -> jax.Array:
    """M q̈ = tau - (what the wrenches p on the links take): from the tips to the root,

        u_i = tau_i - S_i · p_i
        p_p += X_i (p_i + U_i D_i⁻¹ u_i)

    and from the root to the tips,

        a_i = X_i⁻¹ a_p
        q̈_i = D_i⁻¹ (u_i - U_i · a_i)
        a_i += S_i q̈_i
    """
    (tree_runs, links, _, U, inverse_D), dtype = bodies, common_dtype(bodies, tau, p)

    def carry(beyond: Wrench, link: Any) -> Any:
        X, S, U, inverse_D, tau, p = link
        p = p + beyond
        u = sub(tau, p.power(S))
        return X.wrench(p + U * mul(inverse_D, u)), u

    def accelerate(parent: Any, link: Any) -> Any:
        (a, _), (X, S, U, inverse_D, u) = parent, link
        a = X.motion_of_child(a)
        qdd = mul(inverse_D, sub(u, U.power(a)))
        return a + S * qdd, qdd

    joints = links.X, links.S, U, inverse_D
    u = inward(tree_runs, carry, NO_WRENCH, (*joints, jnp.asarray(tau, dtype), p), dtype)
    still: tuple[Motion, Any] = Motion(ZERO, ZERO), 0.0
    return outward(tree_runs, accelerate, still, (*joints, u), dtype)[1]


def bias_wrenches(
    bodies: Bodies, tree: KinematicTree, qd: Array, gravity_world: Array, F_ext: Array | None
) -> Wrench:
    """The wrench p that each link needs when q̈ = 0, less what it gets from outside."""
    tree_runs, links, mass, *_ = bodies
    dtype = common_dtype(bodies, qd, gravity_world, F_ext)
    root = -Vector(unpack(gravity_world))
    motion = link_motions(links, jnp.asarray(qd, dtype), 0.0, root, dtype, tree_runs)
    p = keep_call(MassMoments.inertial_wrench, mass, motion.a, motion.A)
    return p if F_ext is None else p - wrenches_from_outside(tree, links, F_ext, dtype)
