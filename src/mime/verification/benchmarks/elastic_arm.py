"""MIME-VER-126 to 128: an arm with springs in its joints, against the rigid arm and its energy.

MIME-VER-125, against Pinocchio, is in `elastic_arm_pinocchio`.
"""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mime.control.kinematics import KinematicTree, parse_urdf
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.robot_arm import FREE, planar, plane
from mime.verification.convergence import order_error
from mime.verification.programs import rollout, varying

MODELS = ("sea", "inserted_body")
URDF = """<robot name="pendulum">
  <link name="base"/>
  <joint name="hinge" type="continuous">
    <parent link="base"/><child link="bob"/><axis xyz="0 1 0"/>
  </joint>
  <link name="bob"><inertial><origin xyz="0 0 -1"/><mass value="5"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
</robot>"""
PENDULUM = {"mass_kg": 5.0, "length_m": 1.0}


@cache
def pendulum() -> KinematicTree:
    """A point below a hinge: I = m l² = 5 kg·m²."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pendulum.urdf"
        path.write_text(URDF, encoding="utf-8")
        return parse_urdf(path)


def arm(Arm, tree: KinematicTree, dt: float, rotor: float, **springs: Any) -> Any:
    """An arm without friction and limits; its springs' stiffness is an argument of programs."""
    n = tree.num_joints
    free = {"joint_limit_override": FREE[:n], "joint_friction_n_m_s": np.zeros(n)}
    rotors = {"rotor_inertia_kg_m2": np.full(n, rotor)}
    node = Arm("arm", dt, tree, tree.link_names[-1], **rotors, **free, **springs)
    return varying(node, "joint_stiffness_n_m_per_rad") if node.elastic_joints else node


def springs(n: int, model: str, stiffness: Any, ball: float) -> dict[str, Any]:
    """The options of an arm whose joints all have springs; `ball` is the inserted inertia."""
    body = {} if model == "sea" else {"inserted_inertia_kg_m2": np.full(n, ball)}
    k = np.broadcast_to(np.asarray(stiffness, float), n).copy()
    return {"joint_stiffness_n_m_per_rad": k, "joint_model": model, **body}


def _softened(Arm):
    """no spring stiffer than 1e4 N·m/rad"""

    def build(*args: Any, **options: Any) -> Any:
        k = options.get("joint_stiffness_n_m_per_rad")
        capped = {} if k is None else {"joint_stiffness_n_m_per_rad": np.minimum(k, 1e4)}
        return Arm(*args, **options | capped)

    return build


@benchmark(126, "A stiff spring is the rigid arm", RobotArmNode, _softened)
def stiff(
    Arm,
    *,
    model="planar_arm_3link",
    rotor_inertia_kg_m2=0.02,
    inserted_inertia_kg_m2=1e-9,
    stiffness_n_m_per_rad=(1e5, 1e7, 1e9),
    start_rad=(0.4, -0.3, 0.5),
    commanded_joint_torques_n_m=(4.0, 2.0, 1.0),
    timestep_s=1e-3,
    steps=500,
):
    """q(t; k) - q(t; inf) = O(tau/k)

    Reference: The rigid arm with the rotors on the diagonal of M: the limit k -> infinity. A torque
    tau winds a spring up by tau/k.
    Procedure:
    1. Start with the springs wound up by the arm's weight; backward Euler for the springs.
    2. Run under constant torques and compare the joint angles with the rigid arm's.
    3. Do so for each stiffness and for both models of the joint.
    Covers: the limit of both models of an elastic joint; springs far too stiff for the step
    Excludes: what a soft spring does (MIME-VER-125, 128)
    """
    q, inputs = np.array(start_rad), {"commanded_joint_torques": commanded_joint_torques_n_m}
    links = Arm, planar(), timestep_s, rotor_inertia_kg_m2
    rigid = rollout(arm(*links), inputs, steps, start={"joint_angles": q})["joint_angles"]
    curves = {}
    for joint in MODELS:
        differences = []
        for k in stiffness_n_m_per_rad:
            options = springs(3, joint, k, inserted_inertia_kg_m2)
            node = arm(*links, **options, spring_integrator="backward_euler")
            ours = rollout(node, inputs, steps, start=node.state_holding(q))
            differences.append(largest(ours["joint_angles"] - rigid))
            yield Measurement(
                f"difference of angles, {joint}, k = {k:.0e} N·m/rad",
                differences[-1],
                limit=10 / k + 5e-8,
                unit="rad",
                why="some N·m wind a spring up by some 1/k; the ball is 5e-8 of a rotor",
            )
        curves[joint] = tuple(differences)
    compliances = tuple(1 / k for k in stiffness_n_m_per_rad)
    yield Convergence(
        "compliance 1/k (rad/(N·m))", compliances, "difference of angles (rad)", curves, 1.0
    )
    yield order_error(
        "order in 1/k, sea", compliances, curves["sea"], 1, 0.01, "rounding beside 1.5e-9 rad"
    )


