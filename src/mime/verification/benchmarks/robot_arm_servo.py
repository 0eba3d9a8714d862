"""MIME-VER-164: the servo of an arm, with gains over eight decades."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from mime.control.kinematics import parse_urdf
from mime.models import model_path
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.nodes.actuation.robot_arm.servo import Servo
from mime.running.graph import GraphManager
from mime.verification.benchmark import Measurement, benchmark


def _without_torque_limit(RobotArm: Any) -> Any:
    """servos that know no torque limit"""

    def make(*args: Any, servo: Servo, **options: Any) -> Any:
        return RobotArm(*args, servo=dataclasses.replace(servo, limit_torque=False), **options)

    return make


@benchmark(164, "A servo within its limits at any gain", RobotArmNode, _without_torque_limit)
def servo_limits(
    RobotArm: Any,
    *,
    torque_limits_n_m: tuple[float, ...] = (30.0, 12.0, 2.0),
    velocity_limits_rad_per_s: tuple[float, ...] = (1.0, 1.5, 2.0),
    stiffnesses_n_m_per_rad: tuple[float, ...] = (1e1, 1e3, 1e5, 1e7, 1e9),
    damping_over_stiffness_s: float = 0.1,
    goal_rad: tuple[float, ...] = (0.6, -0.8, 0.9),
    timestep_s: float = 1e-3,
    steps: int = 3000,
) -> Iterator[Measurement]:
    """|τ| <= T and |q̇| <= V in every step, and q -> q_d

    Reference: the limits and the goal themselves.
    Procedure:
    1. Send an arm of three links from rest to a goal, with every stiffness in turn.
    2. Take the largest torque and speed of all steps, over their limits.
    3. Take the distance from the goal at the end, of stiffnesses from 1000 N·m/rad on.
    Covers: the implicit step of the servo, its torque and speed limits, gravity feed-forward
    Excludes: elastic joints, dry friction, forces from outside
    """
    tree = parse_urdf(model_path("planar_arm_3link"))
    torques, speeds = np.array(torque_limits_n_m), np.array(velocity_limits_rad_per_s)
    servo = Servo(
        jnp.ones(3), jnp.ones(3), torque_limits_n_m=torques, velocity_limits_rad_per_s=speeds
    )
    graph = GraphManager()
    graph.add_node(RobotArm("arm", timestep_s, tree, "tool", servo=servo))
    graph.add_external_input("arm", "desired_joint_angles")
    simulation = graph.compile()
    torque, speed, distance = [], [], []
    for kp in stiffnesses_n_m_per_rad:
        kd = damping_over_stiffness_s * kp
        gains = {"arm.servo.kp": [kp] * 3, "arm.servo.kd": [kd] * 3}
        goal = {"arm": {"desired_joint_angles": np.array(goal_rad)}}
        arm = simulation.with_parameters(gains).run(steps=steps, inputs=goal)["arm"]
        torque.append(np.max(np.abs(arm["servo_torques"]) / torques))
        speed.append(np.max(np.abs(arm["joint_velocities"]) / speeds))
        if kp >= 1e3:
            distance.append(np.max(np.abs(arm["joint_angles"][-1] - np.array(goal_rad))))
    yield Measurement(
        "largest torque over its limit",
        float(max(torque)),
        limit=1.0,
        unit="",
        why="a limit that is reached is taken as it is, without rounding",
    )
    yield Measurement(
        "largest speed over its limit", float(max(speed)), limit=1.0, unit="", why="likewise"
    )
    yield Measurement(
        "distance from the goal at the end",
        float(max(distance)),
        limit=1e-5,
        unit="rad",
        why="after less than 1.5 s of way the error falls as exp(-t / 0.1 s)",
    )
