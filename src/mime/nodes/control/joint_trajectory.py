"""MIME-NODE-113: a trajectory of an arm's joints as targets for their controller."""

import os
from collections.abc import Iterator
from typing import Any, ClassVar

from jaxtyping import Array, Float

from mime._text import quoted
from mime.control.joint_limits import limit_problems
from mime.control.kinematics.drawing import tree_drawing
from mime.control.kinematics.robot_file import given_tree
from mime.control.kinematics.tree import KinematicTree
from mime.control.trajectories import JointTrajectory, checked_waypoints, waypoint_trajectory
from mime.core.drawing import Drawing
from mime.core.node import Node, Scalar, State, Values
from mime.core.problem import ParameterError, Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, parameter

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

    is_sampled: ClassVar[bool | None] = True
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-113",
        version="1.1.0",
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
            ValidatedRange("velocity_limits_rad_per_s", 0.05, 10.0, "rad/s"),
        ),
        changelog=(
            ("1.0.0", "2026-11-15", "First version."),
            ("1.1.0", "2026-11-18", "`tree`: the robot is drawn along the trajectory."),
        ),
        references=(
            "[@Biagiotti2008] Biagiotti, L., Melchiorri, C. (2008). Trajectory Planning for "
            "Automatic Machines and Robots. Springer. Section 3.4, double-S velocity profile.",
        ),
        implementation=(
            Mapped("x_i", "mime.control.s_curve.s_curve"),
            Mapped("q_i(t)", "mime.control.trajectories.waypoint_trajectory"),
        ),
    )

    tree: KinematicTree | None
    """The robot that is drawn; it needs no masses."""
    waypoints_rad: Float[Array, "waypoints joints"] = parameter("rad", shape=None)
    velocity_limits_rad_per_s: Float[Array, " joints"] = parameter("rad/s", shape=None, above=0.0)
    acceleration_limits_rad_per_s2: Float[Array, " joints"] = parameter(
        "rad/s²", shape=None, above=0.0
    )
    jerk_limits_rad_per_s3: Float[Array, " joints"] = parameter("rad/s³", shape=None, above=0.0)

    def __init__(
        self,
        name: str,
        timestep: float,
        waypoints_rad: Any,
        velocity_limits_rad_per_s: Any,
        acceleration_limits_rad_per_s2: Any,
        jerk_limits_rad_per_s3: Any,
        *,
        tree: KinematicTree | str | os.PathLike[str] | None = None,
        on_problem: str = "warn",
    ):
        """Limits: one for all joints, or (N,). Prismatic joints count in m instead of rad.

        waypoints_rad  (2 or more, N); the first one at t = 0
        tree           the robot, or the path of its URDF or MJCF: it is drawn as it should move,
                       and the waypoints are held to its joints. It needs no masses
        on_problem     of a file: "warn", "refuse" or "mend", see `parse_robot`
        """
        self.name, self.timestep = name, timestep
        self.tree = None if tree is None else given_tree(tree, on_problem)
        try:
            q, v, a, j = checked_waypoints(
                "waypoints_rad",
                waypoints_rad,
                velocity_limits_rad_per_s=velocity_limits_rad_per_s,
                acceleration_limits_rad_per_s2=acceleration_limits_rad_per_s2,
                jerk_limits_rad_per_s3=jerk_limits_rad_per_s3,
            )
        except ParameterError as error:
            raise ParameterError(f"JointTrajectoryNode {name!r}", error.problems) from None
        self.waypoints_rad, self.velocity_limits_rad_per_s = q, v
        self.acceleration_limits_rad_per_s2, self.jerk_limits_rad_per_s3 = a, j

    @property
    def num_joints(self) -> int:
        """N."""
        return self.waypoints_rad.shape[1]

    @property
    def trajectory(self) -> JointTrajectory:
        """The whole motion as a function of time."""
        return waypoint_trajectory(
            self.waypoints_rad,
            self.velocity_limits_rad_per_s,
            self.acceleration_limits_rad_per_s2,
            self.jerk_limits_rad_per_s3,
        )

    @property
    def first_joint_angles(self) -> Float[Array, " joints"]:
        """Where the arm should be at t = 0."""
        return self.waypoints_rad[0]

    def boundary_input_spec(self) -> dict[str, Input]:
        return {}

    def boundary_flux_spec(self) -> dict[str, Output]:
        n = self.num_joints
        return {
            "desired_joint_angles": Output((n,), "rad", "q_des"),
            "desired_joint_velocities": Output((n,), "rad/s", "q̇_des"),
            "desired_joint_accelerations": Output((n,), "rad/s²", "q̈_des"),
        }

    def foreseen_fluxes(self) -> dict[str, str]:
        return {"desired_joint_angles": "waypoints_rad"}

    def value_problems(self) -> Iterator[Problem]:
        """Waypoints that the tree cannot have: a number for each joint, within its limits."""
        tree = self.tree
        if tree is None:
            return
        if self.num_joints == tree.num_joints:
            yield from limit_problems(tree, self.waypoints_rad, ("waypoints_rad",))
            return
        message = f"must have {tree.num_joints} numbers in each row, got {self.num_joints}"
        hint = f"The joints of {tree.name!r} are {quoted(tree.joint_names)}, in this order"
        yield Problem(("waypoints_rad",), message, hint)

    def drawing(self) -> Drawing:
        """The robot at the desired angles, if it has a tree."""
        return Drawing() if self.tree is None else tree_drawing(self.tree, "desired_joint_angles")

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
