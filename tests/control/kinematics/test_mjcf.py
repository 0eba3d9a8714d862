"""What is read of an MJCF, and what is refused or left out with a word."""

import math
import sys

import mujoco
import numpy as np
import pytest

from mime import Finding, RobotArmNode, parse_robot
from mime.control.kinematics import (
    MjcfError,
    RobotFileWarning,
    UrdfError,
    actuator_torques,
    mass_matrix,
    nonlinear_bias,
    parse_mjcf,
    parse_urdf,
)
from mime.control.kinematics.actuator import DcMotor
from mime.core.problem import InputError
from mime.models import model_path
from mjcf_files import write_everything

BODY = '<body name="a"><joint name="j" axis="0 1 0"/><geom name="g" size="0.1"/></body>'


def written(tmp_path, inside):
    """A pendulum with something more in it."""
    file = tmp_path / "robot.xml"
    file.write_text(f"<mujoco>\n<worldbody>\n{BODY}\n</worldbody>\n{inside}\n</mujoco>")
    return file


@pytest.fixture
def everything(tmp_path):
    return parse_mjcf(write_everything(tmp_path / "robot"))


def test_joints_have_their_limits_springs_friction_and_gears(everything):
    tree = everything
    assert tree.joint_names == ("rootx", "roota", "rootb", "elbow", "grip", "joint_5")
    assert tree.link_names == ("torso/rootx", "torso/roota", "torso", "arm", "finger", "second")
    np.testing.assert_allclose(tree.joint_limits[3], np.deg2rad([-150, 150]))
    np.testing.assert_allclose(tree.joint_limits[4], [-0.1, 0.2])
    assert np.isinf(tree.joint_limits[1]).all()
    np.testing.assert_allclose(tree.spring_stiffness_n_m_per_rad, [4, 4, 4, 4, 0, 2])
    np.testing.assert_allclose(tree.spring_reference_rad[1], np.deg2rad(20))
    np.testing.assert_allclose(tree.joint_coulomb_friction, [0.1, 0.1, 0.1, 0.1, 0.1, 0])
    assert tree.joint_friction[0] == pytest.approx(0.3 + 30**2 * 0.002)
    assert tree.armature[0] == pytest.approx(0.02 + 30**2 * 0.001)
    np.testing.assert_array_equal(tree.gear_ratio, [30, 1, -3, 2, 12, 1])
    # push: 30 times its control of 1; elbow: what its actuatorfrcrange lets through.
    assert tree.effort_limits[0] == 30.0
    assert tree.effort_limits[3] == 7.0
    assert math.isinf(tree.effort_limits[1])
    assert tree.gravity_m_per_s2 == (0.3, -0.5, -9.7)


def test_actuators_sites_keyframes_and_shapes_are_kept_as_data(everything):
    by_name = {actuator.name: actuator for actuator in everything.actuators}
    assert by_name["hold"].gain == (12.0, 0.0, 0.0)
    assert by_name["hold"].bias == (0.0, -12.0, -0.7)
    assert by_name["hold"].force_range == (-3.0, 5.0)
    assert by_name["law"].gain == (2.0, 0.3, 0.4)
    assert by_name["drive"].motor == DcMotor(0.05, 1.5, 0.0, 0.002, 7.0, 0.3)
    assert {"tool", "origin_mark", "post", "flange", "site/arm"} <= set(everything.frame_names)
    (key,) = everything.keyframes
    assert key.name == "home"
    assert key.joint_angles == (0.1, 0.2, 0.3, 0.4, 0.05, 0.6)
    assert key.controls == (1.0, 2.0, 3.0, 4.0, 5.0)
    shapes = [visual.shape for visual in everything.visuals]
    assert shapes == ["box", "capsule", "mesh", "cylinder", "sphere"]
    assert everything.visuals[0].size == (0.2, 0.2, 0.4)
    assert everything.visuals[2].mesh_path.endswith("wedge.obj")


def test_the_report_says_what_was_left_out_and_what_was_renamed(everything):
    assert any("jointpos" in words for words in everything.ignored)
    (renamed,) = [finding for finding in everything.report if finding.rule == "renamed"]
    assert renamed.what == "site 'arm' has the name of a body or a site"
    assert renamed.line is not None
    assert str(renamed).endswith("its frame is 'site/arm'")
    assert all(isinstance(finding, Finding) for finding in everything.report)
    assert "its frame is 'site/arm'" in repr(everything)


def test_all_that_has_no_counterpart_is_refused_at_once_each_with_its_line(tmp_path):
    two = '<worldbody><body name="b"><joint name="k" type="ball"/><geom size="0.1"/></body>'
    inside = [
        '<option density="1"/>',
        f"{two}</worldbody>",
        '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>',
        '<equality><weld body1="b"/></equality>',
    ]
    file = written(tmp_path, "\n".join(inside))
    with pytest.raises(MjcfError) as refusal:
        parse_mjcf(file)
    assert [finding.line for finding in refusal.value.findings] == [6, 8]
    with pytest.raises(MjcfError) as refusal:
        parse_mjcf(file, on_problem="refuse")
    assert [f.line for f in refusal.value.findings if f.kind != "noted"] == [5, 6, 7, 8]


