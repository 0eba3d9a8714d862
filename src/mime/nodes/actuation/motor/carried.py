"""A rotor on a parent that moves: what it feels of that motion, and all that the parent feels.

    J (dW/dt + a^ . dw/dt) = tau + a^ . (M_tool + r x F_tool - M_imbalance) - b W
    F_parent = F_tool - F_imbalance
    M_parent = M_tool + r x F_tool - J (W + a^ . w) w x a^ - M_imbalance     (across the axis)
    M_parent . a^ = -(tau - b W)

W is the rotor's speed on its parent, w the parent's angular velocity and a^ the axis; r goes from
the mount to the tool. J (W + a^ . w) a^ is the momentum of all that turns, and its change with the
axis is the gyroscopic moment. The rotor's mass and its inertia across the axis are not in here:
they move as the parent does, and belong to what the parent carries (`RotorStage.payload`), since
a mass that is fed back along a delayed edge is unstable. Its inertia about the axis is J alone: the
bearing does not hold it, so that the parent feels none of it.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.pose import compose, quat_from_axis_angle, quat_rotate, quat_to_matrix
from mime.nodes.actuation.motor.drive import Fields
from mime.nodes.actuation.motor.parameters import MotorParameters


def axis_in_world(parent_pose: Any, axis: Float[Array, "3"]) -> Float[Array, "3"]:
    """The spin axis as a unit vector in world axes: R(q_parent) axis / |axis|."""
    return quat_rotate(parent_pose[3:], axis / jnp.sqrt(jnp.sum(axis * axis)))


def load_torque(
    motor: MotorParameters, theta: Any, speed: Any, u: Fields, acceleration: Array
) -> Any:
    """All torque about the axis that is not the motor's; `acceleration` is [a; dw/dt] of the mount.

    Of an imbalance that is all but what it takes to speed it up, which D's zero about the axis
    leaves at nothing.
    """
    axis = axis_in_world(u["parent_pose_world"], motor.axis_in_parent_frame)
    _, moment = _tool(motor, theta, u)
    moment = moment - motor.inertia_kg_m2 * acceleration[3:]
    if motor.imbalance is not None:
        _, M = _imbalance(motor, theta, speed, jnp.zeros_like(speed), u, acceleration)
        moment = moment - M
    return u["load_torque"] + axis @ moment


def reaction_wrench(
    motor: MotorParameters,
    theta: Any,
    speed: Any,
    speed_dot: Any,
    reaction_torque: Any,
    u: Fields,
    acceleration: Array | None,
) -> Float[Array, "6"]:
    """[F; M] on the parent in world axes, at the mount; the acceleration is for an imbalance."""
    axis = axis_in_world(u["parent_pose_world"], motor.axis_in_parent_frame)
    w = u["parent_twist_world"][3:]
    force, moment = _tool(motor, theta, u)
    moment = moment - motor.inertia_kg_m2 * (speed + axis @ w) * jnp.cross(w, axis)
    if motor.imbalance is not None and acceleration is not None:
        F, M = _imbalance(motor, theta, speed, speed_dot, u, acceleration)
        force, moment = force - F, moment - M
    moment = moment + axis * (reaction_torque - axis @ moment)
    return jnp.concatenate([force, moment])


def _tool(motor: MotorParameters, theta: Any, u: Fields) -> tuple[Array | np.ndarray, Array]:
    """F and M of the wrench on the tool, at the mount."""
    force, moment = u["tool_wrench_world"][:3], u["tool_wrench_world"][3:]
    tool = compose(_rotor_pose(motor, theta, u), motor.tool_offset_in_rotor_frame)
    arm = tool[:3] - u["parent_pose_world"][:3]
    return force, moment + jnp.cross(arm, force)


def _imbalance(
    motor: MotorParameters, theta: Any, speed: Any, speed_dot: Any, u: Fields, acceleration: Array
) -> tuple[Array, Array]:
    assert motor.imbalance is not None, "asked only of a rotor that has one"
    axis = axis_in_world(u["parent_pose_world"], motor.axis_in_parent_frame)
    parent = u["parent_twist_world"][3:]
    w = parent + speed * axis
    w_dot = acceleration[3:] + speed_dot * axis + speed * jnp.cross(parent, axis)
    R_world_rotor = quat_to_matrix(_rotor_pose(motor, theta, u)[3:])
    return motor.imbalance.wrench(R_world_rotor, w, w_dot, acceleration[:3])


def _rotor_pose(motor: MotorParameters, theta: Any, u: Fields) -> Array:
    turn = quat_from_axis_angle(motor.axis_in_parent_frame, theta)
    return compose(u["parent_pose_world"], jnp.concatenate([jnp.zeros(3, turn.dtype), turn]))
