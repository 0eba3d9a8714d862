"""Arrays that stay NumPy, constants of a program, unless one of their numbers is a variable."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def numpy_or_jax(*values: Any) -> Any:
    """The module that computes with these values: JAX's as soon as one of them is a JAX array."""
    return jnp if any(isinstance(x, jax.Array) for x in values) else np


def stacked(entries: Sequence[Any], like: Any = None) -> Any:
    """The entries along a new first axis; none of them are none of those in `like`."""
    if not entries and like is not None:
        return like[:0]
    xp = numpy_or_jax(*entries)
    return xp.stack([xp.asarray(x) for x in entries])


def number(value: Any) -> Any:
    """A number or nested numbers as an array of floats; JAX arrays as they are."""
    return value if isinstance(value, jax.Array) else np.asarray(value, dtype=float)


def placement(pose: Any) -> Any:
    """T = [[R, p], [0, 1]] (4, 4) of a pose [x y z qw qx qy qz]."""
    xp, pose = numpy_or_jax(pose), number(pose)
    w, u = pose[3], _cross_matrix(xp, pose[4:])
    return _transform(xp, np.eye(3) + 2 * w * u + 2 * u @ u, pose[:3])


def moved(axis: Any, position: Any, slides: bool) -> Any:
    """T (4, 4) of a joint at `position`: a shift along its axis, or a turn about it."""
    xp = numpy_or_jax(axis, position)
    if slides:
        return _transform(xp, np.eye(3), axis * position)
    u = _cross_matrix(xp, axis)
    R = np.eye(3) + xp.sin(position) * u + (1 - xp.cos(position)) * (u @ u)
    return _transform(xp, R, np.zeros(3))


def inverse(T: Any) -> Any:
    """T⁻¹ of a pose: [[Rᵀ, -Rᵀ p], [0, 1]]."""
    R, p = T[:3, :3], T[:3, 3]
    return _transform(numpy_or_jax(T), R.T, -(R.T @ p))


def _transform(xp: Any, R: Any, p: Any) -> Any:
    rows = xp.concatenate([xp.asarray(R), xp.reshape(xp.asarray(p), (3, 1))], axis=1)
    return xp.concatenate([rows, np.array([[0.0, 0.0, 0.0, 1.0]])])


def _cross_matrix(xp: Any, v: Any) -> Any:
    zero = np.zeros(())
    rows = [[zero, -v[2], v[1]], [v[2], zero, -v[0]], [-v[1], v[0], zero]]
    return xp.stack([xp.stack([xp.asarray(x) for x in row]) for row in rows])
