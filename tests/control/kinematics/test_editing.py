"""Payloads, locked joints, parts and pairs of robots, each against Pinocchio's own model of it.

The functions are evaluated by Python here, on NumPy arrays: nothing compiles.
"""

import dataclasses
from inspect import unwrap

import jax
import numpy as np
import pinocchio as pin
import pytest

import mime.control.kinematics as kin
from compiling import QUICK
from mime.core.pose import pose_to_matrix
from mime.core.problem import InputError
from mime.models import model_path
from robot_files import robots
from sizes import sized

GRAVITY = np.array([0.3, -0.2, -9.81])
POSE = np.array([0.1, -0.2, 0.3, 0.5, 0.5, -0.5, 0.5])
INERTIA = np.array([[0.02, 0.003, 0.0], [0.003, 0.03, -0.001], [0.0, -0.001, 0.025]])
ALONG = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 0.0])
COM = np.array([0.05, -0.1, 0.2])
# Some hundred products in double precision on either side.
RTOL = 1e-12

rnea, mass_matrix = unwrap(kin.rnea), unwrap(kin.mass_matrix)
frame_transform = unwrap(kin.frame_transform)


@pytest.fixture(scope="module")
def arm():
    return kin.parse_urdf(model_path("desktop_arm_6axis"))


@pytest.fixture(scope="module")
def planar():
    return kin.parse_urdf(model_path("planar_arm_3link"))


def model_of(tree):
    model = pin.buildModelFromUrdf(tree.source)
    model.gravity.linear = GRAVITY
    return model


def assert_same(tree, model, gravity=GRAVITY):
    """Torques of three motions, and a frame; Pinocchio's joints by their names."""
    model.gravity.linear = gravity
    data, rng = model.createData(), np.random.default_rng(0)
    order = [model.joints[model.getJointId(name)].idx_v for name in tree.joint_names]
    assert sorted(order) == list(range(model.nv))
    for _ in range(3):
        q, qd, qdd = rng.uniform(-1.0, 1.0, (3, tree.num_joints))
        full = np.zeros((3, model.nv))
        full[:, order] = q, qd, qdd
        expected = pin.rnea(model, data, *full)[order]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            rnea(tree, q, qd, qdd, gravity), expected, rtol=0, atol=RTOL * scale
        )
        for name in tree.frame_names[1:]:
            if model.existFrame(name):
                pin.framesForwardKinematics(model, data, full[0])
                there = data.oMf[model.getFrameId(name)].homogeneous
                np.testing.assert_allclose(frame_transform(tree, q, name), there, atol=1e-12)


def test_a_payload_is_a_body_appended(arm):
    """Also where its link was merged: `tool` is fixed to link_6."""
    loaded = arm.with_payload("tool", 1.3, COM, INERTIA).with_payload("link_3", 0.4)
    model = model_of(arm)
    for link, body in (
        ("tool", pin.Inertia(1.3, COM, INERTIA)),
        ("link_3", pin.Inertia(0.4, np.zeros(3), np.zeros((3, 3)))),
    ):
        frame = model.frames[model.getFrameId(link)]
        model.appendBodyToJoint(frame.parentJoint, body, frame.placement)
    assert_same(loaded, model)
    np.testing.assert_allclose(loaded.inertial_origins, arm.inertial_origins, atol=1e-15)


def test_locked_joints_are_pinocchios_reduced_model(arm):
    model, q = model_of(arm), pin.neutral(model_of(arm))
    locked = {"joint_1": 0.7, "joint_4": -0.3, "joint_5": 0.2}
    for name, angle in locked.items():
        q[model.joints[model.getJointId(name)].idx_q] = angle
    ids = [model.getJointId(name) for name in locked]
    assert_same(arm.lock(**locked), pin.buildReducedModel(model, ids, q))


