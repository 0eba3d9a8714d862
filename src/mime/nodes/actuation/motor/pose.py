"""P_rotor_world = P_parent_world + R(axis, theta) + P_tool_rotor: where the tool is."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import ParameterError
from mime.core.pose import Pose, Quat, Vec3, compose, quat_from_axis_angle, quat_rotate
from mime.core.pose import Scalar as Angle


def _quat_from_axis_angle(axis: Vec3, angle: Angle) -> Float[Array, "4"]:
    """[cos(angle / 2), sin(angle / 2) axis / |axis|], angle in rad."""
    _refuse_zero("axis", axis)
    return quat_from_axis_angle(axis, angle)


def compose_pose(parent_pose: Pose, axis: Vec3, angle: Angle, tool_pose: Pose) -> Float[Array, "7"]:
    """pose_world_tool = pose_world_parent + R(axis, angle) + pose_rotor_tool.

    Poses are `[x, y, z, qw, qx, qy, qz]` with unit quaternions; `axis` is in the parent's frame.
    """
    _refuse_zero("parent_pose's quaternion", _quaternion(parent_pose))
    _refuse_zero("tool_pose's quaternion", _quaternion(tool_pose))
    quaternion = _quat_from_axis_angle(axis, angle)
    pose_parent_rotor = jnp.concatenate([jnp.zeros(3, quaternion.dtype), quaternion])
    return compose(parent_pose, compose(pose_parent_rotor, tool_pose))


def axis_in_world(parent_pose: Pose, axis: Float[Array, "3"]) -> Float[Array, "3"]:
    """The spin axis as a unit vector in world axes: R(q_parent) axis / |axis|."""
    return quat_rotate(_quaternion(parent_pose), axis / jnp.sqrt(jnp.sum(axis * axis)))


def _quaternion(pose: Any) -> Any:
    return pose[3:]


def _refuse_zero(what: str, value: Quat | Vec3) -> None:
    parts = value if isinstance(value, tuple) else (value,)
    traced = any(isinstance(part, jax.core.Tracer) for part in parts)
    if not traced and np.linalg.norm(np.asarray(value, dtype=float)) < 1e-6:
        raise ParameterError(f"{what} must have a length > 0, got {value}")
