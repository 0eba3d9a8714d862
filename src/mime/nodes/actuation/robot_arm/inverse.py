"""The torques that a motion takes: an arm's equation of motion, solved for its command."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.control import drives
from mime.control.kinematics.rnea import motion_torques
from mime.nodes.actuation.friction import DryFriction, Load
from mime.nodes.actuation.robot_arm import forces
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters

_ROUNDS = 12
"""Of friction that takes half of the torque they leave 1e-4, and Newton's steps nothing."""


def commanded_torques(
    arm: RobotArmParameters, q: Float[Array, " n"], qd: Float[Array, " n"], qdd: Float[Array, " n"]
) -> Float[Array, " n"]:
    """tau_cmd = M(q) q̈ + c(q, q̇) + g(q) - g_c(q) + Cᵀ (f u + tau_f sign u) + k (q - q0),  u = C q̇.

    Friction by load is that of the torque itself, tau = rest + tau_f(tau) sign u, which one torque
    of each drive solves. N·m or N, of rigid joints on a fixed base, with nothing but gravity from
    outside. M has the rotors; C is the tree's `drive_coupling`, 1 where each drive moves its joint.
    """
    tau: Any = jnp.asarray(motion_torques(arm.loaded_tree, q, qd, qdd, forces.gravity_base(arm)))
    u = drives.of_joints(arm.tree, qd)
    rubbed = jnp.asarray(arm.joint_friction_n_m_s, q.dtype) * u
    if arm.friction is not None and not arm.friction.by_load:
        rubbed = rubbed + arm.friction.torque(u) * jnp.sign(u)
    tau = tau + drives.on_joints(arm.tree, rubbed)
    tau = tau - forces.spring_torques(arm.tree, q) - forces.compensation(arm, q)
    if arm.friction is None or not arm.friction.by_load:
        return tau
    gravity, still = forces.gravity_base(arm), jnp.zeros_like(q)
    external = -jnp.asarray(motion_torques(arm.loaded_tree, q, qd, still, gravity))
    external = external + forces.spring_torques(arm.tree, q)
    if arm.tree.compensated_masses is not None:
        external = external + forces.passive_compensation(arm, q)
    of_actuators = forces.actuator_compensation(arm, q)
    rest = drives.torques_of(arm.tree, tau + of_actuators)
    motor = _with_friction(arm.friction, u, rest, drives.torques_of(arm.tree, external))
    return drives.on_joints(arm.tree, motor) - of_actuators


def _with_friction(friction: DryFriction, u: Array, rest: Array, external: Array) -> Array:
    """tau = rest + tau_f(tau) sign u

    The right side has a slope below 1 by tau: putting tau in its place again and again goes to the
    one solution. Newton's method then ends on it, as the right side is straight but for two kinks
    and the quadratic terms; its last step has the slopes by all that the torque depends on.
    """

    def missing(tau: Array, given: Any) -> Array:
        friction, u, rest, external = given
        way = jnp.sign(u)
        return rest + way * friction.largest(u, way, Load(tau, external)) - tau

    def newton(tau: Array, given: Any) -> Array:
        off, slope = jax.jvp(lambda x: missing(x, given), (tau,), (jnp.ones_like(tau),))
        return tau - off / jnp.minimum(slope, -0.05)  # finite where a search tries too much

    given = friction, u, rest, external
    held = jax.lax.stop_gradient(given)
    tau = jax.lax.fori_loop(0, _ROUNDS, lambda _, x: x + missing(x, held), held[2])
    tau = jax.lax.fori_loop(0, 3, lambda _, x: newton(x, held), tau)
    return newton(tau, given)
