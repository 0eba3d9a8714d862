"""Turns vectors of the world into the axes of a robot's base; known ones fold while tracing."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from mime.core.pose import quat_conjugate, quat_rotate


def to_base(base_pose_world: Any, vector_world: Any) -> Any:
    """A world vector in the axes of the base; NumPy in, NumPy out, so that it still folds."""
    if isinstance(base_pose_world, np.ndarray):
        if not np.any(base_pose_world[4:]):
            return vector_world
        if isinstance(vector_world, np.ndarray):
            return _rotation(base_pose_world[3:]).T @ vector_world
    vector = jnp.asarray(vector_world)
    quat = jnp.asarray(base_pose_world, vector.dtype)[3:]
    return quat_rotate(quat_conjugate(quat), vector)


def from_base(base_pose_world: Any, vector_base: Any) -> Any:
    """A vector in the axes of the base, in those of the world; free where both are the same."""
    if isinstance(base_pose_world, np.ndarray) and not np.any(base_pose_world[4:]):
        return vector_base
    vector = jnp.asarray(vector_base)
    return quat_rotate(jnp.asarray(base_pose_world, vector.dtype)[3:], vector)


def _rotation(quat: np.ndarray) -> np.ndarray:
    w, v = quat[0], quat[1:]
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def may_be_nonzero(value: Any) -> bool:
    """False when a value is known to be zero while tracing: a default input, an absent friction."""
    return not isinstance(value, np.ndarray) or bool(np.any(value))
