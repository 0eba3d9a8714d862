"""Weight that something bears: springs, counterweights, or the motors themselves (MJCF `gravcomp`).

    tau_c(q) = g_c(q)

is the gravity vector of the compensated masses, m_c = Σ c_k m_k with moments Σ c_k m_k r_k and no
inertia: the torques of MuJoCo's forces -c m g at the centres of mass.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from mime.control.kinematics.floating import at_base, with_base_joints
from mime.control.kinematics.joints import felt_moments, joint_frames, joint_motions
from mime.control.kinematics.recursion import Walk, walk
from mime.control.kinematics.rnea import joint_torques, needed_wrenches
from mime.control.kinematics.scalar import Array, Scalar
from mime.control.kinematics.spatial import ZERO, MassMoments, Matrix, Vector
from mime.control.kinematics.tree import KinematicTree
from mime.native.straight import kernel_function


@kernel_function()
def compensating_torques(
    tree: KinematicTree, q: Float[Array, " joints"], gravity_world: Float[Array, "3"]
) -> Float[Array, " forces"]:
    """g_c(q): what the compensation of weight adds to the joints, in N·m or N; mostly zeros.

    It is not part of `rnea`, `nonlinear_bias` and `forward_dynamics`: add it to `tau` there, as
    `RobotArmNode` does. It includes joints whose actuators give it; the actuators' limits do not
    matter here.

    Args:
        tree: Its `compensated_masses` and `compensated_moments` count, and no other mass.
        q: (N,) joint angles.
        gravity_world: (3,) m/s², in the axes of the root.

    Returns:
        (N,) on the joints. With a floating base (6 + N,), [F; N; tau] as in `floating_rnea`: the
        force and the moment on the base come first, in its axes at its origin.

    """
    if tree.base == "floating":
        tree, q = with_base_joints(tree), at_base(q)
    links = walk(tree, q, gravity_world)
    X, S = joint_frames(links, q), joint_motions(links)
    still = links.joint_table(None)
    masses = felt_moments(links, _compensated_moments(links))
    f = needed_wrenches(links, X, S, masses, still, still, gravity_world, None)
    return links.array(joint_torques(links, X, S, f), q)


def _compensated_moments(walk: Walk) -> Any:
    masses: Any = walk.tree.compensated_masses
    moments: Any = walk.tree.compensated_moments
    if masses is None:
        masses, moments = np.zeros(walk.tree.num_links), np.zeros((walk.tree.num_links, 3))
    return walk.each(_without_inertia, walk.link_table(masses), walk.link_table(moments))


def _without_inertia(mass: Scalar, moment: list) -> MassMoments:
    return MassMoments(mass, Vector(moment), Matrix([ZERO] * 3))


def by_actuators(tree: KinematicTree) -> Bool[np.ndarray, " joints"]:
    """True at joints whose actuators give the compensation."""
    return np.isin(tree.joint_names, tree.actuator_compensated_joints)
