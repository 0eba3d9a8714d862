"""Names of links and joints that are not there: the nearest right ones, at most three."""

import numpy as np
import pytest

from mime import Payload, RobotArmNode, ToolPathNode, parse_robot, parse_urdf
from mime._text import counted, nearest, unknown_name
from mime.control.inverse_kinematics import solve_ik
from mime.control.kinematics import frame_pose
from mime.models import model_path

FILE = model_path("desktop_arm_6axis")
TREE = parse_robot(FILE)


def arm(**options):
    return RobotArmNode("arm", 1e-3, FILE, **{"end_effector_link_name": "tool"} | options)


LINK = {
    "tree.frame": lambda name: TREE.frame(name),
    "frame_pose": lambda name: frame_pose(TREE, np.zeros(6), name),
    "subtree root": lambda name: TREE.subtree(name),
    "subtree tip": lambda name: TREE.subtree("base_link", name),
    "attach": lambda name: TREE.attach(TREE, name, prefix="b_"),
    "with_payload": lambda name: TREE.with_payload(name, 1.0),
    "with_frame": lambda name: TREE.with_frame("grip", name),
    "solve_ik": lambda name: solve_ik(TREE, name, [0, 0, 0, 1, 0, 0, 0], np.zeros(6)),
    "end effector": lambda name: arm(end_effector_link_name=name),
    "wrench frames": lambda name: arm(wrench_frames=[name]),
    "payload": lambda name: arm(payload=Payload(name, 1.0)),
    "subtree of an arm": lambda name: arm(subtree={"root": name}),
    "attach to an arm": lambda name: arm(attach=[{"urdf_path": TREE, "link": name}]),
    "frames of an arm": lambda name: arm(frames={"grip": {"link": name}}),
    "tool path": lambda name: ToolPathNode(
        "path", 1e-3, TREE, name, np.zeros(6), 0.1, waypoints_m=np.eye(3)
    ),
    "address": lambda name: arm().with_params(**{f"link[{name}].mass_kg": 1.0}),
    "origins of a file": lambda name: TREE.to_urdf("x", origins={f"link[{name}].mass_kg": "x"}),
}
JOINT = {
    "lock": lambda name: TREE.lock({name: 0.0}),
    "lock of an arm": lambda name: arm(lock={name: 0.0}),
    "a mapping": lambda name: arm(joint_friction_n_m_s={name: 0.1}),
    "stiffness": lambda name: arm(joint_stiffness_n_m_per_rad={name: 100.0}),
    "address": lambda name: arm().with_params(**{f"joint[{name}].gear_ratio": 2.0}),
}


def few_names(words: str, known: tuple[str, ...]) -> int:
    return sum(f"'{name}'" in words or f"[{name}]" in words for name in known)


@pytest.mark.parametrize("what", LINK)
def test_an_unknown_link_is_answered_with_the_nearest_and_how_many_there_are(what):
    with pytest.raises((KeyError, ValueError)) as refusal:
        LINK[what]("lnk_2")
    words = str(refusal.value).replace('"', "")
    assert "(did you mean 'link_2', 'link_" in words or "(did you mean 'link[link_2]'" in words
    assert 1 <= few_names(words, TREE.frame_names) <= 3
    with pytest.raises((KeyError, ValueError)) as refusal:
        LINK[what]("zzzzzzzz")
    words = str(refusal.value)
    if what != "origins of a file":  # whose names are all like `link[...]`
        assert "did you mean" not in words
    assert 1 <= few_names(words, TREE.frame_names) <= 3


@pytest.mark.parametrize("what", JOINT)
def test_an_unknown_joint_is_answered_with_the_nearest_and_how_many_there_are(what):
    with pytest.raises(ValueError, match="did you mean 'joint_2', 'joint_") as refusal:
        JOINT[what]("jont_2")
    assert 1 <= few_names(str(refusal.value), TREE.joint_names) <= 3
    assert f"{TREE.num_joints} joints" in str(refusal.value)


def test_a_parent_or_a_master_of_a_file_that_is_not_there_is_answered_with_the_nearest(tmp_path):
    file = tmp_path / "arm.urdf"
    text = FILE.read_text()
    file.write_text(text.replace('<parent link="link_2"/>', '<parent link="lnk_2"/>'))
    with pytest.raises(ValueError, match=r"does not exist \(did you mean 'link_2', 'link_"):
        parse_urdf(file)
    file.write_text(text.replace("</joint>", '<mimic joint="jont_1"/></joint>', 2))
    with pytest.raises(ValueError, match=r"does not exist \(did you mean 'joint_1', 'joint_"):
        parse_urdf(file)


def test_words_are_few_and_of_any_value():
    assert nearest("tol", ["tool", "toes", "hand"], 3) == " (did you mean 'tool' or 'toes'?)"
    assert nearest("tol", ["tool", "hand"]) == " (did you mean 'tool'?)"
    assert nearest("x", []) == ""
    assert counted("x", [], "link") == "0 links"
    assert counted("x", ["a"], "link") == "1 link: 'a'"
    assert counted("x", ["a1", "b1", "c1", "d1"], "link") == "4 links: 'a1', 'b1', 'c1', ..."
    assert counted("tol", ["tool", "b1", "c1", "d1"], "link") == "4 links"
    assert unknown_name(None, ["a"], "link") == ("names no link None", "It has 1 link: 'a'")
    assert len("".join(unknown_name("x" * 10**6, ["y" * 10**6] * 9, "link"))) < 1000
