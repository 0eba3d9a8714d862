"""The recursive Newton-Euler algorithm: torques of a given motion (Featherstone, chapter 5).

Each link is treated in its own axes, about its own origin. Gravity is a root that accelerates
upwards.
"""

from collections.abc import Callable
from typing import Any, no_type_check

from jaxtyping import Float

from mime.control.kinematics.joints import felt_moments, joint_frames, joint_motions
from mime.control.kinematics.recursion import Walk, walk
from mime.control.kinematics.scalar import Array, Scalar, add, mul, unpack
from mime.control.kinematics.spatial import (
    IDENTITY,
    NO_WRENCH,
    ZERO,
    Frame,
    LinkMotion,
    MassMoments,
    Matrix,
    Motion,
    Vector,
    Wrench,
    link_motion,
)
from mime.control.kinematics.transmission import at_drives, on_joints
from mime.control.kinematics.tree import KinematicTree
from mime.native.straight import kernel_function


@no_type_check
def move_link(parent: LinkMotion, X: Frame, S: Motion, qd: Scalar, qdd: Scalar) -> LinkMotion:
    """A link's motion from its parent's:

        w_i  = Rᵀ w_p + u q̇
        ẇ_i  = Rᵀ ẇ_p + u q̈ + w_i × u q̇
        a_i  = Rᵀ (a_p + A_p r)                       with A = [ẇ]× + [w]×[w]×

    for a revolute joint; a prismatic one leaves w and ẇ alone and adds u q̈ + 2 w_i × u q̇ to a_i
    (Coriolis).
    """
    R, r = X
    w, w_dot, a = R.T @ parent.w, R.T @ parent.w_dot, R.T @ (parent.a + parent.A @ r)
    velocity, acceleration = S * qd, S * qdd
    w_dot = w_dot + acceleration.angular + w.cross(velocity.angular)
    w = w + velocity.angular
    a = a + acceleration.linear + w.cross(velocity.linear) * 2.0
    return link_motion(w, w_dot, a)


def needed_wrenches(
    walk: Walk,
    X: Any,
    S: Any,
    masses: Any,
    qd: Any,
    qdd: Any,
    gravity_world: Array,
    F_ext: Array | None,
) -> Any:
    """The wrench that each link needs for its motion, less what it gets from outside."""

    def move(parent: LinkMotion, mass: MassMoments, *joint: Any) -> tuple[LinkMotion, Wrench]:
        motion = move_link(parent, *joint)
        return motion, mass.inertial_wrench(motion.a, motion.A)

    root = link_motion(ZERO, ZERO, -Vector(unpack(gravity_world, walk.dtype)))
    f = walk.outward(move, root, masses, X, S, walk.to_links(qd), walk.to_links(qdd))
    if F_ext is None:
        return f
    return walk.each(Wrench.__sub__, f, _wrenches_at_link_origins(walk, X, F_ext))


def joint_torques(walk: Walk, X: Any, S: Any, f: Any) -> Any:
    """tau_i = S_i · f_i,   f_p += X_i f_i: from the tips to the root.

    f_i is the wrench that link i and all links beyond it need.
    """

    def carry(beyond: Wrench, X: Frame, S: Motion, f: Wrench) -> tuple[Callable, Scalar]:
        f = f + beyond
        return lambda: X.wrench(f), f.power(S)

    return walk.to_joints(walk.inward(carry, NO_WRENCH, X, S, f))


@kernel_function()
def rnea(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"] | None,
    qdd: Float[Array, " joints"] | None,
    gravity_world: Float[Array, "3"],
    F_ext: Float[Array, "links 6"] | None = None,
) -> Float[Array, " joints"]:
    """τ = M(q) q̈ + c(q, q̇) + g(q) - Σ J_iᵀ F_i: the torques that make the robot move so.

    `qd` and `qdd` may be None, for zero. `F_ext` holds one wrench [F; M] per link, in the root's
    axes, at the link's own `<inertial>` origin. Joint friction is not included; rotors are.
    """
    return motion_torques(tree, q, qd, qdd, gravity_world, F_ext)


def motion_torques(
    tree: KinematicTree,
    q: Array,
    qd: Array | None,
    qdd: Array | None,
    gravity_world: Array,
    F_ext: Array | None = None,
) -> Array:
    """The same as a part of a program that is being traced."""
    links = walk(tree, q, qd, qdd, gravity_world, F_ext)
    X, S = joint_frames(links, q), joint_motions(links)
    v, a = links.joint_table(qd), links.joint_table(qdd)
    f = needed_wrenches(links, X, S, felt_moments(links), v, a, gravity_world, F_ext)
    tau = joint_torques(links, X, S, f)
    of_rotors = links.each(mul, links.joint_table(tree.drive_inertia), at_drives(links, a))
    tau = links.each(add, tau, on_joints(links, of_rotors))
    return links.array(tau, q, qd, qdd)


@kernel_function()
def gravity_vector(
    tree: KinematicTree, q: Float[Array, " joints"], gravity_world: Float[Array, "3"]
) -> Float[Array, " joints"]:
    """g(q): the torques that hold the robot still."""
    return rnea(tree, q, None, None, gravity_world)


@kernel_function()
def nonlinear_bias(
    tree: KinematicTree,
    q: Float[Array, " joints"],
    qd: Float[Array, " joints"],
    gravity_world: Float[Array, "3"],
) -> Float[Array, " joints"]:
    """c(q, q̇) + g(q): centrifugal, Coriolis and gravity torques."""
    return rnea(tree, q, qd, None, gravity_world)


def _wrenches_at_link_origins(walk: Walk, X: Any, F_ext: Array) -> Any:
    """Wrenches in world axes at the `<inertial>` origins, in link axes at the links' origins."""

    def turn(R_parent: Matrix, X: Frame, origin: list, F: list) -> tuple[Matrix, Wrench]:
        R = R_parent @ X.R
        force, moment = R.T @ Vector(F[:3]), R.T @ Vector(F[3:])
        return R, Wrench(force, moment + Vector(origin).cross(force))

    origins = walk.link_table(walk.tree.inertial_origins)
    return walk.outward(turn, IDENTITY, X, origins, walk.link_table(F_ext))
