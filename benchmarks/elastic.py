"""An elastic pendulum beside Jiminy.

A rotor, a spring and a pole of 5 kg at 1 m, with the small inserted body that Jiminy's model of a
spring needs. Free of gravity it is linear, and `ElasticJointNode` solves it exactly; hanging under
gravity it is an arm with an elastic joint. Steps of 1 ms, Jiminy's by Runge-Kutta of fourth order,
all in C++ (no controller); and beside the steps that its Dormand-Prince chooses for a tolerance of
1e-6 where nothing asks for a state in between. The linear one agrees to 1e-6; hanging, to 1 % of
the largest value after 20 s of swinging, since our first-order step drifts in phase.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from harness import Case, Peer

from mime import GraphManager
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.nodes.actuation.robot_arm import RobotArmNode

J, I, K, V, I_F, G = 0.1, 5.0, 20.0, 0.1, 1e-5, 9.81
DT = 1e-3
WORKER = Path(__file__).parent / "jiminy_worker.py"
PENDULUM = """<robot name="pendulum"><link name="base"/>
  <link name="pole"><inertial><origin xyz="0 0 -1"/><mass value="5"/>
    <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="pivot" type="revolute"><parent link="base"/><child link="pole"/>
    <axis xyz="0 1 0"/><limit effort="1e3" lower="-100" upper="100" velocity="1e3"/></joint>
</robot>"""
SPRING = {"stiffness": K, "damping": V, "inertia": I_F}
SAME_STEPS = {"odeSolver": "runge_kutta_4", "dtMax": DT}
OWN_STEPS = {"odeSolver": "runge_kutta_dopri", "tolAbs": 1e-6, "tolRel": 1e-6}
FREE, FREE_STEPS = (0.0, 0.0, 0.1, 0.0), 100_000
HANGING, HANGING_STEPS = (0.1, 0.8, 0.0, -1.0), 20_000


def cases(threads: int) -> Iterator[Case]:
    """Linear, and under gravity."""
    for name, ours, motion, steps, tolerance in (
        ("free, exact", joint, (0.0, FREE, FREE_STEPS), FREE_STEPS, 1e-6),
        ("hanging, an arm", arm, (G, HANGING, HANGING_STEPS), HANGING_STEPS, 1e-2),
    ):
        others = (
            Peer("Jiminy, 1 ms", lambda m=motion: jiminy(*m, SAME_STEPS), tolerance, 0.1),
            Peer("Jiminy, its own steps", lambda m=motion: jiminy(*m, OWN_STEPS), tolerance),
        )
        yield Case(name, ours, others, steps, "ms", quick=True)


def joint() -> Any:
    node = ElasticJointNode(
        "joint",
        DT,
        rotor_inertia_kg_m2=J,
        output_inertia_kg_m2=I,
        stiffness_n_m_per_rad=K,
        damping_n_m_s=V,
        model="inserted_body",
        inserted_inertia_kg_m2=I_F,
        integrator="exact",
    )
    start = {"deflection": FREE[0], "rotor_angle": FREE[1],
             "deflection_velocity": FREE[2], "rotor_velocity": FREE[3]}  # fmt: skip
    run = run_of(node, start, FREE_STEPS)

    def work() -> Any:
        end = run()
        return np.array([end[name] for name in start])

    return work


def arm() -> Any:
    with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
        file.write(PENDULUM)
        file.flush()
        node = RobotArmNode(
            "arm",
            DT,
            file.name,
            "pole",
            gravity_world=(0.0, 0.0, -G),
            rotor_inertia_kg_m2=[J],
            joint_stiffness_n_m_per_rad=[K],
            joint_stiffness_damping_n_m_s=[V],
            joint_model="inserted_body",
            inserted_inertia_kg_m2=[I_F],
        )
    x1, x2, w1, w2 = (np.array([value]) for value in HANGING)
    start = {"joint_angles": x1 + x2, "joint_velocities": w1 + w2,
             "joint_deflections": x1, "joint_deflection_velocities": w1}  # fmt: skip
    run = run_of(node, start, HANGING_STEPS)

    def work() -> Any:
        q, v, x, w = (np.asarray(run_end)[0] for run_end in map(run().get, start))
        return np.array([x, q - x, w, v - w])

    return work


def run_of(node: Any, start: dict[str, Any], steps: int) -> Any:
    graph = GraphManager()
    graph.add_node(node)
    simulation = graph.compile()
    options = {"initial_state": {node.name: start}, "record": (), "progress": False}
    return lambda: simulation.run(steps=steps, **options).final_state.of(node.name)


def jiminy(gravity: float, start: tuple[float, ...], steps: int, stepper: dict[str, Any]) -> Any:
    """A worker that answers each line; the 0.1 ms that this takes are lost in the work."""
    worker = subprocess.Popen(
        [sys.executable, str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin
    assert worker.stdout
    assert worker.stderr
    case = {"urdf": PENDULUM, "gravity": gravity, "start": start, "steps": steps, "dt": DT}
    case |= {"armature": J, "flexibility": SPRING, "stepper": stepper}
    worker.stdin.write(json.dumps(case) + "\n")

    def work() -> Any:
        worker.stdin.write("\n")
        worker.stdin.flush()
        if not (line := worker.stdout.readline()):
            raise ImportError(worker.stderr.read().strip().splitlines()[-1])
        return np.array(json.loads(line))

    return work