COUPLED = """<mujoco><compiler angle="radian"/><worldbody>
<body name="a"><joint name="j" axis="0 1 0" ref="0.3" damping="0.1" armature="0.02"
stiffness="2" springref="0.5"/><geom size="0.1" pos="0.2 0.1 0.3"/>
<body name="b" pos="0 0 1"><joint name="k" axis="0 1 0.2" ref="-0.2" damping="0.3" armature="0.05"
stiffness="3" springref="0.7"/><geom size="0.1" pos="0.1 0 0.2"/>
<body name="c" pos="0 0 1"><joint name="s" type="slide" axis="1 0 1" armature="0.4"/>
<geom size="0.1" pos="0 0.2 0"/></body></body></body></worldbody>
<equality><joint joint1="k" joint2="j" polycoef="0.4 -1.5 0 0 0"/>
<joint joint1="s" joint2="k" polycoef="0.1 0.5 0 0 0"/></equality>
<actuator><position name="p" joint="k" kp="7" kv="0.5" gear="2" forcerange="-3 3"/>
<motor name="m" joint="s" gear="4"/></actuator></mujoco>"""


def test_a_linear_equality_is_a_mimic_as_mujoco_s_matrices_reduced_to_its_master(tmp_path):
    """q = T z + c:  M_z = Tᵀ M T, and likewise springs, dampers and actuators."""
    (tmp_path / "coupled.xml").write_text(COUPLED)
    tree = parse_mjcf(tmp_path / "coupled.xml")
    assert (tree.joint_names, tree.num_links) == (("j",), 3)
    model = mujoco.MjModel.from_xml_string(COUPLED)
    data = mujoco.MjData(model)
    z, zd, u = np.array([0.8]), np.array([0.6]), np.array([0.9, -0.4])
    T = np.array([1.0, -1.5, -0.75])
    data.qpos[:] = [z[0], -0.2 + 0.4 - 1.5 * (z[0] - 0.3), 0.1 + 0.5 * (0.4 - 1.5 * (z[0] - 0.3))]
    data.qvel[:], data.ctrl[:] = T * zd, u
    mujoco.mj_forward(model, data)
    M = np.zeros((3, 3))
    mujoco.mj_fullM(model, data, M)
    # one rounding of each of some twenty products
    np.testing.assert_allclose(mass_matrix(tree, z), [[T @ M @ T]], rtol=1e-14)
    bias = nonlinear_bias(tree, z, zd, np.array(tree.gravity_m_per_s2))
    np.testing.assert_allclose(bias, [T @ data.qfrc_bias], rtol=1e-13)
    np.testing.assert_allclose(tree.joint_friction * zd, [-T @ data.qfrc_damper], rtol=1e-14)
    k, relaxed = tree.spring_stiffness_n_m_per_rad, tree.spring_reference_rad
    np.testing.assert_allclose(-k * (z - relaxed), [T @ data.qfrc_spring], rtol=1e-13)
    tau = actuator_torques(tree, u, z, zd)
    np.testing.assert_allclose(tau, [T @ data.qfrc_actuator], rtol=1e-14)


def test_a_constant_equality_holds_its_joint_and_those_that_mimic_it(tmp_path):
    held = COUPLED.replace("</equality>", '<joint joint1="j" polycoef="0.2 0 0 0 0"/></equality>')
    (tmp_path / "held.xml").write_text(held)
    tree = parse_mjcf(tmp_path / "held.xml")
    assert tree.joint_names == ()
    model = mujoco.MjModel.from_xml_string(held)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.3 + 0.2, -0.2 + 0.4 - 1.5 * 0.2, 0.1 + 0.5 * (0.4 - 1.5 * 0.2)]
    mujoco.mj_forward(model, data)
    for name in "abc":
        offset = tree.frame(name).offset
        np.testing.assert_allclose(offset[:3, 3], data.body(name).xpos, atol=1e-15)
        np.testing.assert_allclose(offset[:3, :3].ravel(), data.body(name).xmat, atol=1e-15)


FREE = """<mujoco><worldbody><body name="post"/><site name="mark"/>
<body name="hull" pos="1 2 3" quat="0.6 0 0.8 0"><freejoint/><site name="eye" pos="0.1 0 0"/>
<inertial mass="2" pos="0 0 0.1" diaginertia="0.2 0.3 0.25"/><body name="arm" pos="0.2 0 0">
<joint name="j" axis="0 1 0"/><inertial mass="1" pos="0 0 0.2" diaginertia="0.1 0.1 0.01"/></body>
</body></worldbody><keyframe><key qpos="1 1 1 0.8 0.6 0 0 0.3" qvel="1 2 3 4 5 6 7"/></keyframe>
</mujoco>"""