@benchmark(
    127,
    "A spring far too stiff for the step",
    RobotArmNode,
    scaled("joint_stiffness_n_m_per_rad", 0.5),
)
def far_too_stiff(
    Arm,
    *,
    body=PENDULUM,
    rotor_inertia_kg_m2=1e-5,
    inserted_inertia_kg_m2=1e-5,
    stiffness_n_m_per_rad=1e6,
    commanded_joint_torque_n_m=20.0,
    timestep_s=1e-3,
    steps=5000,
):
    """mean(x) = -u/k,   q = q_rigid,   at sqrt(k/(J + I_f)) dt = 224

    Reference: The rigid pendulum, and x = -u/k: a light rotor hands its torque on. The spring
    swings at sqrt(k/(J + I_f)), 224 rad per step.
    Procedure:
    1. Start the pendulum moving, its spring swinging, and run under a constant torque.
    2. Compare the angle with the rigid pendulum's.
    3. Compare the deflection's running mean over 100 steps with -u/k.
    Covers: stability at any stiffness, both rules for the spring
    Excludes: the swing itself, which such a step does not resolve
    """
    u, k = commanded_joint_torque_n_m, stiffness_n_m_per_rad
    inputs = {"commanded_joint_torques": [u]}
    start = {"joint_angles": [0.5], "joint_velocities": [0.2]}
    links = Arm, pendulum(), timestep_s, rotor_inertia_kg_m2
    rigid = rollout(arm(*links), inputs, steps, start=start)["joint_angles"]
    start |= {"joint_deflection_velocities": [0.1]}
    for rule in ("midpoint", "backward_euler"):
        options = springs(1, "inserted_body", k, inserted_inertia_kg_m2)
        ours = rollout(arm(*links, **options, spring_integrator=rule), inputs, steps, start=start)
        yield Measurement(
            f"difference from the rigid pendulum, {rule}",
            largest(ours["joint_angles"] - rigid),
            limit=1e-4,
            unit="rad",
            why="the deflection, 2e-5, and the rotor's share of the momentum, 2e-6 of the motion",
        )
        mean = np.convolve(ours["joint_deflections"][:, 0], np.ones(100) / 100, "valid")
        yield Measurement(
            f"mean deflection over -u/k, distance from 1, {rule}",
            largest(mean / (-u / k) - 1),
            limit=1e-2,
            why="the swing that is left in a mean over 100 steps",
        )


@benchmark(
    128, "Energy of a free elastic arm", RobotArmNode, scaled("joint_stiffness_n_m_per_rad", 0.5)
)
def energy(
    Arm,
    *,
    model="planar_arm_3link",
    rotor_inertia_kg_m2=0.02,
    inserted_inertia_kg_m2=1e-12,
    stiffness_n_m_per_rad=(200.0, 100.0, 50.0),
    start_rad=(1.2, 0.3, -0.2),
    deflections_rad=(0.05, -0.05, 0.1),
    samples=1000,
    sampling_interval_s=2e-3,
    steps_per_sample=(20, 10, 5),
):
    """E = q̇ᵀ M q̇ / 2 + V(q) + Σ J θ̇² / 2 + Σ k x² / 2 = constant,   θ = q - x

    Reference: E = q̇ᵀ M q̇ / 2 + Σ m_i g z_i + Σ J θ̇² / 2 + Σ k x² / 2 of three bars, rotors and
    springs, which is constant.
    Procedure:
    1. Release the arm with wound springs; neither torque nor damping.
    2. Look at E at the samples, over the swing of the potential energy.
    3. Double the step twice and fit the order of the largest error.
    Covers: springs, rotors and links as one conservative system, both models
    Excludes: damping; the inserted body's own energy, 1e-12 kg·m²
    """
    J, k, curves = rotor_inertia_kg_m2, np.array(stiffness_n_m_per_rad), {}
    timesteps = tuple(sampling_interval_s / every for every in steps_per_sample)
    start = {"joint_angles": start_rad, "joint_deflections": deflections_rad}

    def error(node, dt, every):
        states = rollout(node, {}, samples, every=every, dt=dt, start=start)
        q, qd, x, xd = (states[name] for name in node.state_spec())
        truth = plane(q, qd)
        links = 0.5 * np.einsum("ti,tij,tj->t", qd, truth.M, qd) + truth.V
        E = links + 0.5 * np.sum(J * (qd - xd) ** 2 + k * x**2, axis=1)
        return largest(E - E[0]) / float(np.ptp(truth.V))

    for joint in MODELS:
        options = springs(3, joint, k, inserted_inertia_kg_m2)
        node = arm(Arm, planar(), timesteps[0], J, **options)
        curves[joint] = tuple(error(node, *of) for of in zip(timesteps, steps_per_sample))
        yield Measurement(
            f"largest error over the swing of V, {joint}",
            curves[joint][0],
            limit=3e-3,
            why="of first order in the step for gravity and Coriolis, of second for the springs",
        )
        yield order_error(f"order of the error, {joint}", timesteps, curves[joint], 1, limit=0.1)
    label = "largest error of the energy over the swing of V"
    yield Convergence("timestep (s)", timesteps, label, curves, 1.0)
