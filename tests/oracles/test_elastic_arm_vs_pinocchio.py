"""An arm with elastic joints against Pinocchio, whose model has the springs' joints and bodies.

MIME-VER-125. Pinocchio knows no transmission, so the series elastic arm is put together from its
articulated-body algorithm and the rotors' own equation; the inserted bodies are real joints there.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from mime.control.kinematics import parse_urdf
from mime.models import model_path
from mime.nodes.actuation.robot_arm import RobotArmNode

GRAVITY = np.array([0.3, -0.2, -9.81])
N = 6
K = np.array([400.0, 300.0, 250.0, 80.0, 60.0, 30.0])
V = np.array([0.4, 0.3, 0.2, 0.1, 0.05, 0.02])
ROTOR = np.full(N, 2e-5)
GEAR = np.array([100.0, 80.0, 50.0, 50.0, 30.0, 20.0])
BALL = np.array([1e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5])
FRICTION = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
# Some hundred products on both sides, and the condition of M with light balls in it (1e4).
RTOL = 1e-10


@pytest.fixture(scope="module")
def tree():
    return parse_urdf(model_path("desktop_arm_6axis"))


def arm(tree, elastic, **options):
    stiffness = np.where(np.isin(np.arange(N), elastic), K, np.inf)
    return RobotArmNode(
        "arm",
        1e-3,
        tree,
        "tool",
        gravity_world=GRAVITY,
        joint_friction_n_m_s=FRICTION,
        rotor_inertia_kg_m2=ROTOR,
        gear_ratio=GEAR,
        joint_stiffness_n_m_per_rad=stiffness,
        joint_stiffness_damping_n_m_s=V,
        **options,
    )


def with_balls(model, elastic, gravity=GRAVITY):
    """The model with a spring's joint and a ball before each elastic joint, armatures behind."""
    new = pin.Model()
    new.gravity.linear = gravity
    armature = []
    for j in range(1, model.njoints):
        parent, placement = model.parents[j], model.jointPlacements[j]
        parent = 0 if parent == 0 else new.getJointId(model.names[parent])
        axis = _axis(model, j)
        if j - 1 in elastic:
            joint = pin.JointModelRevoluteUnaligned(axis)
            parent = new.addJoint(parent, joint, placement, f"{model.names[j]}_spring")
            ball = pin.Inertia(0.0, np.zeros(3), BALL[j - 1] * np.eye(3))
            new.appendBodyToJoint(parent, ball, pin.SE3.Identity())
            placement = pin.SE3.Identity()
            armature.append(0.0)
        joint = pin.JointModelRevoluteUnaligned(axis)
        here = new.addJoint(parent, joint, placement, model.names[j])
        new.appendBodyToJoint(here, model.inertias[j], pin.SE3.Identity())
        armature.append(GEAR[j - 1] ** 2 * ROTOR[j - 1])
    new.armature = np.array(armature)
    return new


def _axis(model, j):
    q = pin.neutral(model)
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    return pin.getJointJacobian(model, data, j, pin.ReferenceFrame.LOCAL)[3:, j - 1]


def random_motion(seed, e):
    rng = np.random.default_rng(seed)
    return (
        {
            "joint_angles": jnp.asarray(rng.uniform(-0.7, 0.7, N)),
            "joint_velocities": jnp.asarray(rng.normal(size=N)),
            "joint_deflections": jnp.asarray(rng.normal(size=e) * 0.05),
            "joint_deflection_velocities": jnp.asarray(rng.normal(size=e)),
        },
        rng.normal(size=N) * 5,
    )


