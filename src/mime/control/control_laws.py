"""Control laws of joints, as pure functions.

Angles are rad and torques N·m for a revolute joint, m and N for a prismatic one. Gravity is seen
from the root link: for a base that stands rotated, turn it into that frame first.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Real

from mime.control.kinematics import KinematicTree, compensating_torques, gravity_vector, rnea

Number = Real[ArrayLike, ""]
Joints = Real[ArrayLike, " joints"] | Sequence[float | int]
PerJoint = Number | Joints
Vec3 = Real[ArrayLike, "3"] | Sequence[float | int]
Torques = Float[Array | np.ndarray, " joints"]

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)


def pd_controller(
    q: Joints, qd: Joints, q_des: Joints, qd_des: Joints, kp: PerJoint, kd: PerJoint
) -> Torques:
    """τ = Kp (q_des - q) + Kd (q̇_des - q̇), with one gain for all joints or one per joint."""
    x, v, x_des, v_des, k, d = _arrays(q, qd, q_des, qd_des, kp, kd)
    return k * (x_des - x) + d * (v_des - v)


def pd_with_gravity_compensation(
    tree: KinematicTree,
    q: Joints,
    qd: Joints,
    q_des: Joints,
    qd_des: Joints,
    kp: PerJoint,
    kd: PerJoint,
    gravity_world: Vec3 = STANDARD_GRAVITY,
) -> Torques:
    """τ = Kp (q_des - q) + Kd (q̇_des - q̇) + g(q) - g_c(q)

    It comes to rest exactly at q_des, with any positive gains, if it knows the masses. g_c is what
    the robot compensates by itself (MJCF `gravcomp`).
    """
    x, gravity = _arrays(_checked(tree, q), gravity_world)
    tau = pd_controller(q, qd, q_des, qd_des, kp, kd) + gravity_vector(tree, x, gravity)
    return _less_compensation(tau, tree, x, gravity)


def computed_torque(
    tree: KinematicTree,
    q: Joints,
    qd: Joints,
    q_des: Joints,
    qd_des: Joints,
    qdd_des: Joints,
    kp: PerJoint,
    kd: PerJoint,
    gravity_world: Vec3 = STANDARD_GRAVITY,
) -> Torques:
    """τ = M(q) (q̈_des + Kd ė + Kp e) + c(q, q̇) + g(q) - g_c(q),   e = q_des - q.

    It makes the error obey ë + Kd ė + Kp e = 0, joint by joint: kp is ω² [1/s²], kd is 2 ζ ω [1/s].
    """
    x, v, a, gravity = _arrays(_checked(tree, q), qd, qdd_des, gravity_world)
    tau = rnea(tree, x, v, a + pd_controller(q, qd, q_des, qd_des, kp, kd), gravity)
    return _less_compensation(tau, tree, x, gravity)


def pi_controller(
    error: Float[ArrayLike, "*shape"] | int,
    integral: Float[ArrayLike, "*shape"] | int,
    kp: Number,
    ki: Number,
    dt: Number,
    limit: Number | None = None,
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """u = Kp e + Ki I',   I' = I + e dt;   returns u and I'.

    With a `limit`, |u| <= limit, and the integral stands still while it would push u further into
    the limit (anti-windup by conditional integration).
    """
    u: Any
    e, old = jnp.asarray(error), jnp.asarray(integral)
    new = old + e * dt
    u = kp * e + ki * new
    if limit is None:
        return u, new
    bound = jnp.asarray(limit)
    winds_up = (u - jnp.clip(u, -bound, bound)) * e > 0
    new = jnp.where(winds_up, old, new)
    return jnp.clip(kp * e + ki * new, -bound, bound), new


def _less_compensation(tau: Any, tree: KinematicTree, q: Any, gravity: Any) -> Any:
    if tree.compensated_masses is None:
        return tau
    return tau - compensating_torques(tree, q, gravity)[-tree.num_joints :]


def _arrays(*values: Any) -> list[Any]:
    """JAX arrays as they are, the rest as NumPy arrays: constants, in the variables' precision."""
    dtype = jnp.result_type(float, *(x for x in values if isinstance(x, jax.Array)))
    return [x if isinstance(x, jax.Array) else np.asarray(x, dtype) for x in values]


def _checked(tree: KinematicTree, q: Any) -> Any:
    if np.shape(q) != (tree.num_joints,):
        raise ValueError(
            f"{tree.name} has {tree.num_joints} joints, so q must have shape "
            f"({tree.num_joints},), got {np.shape(q)}"
        )
    return q
