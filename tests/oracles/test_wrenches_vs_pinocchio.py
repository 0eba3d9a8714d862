"""Wrenches from outside beside Pinocchio's `aba(q, v, tau, fext)`: at links, at frames that are
merged into a link, at points that a user names, at the tool tip and at <inertial> origins; on a
base that stands turned.
"""

from importlib import metadata

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from mime import RobotArmNode

UR5 = next(
    str(file.locate())
    for file in metadata.files("example-robot-data")
    if str(file).endswith("/ur5_robot.urdf")
)
BASE = np.array([0.3, -0.2, 0.5, 0.8, 0.36, -0.48, 0.0])  # a unit quaternion
CORNER = np.array([0.02, -0.03, 0.1, 0.6, 0.0, 0.8, 0.0])
GRAVITY = np.array([0.0, 0.0, -9.80665])
FRAMES = ("wrist_2_link", "tool0", "ee_link", "corner")
RNG = np.random.default_rng(3)
Q, QD, TAU = RNG.uniform(-1, 1, (3, 6)) * [[1.5], [1.0], [20.0]]
STATE = {"joint_angles": jnp.asarray(Q), "joint_velocities": jnp.asarray(QD)}
WRENCHES = RNG.uniform(-20, 20, (4, 6))


def placement(pose):
    """`[x, y, z, qw, qx, qy, qz]` as Pinocchio has it."""
    return pin.SE3(pin.Quaternion(*pose[3:]).matrix(), np.asarray(pose[:3]))


@pytest.fixture(scope="module")
def arm():
    return RobotArmNode(
        "arm",
        1e-3,
        UR5,
        "tool0",
        end_effector_offset_in_link=CORNER,
        base_pose_world=BASE,
        gravity_world=GRAVITY,
        frames={"corner": {"link": "forearm_link", "pose": CORNER}},
        wrench_frames=FRAMES,
    )


@pytest.fixture(scope="module")
def model():
    """The same robot and frame, on the same base."""
    model = pin.buildModelFromUrdf(UR5)
    model.jointPlacements[1] = placement(BASE) * model.jointPlacements[1]
    model.gravity.linear = GRAVITY
    forearm = model.frames[model.getFrameId("forearm_link")]
    corner = forearm.placement * placement(CORNER)
    model.addFrame(
        pin.Frame("corner", forearm.parentJoint, 0, corner, pin.FrameType.OP_FRAME), False
    )
    return model


def theirs(model, places):
    """q̈ for wrenches in world axes at places (joint, placement in the joint's frame)."""
    data = model.createData()
    pin.forwardKinematics(model, data, Q)
    forces = pin.StdVec_Force()
    forces.extend([pin.Force.Zero() for _ in range(model.njoints)])
    for (joint, place), wrench in places:
        turned = (data.oMi[joint] * place).rotation.T
        at_place = pin.Force(turned @ wrench[:3], turned @ wrench[3:])
        forces[joint] += place.act(at_place)
    return pin.aba(model, data, Q, QD, TAU, forces)


def ours(arm, **wrenches):
    return arm.accelerations(STATE, {"commanded_joint_torques": TAU, **wrenches})[0]


def frame(model, name):
    found = model.frames[model.getFrameId(name)]
    return found.parentJoint, found.placement


def agree(found, expected):
    # The mass matrix of a UR5 has a condition of some 1e3.
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("which", [[0], [1], [2], [3], [0, 1, 2, 3]])
def test_a_wrench_acts_at_the_link_frame_or_point_that_is_named(arm, model, which):
    wrenches = np.zeros((4, 6))
    wrenches[which] = WRENCHES[which]
    places = [(frame(model, FRAMES[k]), WRENCHES[k]) for k in which]
    agree(ours(arm, external_wrenches_at_frames=wrenches), theirs(model, places))


def test_a_wrench_acts_at_the_tool_tip(arm, model):
    joint, tool = frame(model, "tool0")
    places = [((joint, tool * placement(CORNER)), WRENCHES[0])]
    agree(ours(arm, end_effector_wrench_world=WRENCHES[0]), theirs(model, places))


def test_wrenches_of_links_act_at_their_own_inertial_origins(arm, model):
    """UR5's <inertial> are those of single links; none is merged with another one's mass."""
    wrenches = RNG.uniform(-20, 20, (6, 6))
    places = []
    for name, wrench in zip(arm.tree.link_names, wrenches, strict=True):
        joint, link = frame(model, name)
        np.testing.assert_allclose(link.homogeneous, np.eye(4), atol=1e-15)
        centre = pin.SE3(np.eye(3), model.inertias[joint].lever)
        places.append(((joint, centre), wrench))
    agree(ours(arm, external_wrenches_per_link=wrenches), theirs(model, places))


def test_they_are_external_torques_of_the_arm_too(arm, model):
    """Σ Jᵀ F by Pinocchio's Jacobians at the frames."""
    data = model.createData()
    expected = TAU.copy()
    for name, wrench in zip(FRAMES, WRENCHES, strict=True):
        J = pin.computeFrameJacobian(
            model, data, Q, model.getFrameId(name), pin.LOCAL_WORLD_ALIGNED
        )
        expected += J.T @ wrench
    inputs = {"commanded_joint_torques": TAU, "external_wrenches_at_frames": WRENCHES}
    fluxes = arm.compute_boundary_fluxes(STATE, arm.complete_inputs(inputs, Q.dtype), 1e-3)
    agree(np.asarray(fluxes["joint_torques_actual"]), expected)
