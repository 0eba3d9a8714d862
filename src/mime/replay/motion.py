"""Where the frames of a drawing are, in NumPy: for still pictures, and to hold the page to.

T_world_frame = T_world_parent · pose · turn(axis, θ) · slide(axis, d)
"""

from collections.abc import Callable

import numpy as np

from mime.control.kinematics.poses import pose_matrix
from mime.core.drawing import Drawing, Frame, Numbers, Value

Read = Callable[[Value, int], float]
"""A value, or the one so many components further; NaN where there is none."""


def world_matrices(drawing: Drawing, read: Read) -> dict[str, np.ndarray]:
    """The 4x4 of every frame in the world, by name; that of "" is the world's own."""
    found = {"": np.eye(4)}
    for frame in drawing.frames:
        found[frame.name] = found[frame.parent] @ _local(frame, read)
    return found


def matrix_of(pose: Numbers) -> np.ndarray:
    """4x4 of [x y z qw qx qy qz], whatever the quaternion's length."""
    q = np.asarray(pose[3:7], float)
    return pose_matrix(np.asarray(pose[:3], float), q / np.linalg.norm(q))


def _local(frame: Frame, read: Read) -> np.ndarray:
    pose = frame.pose
    if frame.follow is not None:
        x = [read(frame.follow, i) for i in range(3 if frame.planar else 7)]
        if np.isfinite(x).all():
            half = 0.5 * x[2]
            flat = (x[0], x[1], 0.0, np.cos(half), 0.0, 0.0, np.sin(half))
            pose = flat if frame.planar else tuple(x)
    for value, first, count in ((frame.place, 0, 3), (frame.orient, 3, 4)):
        x = [] if value is None else [read(value, i) for i in range(count)]
        if x and np.isfinite(x).all():
            pose = (*pose[:first], *x, *pose[first + count :])
    T = matrix_of(pose)
    axis = np.asarray(frame.axis, float)
    if frame.turn is not None and np.isfinite(q := read(frame.turn, 0)):
        T = T @ _turn(axis, q)
    if frame.slide is not None and np.isfinite(d := read(frame.slide, 0)):
        T = T.copy()
        T[:3, 3] += T[:3, :3] @ (axis * d)
    return T


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    half = 0.5 * angle
    return pose_matrix(np.zeros(3), np.array([np.cos(half), *(np.sin(half) * axis)]))