def test_a_part_of_a_robot_is_the_model_of_its_joints_alone(arm):
    part = arm.subtree("link_2", "link_5")
    whole, model = model_of(arm), pin.Model()
    at = 0
    base = whole.frames[whole.getFrameId("link_2")]
    for name in part.joint_names:
        j = whole.getJointId(name)
        place = whole.jointPlacements[j]
        place = base.placement.inverse() * place if at == 0 else place
        at = model.addJoint(at, whole.joints[j], place, name)
        model.appendBodyToJoint(at, whole.inertias[j], pin.SE3.Identity())
    assert part.joint_names == ("joint_3", "joint_4", "joint_5")
    assert part.root_link_name == "link_2"
    assert "link_6" not in part.frame_names
    assert "link_2" in part.frame_names
    assert_same(part, model)
    everything = arm.subtree("base_link")
    np.testing.assert_array_equal(everything.masses, arm.masses)
    assert arm.subtree("link_2").joint_names == arm.joint_names[2:]


@pytest.mark.parametrize(
    "name", ["panda_description/urdf/panda.urdf", "tiago_description/robots/tiago.urdf"]
)
def test_a_part_that_is_cut_before_reading_is_that_of_the_whole_robot(name):
    """Mimics, colours by name and what is fixed to a link come with it."""
    file = robots()[f"example-robot-data/{name}"]
    whole, rng = kin.parse_urdf(file), np.random.default_rng(1)
    for _ in range(sized(50, small=4)):
        root, tip = (str(name) for name in rng.choice(whole.frame_names, 2))
        try:
            part = whole.subtree(root, tip)
        except InputError:  # the tip is elsewhere
            tip, part = None, whole.subtree(root)
        wanted = root if tip is None else {"root": root, "tip": tip}
        read = kin.parse_urdf(file, subtree=wanted)
        for field in dataclasses.fields(part):
            if field.name != "report":
                mine, expected = (getattr(tree, field.name) for tree in (read, part))
                np.testing.assert_equal(mine, expected, err_msg=f"{wanted}: {field.name}")


def test_two_robots_as_one_are_pinocchios_appended_model(arm, planar):
    """The second robot's base, which stood still, now weighs on the first."""
    both = arm.attach(planar, "link_4", POSE, prefix="b_")
    model, other = model_of(arm), model_of(planar)
    for joint in list(other.names)[1:]:
        other.names[other.getJointId(joint)] = f"b_{joint}"
    for frame in other.frames:
        frame.name = f"b_{frame.name}"
    at = model.getFrameId("link_4")
    place = pin.SE3(np.asarray(pose_to_matrix(POSE)))
    assert_same(both, pin.appendModel(model, other, at, place))
    assert both.joint_names[6:] == tuple(f"b_{name}" for name in planar.joint_names)


def test_a_heavy_base_counts_when_it_is_attached(arm):
    base = arm.root_body
    assert base.mass > 0.5
    both = arm.attach(arm, "link_3", prefix="b_")
    assert float(both.masses[2] - arm.masses[2]) == pytest.approx(float(base.mass), rel=1e-14)
    locked = arm.lock(joint_1=0.0)
    total = float(arm.masses[0] + base.mass)
    assert float(locked.root_body.mass) == pytest.approx(total, rel=1e-14)


def test_a_named_frame_is_a_place_on_its_link(arm):
    named = arm.with_frame("grip", "link_3", POSE).with_frame("tip", "grip", POSE)
    q = np.linspace(-0.5, 0.5, 6)
    T = np.asarray(pose_to_matrix(POSE))
    expected = frame_transform(arm, q, "link_3") @ T @ T
    np.testing.assert_allclose(frame_transform(named, q, "tip"), expected, atol=1e-14)


@pytest.mark.small("lock")
@pytest.mark.parametrize(
    ("change", "x"),
    [
        (lambda tree, x: tree.with_payload("tool", x, x * COM, x * INERTIA), 1.3),
        (lambda tree, x: tree.lock(joint_4=x), 0.3),
        (
            lambda tree, x: tree.with_frame("f", "link_3", POSE + x * ALONG).with_payload("f", 1.0),
            1.0,
        ),
        (lambda tree, x: tree.attach(tree, "link_3", POSE + x * ALONG, prefix="b_"), 1.0),
    ],
    ids=["payload", "lock", "frame", "attach"],
)
def test_gradients_go_through_the_numbers(arm, change, x):
    def torque(x):
        tree = change(arm, x)
        q = np.linspace(-0.4, 0.6, tree.num_joints)
        return rnea(tree, q, None, q, GRAVITY)[1]

    h = 1e-5
    central = (torque(np.float64(x + h)) - torque(np.float64(x - h))) / (2 * h)
    # h² of truncation and 1e-16 / h of rounding
    slope = jax.jit(jax.grad(torque), compiler_options=QUICK)(x)
    assert float(slope) == pytest.approx(float(central), rel=1e-7)


