"""Forward dynamics: the accelerations that given torques cause.

Two algorithms, each in its own file: the mass matrix with a sparse LᵀDL, and articulated bodies.
"""

from typing import Any, NamedTuple

from jaxtyping import Float

from mime.control.kinematics.aba import solve_articulated
from mime.control.kinematics.crba import joint_momenta, lower_triangle
from mime.control.kinematics.joints import joint_frames, joint_motions, mass_moments
from mime.control.kinematics.ltdl import solve_ltdl
from mime.control.kinematics.recursion import Loops, Unrolled, Walk, walk
from mime.control.kinematics.rnea import joint_torques, needed_wrenches
from mime.control.kinematics.scalar import Array, add, sub
from mime.control.kinematics.tree import KinematicTree, path_to_root


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

    `tau` is the whole torque on the joint, friction included. `diagonal` is added to the diagonal
    of M: implicit friction f over a step dt is `diagonal = f·dt`, an extra rotor is its armature.
    """
    links = walk(tree, q, qd, tau, gravity_world, F_ext, diagonal)
    bodies = isinstance(links, Loops) or articulated_bodies_are_fewer_operations(tree)
    solve = by_articulated_bodies if bodies else by_mass_matrix
    qdd = solve(links, q, qd, tau, gravity_world, F_ext, diagonal)
    return links.array(qdd, q, qd, tau)


def by_mass_matrix(
    walk: Unrolled,
    q: Array,
    qd: Array,
    tau: Array,
    gravity_world: Array,
    F_ext: Array | None,
    diagonal: Array | None,
) -> list:
    """q̈ by M = LᵀDL; any tree."""
    X, S, masses = joint_frames(walk, q), joint_motions(walk), mass_moments(walk)
    v, still = walk.joint_table(qd), walk.joint_table(None)
    p = needed_wrenches(walk, X, S, masses, v, still, gravity_world, F_ext)
    rest = walk.each(sub, walk.joint_table(tau), joint_torques(walk, X, S, p))
    M = lower_triangle(walk, X, S, joint_momenta(walk, X, S, masses))
    for c, extra in enumerate(walk.joint_table(diagonal)):
        M[c][c] = add(M[c][c], extra)
    return solve_ltdl(M, rest)


def by_articulated_bodies(
    walk: Walk,
    q: Array,
    qd: Array,
    tau: Array,
    gravity_world: Array,
    F_ext: Array | None,
    diagonal: Array | None,
) -> Any:
    """q̈ with as many operations per link for any number of links; no joint may mimic another."""
    X, S, masses = joint_frames(walk, q), joint_motions(walk), mass_moments(walk)
    v, still = walk.joint_table(qd), walk.joint_table(None)
    p = needed_wrenches(walk, X, S, masses, v, still, gravity_world, F_ext)
    extra = walk.joint_table(diagonal)
    resistance = walk.each(add, walk.joint_table(walk.tree.armature), extra)
    return solve_articulated(walk, X, S, masses, resistance, walk.joint_table(tau), p)


def articulated_bodies_are_fewer_operations(tree: KinematicTree) -> bool:
    return False
