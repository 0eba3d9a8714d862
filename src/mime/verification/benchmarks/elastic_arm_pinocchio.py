"""MIME-VER-125: an arm with elastic joints against Pinocchio.

Pinocchio knows no transmission, so the series elastic arm is put together from its articulated-body
algorithm and the rotors' own equation; the inserted bodies are real joints of a model there.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.control.kinematics import KinematicTree, parse_urdf
from mime.models import model_path
from mime.native.folding import jit_folding
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import Measurement, benchmark, largest, scaled
from mime.verification.programs import QUICK, varying

N = 6
GRAVITY = np.array([0.3, -0.2, -9.81])
K = np.array([400.0, 300.0, 250.0, 80.0, 60.0, 30.0])
V = np.array([0.4, 0.3, 0.2, 0.1, 0.05, 0.02])
ROTOR = np.full(N, 2e-5)
GEAR = np.array([100.0, 80.0, 50.0, 50.0, 30.0, 20.0])
BALL = np.array([1e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5])
FRICTION = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
ELASTIC = {"all": (0, 1, 2, 3, 4, 5), "three of six": (1, 2, 4)}

Joints = tuple[int, ...]
Motion = dict[str, np.ndarray]


@cache
def desktop() -> KinematicTree:
    """The bundled arm of six joints."""
    return parse_urdf(model_path("desktop_arm_6axis"))


def elastic_arm(Arm, elastic: Joints, model: str) -> Any:
    """The arm with springs in some joints; their stiffness is an argument of programs."""
    chosen = np.isin(np.arange(N), elastic)
    inserted = model == "inserted_body"
    body = {"inserted_inertia_kg_m2": np.where(chosen, BALL, 0.0)} if inserted else {}
    node = Arm(
        "arm",
        1e-3,
        desktop(),
        "tool",
        gravity_world=GRAVITY,
        joint_friction_n_m_s=FRICTION,
        rotor_inertia_kg_m2=ROTOR,
        gear_ratio=GEAR,
        joint_stiffness_n_m_per_rad=np.where(chosen, K, np.inf),
        joint_stiffness_damping_n_m_s=V,
        joint_model=model,
        **body,
    )
    return varying(node, "joint_stiffness_n_m_per_rad")


def random_motion(seed: int, e: int) -> tuple[Motion, np.ndarray]:
    """A state of the arm with e elastic joints, and torques."""
    rng = np.random.default_rng(seed)
    motion = {
        "joint_angles": rng.uniform(-0.7, 0.7, N),
        "joint_velocities": rng.normal(size=N),
        "joint_deflections": rng.normal(size=e) * 0.05,
        "joint_deflection_velocities": rng.normal(size=e),
    }
    return motion, rng.normal(size=N) * 5


def with_balls(elastic: Joints) -> Any:
    """Pinocchio's model with a spring's joint and a ball before each elastic joint."""
    import pinocchio as pin

    model, new, armature = pin.buildModelFromUrdf(desktop().source), pin.Model(), []
    data = model.createData()
    pin.computeJointJacobians(model, data, pin.neutral(model))
    new.gravity.linear = GRAVITY
    for j in range(1, model.njoints):
        parent, placement = model.parents[j], model.jointPlacements[j]
        parent = 0 if parent == 0 else new.getJointId(model.names[parent])
        local = pin.getJointJacobian(model, data, j, pin.ReferenceFrame.LOCAL)
        joint = pin.JointModelRevoluteUnaligned(local[3:, j - 1])
        if j - 1 in elastic:
            parent = new.addJoint(parent, joint, placement, f"{model.names[j]}_spring")
            ball = pin.Inertia(0.0, np.zeros(3), BALL[j - 1] * np.eye(3))
            new.appendBodyToJoint(parent, ball, pin.SE3.Identity())
            placement = pin.SE3.Identity()
            armature.append(0.0)
        here = new.addJoint(parent, joint, placement, model.names[j])
        new.appendBodyToJoint(here, model.inertias[j], pin.SE3.Identity())
        armature.append(GEAR[j - 1] ** 2 * ROTOR[j - 1])
    new.armature = np.array(armature)
    return new


def _inserted(elastic: Joints, motion: Motion, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q̈ and ẍ by Pinocchio, springs and motors as joints one after the other."""
    import pinocchio as pin

    model, names = with_balls(elastic), desktop().joint_names
    q, qd, x, xd = motion.values()
    z: list[float] = []
    zd: list[float] = []
    torques = []
    for j in range(N):
        motor, motor_velocity = q[j], qd[j]
        if j in elastic:
            e = elastic.index(j)
            motor, motor_velocity = q[j] - x[e], qd[j] - xd[e]
            z.append(x[e])
            zd.append(xd[e])
            torques.append(-K[j] * x[e] - V[j] * xd[e])
        z.append(motor)
        zd.append(motor_velocity)
        torques.append(tau[j] - FRICTION[j] * motor_velocity)
    zdd = pin.aba(model, model.createData(), np.array(z), np.array(zd), np.array(torques))
    xdd = zdd[[model.getJointId(f"{names[j]}_spring") - 1 for j in elastic]]
    qdd = zdd[[model.getJointId(name) - 1 for name in names]]
    qdd[list(elastic)] += xdd
    return qdd, xdd