def test_the_body_of_a_free_joint_is_a_base_that_floats_or_is_held(tmp_path):
    (tmp_path / "free.xml").write_text(FREE)
    tree = parse_mjcf(tmp_path / "free.xml")
    assert (tree.base, tree.root_link_name, tree.joint_names) == ("floating", "hull", ("j",))
    assert tree.base_start_pose_world == (1, 2, 3, 0.6, 0, 0.8, 0)
    assert tree.frame_names == ("hull", "arm", "eye")
    assert any("'post' stands still beside the base" in note for note in tree.ignored)
    (key,) = tree.keyframes
    assert key.base_pose_world == (1, 1, 1, 0.8, 0.6, 0, 0)
    # w = R (4, 5, 6) with R about x by the angle whose cosine is 0.8² - 0.6² = 0.28
    expected = (1, 2, 3, 4, 0.28 * 5 - 0.96 * 6, 0.96 * 5 + 0.28 * 6)
    np.testing.assert_allclose(key.base_twist_world, expected, rtol=1e-15)
    tree.to_mjcf(tmp_path / "again.xml")
    (again,) = parse_mjcf(tmp_path / "again.xml").keyframes
    np.testing.assert_allclose(again.base_twist_world, expected, rtol=1e-15)
    held = parse_mjcf(tmp_path / "free.xml", base="fixed")
    assert (held.base, held.root_link_name) == ("fixed", "world")
    np.testing.assert_allclose(held.frame("hull").offset[:3, 3], [1, 2, 3])
    held.with_base("floating").to_mjcf(tmp_path / "floats.xml")
    assert parse_mjcf(tmp_path / "floats.xml").base == "floating"
    tree.with_base("fixed").to_mjcf(tmp_path / "stands.xml")
    assert parse_mjcf(tmp_path / "stands.xml").base == "fixed"
    damped = FREE.replace("<freejoint/>", '<joint type="free" damping="1" stiffness="2"/>')
    (tmp_path / "damped.xml").write_text(damped)
    with pytest.warns(RobotFileWarning, match=r"free and has damping(?s:.)*free and has a spring"):
        parse_mjcf(tmp_path / "damped.xml")


def test_flags_switch_physics_off_as_in_mujoco(tmp_path):
    flags = "<flag spring='disable' damper='disable' gravity='disable' contact='disable' "
    flags += "limit='disable' frictionloss='disable' actuation='disable'/>"
    inside = f"<option>{flags}</option><default><joint stiffness='1' damping='1' range='-1 1' "
    inside += "frictionloss='1'/></default><actuator><motor joint='j'/></actuator>"
    inside += '<worldbody><geom type="plane" size="1 1 1"/></worldbody>'
    tree = parse_mjcf(written(tmp_path, inside))
    assert tree.spring_stiffness_n_m_per_rad is None
    assert tree.gravity_m_per_s2 == (0.0, 0.0, 0.0)
    assert not np.any([tree.joint_friction, tree.joint_coulomb_friction])
    assert np.isinf(tree.joint_limits).all()
    assert tree.actuators == ()


def test_a_file_is_read_by_its_root_element_and_an_arm_takes_both(tmp_path):
    file = written(tmp_path, "")
    assert parse_robot(file).joint_names == ("j",)
    urdf = tmp_path / "arm.xml"
    urdf.write_bytes(model_path("planar_arm_3link").read_bytes())
    assert parse_robot(urdf).num_joints == 3
    arm = RobotArmNode("arm", 1e-3, file, "a")
    assert arm.validate_mime_consistency() == []
    np.testing.assert_array_equal(arm.gravity_world, [0, 0, -9.81])
    wet = written(tmp_path, '<option density="1.2"/>')
    with pytest.raises(MjcfError, match="is a fluid"):
        RobotArmNode("arm", 1e-3, wet, "a", on_problem="refuse")
    with pytest.warns(RobotFileWarning, match="is a fluid"):
        RobotArmNode("arm", 1e-3, wet, "a")
    with pytest.raises(InputError, match="on_problem must be 'warn', 'refuse' or 'mend'"):
        parse_mjcf(wet, on_problem="ignore")
    with pytest.raises(MjcfError, match="the root element is <robot>; expected <mujoco>"):
        parse_mjcf(urdf)
    with pytest.raises(UrdfError, match="the root element is <mujoco>; expected <robot>"):
        parse_urdf(file)


def test_without_mujoco_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MjcfError, match=r"pip install 'mime-sim\[mjcf\]'"):
        parse_mjcf(written(tmp_path, ""))
    parse_urdf(model_path("planar_arm_3link")).to_mjcf(tmp_path / "out.xml")  # writing needs none


def test_an_elastic_arm_with_springs_beside_its_joints_is_held_by_their_sum(tmp_path):
    inside = '<default><joint stiffness="3" springref="40" armature="0.1"/></default>'
    arm = RobotArmNode(
        "arm", 1e-3, written(tmp_path, inside), "a", joint_stiffness_n_m_per_rad=[100.0]
    )
    state = arm.state_holding(np.array([0.2]))
    hold = -100.0 * float(state["joint_deflections"][0])  # the ball turns about its centre
    assert hold == pytest.approx(3.0 * (0.2 - np.deg2rad(40)))
    qdd, xdd = arm.accelerations(state, {"commanded_joint_torques": np.array([hold])})
    assert float(qdd[0]) == pytest.approx(0.0, abs=1e-9)
    assert float(xdd[0]) == pytest.approx(0.0, abs=1e-9)
