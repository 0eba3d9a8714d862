"""Forward dynamics: the accelerations that given torques cause.

Two algorithms, each in its own file: the mass matrix with a sparse LᵀDL, and articulated bodies.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
from jaxtyping import Float

from mime.control.kinematics.aba import solve_articulated
from mime.control.kinematics.crba import joint_momenta, lower_triangle
from mime.control.kinematics.joints import felt_moments, joint_frames, joint_motions, mass_moments
from mime.control.kinematics.joints_without_inertia import refuse_joints_without_inertia
from mime.control.kinematics.ltdl import solve_ltdl
from mime.control.kinematics.recursion import Loops, Unrolled, Walk, walk
from mime.control.kinematics.rnea import joint_torques, motion_torques, needed_wrenches
from mime.control.kinematics.scalar import Array, add, sub
from mime.control.kinematics.spatial import NO_WRENCH
from mime.control.kinematics.tree import KinematicTree, path_to_root
from mime.native.folding import Constants, split
from mime.native.jaxprs import kept
from mime.native.straight import kernel_function


@kernel_function()
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
    of M: implicit friction f over a step dt is `diagonal = f·dt`, an extra rotor gear² · inertia.

    Raises:
        InputError: `joints_without_inertia` has some, so that M is singular at every q.

    """
    refuse_joints_without_inertia(tree, diagonal)
    constants, variables = split(Given(tree, q, qd, tau, gravity_world, F_ext, diagonal))
    if not variables:  # NumPy arrays only: Python itself computes
        return _accelerations(constants.merge([]))
    return _solved(constants, variables)


class Given(NamedTuple):
    """The arguments of `forward_dynamics`."""

    tree: KinematicTree
    q: Array
    qd: Array | None
    tau: Array
    gravity_world: Array | None
    F_ext: Array | None = None
    diagonal: Array | None = None


def _accelerations(given: Given) -> Array:
    tree, q, qd, tau, gravity_world, F_ext, diagonal = given
    links = walk(*given)
    X, S = joint_frames(links, q), joint_motions(links)
    if gravity_world is None:
        p = links.each(lambda _: NO_WRENCH, S)
    else:
        rates, still = links.joint_table(qd), links.joint_table(None)
        p = needed_wrenches(links, X, S, felt_moments(links), rates, still, gravity_world, F_ext)
    if isinstance(links, Loops) or articulated_bodies_are_fewer_operations(tree):
        qdd = by_articulated_bodies(links, X, S, p, tau, diagonal)
    else:
        qdd = by_mass_matrix(links, X, S, p, tau, diagonal)
    return links.array(qdd, q, qd, tau)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solved(constants: Constants, variables: list[Any]) -> Array:
    """q̈ of the arguments, split into what is known now and what varies."""
    return _accelerations(constants.merge(variables))


@_solved.defjvp
def _change(
    constants: Constants, primals: tuple[list[Any]], tangents: tuple[list[Any]]
) -> tuple[Array, Array]:
    """M dq̈ = dtau - d(M q̈ + c + g - Σ J_iᵀ F_i), with q̈ held on the right.

    The equations of motion are differentiated, and not the algorithm that solves them: torques take
    fewer operations than accelerations, and the same M serves both systems.
    """
    qdd = kept(_solved(constants, *primals))

    def missing(variables: list[Any]) -> Array:
        tree, q, qd, tau, gravity_world, F_ext, diagonal = constants.merge(variables)
        needed = motion_torques(tree, q, qd, qdd, gravity_world, F_ext)
        return tau - needed if diagonal is None else tau - needed - diagonal * qdd

    _, change = jax.jvp(missing, primals, tangents)
    given = constants.merge(*primals)
    alone = given._replace(qd=None, tau=change, gravity_world=None, F_ext=None)
    return qdd, _accelerations(alone)


def by_mass_matrix(
    walk: Unrolled, X: list, S: list, p: list, tau: Array, diagonal: Array | None
) -> list:
    """q̈ by M = LᵀDL, where the links need the wrenches p when q̈ = 0; of any tree."""
    M = lower_triangle(walk, X, S, joint_momenta(walk, X, S, felt_moments(walk)))
    for c, extra in enumerate(walk.joint_table(diagonal)):
        M[c][c] = add(M[c][c], extra)
    rest = walk.each(sub, walk.joint_table(tau), joint_torques(walk, X, S, p))
    return solve_ltdl(M, rest)


def by_articulated_bodies(
    walk: Walk, X: Any, S: Any, p: Any, tau: Array, diagonal: Array | None
) -> Any:
    """The same, with as many operations per link for any number of links; without mimics,
    and with a drive for each joint.

    The bodies keep their whole masses, not only what the joints feel: inertias stay positive.
    """
    rotors, extra = walk.joint_table(walk.tree.drive_inertia), walk.joint_table(diagonal)
    resistance = walk.each(add, rotors, extra)
    return solve_articulated(walk, X, S, mass_moments(walk), resistance, walk.joint_table(tau), p)


class Operations(NamedTuple):
    """Operations of a link that hangs on d others: constant + linear d + quadratic d²."""

    constant: int
    linear: int
    quadratic: int

    def of(self, tree: KinematicTree) -> int:
        """A link on the root counts nothing: it has nobody to hand its inertia to."""
        depths = [len(path_to_root(tree, i)) - 1 for i in range(tree.num_links)]
        return sum(self.constant + self.linear * d + self.quadratic * d**2 for d in depths if d)


MASS_MATRIX = Operations(31 + 68 + 2, 25 + 6, 1)
"""`joint_torques` 31, `joint_momenta` 68, `lower_triangle` 25 d, `solve_ltdl` 2 + 6 d + d²."""
ARTICULATED_BODIES = Operations(288 + 39, 0, 0)
"""`release` 288 and `accelerate` 39 of `solve_articulated`.

Both are what JAX traces for a joint about a coordinate axis, offset from its parent in all three
directions; fewer offsets shrink both alike. What the algorithms share is left out.
"""


def articulated_bodies_are_fewer_operations(tree: KinematicTree) -> bool:
    """False for joints that mimic others or share drives, which need the mass matrix."""
    coupled = tree.num_links != tree.num_joints or tree.drive_coupling is not None
    return not coupled and ARTICULATED_BODIES.of(tree) < MASS_MATRIX.of(tree)
