"""First calls in a process of their own: `python first_run.py WORK` prints how long one took, in s.

    batch ur5, batch humanoid    `run_batch` of 4,096 robots, from the graph's nodes to the states
    gradient ur5                 a compiled gradient of 1,024 rollouts
    motors N                     `run` of a graph of N motors, all fields of all of them recorded
    second g1, second go1        `run` of one second of a robot that floats, each joint with a servo

Reading a URDF and importing are not in the time; whoever calls switches the caches off.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_S = 300
"""What takes longer is told as that."""


def seconds(*work: str) -> float:
    """In a new process, without any cache."""
    command = [sys.executable, str(Path(__file__)), *work]
    variables = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=MOST_S
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(work)}: not done after {MOST_S} s") from None
    if done.returncode:
        raise RuntimeError(f"{' '.join(work)}: {done.stderr.strip()[-150:]}")
    return float(done.stdout)


def batch(name: str) -> Callable[[], Any]:
    import robots

    robot = getattr(robots, name)()
    start = {"arm": {"joint_angles": robot.angles(4096)}}

    def work() -> Any:
        run = robot.simulation().run_batch
        return run(steps=16, initial_state=start, record=(), progress=False).final_state

    return work


def gradient(name: str) -> Callable[[], Any]:
    import gradient
    import jax
    import robots

    robot, count = getattr(robots, name)(), 1024

    def work() -> Any:
        program, arguments = gradient.prepared(
            robot, jax.grad(gradient.loss_of(robot, count)), count
        )
        return program(*arguments)

    return work


def motors(count: str) -> Callable[[], Any]:
    """Each with a voltage and an inertia of its own."""
    from motor import DT, PARAMETERS

    from mime import GraphManager, MotorNode

    def work() -> Any:
        graph, inputs = GraphManager(), {}
        for k in range(int(count)):
            own = PARAMETERS | {"inertia_kg_m2": 1e-4 * (1 + k / int(count))}
            graph.add_node(MotorNode(f"motor_{k}", DT, **own, command_mode="voltage"))
            graph.add_external_input(f"motor_{k}", "commanded_voltage")
            inputs[f"motor_{k}"] = {"commanded_voltage": 1.0 + k}
        return graph.compile().run(steps=100, inputs=inputs, progress=False).final_state

    return work


def second(name: str) -> Callable[[], Any]:
    """Its joints are held where their ranges have their middle, in steps of 2 ms."""
    import numpy as np
    import robots

    from mime import GraphManager, RobotArmNode, Servo, parse_urdf

    file = {"g1": "g1_29dof_rev_1_0.urdf", "go1": "go1.urdf"}[name]
    tree = parse_urdf(robots.cleaned(robots.example(file)), base="floating")
    middle = np.clip(tree.joint_limits, -2.0, 2.0).mean(axis=1)

    def work() -> Any:
        graph = GraphManager()
        servo = Servo(kp=100.0, kd=2.0)
        graph.add_node(RobotArmNode("robot", 2e-3, tree, tree.link_names[-1], servo=servo))
        graph.add_external_input("robot", "desired_joint_angles")
        inputs = {"robot": {"desired_joint_angles": middle}}
        return graph.compile().run(1.0, inputs, progress=False).final_state

    return work


def main() -> None:
    import jax

    import mime  # noqa: F401 - before JAX computes

    jax.config.update("jax_enable_x64", True)
    jax.block_until_ready(jax.numpy.zeros(3) + 1.0)  # JAX itself has started
    kind, what = sys.argv[1:]
    work = {"batch": batch, "gradient": gradient, "motors": motors, "second": second}[kind](what)
    began = time.perf_counter()
    jax.block_until_ready(work())
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
