"""What `parse_xacro` expands, and what it does not let a file do."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import RobotArmNode, load_scenario
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
