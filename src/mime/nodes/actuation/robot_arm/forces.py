"""What pushes on an arm: commands, friction, wrenches from outside, gravity, stops."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control import drives
from mime.control.base_frame import may_be_nonzero, to_base
from mime.control.kinematics import KinematicTree, compensating_torques, frame_jacobian_at, rnea
from mime.control.kinematics.compensation import by_actuators
from mime.control.servo_lines import ServoLaw
from mime.core.node import Values
from mime.nodes.actuation.friction import Load
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters


def driving_torques(
    arm: RobotArmParameters, q: Array, inputs: Values, rotor_velocities: Array
) -> Array:
    """tau_cmd - Cᵀ f C θ̇ (N,), the command saturated if asked for; θ̇ is q̇ of a rigid joint.

    Where actuators bear weight, the command has that too. A servo takes the command within its own
    limits: then only the friction is left.
    """
    tau = actuator_torques(arm, q, inputs)
    f = arm.joint_friction_n_m_s
    if not may_be_nonzero(f):
        return tau
    u = drives.of_joints(arm.tree, rotor_velocities)
    return tau - drives.on_joints(arm.tree, jnp.asarray(f, tau.dtype) * u)


def actuator_torques(arm: RobotArmParameters, q: Array, inputs: Values) -> Array:
    """tau_cmd (N,), saturated if asked for; 0 of an arm with a servo."""
    tau = jnp.asarray(inputs["commanded_joint_torques"], q.dtype)
    if arm.servo is not None:
        return jnp.zeros_like(tau)
    if arm.tree.actuator_compensated_joints:
        tau = tau + actuator_compensation(arm, q)
    if arm.saturate_effort:
        limit = jnp.asarray(arm.tree.effort_limits, tau.dtype)
        given = jnp.clip(drives.torques_of(arm.tree, tau), -limit, limit)
        tau = drives.on_joints(arm.tree, given)
    return tau


def implicit_friction(arm: RobotArmParameters, dt: Any, dtype: Any) -> Any:
    """dt f (N,), by which friction taken at the end of a step resists a drive; None if nothing."""
    if arm.integrator == "implicit" and may_be_nonzero(arm.joint_friction_n_m_s):
        return dt * jnp.asarray(arm.joint_friction_n_m_s, dtype)
    return None


def servo_pull(arm: RobotArmParameters, q: Array, rotors: Array, inputs: Values) -> Array:
    """What the servo would give at rest, without limits (N,), at the drives.

    Its feed-forward is what is left of gravity; where actuators bear weight, the servo does.
    """
    assert arm.servo is not None, "asked only of an arm that has one"
    b = arm.servo.pull(arm.loaded_tree, q, rotors, inputs, gravity_base(arm))
    if arm.tree.compensated_masses is None:
        return b
    if arm.servo.gravity_compensation:
        return b - drives.torques_of(arm.tree, passive_compensation(arm, q))
    return b + drives.torques_of(arm.tree, actuator_compensation(arm, q))


def dry_friction(
    arm: RobotArmParameters,
    q: Array,
    rotor_velocities: Array,
    inputs: Values,
    law: ServoLaw | None,
    external: Callable[[], Any],
) -> tuple[Any, Any]:
    """tau_f (N,) of each drive over a step, and what comes to the torques on the joints.

    Each None where there is none. `external` gives the torques (N,) of all but the actuators,
    friction and inertia, and is asked only for friction by load. Where that takes F from a motion
    forward and B from one backward, it takes (F + B) / 2 from either, and (B - F) / 2 is added.
    The load is the command's; a servo's is that at the velocity before the step.
    """
    if arm.friction is None:
        return None, None
    u = drives.of_joints(arm.tree, rotor_velocities)
    if not arm.friction.by_load:
        return arm.friction.torque(u), None
    if law is None:
        motor = drives.torques_of(arm.tree, actuator_torques(arm, q, inputs))
    else:
        motor = jnp.clip(law.b - law.K * u, -law.T, law.T)
    load = Load(motor, drives.torques_of(arm.tree, external()))
    forward, backward = (arm.friction.largest(u, way, load) for way in (1.0, -1.0))
    return 0.5 * (forward + backward), drives.on_joints(arm.tree, 0.5 * (backward - forward))


def servo_law(
    arm: RobotArmParameters, q: Array, rotors: Array, inputs: Values, dt: Any
) -> ServoLaw:
    """The servo of each drive over the velocity at the end of the step."""
    assert arm.servo is not None, "asked only of an arm that has one"
    b = servo_pull(arm, q, rotors, inputs)
    return arm.servo.law(arm.tree, b, dt)


def servo_torques_now(
    arm: RobotArmParameters, q: Array, rotors: Array, velocities: Array, inputs: Values
) -> Array:
    """The servo's torques on the joints at an instant: limited, but not by their speed."""
    assert arm.servo is not None, "asked only of an arm that has one"
    T, _ = arm.servo.limits(arm.tree, q.dtype)
    kd = jnp.asarray(arm.servo.kd, q.dtype)
    b = servo_pull(arm, q, rotors, inputs)
    tau = jnp.clip(b - kd * drives.of_joints(arm.tree, velocities), -T, T)
    return drives.on_joints(arm.tree, tau)


