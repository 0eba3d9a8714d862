"""MIME-NODE-114: a path of the tool in space as targets for a controller of the joints."""

import os
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime._text import unknown_name
from mime.control.kinematics import KinematicTree
from mime.control.kinematics.robot_file import given_tree
from mime.control.s_curve import check_limits
from mime.control.tool_path import (
    PathSegment,
    ToolPath,
    circular_segment,
    straight_segments,
    tool_path,
)
from mime.core.arguments import text
from mime.core.drawing import Drawing, Line
from mime.core.node import Node, Scalar, State, Values
from mime.core.pose import IDENTITY_POSE
from mime.core.problem import ParameterError, Problem
from mime.core.spec import Input, Mapped, NodeMeta, Output, ValidatedRange, parameter
from mime.nodes.control.joint_trajectory import CLOCK, tick

_SAMPLES = 256
"""Times per segment at which the joints' speeds are checked against their limits."""


class ToolPathNode(Node):
    """p_des(t) = p(s(t)),   q_des = FK⁻¹(p_des),   q̇_des = q' ṡ,   q̈_des = q'' ṡ² + q' s̈

    The tool moves along straight lines between waypoints, or along a circle, at a given speed,
    from rest to rest on each; its orientation does not change. The joint angles are found when the
    node is made. The fluxes of a step are the targets at its end.
    """

    is_sampled: ClassVar[bool | None] = True
    meta: ClassVar[NodeMeta] = NodeMeta(
        id="MIME-NODE-114",
        version="1.0.0",
        stability="experimental",
        summary="Tool path in space with S-curve timing: targets for a controller of an arm.",
        equations=(
            r"p_d(t) = p(s(t)), \quad FK(q_d) = p_d",
            r"\dot q_d = q'(s) \dot s, \quad \ddot q_d = q''(s) \dot s^2 + q'(s) \ddot s",
            r"|\dot s| \le v, \quad |\ddot s| \le a, \quad |\dddot s| \le j",
        ),
        discretisation=(
            "Inverse kinematics is solved at 49 knots per segment when the node is made; cubic "
            "splines join them.",
            r"t_{n+1} = t_n + \Delta t; S-curves and splines are evaluated in closed form.",
        ),
        assumptions=(
            "The tool keeps the orientation that it has in the posture.",
            "Every segment begins and ends at rest.",
        ),
        limitations=(
            "Corners are not rounded: the tool stops in each.",
            "The targets do not wait for the arm.",
            "Springs and gravity are not foreseen: an elastic arm sags below its path.",
        ),
        validated_ranges=(
            ValidatedRange("num_joints", 3, 6, ""),
            ValidatedRange("speed_m_per_s", 0.02, 0.5, "m/s"),
        ),
        changelog=(("1.0.0", "2026-11-16", "First version."),),
        references=(
            "[@Siciliano2009] Siciliano, B., Sciavicco, L., Villani, L., Oriolo, G. (2009). "
            "Robotics: Modelling, Planning and Control. Springer. Section 4.3, operational space "
            "trajectories.",
        ),
        implementation=(
            Mapped("p(s), q(s)", "mime.control.tool_path.tool_path"),
            Mapped("FK^{-1}", "mime.control.inverse_kinematics.solve_ik"),
            Mapped("s(t)", "mime.control.s_curve.s_curve"),
        ),
    )

    path: ToolPath
    speed_m_per_s: Scalar = parameter("m/s", above=0.0, doc="v, along the path")
    acceleration_m_per_s2: Scalar = parameter("m/s²", above=0.0, doc="a, along the path")
    jerk_m_per_s3: Scalar = parameter("m/s³", above=0.0, doc="j, along the path")

    def __init__(
        self,
        name: str,
        timestep: float,
        tree: KinematicTree | str | os.PathLike[str],
        end_effector_link_name: str,
        posture_rad: Any,
        speed_m_per_s: Any,
        *,
        waypoints_m: Any = None,
        circle: Any = None,
        acceleration_m_per_s2: Any = 1.0,
        jerk_m_per_s3: Any = 20.0,
        end_effector_offset_in_link: Any = IDENTITY_POSE,
        base_pose_world: Any = IDENTITY_POSE,
        position_only: bool = False,
        on_problem: str = "warn",
    ):
        """Either waypoints or a circle, in the world.

        tree                         the arm, or the path of its URDF or MJCF
        end_effector_link_name       the link that carries the tool
        posture_rad                  (N,) how the tool is held, and where the search begins
        waypoints_m                  (2 or more, 3); the first one at t = 0
        circle                       centre_m, radius_m, normal (z), turns (1)
        end_effector_offset_in_link  the tool in its link, as the arm has it
        base_pose_world              the arm's base
        position_only                let the tool turn, for arms of fewer than six joints
        on_problem                   of a file: "warn", "refuse" or "mend", see `parse_robot`
        """
        self.name, self.timestep = name, timestep
        self.speed_m_per_s = speed_m_per_s
        self.acceleration_m_per_s2 = acceleration_m_per_s2
        self.jerk_m_per_s3 = jerk_m_per_s3
        tree = given_tree(tree, on_problem)
        try:
            check_limits(
                speed_m_per_s=speed_m_per_s,
                acceleration_m_per_s2=acceleration_m_per_s2,
                jerk_m_per_s3=jerk_m_per_s3,
            )
            self.path = tool_path(
                tree,
                _known_link(tree, end_effector_link_name),
                _segments(waypoints_m, circle),
                posture_rad,
                end_effector_offset_in_link=end_effector_offset_in_link,
                base_pose_world=base_pose_world,
                position_only=position_only,
            )
            self._refuse_haste(tree)
        except ParameterError as error:
            raise ParameterError(f"ToolPathNode {name!r}", error.problems) from None

    def _refuse_haste(self, tree: KinematicTree) -> None:
        """No joint may have to turn faster than it can."""
        qd = np.abs(_joint_speeds(self.path, self._limits())).max(axis=0)
        for joint, speed, limit in zip(tree.joint_names, qd, np.asarray(tree.velocity_limits)):
            if speed > limit:
                message = (
                    f"must be lower: {float(self.speed_m_per_s):g} m/s would turn {joint!r} at "
                    f"{speed:.3g} rad/s, its limit is {limit:.3g} rad/s"
                )
                hint = "Go slower, or keep away from where arm or wrist stretch out"
                raise ParameterError("", [Problem(("speed_m_per_s",), message, hint)])

    def _limits(self) -> tuple[Any, Any, Any]:
        return self.speed_m_per_s, self.acceleration_m_per_s2, self.jerk_m_per_s3

    @property
    def num_joints(self) -> int:
        """N."""
        return self.path.points.shape[-1] - 3

    @property
    def duration(self) -> Scalar:
        """Seconds from the first waypoint to the last."""
        return jnp.sum(self.path.profiles(*self._limits()).segment_times)

    @property
    def first_joint_angles(self) -> Float[Array, " joints"]:
        """Where the arm should be at t = 0."""
        return self.path.points[0, 0, 3:]

    def boundary_input_spec(self) -> dict[str, Input]:
        return {}

    def boundary_flux_spec(self) -> dict[str, Output]:
        n = (self.num_joints,)
        return {
            "desired_tool_pose_world": Output((7,), "m", "p_des [x y z qw qx qy qz]"),
            "desired_joint_angles": Output(n, "rad", "q_des"),
            "desired_joint_velocities": Output(n, "rad/s", "q̇_des"),
            "desired_joint_accelerations": Output(n, "rad/s²", "q̈_des"),
        }

    def drawing(self) -> Drawing:
        """The path that the tool should take."""
        points = np.asarray(self.path.points, float)[..., :3].reshape(-1, 3)
        way = tuple(tuple(float(x) for x in point) for point in points)
        style: dict[str, Any] = {
            "rgba": (0.15, 0.35, 0.85, 1.0),
            "layer": "tool path",
            "dashed": True,
        }
        return Drawing(shapes=(Line(points=way, what="tool path wanted", **style),))

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
        position, (q, qd, qdd) = self.path(
            self.path.profiles(*self._limits()), state["elapsed_time"]
        )
        return {
            "desired_tool_pose_world": jnp.concatenate([position, self.path.orientation]),
            "desired_joint_angles": q,
            "desired_joint_velocities": qd,
            "desired_joint_accelerations": qdd,
        }


def _segments(waypoints_m: Any, circle: Any) -> list[PathSegment]:
    if (waypoints_m is None) == (circle is None):
        got = "neither" if waypoints_m is None else "both"
        message = f"or circle must be given, one of them, got {got}"
        raise ParameterError("", [Problem(("waypoints_m",), message)])
    return [circular_segment(circle)] if waypoints_m is None else straight_segments(waypoints_m)


def _known_link(tree: KinematicTree, name: str) -> str:
    if text("end_effector_link_name", name) not in tree.frame_names:
        words = unknown_name(name, tree.frame_names, "link")
        raise ParameterError("", [Problem(("end_effector_link_name",), *words)])
    return name


@eqx.filter_jit
def _joint_speeds(path: ToolPath, limits: tuple[Any, Any, Any]) -> Float[Array, "times joints"]:
    profiles = path.profiles(*limits)
    times = jnp.linspace(0.0, 1.0, _SAMPLES * len(path.lengths_m)) * jnp.sum(profiles.segment_times)
    return jax.vmap(lambda t: path(profiles, t).joints.qd)(times)
