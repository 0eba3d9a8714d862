"""Poses as MJCF and URDF write them."""

import numpy as np

# cos(pi/2) comes out as 6e-17 and sin(pi) as 1.2e-16; products of three rotations carry a few times
# that. A value that an author can have meant is further off: pi written with 14 decimals already
# gives 3e-15, and is left alone.
ROUNDING = 1e-15


def without_rounding(R: np.ndarray) -> np.ndarray:
    """R with entries within rounding of 0 and ±1 set to them, so that they fold."""
    nearest = np.round(R)
    return np.where(np.abs(R - nearest) < ROUNDING, nearest, R) + 0.0


def pose_matrix(pos: np.ndarray, quat: np.ndarray) -> np.ndarray:
    """4x4 of MuJoCo's pos and quat [w x y z]."""
    w, x, y, z = np.asarray(quat, float)
    T = np.eye(4)
    T[:3, :3] = without_rounding(
        np.array(
            [
                [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
            ]
        )
    )
    T[:3, 3] = pos
    return T


def shift(vector: np.ndarray) -> np.ndarray:
    """4x4 of a shift."""
    T = np.eye(4)
    T[:3, 3] = vector
    return T


def moved(axis: np.ndarray, q: float, slides: bool) -> np.ndarray:
    """4x4 of a joint at q: the identity at 0, where MuJoCo's `ref` may not be."""
    if q == 0.0:
        return np.eye(4)
    if slides:
        return shift(axis * q)
    return pose_matrix(np.zeros(3), np.array([np.cos(0.5 * q), *(np.sin(0.5 * q) * axis)]))


def rpy_of(R: np.ndarray) -> tuple[float, float, float]:
    """Roll, pitch and yaw of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    level = float(np.hypot(R[0, 0], R[1, 0]))
    pitch = float(np.arctan2(-R[2, 0], level))
    if level < 1e-9:  # looking straight up: roll and yaw are one turn
        return float(np.arctan2(-R[1, 2], R[1, 1])), pitch, 0.0
    return float(np.arctan2(R[2, 1], R[2, 2])), pitch, float(np.arctan2(R[1, 0], R[0, 0]))


def quaternion(R: np.ndarray) -> np.ndarray:
    """[w x y z] of a rotation, by its largest component, which keeps all digits."""
    trace = np.trace(R)
    squares = np.array([trace, *(2 * np.diag(R) - trace)])
    k = int(np.argmax(squares))
    q = np.empty(4)
    if k == 0:
        q = np.array([1 + trace, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    else:
        i, j, l = k - 1, k % 3, (k + 1) % 3
        q[0] = R[l, j] - R[j, l]
        q[k], q[j + 1], q[l + 1] = 1 + squares[k], R[j, i] + R[i, j], R[l, i] + R[i, l]
    return q / np.linalg.norm(q)