def gravity_base(arm: RobotArmParameters) -> Any:
    """Gravity in the axes of the base."""
    return to_base(arm.base_pose_world, arm.gravity_world)


def wrenches_base(arm: RobotArmParameters, inputs: Values) -> Any:
    """World wrenches on the links in the axes of the base; None when there are none."""
    wrenches = inputs["external_wrenches_per_link"]
    if not may_be_nonzero(wrenches):
        return None
    pairs = jnp.reshape(wrenches, (-1, 3))
    turned = jax.vmap(lambda v: to_base(arm.base_pose_world, v))(pairs)
    return jnp.reshape(turned, (-1, 6))


def link_torques(arm: RobotArmParameters, q: Array, inputs: Values) -> Any:
    """J_tipᵀ F - k (q - q0) + g_c (N,), on the links whatever drives them; a plain 0 without any.

    g_c is what is compensated of gravity, at joints whose actuators do not give it.
    """
    tau = tool_torques(arm, q, inputs) + spring_torques(arm.tree, q)
    if arm.tree.compensated_masses is None:
        return tau
    return tau + passive_compensation(arm, q)


def spring_torques(tree: KinematicTree, q: Array) -> Any:
    """-k (q - q0) (N,) of the springs beside the joints; a plain 0 when there are none."""
    k, rest = tree.spring_stiffness_n_m_per_rad, tree.spring_reference_rad
    if k is None or not may_be_nonzero(k):
        return 0.0
    stretch = q if rest is None else q - jnp.asarray(rest, q.dtype)
    return -jnp.asarray(k, q.dtype) * stretch


def compensation(arm: RobotArmParameters, q: Array) -> Any:
    """g_c(q) (N,), what is compensated of gravity; a plain 0 where nothing is."""
    if arm.tree.compensated_masses is None:
        return 0.0
    return jnp.asarray(compensating_torques(arm.tree, q, gravity_base(arm)))


def actuator_compensation(arm: RobotArmParameters, q: Array) -> Any:
    """The same at joints whose actuators give it, and 0 at all others."""
    theirs = by_actuators(arm.tree)
    return jnp.where(theirs, compensation(arm, q), 0) if theirs.any() else 0.0


def passive_compensation(arm: RobotArmParameters, q: Array) -> Any:
    """The same at all joints but those."""
    theirs = by_actuators(arm.tree)
    if theirs.all() and len(theirs):
        return 0.0
    return jnp.where(theirs, 0, compensation(arm, q)) if theirs.any() else compensation(arm, q)


def tool_torques(arm: RobotArmParameters, q: Array, inputs: Values) -> Any:
    """Σ Jᵀ F (N,) for wrenches at the tool tip and at named frames; a plain 0 without any."""
    tau: Any = 0.0
    tip = inputs["end_effector_wrench_world"]
    if may_be_nonzero(tip):
        point = arm.end_effector_offset_in_link[:3]
        tau = _frame_torques(arm, q, arm.end_effector_link_name, point, tip)
    if arm.wrench_frames and may_be_nonzero(inputs["external_wrenches_at_frames"]):
        for k, frame in enumerate(arm.wrench_frames):
            wrench = inputs["external_wrenches_at_frames"][k]
            tau = tau + _frame_torques(arm, q, frame, None, wrench)
    return tau


def _frame_torques(
    arm: RobotArmParameters, q: Array, frame: str, point: Any, wrench_world: Any
) -> Array:
    J = frame_jacobian_at(arm.tree, q, frame, point)
    parts = (wrench_world[:3], wrench_world[3:])
    force, moment = (to_base(arm.base_pose_world, part) for part in parts)
    return jnp.asarray(J).T @ jnp.concatenate([force, moment])


def soft_stops(arm: RobotArmParameters, q: Array, qd: Array, dt: Any) -> tuple[Array, Array]:
    """tau = -k (q' - limit) - d q̇' beyond a limit: the push now, and what M gains."""
    lower, upper = limits(arm, q.dtype)
    beyond = jnp.where(q < lower, q - lower, jnp.where(q > upper, q - upper, 0))
    k, d = arm.limit_stiffness_n_m_per_rad, arm.limit_damping_n_m_s
    touching = (beyond != 0).astype(q.dtype)
    rate = (k * dt + d) * touching
    return -k * beyond - rate * qd, rate * dt


def limits(arm: RobotArmParameters, dtype: Any) -> tuple[Array, Array]:
    """Lower and upper (N,)."""
    both = arm.tree.joint_limits
    return jnp.asarray(both[:, 0], dtype), jnp.asarray(both[:, 1], dtype)


def wrench_to_joint_torques(
    tree: KinematicTree, q: Float[Array, " n"], wrenches_base: Float[Array, "links 6"]
) -> Float[Array, " n"]:
    """Σ J_iᵀ F_i, by one inward pass of the Newton-Euler algorithm."""
    return -jnp.asarray(rnea(tree, q, None, None, np.zeros(3), wrenches_base))
