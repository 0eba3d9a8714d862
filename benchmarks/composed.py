"""A batch inside a graph.

4,096 UR5, each with a motor and an elastic joint on its first axis, wired as one graph and run by
`simulation.run_batch`: the motor feels the rotor's speed of the step before, and the spring drives
the arm. Beside the sum of three batches: the motors, the elastic joints and the arms alone.
"""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import robots
from harness import Case, Peer, relative_difference
from robots import DT, GRAVITY, Robot

from mime import GraphManager
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.nodes.actuation.motor import Gear, MotorNode
from mime.nodes.actuation.robot_arm import RobotArmNode

COUNT, STEPS = 4096, 100
VOLTAGE = {"motor": {"commanded_voltage": 12.0}}
TOLERANCE = 1e-9
"""Of the arms' angles, in the batch and in runs of single members: the order of operations."""


def cases(threads: int) -> Iterator[Case]:
    """The whole against its parts."""
    robot = robots.ur5()
    peer = Peer(
        "the sum of its parts",
        lambda: parts(robot, threads),
        TOLERANCE,
        1.3,
        lambda ours, _: against_single_runs(robot, ours),
    )
    work = COUNT * STEPS
    name = f"{COUNT:,} of motor, elastic joint and UR5"
    yield Case(
        name, lambda: whole(robot, threads), (peer,), work, "member-step", repeats=7, quick=True
    )


def nodes(robot: Robot) -> dict[str, Any]:
    first = {"inertia_kg_m2": 1e-4, "kt_n_m_per_a": 0.05, "r_ohm": 1.0, "l_henry": 1e-3}
    motor = MotorNode("motor", DT, **first, damping_n_m_s=5e-4, gear=Gear(100.0),
                      command_mode="voltage", shaft="driven")  # fmt: skip
    joint = ElasticJointNode(
        "joint",
        DT,
        rotor_inertia_kg_m2=motor.reflected_inertia(),
        output_inertia_kg_m2=1.0,
        stiffness_n_m_per_rad=1e3,
        damping_n_m_s=1.0,
    )
    friction = np.full(robot.joints, robot.friction)
    arm = RobotArmNode("arm", DT, robot.tree, robot.tip, joint_friction_n_m_s=friction,
                       gravity_world=GRAVITY)  # fmt: skip
    return {"motor": motor, "joint": joint, "arm": arm}


def graph_of(robot: Robot, *names: str) -> Any:
    """These nodes, wired as far as they are there."""
    chosen = {name: node for name, node in nodes(robot).items() if name in names}
    graph = GraphManager()
    for node in chosen.values():
        graph.add_node(node)
    if "motor" in chosen:
        graph.add_external_input("motor", "commanded_voltage")
    if len(chosen) == 3:
        first_axis = np.eye(robot.joints)[0]
        graph.add_edge("motor", "joint", "shaft_torque", "motor_torque")
        graph.add_edge("joint", "motor", "motor_velocity", "shaft_velocity", delay=True)
        graph.add_edge("joint", "arm", "spring_torque", "commanded_joint_torques",
                       transform=lambda torque: torque * jnp.asarray(first_axis))  # fmt: skip
    return graph.compile()


def whole(robot: Robot, threads: int) -> Any:
    simulation = graph_of(robot, "motor", "joint", "arm")
    start = {"arm": {"joint_angles": robot.angles(COUNT)}}
    options = {"record": (), "progress": False, "threads": threads, "initial_state": start}
    run = simulation.run_batch
    return lambda: run(steps=STEPS, inputs=VOLTAGE, **options).final_state.of("arm")["joint_angles"]


def parts(robot: Robot, threads: int) -> Any:
    common = {"steps": STEPS, "record": (), "progress": False, "threads": threads}
    angles = {"arm": {"joint_angles": robot.angles(COUNT)}}
    jobs = (
        ("motor", {"inputs": VOLTAGE, "batch_size": COUNT}),
        ("joint", {"batch_size": COUNT}),
        ("arm", {"initial_state": angles}),
    )
    runs = [(graph_of(robot, name).run_batch, common | options) for name, options in jobs]
    return lambda: [run(**options).final_state for run, options in runs]


def against_single_runs(robot: Robot, ours: Any) -> float:
    """The first and the last member again, by `run`: another program for the same numbers."""
    simulation, starts = graph_of(robot, "motor", "joint", "arm"), robot.angles(COUNT)
    worst = 0.0
    for member in (0, COUNT - 1):
        start = {"arm": {"joint_angles": starts[member]}}
        options = {"record": (), "progress": False, "initial_state": start}
        end = simulation.run(steps=STEPS, inputs=VOLTAGE, **options).final_state
        worst = max(worst, relative_difference(ours[member], end.of("arm")["joint_angles"]))
    return worst