@pytest.mark.parametrize("elastic", [(0, 1, 2, 3, 4, 5), (1, 2, 4)], ids=["all", "mixed"])
def test_inserted_bodies_accelerate_as_in_pinocchio(tree, elastic, record_figure):
    model = with_balls(pin.buildModelFromUrdf(tree.source), elastic)
    data = model.createData()
    balls = np.where(np.isin(np.arange(N), elastic), BALL, 0.0)
    node = arm(tree, elastic, joint_model="inserted_body", inserted_inertia_kg_m2=balls)
    accelerations = jax.jit(lambda *of: node.accelerations(*of))
    worst = 0.0
    for seed in range(20):
        state, tau = random_motion(seed, len(elastic))
        q, qd, x, xd = (np.asarray(value) for value in state.values())
        z, zd, torques = [], [], []
        for j in range(N):
            motor, motor_velocity = q[j], qd[j]
            if j in elastic:
                e = elastic.index(j)
                motor, motor_velocity = q[j] - x[e], qd[j] - xd[e]
                z, zd = [*z, x[e]], [*zd, xd[e]]
                torques.append(-K[j] * x[e] - V[j] * xd[e])
            z, zd = [*z, motor], [*zd, motor_velocity]
            torques.append(tau[j] - FRICTION[j] * motor_velocity)
        zdd = pin.aba(model, data, np.array(z), np.array(zd), np.array(torques))
        spring = [model.getJointId(f"{tree.joint_names[j]}_spring") - 1 for j in elastic]
        xdd = zdd[spring]
        qdd = zdd[[model.getJointId(name) - 1 for name in tree.joint_names]]
        qdd[list(elastic)] += xdd
        ours = accelerations(state, {"commanded_joint_torques": tau})
        for mine, theirs in zip(ours, (qdd, xdd), strict=True):
            worst = max(worst, np.max(np.abs(mine - theirs)) / np.max(np.abs(theirs)))
    record_figure("relative difference of accelerations", worst)
    assert worst < RTOL


@pytest.mark.parametrize("elastic", [(0, 1, 2, 3, 4, 5), (1, 2, 4)], ids=["all", "mixed"])
def test_series_elastic_joints_accelerate_as_in_pinocchio(tree, elastic, record_figure):
    model = pin.buildModelFromUrdf(tree.source)
    model.gravity.linear = GRAVITY
    rigid = np.array([j not in elastic for j in range(N)])
    J = GEAR**2 * ROTOR
    model.armature = np.where(rigid, J, 0.0)
    data = model.createData()
    node = arm(tree, elastic)
    accelerations = jax.jit(lambda *of: node.accelerations(*of))
    worst = 0.0
    for seed in range(20):
        state, tau = random_motion(seed, len(elastic))
        q, qd, x, xd = (np.asarray(value) for value in state.values())
        k, v, e = K[list(elastic)], V[list(elastic)], list(elastic)
        spring = k * x + v * xd
        torques = np.where(rigid, tau - FRICTION * qd, 0.0)
        torques[e] -= spring
        qdd = pin.aba(model, data, q, qd, torques)
        rotor = (tau[e] - FRICTION[e] * (qd[e] - xd) + spring) / J[e]
        ours = accelerations(state, {"commanded_joint_torques": tau})
        for mine, theirs in zip(ours, (qdd, qdd[e] - rotor), strict=True):
            worst = max(worst, np.max(np.abs(mine - theirs)) / np.max(np.abs(theirs)))
    record_figure("relative difference of accelerations", worst)
    assert worst < RTOL


def test_wrenches_reach_the_links_behind_inserted_bodies(tree):
    elastic = (1, 4)
    model = with_balls(pin.buildModelFromUrdf(tree.source), elastic)
    data = model.createData()
    balls = np.where(np.isin(np.arange(N), elastic), BALL, 0.0)
    node = arm(tree, elastic, joint_model="inserted_body", inserted_inertia_kg_m2=balls)
    rng = np.random.default_rng(3)
    state, tau = random_motion(3, 2)
    q, qd, x, xd = (np.asarray(value) for value in state.values())
    wrenches = rng.normal(size=(N, 6))
    z = np.insert(q, [1, 4], x)
    zd = np.insert(qd, [1, 4], xd)
    z[[2, 6]] -= x
    zd[[2, 6]] -= xd
    torques = np.insert(
        tau - FRICTION * np.delete(zd, [1, 5]), [1, 4], -K[[1, 4]] * x - V[[1, 4]] * xd
    )
    pin.forwardKinematics(model, data, z)
    forces = pin.StdVec_Force()
    for _ in range(model.njoints):
        forces.append(pin.Force.Zero())
    for i, name in enumerate(tree.joint_names):
        j = model.getJointId(name)
        placement = data.oMi[j]
        com = pin.SE3(placement.rotation.T, model.inertias[j].lever)
        forces[j] = com.act(pin.Force(wrenches[i]))
    theirs = pin.aba(model, data, z, zd, torques, forces)
    qdd, xdd = node.accelerations(
        state, {"commanded_joint_torques": tau, "external_wrenches_per_link": wrenches}
    )
    expected = np.delete(theirs, [1, 5])
    expected[[1, 4]] += theirs[[1, 5]]
    np.testing.assert_allclose(xdd, theirs[[1, 5]], rtol=RTOL)
    np.testing.assert_allclose(qdd, expected, rtol=RTOL, atol=RTOL * np.abs(expected).max())