def _series(elastic: Joints, motion: Motion, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M q̈ + c + g = -k x - v ẋ by Pinocchio,   J θ̈ = tau - f θ̇ + k x + v ẋ,   x = q - θ"""
    import pinocchio as pin

    model, e = pin.buildModelFromUrdf(desktop().source), list(elastic)
    rigid, J = ~np.isin(np.arange(N), e), GEAR**2 * ROTOR
    model.gravity.linear = GRAVITY
    model.armature = np.where(rigid, J, 0.0)
    q, qd, x, xd = motion.values()
    spring = K[e] * x + V[e] * xd
    torques = np.where(rigid, tau - FRICTION * qd, 0.0)
    torques[e] -= spring
    qdd = pin.aba(model, model.createData(), q, qd, torques)
    rotor = (tau[e] - FRICTION[e] * (qd[e] - xd) + spring) / J[e]
    return qdd, qdd[e] - rotor


def _accelerate(node: RobotArmNode, motions: Any, tau: Any) -> Any:
    def one(motion: Any, tau: Any) -> Any:
        return node.accelerations(motion, {"commanded_joint_torques": tau})

    return jax.vmap(one)(motions, tau)


_accelerations = jit_folding(_accelerate, compiler_options=QUICK)


@benchmark(
    125,
    "Elastic arm against Pinocchio",
    RobotArmNode,
    scaled("joint_stiffness_n_m_per_rad", 0.5),
    kind="independent code",
    needs=("pinocchio",),
)
def accelerations(
    Arm,
    *,
    model="desktop_arm_6axis",
    gravity_m_per_s2=GRAVITY,
    stiffness_n_m_per_rad=K,
    spring_damping_n_m_s=V,
    friction_n_m_s=FRICTION,
    rotor_inertia_kg_m2=ROTOR,
    gear_ratio=GEAR,
    inserted_inertia_kg_m2=BALL,
    states=20,
):
    """M(q) q̈ + c + g = -k x - v ẋ,   J θ̈ = tau - f θ̇ + k x + v ẋ,   x = q - θ

    Reference: Pinocchio's `aba`. `inserted_body`: its model has a joint and a ball more before each
    elastic joint. `sea`: its rigid arm under the springs' torques, and the rotors by
    J θ̈ = tau - f θ̇ + k x + v ẋ.
    Procedure:
    1. Draw states and torques (seeds from 0).
    2. Compare the accelerations of links and deflections, over the largest of them.
    3. Do so with springs in all joints and in three of six, for both models.
    Covers: the equations of both models of an elastic joint; rigid beside elastic joints
    Excludes: steps in time (MIME-VER-126 to 128); wrenches from outside (in the tests)
    """
    for joint, reference in (("sea", _series), ("inserted_body", _inserted)):
        for label, elastic in ELASTIC.items():
            drawn = [random_motion(seed, len(elastic)) for seed in range(states)]
            motions = jax.tree.map(lambda *x: jnp.stack(x), *(motion for motion, _ in drawn))
            tau = jnp.stack([torques for _, torques in drawn])
            ours = _accelerations(elastic_arm(Arm, elastic, joint), motions, tau)
            theirs = [reference(elastic, *of) for of in drawn]
            errors = [
                largest(np.asarray(mine[state]) - truth[i]) / largest(truth[i])
                for state, truth in enumerate(theirs)
                for i, mine in enumerate(ours)
            ]
            yield Measurement(
                f"relative error of accelerations, {joint}, {label}",
                largest(errors),
                limit=1e-10,
                why="some hundred roundings on both sides, and the condition of M with light "
                "balls in it, 1e4",
            )