def test_an_old_tree_stays_and_constants_stay_numpy(arm):
    before = arm.masses.copy()
    loaded = arm.with_payload("tool", 1.0)
    np.testing.assert_array_equal(arm.masses, before)
    for tree in (loaded, arm.lock(joint_2=0.1), arm.subtree("link_1", "tool")):
        leaves = jax.tree.leaves(tree)
        assert all(isinstance(leaf, np.ndarray) for leaf in leaves)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.with_payload("tol", 1.0), "no link 'tol'.*'tool'"),
        (lambda t: t.with_payload("tool", -1.0), "mass_kg must be >= 0 kg, got -1"),
        (lambda t: t.with_payload("tool", 1.0, (0, 0)), r"com_m must have shape \(3,\)"),
        (lambda t: t.with_payload("tool", 1.0, (0, 0, 0), np.eye(3)[::-1]), "moment below 0"),
        (lambda t: t.with_payload("tool", 1.0, (0, 0, 0), np.tri(3)), "must be symmetric"),
        (lambda t: t.with_payload("tool", "x"), "mass_kg must be numbers"),
        (lambda t: t.lock(joint_9=0.0), "joint_9 is no joint"),
        (lambda t: t.lock(joint_2=10.0), "the joint's limits; got 10"),
        (lambda t: t.lock(joint_2=float("nan")), "must be finite"),
        (lambda t: t.subtree("link_4", "link_2"), "'link_2' does not hang on 'link_4'"),
        (lambda t: t.attach(t, "tool"), "both have 'base_link'"),
        (lambda t: t.attach(t, "tool", POSE * 2, prefix="b_"), "unit quaternion"),
        (lambda t: t.with_frame("tool", "link_2"), "must be new, got 'tool'"),
        (lambda t: t.with_frame("x", "link_2", np.eye(4)), r"must have shape \(7,\)"),
        (lambda t: t.with_frame("", "link_2"), "must be a name"),
    ],
)
def test_what_is_refused_says_what_where_and_what_was_expected(arm, change, words):
    with pytest.raises(InputError, match=words):
        change(arm)


def test_a_locked_joint_takes_its_mimics_along(tmp_path):
    inertial = '<inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
    inertial += '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    body = '<link name="base"/>'
    for name, parent, extra in (
        ("a", "base", ""),
        ("b", "a", '<mimic joint="j_a" multiplier="-2" offset="0.1"/>'),
        ("c", "b", ""),
    ):
        body += f'<link name="{name}">{inertial}</link><joint name="j_{name}" type="continuous">'
        body += f'<parent link="{parent}"/><child link="{name}"/><origin xyz="0.3 0 0"/>'
        body += f'<axis xyz="0 1 0"/>{extra}</joint>'
    path = tmp_path / "mimic.urdf"
    path.write_text(f'<robot name="m">{body}</robot>')
    tree = kin.parse_urdf(path)
    locked = tree.lock(j_a=0.4)
    assert locked.joint_names == ("j_c",)
    q = np.array([0.4, 0.7])
    for frame in ("a", "b", "c"):
        whole = frame_transform(tree, q, frame)
        np.testing.assert_allclose(frame_transform(locked, q[1:], frame), whole, atol=1e-15)
    expected = rnea(tree, q, None, None, GRAVITY)[1:]
    np.testing.assert_allclose(rnea(locked, q[1:], None, None, GRAVITY), expected, rtol=1e-13)
    with pytest.raises(InputError, match="mimics another"):
        tree.lock(j_b=0.0)
