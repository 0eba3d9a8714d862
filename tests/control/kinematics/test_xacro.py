"""What `parse_xacro` expands, and what it does not let a file do."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import RobotArmNode, load_scenario
from mime.core.problem import InputError
from mime.scenarios.source import ScenarioError
from xacro_files import ESCAPE, INERTIAL, write_arm


@pytest.fixture
def arm(tmp_path) -> Path:
    return write_arm(tmp_path)


def test_macros_expressions_arguments_and_packages_are_expanded(arm, tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    tree = kin.parse_xacro(arm, arguments={"joints": 3})
    assert tree.joint_names == ("j0", "j1", "j2")
    np.testing.assert_array_equal(tree.masses, [1.0, 2.0, 4.0])
    assert tree.joint_frames[0, 0, 3] == 0.1 + 0.2
    assert (tree.source, tree.report) == (str(arm), ())
    assert tree.visuals[0].mesh_path == str(tmp_path / "ros" / "deep" / "parts" / "a.stl")
    plain = tmp_path / "plain.urdf"
    plain.write_text(kin.expand_xacro(arm, arguments={"joints": 3}))
    again = kin.parse_urdf(plain)
    np.testing.assert_array_equal(again.masses, tree.masses)
    np.testing.assert_array_equal(again.joint_frames, tree.joint_frames)


def test_a_missing_package_names_itself_and_where_it_was_looked_for(arm, tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", "/nowhere")
    place = f"search_path '{tmp_path}/robot', ROS_PACKAGE_PATH '/nowhere', AMENT_"
    with pytest.raises(kin.UrdfError, match=f"package 'parts' not found in {place}"):
        kin.parse_xacro(arm, search_path=[tmp_path / "robot"])
    assert kin.parse_robot(arm, search_path=[tmp_path / "ros"]).num_joints == 2


def test_code_is_run_only_where_it_was_asked_for_by_name(arm, tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    assert RobotArmNode("arm", 1e-3, arm, "l1").tree.num_joints == 2  # its suffix says it
    with pytest.raises(ScenarioError, match="is code, which MIME runs only when told to"):
        load_scenario("arm_3link_pd", [f"arm.urdf_path={arm}"])

    def never(*_, **__):
        raise AssertionError("xacro was run")

    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(AssertionError, match="xacro was run"):
        kin.parse_robot(arm)
    other = arm.rename(arm.with_name("arm.urdf"))
    for parse in (kin.parse_urdf, kin.parse_robot):
        with pytest.raises(kin.UrdfError, match="holds xacro macros; expected plain URDF"):
            parse(other, on_problem="mend")


HEAD = '<robot name="{}" xmlns:xacro="http://www.ros.org/wiki/xacro">'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.format(ESCAPE.format("system('touch made')")) + "</robot>", "os.system b'touch m"),
        (HEAD.format(ESCAPE.format("listdir('..')")) + "</robot>", "os.listdir '..' is not"),
        (HEAD.format(ESCAPE.format("mkdir('made')")) + "</robot>", "os.mkdir 'made' is not"),
        (HEAD.format("${load_yaml('../secret.yaml')}") + "</robot>", "is not allowed"),
        (HEAD.format("a") + '<xacro:include filename="../secret.yaml"/></robot>', "not allowed"),
        (HEAD.format("a") + '<xacro:include filename="gone.xacro"/></robot>', "No such file"),
        (HEAD.format("a") + '<xacro:include filename="*.gone"/></robot>', "matched no files"),
        (HEAD.format("a") + "<xacro:unknown/></robot>", "unknown macro name: xacro:unknown"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>', "expands no entities"),
        (HEAD.format("${1/0}") + "</robot>", "division by zero"),
        ("<robot", "cannot be expanded by xacro"),
    ],
)
def test_what_a_file_may_not_do_is_refused_in_words(tmp_path, text, message):
    (tmp_path / "secret.yaml").write_text("a: 1")
    (tmp_path / "robot").mkdir()
    file = tmp_path / "robot" / "bad.xacro"
    file.write_text(text)
    if "*.gone" in text:  # what is left is a robot
        links = '<link name="a"/><link name="b">' + INERTIAL.replace("${mass}", "1") + "</link>"
        joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint>'
        file.write_text(text.replace("</robot>", links + joint + "</robot>"))
        with pytest.warns(kin.RobotFileWarning, match="whose pattern matches no file"):
            assert [f.rule for f in kin.parse_xacro(file).report] == ["include", "unlimited"]
        return
    with pytest.raises(kin.UrdfError, match=re.escape(message)) as refusal:
        kin.parse_xacro(file)
    assert str(refusal.value).startswith(str(file))
    assert sorted(path.name for path in file.parent.iterdir()) == ["bad.xacro"]


ARGUED = """<robot name="$(arg kind)_$(arg prefix)" xmlns:xacro="http://www.ros.org/wiki/xacro">
<!-- <xacro:arg name="old" default="1"/> -->
<xacro:arg name="prefix" default="&quot;left&quot;"/><xacro:arg default='5.125' name='mass'/>
<xacro:arg name="file" default="$(arg kind).xacro"/>
<xacro:include filename="part.xacro"/>
<link name="a"/><link name="b"><inertial><mass value="$(arg mass)"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""
PART = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="size" default="2"/>
<xacro:if value="$(arg DEBUG)"><link name="c"/></xacro:if></robot>"""


def test_arguments_that_a_file_needs_are_asked_for_in_one_message(tmp_path):
    file = tmp_path / "robot.xacro"
    file.write_text(ARGUED)
    (tmp_path / "part.xacro").write_text(PART)
    with pytest.raises(kin.UrdfError) as refusal:
        kin.parse_xacro(file)
    assert str(refusal.value) == (
        f"{file}: robot.xacro needs arguments: kind (no default). It also takes: "
        """prefix = '"left"', mass = '5.125', file = '$(arg kind).xacro'. """
        "Pass arguments={'kind': ...}, or --arg kind=VALUE on the command line."
    )
    with pytest.raises(kin.UrdfError, match=r"needs arguments: DEBUG \(no default\)") as refusal:
        kin.parse_xacro(file, arguments={"kind": "x"})  # of the include, which is read by now
    assert "size = '2'" in str(refusal.value)
    given = {"kind": "x", "DEBUG": False}
    tree = kin.parse_xacro(file, arguments=given)
    assert (tree.name, float(tree.masses[0])) == ('x_"left"', 5.125)
    (note,) = tree.report
    assert note.what.startswith("argument 'prefix' is used before its <xacro:arg>")
    assert kin.parse_xacro(file, arguments=given | {"mass": 2, "prefix": "p"}).report == ()
    for wrong in ({"mas": 2}, {"old": 2}):
        with pytest.raises(kin.UrdfError, match=r"has no argument '(mas'.*'mass'|old')"):
            kin.parse_xacro(file, arguments=given | wrong)


def test_a_file_that_an_argument_names_and_that_is_not_there_is_told_with_the_arguments(tmp_path):
    file = tmp_path / "robot.xacro"
    file.write_text(
        ARGUED.replace("part.xacro", "$(arg size).xacro").replace(
            "<link", '<xacro:arg name="size" default="nine"/><link', 1
        )
    )
    with pytest.raises(kin.UrdfError, match="No such file") as refusal:
        kin.parse_xacro(file, arguments={"kind": "x", "prefix": "p"})
    words = str(refusal.value)
    assert "It takes arguments: size = 'nine', mass = '5.125'" in words  # that of the name first
    assert "--arg size=VALUE" in words


def test_arguments_for_a_file_that_is_no_xacro_are_refused(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text(ARGUED)
    with pytest.raises(InputError, match=r"arguments are for xacro, and 'robot\.urdf' is read as"):
        kin.parse_robot(file, arguments={"kind": "x"})
    given = {"kind": "x", "DEBUG": False}
    (tmp_path / "part.xacro").write_text(PART)
    assert kin.parse_xacro(file, arguments=given).num_joints == 1
    renamed = file.rename(tmp_path / "robot.urdf.xacro")
    assert kin.parse_robot(renamed, arguments=given).num_joints == 1
