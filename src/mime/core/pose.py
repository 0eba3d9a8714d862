"""Quaternions and poses: pose_a_b = [p, q], and a point maps as point_a = p + R(q) point_b.

Quaternions are Hamilton and scalar-first, `[w, x, y, z]`; a pose is `[x, y, z, qw, qx, qy, qz]`,
metres and a unit quaternion. `pose_a_b` is frame b seen from frame a. Every function takes one
item (`jax.vmap` for more) and keeps its inputs' precision. Quaternions are taken to be of unit
length except where a docstring says otherwise; nothing renormalises behind the caller's back.

The algebra is written out on scalar components between one `unstack` and one `stack`, so that
XLA fuses the whole of it where it computes a graph (see `mime.xla`).
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from mime.xla.stacking import stack_scalars

Scalar = Float[ArrayLike, ""] | int
Vec3 = Float[ArrayLike, "3"] | tuple[Scalar, Scalar, Scalar]
Quat = Float[ArrayLike, "4"] | tuple[Scalar, Scalar, Scalar, Scalar]
Pose = Float[ArrayLike, "7"] | tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]

IDENTITY_QUAT = (1.0, 0.0, 0.0, 0.0)
IDENTITY_POSE = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


def quat_multiply(a: Quat, b: Quat) -> Float[Array, "4"]:
    """a b = [a_w b_w - a_v . b_v, a_w b_v + b_w a_v + a_v x b_v]: rotate by b, then by a."""
    return stack_scalars(_multiply(_parts(a), _parts(b)))


def quat_conjugate(q: Quat) -> Float[Array, "4"]:
    """q* = [w, -x, -y, -z], the inverse of a unit quaternion."""
    return stack_scalars(_conjugate(_parts(q)))


def quat_inverse(q: Quat) -> Float[Array, "4"]:
    """q^-1 = q* / |q|^2, for any q but zero."""
    w, x, y, z = _parts(q)
    scale = 1.0 / (w * w + x * x + y * y + z * z)
    return stack_scalars([w * scale, -x * scale, -y * scale, -z * scale])


def quat_normalize(q: Quat) -> Float[Array, "4"]:
    """q / |q|, for any q but zero, which has no direction and gives NaN."""
    return stack_scalars(_normalize(_parts(q)))


def quat_rotate(q: Quat, v: Vec3) -> Float[Array, "3"]:
    """R(q) v = v + w t + u x t with t = 2 u x v and q = [w, u]."""
    return stack_scalars(_rotate(_parts(q), _parts(v)))


def quat_from_axis_angle(axis: Vec3, angle: Scalar) -> Float[Array, "4"]:
    """q = [cos(angle / 2), sin(angle / 2) axis / |axis|], angle in rad.

    The axis is normalised here, so any length but zero serves; a zero axis gives NaN.
    """
    half = 0.5 * angle
    s = jnp.sin(half)
    return stack_scalars([jnp.cos(half), *(s * c for c in _normalize(_parts(axis)))])


def quat_from_rotation_vector(v: Vec3) -> Float[Array, "4"]:
    """q = exp(v / 2) = [cos(theta / 2), sin(theta / 2) v / theta] with theta = |v| in rad."""
    return stack_scalars(_exp(_parts(v)))


def quat_to_rotation_vector(q: Quat) -> Float[Array, "3"]:
    """v = 2 log(q) = 2 atan2(|u|, w) u / |u| with q = [w, u], in rad, |v| <= pi.

    q and -q give the same v. A half turn has two answers, v and -v: the one whose first nonzero
    component is positive is returned. Any length of q but zero serves.
    """
    return stack_scalars(_log(_parts(q)))


def quat_from_matrix(R: Float[ArrayLike, "3 3"]) -> Float[Array, "4"]:
    """q = K_i / |K_i|, any row i of the symmetric K(R) = 4 q q^T.

    K is linear in R. Of its rows we take one whose diagonal element is at least 1: that is so by
    the signs tested below for any R, orthogonal or not, so the norm is never near zero. The sign
    of q is fixed: its first nonzero component is positive, hence w >= 0.
    """
    m00, m01, m02, m10, m11, m12, m20, m21, m22 = jnp.unstack(jnp.ravel(R))
    wx, wy, wz = m21 - m12, m02 - m20, m10 - m01
    xy, xz, yz = m01 + m10, m02 + m20, m12 + m21
    row_w = stack_scalars([1.0 + m00 + m11 + m22, wx, wy, wz])
    row_x = stack_scalars([wx, 1.0 + m00 - m11 - m22, xy, xz])
    row_y = stack_scalars([wy, xy, 1.0 - m00 + m11 - m22, yz])
    row_z = stack_scalars([wz, xz, yz, 1.0 - m00 - m11 + m22])
    row = jnp.where(
        m22 < 0, jnp.where(m00 > m11, row_x, row_y), jnp.where(m00 < -m11, row_z, row_w)
    )
    return stack_scalars(_positive(_normalize(jnp.unstack(row))))


def quat_to_matrix(q: Quat) -> Float[Array, "3 3"]:
    """R(q) = I + 2 w [u]x + 2 [u]x^2 with q = [w, u]."""
    return stack_scalars(_matrix(_parts(q))).reshape(3, 3)


def quat_slerp(a: Quat, b: Quat, t: Scalar) -> Float[Array, "4"]:
    """slerp(a, b, t) = a (a* b)^t = a exp(t log(a* b)), from a at t = 0 to b at t = 1.

    It goes the short way round, so it ends at -b where a . b < 0. Between rotations half a turn
    apart both ways are as short; `quat_to_rotation_vector` says which is taken.
    """
    return stack_scalars(_slerp(_parts(a), _parts(b), t))


def compose(pose_a_b: Pose, pose_b_c: Pose) -> Float[Array, "7"]:
    """pose_a_c = [p_ab + R(q_ab) p_bc, q_ab q_bc]."""
    p_ab, q_ab = _split(pose_a_b)
    p_bc, q_bc = _split(pose_b_c)
    return stack_scalars([*_add(p_ab, _rotate(q_ab, p_bc)), *_multiply(q_ab, q_bc)])


def invert(pose_a_b: Pose) -> Float[Array, "7"]:
    """pose_b_a = [-R(q*) p, q*]."""
    p, q = _split(pose_a_b)
    q_ba = _conjugate(q)
    return stack_scalars([*_rotate(q_ba, [-c for c in p]), *q_ba])


def transform_point(pose_a_b: Pose, point_b: Vec3) -> Float[Array, "3"]:
    """point_a = p + R(q) point_b."""
    p, q = _split(pose_a_b)
    return stack_scalars(_add(p, _rotate(q, _parts(point_b))))


def pose_to_matrix(pose: Pose) -> Float[Array, "4 4"]:
    """T = [[R(q), p], [0, 1]]."""
    (x, y, z), q = _split(pose)
    r = _matrix(q)
    return stack_scalars([*r[0:3], x, *r[3:6], y, *r[6:9], z, 0.0, 0.0, 0.0, 1.0]).reshape(4, 4)


def pose_from_matrix(T: Float[ArrayLike, "4 4"]) -> Float[Array, "7"]:
    """[p, q] of T = [[R(q), p], [0, 1]], with the sign of q as in `quat_from_matrix`."""
    T = jnp.asarray(T)
    return jnp.concatenate([T[:3, 3], quat_from_matrix(T[:3, :3])])


def interpolate(pose_0: Pose, pose_1: Pose, t: Scalar) -> Float[Array, "7"]:
    """[(1 - t) p_0 + t p_1, slerp(q_0, q_1, t)]."""
    p_0, q_0 = _split(pose_0)
    p_1, q_1 = _split(pose_1)
    p = [(1 - t) * c_0 + t * c_1 for c_0, c_1 in zip(p_0, p_1, strict=True)]
    return stack_scalars([*p, *_slerp(q_0, q_1, t)])


# Below, vectors and quaternions are sequences of scalar components: JAX scalars or Python floats.
_Parts = Sequence[Any]


def _parts(v: Any) -> _Parts:
    # Python numbers stay so, since an array made of them would promote float32 to float64.
    return tuple(1.0 * c for c in v) if isinstance(v, tuple) else jnp.unstack(jnp.asarray(v))


def _split(pose: Any) -> tuple[_Parts, _Parts]:
    parts = _parts(pose)
    return parts[:3], parts[3:]


def _add(a: _Parts, b: _Parts) -> _Parts:
    return [a_i + b_i for a_i, b_i in zip(a, b, strict=True)]


def _conjugate(q: _Parts) -> _Parts:
    w, x, y, z = q
    return [w, -x, -y, -z]


def _multiply(a: _Parts, b: _Parts) -> _Parts:
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return [
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    ]


def _rotate(q: _Parts, v: _Parts) -> _Parts:
    w, x, y, z = q
    vx, vy, vz = v
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    return [
        vx + w * tx + (y * tz - z * ty),
        vy + w * ty + (z * tx - x * tz),
        vz + w * tz + (x * ty - y * tx),
    ]


def _exp(v: _Parts) -> _Parts:
    x, y, z = v
    theta2 = x * x + y * y + z * z
    small = theta2 < _series_limit(theta2)
    theta = jnp.sqrt(jnp.where(small, 1.0, theta2))
    half = 0.5 * theta
    w = jnp.where(small, 1.0 + theta2 * (-1 / 8 + theta2 * (1 / 384)), jnp.cos(half))
    series = 0.5 + theta2 * (-1 / 48 + theta2 * (1 / 3840))
    k = jnp.where(small, series, jnp.sin(half) / theta)
    return [w, k * x, k * y, k * z]


def _log(q: _Parts) -> _Parts:
    w, x, y, z = _positive(q)
    n2 = x * x + y * y + z * z
    # n2 < limit * w^2 leaves w nonzero and holds or fails for every length of q alike.
    small = n2 < _series_limit(n2) * (w * w)
    n = jnp.sqrt(jnp.where(small, 1.0, n2))
    w_safe = jnp.where(small, w, 1.0)
    r2 = n2 / (w_safe * w_safe)
    series = (2.0 + r2 * (-2 / 3 + r2 * (2 / 5))) / w_safe
    k = jnp.where(small, series, 2.0 * jnp.arctan2(n, w) / n)
    return [k * x, k * y, k * z]


def _slerp(a: _Parts, b: _Parts, t: Any) -> _Parts:
    v = _log(_multiply(_conjugate(a), b))
    return _multiply(a, _exp([t * c for c in v]))


def _matrix(q: _Parts) -> _Parts:
    w, x, y, z = q
    x2, y2, z2 = 2.0 * x, 2.0 * y, 2.0 * z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    row_0 = [1.0 - (yy + zz), xy - wz, xz + wy]
    row_1 = [xy + wz, 1.0 - (xx + zz), yz - wx]
    row_2 = [xz - wy, yz + wx, 1.0 - (xx + yy)]
    return [*row_0, *row_1, *row_2]


def _normalize(v: _Parts) -> _Parts:
    norm = jnp.sqrt(sum(c * c for c in v))
    return [c / norm for c in v]


def _positive(q: _Parts) -> _Parts:
    """q or -q: the one whose first nonzero component is positive."""
    w, x, y, z = q
    flip = (z < 0) & (y == 0)
    flip = ((y < 0) | flip) & (x == 0)
    flip = (w < 0) | (((x < 0) | flip) & (w == 0))
    return [jnp.where(flip, -c, c) for c in q]


def _series_limit(x2: Any) -> float:
    # Our series keep terms up to x2^2, so at x2 = eps^(1/3) what they drop is below eps.
    return float(jnp.finfo(jnp.result_type(x2)).eps) ** (1 / 3)
