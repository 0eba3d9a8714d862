"""The torques that a motion takes: an arm's equation of motion, solved for its command."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.control.kinematics.rnea import motion_torques
from mime.nodes.actuation.robot_arm import forces
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters


def commanded_torques(
    arm: RobotArmParameters, q: Float[Array, " n"], qd: Float[Array, " n"], qdd: Float[Array, " n"]
) -> Float[Array, " n"]:
    """tau_cmd = M(q) q̈ + c(q, q̇) + g(q) - g_c(q) + f q̇ + tau_c sign(q̇) + k (q - q0), N·m or N.

    Of rigid joints on a fixed base, with nothing but gravity from outside. M has the armature.
    """
    tau: Any = jnp.asarray(motion_torques(arm.loaded_tree, q, qd, qdd, forces.gravity_base(arm)))
    tau = tau + jnp.asarray(arm.joint_friction_n_m_s, q.dtype) * qd
    if arm.coulomb_friction_n_m is not None:
        tau = tau + jnp.asarray(arm.coulomb_friction_n_m, q.dtype) * jnp.sign(qd)
    return tau - forces.spring_torques(arm.tree, q) - forces.compensation(arm, q)
