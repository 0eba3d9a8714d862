"""What is read of an MJCF, and what is refused or left out with a word."""

import math
import pickle
import sys

import numpy as np
import pytest

from mime import Finding, RobotArmNode, parse_robot
from mime.control.kinematics import MjcfError, UrdfError, parse_mjcf, parse_urdf
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


def test_the_report_says_what_was_left_out_and_what_was_mended(everything):
    what = {finding.what: finding for finding in everything.report}
    assert any("jointpos" in words for words in everything.ignored)
    (mended,) = [finding for finding in everything.report if finding.mended]
    assert mended.what == "site 'arm' has the name of a body or a site"
    assert mended.line is not None
    assert str(mended).endswith("its frame is 'site/arm'")
    assert all(isinstance(finding, Finding) for finding in what.values())
    assert "its frame is 'site/arm'" in repr(everything)


LEFT_OUT = {
    '<equality><joint joint1="j"/></equality>': "is an equality of joints",
    '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>': "fixed 't' is a tendon",
    '<actuator><intvelocity joint="j" kp="1" actrange="-1 1"/></actuator>': "a state of its own",
    '<actuator><position joint="j" kp="1" timeconst="1"/></actuator>': "a state of its own",
    '<actuator><pid joint="j" kp="1" ki="1"/></actuator>': "has a state of its own",
    '<actuator><muscle joint="j" lengthrange="0 1"/></actuator>': "has a state of its own",
    '<actuator><motor joint="j" damping="1 2"/></actuator>': "a damping that is not linear",
    '<actuator><motor joint="j" delay="0.1" nsample="4"/></actuator>': "has a delay",
    '<actuator><adhesion body="a" ctrlrange="0 1"/></actuator>': "acts on no joint",
    '<actuator><dcmotor joint="j" motorconst="1" resistance="1" lugre="1 1 1 1 1"/></actuator>': (
        "LuGre friction"
    ),
    '<actuator><dcmotor joint="j" motorconst="1" resistance="1" input="pos"/></actuator>': (
        "not commanded by its voltage"
    ),
    '<default/><worldbody><geom type="plane" size="1 1 1"/></worldbody>': "2 geoms in all have",
}


@pytest.mark.parametrize("inside", LEFT_OUT)
def test_contacts_tendons_equalities_and_other_actuators_are_refused_or_left_out(tmp_path, inside):
    file, expected = written(tmp_path, inside), LEFT_OUT[inside]
    with pytest.raises(MjcfError, match=expected) as refusal:
        parse_mjcf(file)
    assert str(refusal.value).startswith(f"{file}:")
    assert "on_problem='report'" in str(refusal.value)
    tree = parse_mjcf(file, on_problem="report")
    assert any(expected in note for note in tree.ignored)
    assert tree.report[0].line == refusal.value.findings[0].line
    assert tree.actuators == ()


TWO = '<worldbody><body name="b"><joint name="k"/><geom size="0.1" contype="0"/></body></worldbody>'
REFUSED = {
    '<worldbody><body name="b"><joint type="ball"/><geom size="1"/></body></worldbody>': "a ball",
    '<worldbody><body name="b"><freejoint/><geom size="1"/></body></worldbody>': (
        "'j' moves beside the body that flies freely"
    ),
    '<worldbody><body><freejoint/><geom size="1"/></body><body><freejoint/><geom size="1"/></body>'
    "</worldbody>": "one of 2 bodies that fly freely",
    f'{TWO}<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>': "closes a loop",
    f'{TWO}<equality><weld body1="a"/></equality>': "closes a loop",
    '<option density="1.2"/>': "is a fluid of density 1.2",
    '<default><joint stiffness="1 2"/></default>': "a stiffness that is not linear",
    '<default><joint damping="1 2"/></default>': "a damping that is not linear",
    '<default><joint stiffness="1" springyield="0.1"/></default>': "has a spring that yields",
    '<default><joint armature="-1"/></default>': "has armature -1; expected 0 or more",
    "<extension/>": "loads code",
    "<deformable/>": "is soft",
    "<wheels/>": "is not known inside <mujoco>",
    "<sensor><body/></sensor>": "does not belong inside <sensor>",
    '<default><joint type="bal"/></default>': "MuJoCo does not read <joint>",
    '<actuator><motor joint="q"/></actuator>': "MuJoCo does not read <motor>",
}


@pytest.mark.parametrize("inside", REFUSED)
def test_what_would_be_another_machine_is_refused_always(tmp_path, inside):
    file = written(tmp_path, inside)
    with pytest.raises(MjcfError, match=REFUSED[inside]) as refusal:
        parse_mjcf(file, on_problem="report")
    line = refusal.value.findings[0].line
    assert str(refusal.value).startswith(f"{file}:{line}: ")
    assert pickle.loads(pickle.dumps(refusal.value)).findings == refusal.value.findings


def test_all_that_has_no_counterpart_is_refused_at_once_each_with_its_line(tmp_path):
    inside = "\n".join(['<option density="1"/>', *list(LEFT_OUT)[:2], next(iter(REFUSED))])
    with pytest.raises(MjcfError) as refusal:
        parse_mjcf(written(tmp_path, inside))
    assert sorted(finding.line for finding in refusal.value.findings) == [3, 5, 6, 7, 8]
    assert len(str(refusal.value).splitlines()) == 5


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
    with pytest.raises(MjcfError, match=r"free and has damping(?s:.)*free and has a spring"):
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
    contact = written(tmp_path, list(LEFT_OUT)[-1])
    with pytest.raises(MjcfError, match="have contacts"):
        RobotArmNode("arm", 1e-3, contact, "a")
    assert RobotArmNode("arm", 1e-3, contact, "a", on_problem="report").tree.report
    with pytest.raises(InputError, match="on_problem must be 'refuse' or 'report'"):
        parse_mjcf(contact, on_problem="ignore")
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
