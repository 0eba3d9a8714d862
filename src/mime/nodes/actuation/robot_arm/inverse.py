"""The torques that a motion takes: an arm's equation of motion, solved for its command."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.control import drives
from mime.control.kinematics.rnea import motion_torques
from mime.nodes.actuation.robot_arm import forces
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters


def commanded_torques(
    arm: RobotArmParameters, q: Float[Array, " n"], qd: Float[Array, " n"], qdd: Float[Array, " n"]
) -> Float[Array, " n"]:
    """tau_cmd = M(q) q̈ + c(q, q̇) + g(q) - g_c(q) + Cᵀ (f u + tau_f sign u) + k (q - q0),  u = C q̇.

    N·m or N, of rigid joints on a fixed base, with nothing but gravity from outside. M has the
    rotors; C is the tree's `drive_coupling`, 1 where each drive moves its own joint.
    """
    tau: Any = jnp.asarray(motion_torques(arm.loaded_tree, q, qd, qdd, forces.gravity_base(arm)))
    u = drives.of_joints(arm.tree, qd)
    rubbed = jnp.asarray(arm.joint_friction_n_m_s, q.dtype) * u
    if arm.friction is not None:
        rubbed = rubbed + arm.friction.torque(u) * jnp.sign(u)
    tau = tau + drives.on_joints(arm.tree, rubbed)
    return tau - forces.spring_torques(arm.tree, q) - forces.compensation(arm, q)
