"""Trajectories of all joints of an arm, synchronised, with S-curve timing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from mime.control.s_curve import Number, SCurve, check_limits, s_curve
from mime.core.arguments import numbers
from mime.core.node import Scalar
from mime.core.problem import ParameterError, Problem

Joints = Real[ArrayLike, " joints"] | Sequence[float | int]
PerJoint = Number | Joints


class JointTargets(NamedTuple):
    """Where the joints should be, how fast, and how that should change."""

    q: Float[Array, " joints"]
    qd: Float[Array, " joints"]
    qdd: Float[Array, " joints"]


class JointTrajectory(eqx.Module):
    """q(t), q̇(t), q̈(t) through waypoints, at rest in each; see `joint_trajectory`."""

    waypoints: Float[Array, "waypoints joints"]
    profiles: SCurve
    """The S-curve of every move and joint, each as fast as it alone could be."""
    move_durations: Float[Array, " moves"]

    @property
    def duration(self) -> Scalar:
        return jnp.sum(self.move_durations)

    def __call__(self, t: Number) -> JointTargets:
        """The targets after t seconds; before 0 the first waypoint, after the end the last."""
        return _follow(self, t)


@jax.jit
def _follow(trajectory: JointTrajectory, t: Number) -> JointTargets:
    t = jnp.asarray(t, trajectory.waypoints.dtype)
    starts = jnp.cumsum(trajectory.move_durations) - trajectory.move_durations
    k = jnp.sum(t >= starts[1:])
    T = trajectory.move_durations[k]
    profile = jax.tree.map(lambda leaf: leaf[k], trajectory.profiles)
    own = jnp.sum(profile.segment_times, axis=-1)
    rate = jnp.where(T > 0, own / jnp.where(T > 0, T, 1.0), 0.0)
    x, v, a = jax.vmap(lambda curve, s: curve(s))(profile, (t - starts[k]) * rate)
    return JointTargets(trajectory.waypoints[k] + x, rate * v, rate**2 * a)


def joint_trajectory(
    q_start: Joints, q_goal: Joints, v_max: PerJoint, a_max: PerJoint, j_max: PerJoint
) -> JointTrajectory:
    """q_i(t) = q_start_i + x_i(t T_i/T),  T = max T_i: all joints start and stop together.

    x_i is the S-curve of joint i alone and T_i its duration, so stretched in time no joint exceeds
    its limits and the slowest one meets them. Limits are given once for all or per joint.
    """
    return waypoint_trajectory([q_start, q_goal], v_max, a_max, j_max)


def waypoint_trajectory(
    waypoints: Real[ArrayLike, "waypoints joints"] | Sequence[Joints],
    v_max: PerJoint,
    a_max: PerJoint,
    j_max: PerJoint,
) -> JointTrajectory:
    """`joint_trajectory` from each waypoint to the next, at rest in each."""
    return _plan(*checked_waypoints("waypoints", waypoints, v_max=v_max, a_max=a_max, j_max=j_max))


def checked_waypoints(name: str, waypoints: Any, **limits: PerJoint) -> tuple[Array, ...]:
    """Waypoints (2 or more, N) and limits (N,) as arrays; what cannot be is refused by its name."""
    check_limits(**limits)
    if isinstance(waypoints, Sequence):
        rows = [jnp.asarray(numbers(name, row)) for row in waypoints]
        if len({row.shape for row in rows}) != 1:
            message = "must be two or more rows of one length, a number for each joint"
            raise ParameterError("", [Problem((name,), message)])
        waypoints = jnp.stack(rows)
    waypoints = numbers(name, waypoints)
    q = jnp.asarray(waypoints, jnp.result_type(float, waypoints))
    if q.ndim != 2 or len(q) < 2:
        message = f"must have shape (at least 2, joints), got {q.shape}"
        raise ParameterError("", [Problem((name,), message)])
    return q, *(per_joint(key, limit, q[0]) for key, limit in limits.items())


@jax.jit
def _plan(q: Array, v: Array, a: Array, j: Array) -> JointTrajectory:
    over_joints = jax.vmap(s_curve)
    profiles = jax.vmap(over_joints, in_axes=(0, None, None, None))(q[1:] - q[:-1], v, a, j)
    return JointTrajectory(q, profiles, jnp.max(jnp.sum(profiles.segment_times, -1), -1))


def per_joint(name: str, value: Any, like: Float[Array, " joints"]) -> Float[Array, " joints"]:
    """One number for all joints, or one for each, as an array like that of the joints."""
    array = jnp.asarray(numbers(name, value), like.dtype)
    if array.shape not in ((), like.shape):
        expected = f"must be one number or one for each of {len(like)} joints"
        raise ParameterError("", [Problem((name,), f"{expected}, got shape {array.shape}")])
    return jnp.broadcast_to(array, like.shape)
