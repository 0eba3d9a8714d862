"""Trajectories of all joints of an arm, synchronised, with S-curve timing."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Real

from mime.control.s_curve import JointTargets, Number, SCurve, check_limits, s_curve
from mime.core.node import (
    Input,
    Mapped,
    Node,
    NodeMeta,
    Output,
    ParameterError,
    Scalar,
    State,
    ValidatedRange,
    Values,
    parameter,
)

Joints = Real[ArrayLike, " joints"] | Sequence[float | int]
PerJoint = Number | Joints


class JointTrajectory(eqx.Module):
    """q(t), q̇(t), q̈(t) through waypoints, at rest in each; see `joint_trajectory`."""

    waypoints: Float[Array, "waypoints joints"]
    profiles: SCurve
    """Of every move and joint, each as fast as it alone could be."""
    move_durations: Float[Array, " moves"]

    @property
    def duration(self) -> Scalar:
        return jnp.sum(self.move_durations)

    def __call__(self, t: Number) -> JointTargets:
        """The targets after t seconds; before 0 at the first waypoint, in the end at the last."""
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
    check_limits(v_max=v_max, a_max=a_max, j_max=j_max)
    if isinstance(waypoints, Sequence):
        waypoints = jnp.stack([jnp.asarray(q) for q in waypoints])
    dtype = jnp.result_type(float, waypoints)
    q = jnp.asarray(waypoints, dtype)
    if q.ndim != 2 or len(q) < 2:
        raise ParameterError(f"waypoints must have shape (at least 2, joints), got {q.shape}")
    v, a, j = (
        _per_joint(name, limit, q[0])
        for name, limit in (("v_max", v_max), ("a_max", a_max), ("j_max", j_max))
    )
    return _plan(q, v, a, j)


@jax.jit
def _plan(q: Array, v: Array, a: Array, j: Array) -> JointTrajectory:
    over_joints = jax.vmap(s_curve)
    profiles = jax.vmap(over_joints, in_axes=(0, None, None, None))(q[1:] - q[:-1], v, a, j)
    return JointTrajectory(q, profiles, jnp.max(jnp.sum(profiles.segment_times, -1), -1))


def _per_joint(name: str, limit: Any, q: Array) -> Array:
    value = jnp.asarray(limit, q.dtype)
    if value.shape not in ((), q.shape):
        raise ParameterError(
            f"{name} must be one number or one for each of {len(q)} joints, got shape {value.shape}"
        )
    return jnp.broadcast_to(value, q.shape)


CLOCK = {
    "elapsed_time": Output((), "s", "t since the start"),
    "clock_remainder": Output((), "s", "what rounding has taken from t so far"),
}
"""The state of a node with a clock of its own."""


def tick(state: State, dt: float | Scalar) -> State:
    """t_{n+1} = t_n + dt, summed after Kahan: 1e5 steps in single precision add up to 100 s."""
    t = state["elapsed_time"]
    step = dt + state["clock_remainder"]
    t_next = t + step
    return {"elapsed_time": t_next, "clock_remainder": step - (t_next - t)}


class JointTrajectoryNode(Node):
    """q_des(t), q̇_des(t), q̈_des(t): a jerk-limited trajectory through waypoints, by its own clock.

    t_{n+1} = t_n + dt;   the fluxes of a step are the targets at its end
    """

    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-113",
        version="1.0.0",
        stability="experimental",
        summary="Joint trajectory with S-curve timing: targets for a controller of an arm.",
        equations=(
            r"q_i(t) = q_i^{k} + x_i((t - t_k) T_i / T), \quad T = \max_i T_i",
            r"|\dot x_i| \le v_i, \quad |\ddot x_i| \le a_i, \quad |\dddot x_i| \le j_i",
        ),
        discretisation=(
            r"t_{n+1} = t_n + \Delta t; \quad \text{the S-curves are evaluated in closed form}",
        ),
        assumptions=(
            "Every move begins and ends at rest.",
            "Joints start and stop together: the faster ones are stretched in time.",
        ),
        limitations=(
            "The path between two waypoints is not a straight line, in joint or in tool space.",
            "The targets do not wait for the arm.",
            "In single precision the clock resolves 8 µs at 100 s.",
        ),
        validated_ranges=(
            ValidatedRange("num_joints", 1, 7, ""),
            ValidatedRange("velocity_limits", 0.05, 10.0, "rad/s"),
        ),
        references=(
            "Biagiotti, L., Melchiorri, C. (2008). Trajectory Planning for Automatic Machines and "
            "Robots. Springer. Section 3.4, double-S velocity profile.",
        ),
        implementation=(
            Mapped("x_i", "mime.control.s_curve.s_curve"),
            Mapped("q_i(t)", "mime.nodes.control.joint_trajectory.waypoint_trajectory"),
        ),
    )

    waypoints: Float[Array, "waypoints joints"] = parameter("rad", shape=None)
    velocity_limits: Float[Array, " joints"] = parameter("rad/s", shape=None, above=0.0)
    acceleration_limits: Float[Array, " joints"] = parameter("rad/s²", shape=None, above=0.0)
    jerk_limits: Float[Array, " joints"] = parameter("rad/s³", shape=None, above=0.0)

    def __init__(
        self,
        name: str,
        timestep: float,
        waypoints: Any,
        velocity_limits: Any,
        acceleration_limits: Any,
        jerk_limits: Any,
    ):
        """`waypoints`: (2 or more, N), the first one at t = 0; limits: one for all, or (N,)."""
        limits = (velocity_limits, acceleration_limits, jerk_limits)
        trajectory = waypoint_trajectory(waypoints, *limits)
        self.name, self.timestep, self.waypoints = name, timestep, trajectory.waypoints
        self.velocity_limits, self.acceleration_limits, self.jerk_limits = (
            jnp.broadcast_to(jnp.asarray(limit), self.waypoints.shape[1:]) for limit in limits
        )

    @property
    def num_joints(self) -> int:
        """N."""
        return self.waypoints.shape[1]

    @property
    def trajectory(self) -> JointTrajectory:
        """The whole motion as a function of time."""
        return waypoint_trajectory(
            self.waypoints, self.velocity_limits, self.acceleration_limits, self.jerk_limits
        )

    @property
    def first_joint_angles(self) -> Float[Array, " joints"]:
        """Where the arm should be at t = 0."""
        return self.waypoints[0]

    def boundary_input_spec(self) -> dict[str, Input]:
        return {}

    def boundary_flux_spec(self) -> dict[str, Output]:
        n = self.num_joints
        return {
            "desired_joint_angles": Output((n,), "rad", "q_des"),
            "desired_joint_velocities": Output((n,), "rad/s", "q̇_des"),
            "desired_joint_accelerations": Output((n,), "rad/s²", "q̈_des"),
        }

    def state_spec(self) -> dict[str, Output]:
        return CLOCK

    def observable_fields(self) -> list[str]:
        return ["elapsed_time"]

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        """t_{n+1} = t_n + dt"""
        return tick(state, dt)

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        """The targets at the end of the step."""
        q, qd, qdd = self.trajectory(state["elapsed_time"])
        return {
            "desired_joint_angles": q,
            "desired_joint_velocities": qd,
            "desired_joint_accelerations": qdd,
        }
