"""Spoilt MJCF: each loads with MuJoCo's own numbers and nothing dropped, or is refused in words.

`MIME_FUZZ` is how many: `make fuzz` tries 10,000.
"""

import os
import pickle
import random
import re
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import jax
import mujoco
import numpy as np
import pytest

from mime.control.kinematics import MjcfError, parse_mjcf
from mime.control.kinematics.compensation import by_actuators
from mjcf_files import EVERYTHING, PARTS, TETRAHEDRON
from tree_dynamics import compensating_torques, mass_and_bias

HOW_MANY = int(os.environ.get("MIME_FUZZ", "80"))

LOOP = """<mujoco><worldbody><body name="a"><joint name="j"/><geom name="g" size="0.1"/>
<body name="b" pos="1 0 0"><joint name="k" type="ball"/><geom name="h" size="0.1"/></body></body>
<body name="c"><freejoint/><geom size="0.1"/></body></worldbody>
<equality><connect body1="a" body2="b" anchor="0 0 0"/><joint joint1="j"/></equality>
<contact><pair geom1="g" geom2="h"/></contact>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
<actuator><muscle joint="j" lengthrange="0 1"/><motor tendon="t"/><cylinder joint="j"/></actuator>
</mujoco>"""
RELIEVED = EVERYTHING.replace("<body ", '<body gravcomp="0.6" ').replace(
    'name="elbow"', 'name="elbow" actuatorgravcomp="true"'
)
ROBOTS = [EVERYTHING, RELIEVED, LOOP]
VALUES = ["nan", "inf", "-inf", "1e308", "-1e200", "1e-320", "0", "-1", "", "x" * 300, "1 2", "ä"]
VALUES += [
    "1_0",
    "0x10",
    "0 0 0",
    "1e200 0 0",
    "nan 0 0",
    "arm",
    "elbow",
    "true",
    "1e9",
    "99999999",
]
VALUES += ["/etc/passwd", "../secret.xml", "../secret.obj", "http://a/b.obj", "wedge.obj", "ball"]
NAMES = [
    "inertial",
    "joint",
    "body",
    "geom",
    "site",
    "freejoint",
    "include",
    "mesh",
    "foo",
    "plugin",
]
NAMES += ["tendon", "equality", "composite", "replicate", "attach", "frame", "hfield", "flexcomp"]


def spoilt(draw: random.Random) -> bytes:
    """A robot with one to three things wrong."""
    text = draw.choice(ROBOTS)
    if draw.random() < 0.2:
        content = bytearray(text.encode())
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        return bytes(content)
    if draw.random() < 0.05:
        declaration = '<?xml version="1.0"?>\n'
        entity = '<!DOCTYPE mujoco [<!ENTITY a SYSTEM "../secret.xml">]>'
        return (
            draw.choice(
                (" \n" + declaration, declaration + entity, declaration + "<!-- a -- b -->")
            ).encode()
            + text.encode()
        )
    robot = ElementTree.fromstring(text)
    for _ in range(draw.choice((1, 1, 2, 3))):
        parents = {part: parent for parent in robot.iter() for part in parent}
        part = draw.choice(list(parents))
        parent = parents[part]
        what = draw.choice(("value", "value", "value", "delete", "twice", "drop", "name", "move"))
        if what == "value" and part.attrib:
            part.set(draw.choice([*part.attrib, "file", "damping"]), draw.choice(VALUES))
        elif what == "delete" and part.attrib:
            del part.attrib[draw.choice(list(part.attrib))]
        elif what == "twice":
            parent.insert(draw.randint(0, len(parent)), part)
        elif what == "drop":
            parent.remove(part)
        elif what == "name":
            part.tag = draw.choice(NAMES)
        elif what == "move":
            parent.remove(part)
            draw.choice(list(robot.iter())).append(part)
    return ElementTree.tostring(robot, encoding="utf-8")


def plain(file: Path) -> Path:
    """The file without what has nothing of the mechanics: MIME does not look inside of that."""
    text = re.sub(rb"<!--.*?-->", b"", file.read_bytes().strip(), flags=re.DOTALL)
    robot = ElementTree.fromstring(text)
    for parent in list(robot.iter()):
        unseen = [part for part in parent if part.tag in ("size", "sensor", "light")]
        for part in unseen:
            parent.remove(part)
    ElementTree.ElementTree(robot).write(file.with_name("plain.xml"))
    return file.with_name("plain.xml")


def check_dynamics(tree, file: Path) -> None:
    """The tree has the numbers of MuJoCo, which reads the same file: no physics was dropped."""
    leaves = [values for values in jax.tree.leaves(tree) if values.shape != (tree.num_joints, 2)]
    assert not any(np.any(np.isnan(values)) for values in leaves)
    model = mujoco.MjModel.from_xml_path(str(plain(file)))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    data, n = mujoco.MjData(model), model.nv
    assert n == tree.num_joints
    rng = np.random.default_rng(3)
    data.qpos[:], data.qvel[:] = rng.uniform(-0.5, 0.5, (2, n))
    mujoco.mj_forward(model, data)
    gravity = np.array(tree.gravity_m_per_s2)
    M, bias = mass_and_bias(tree, np.array(data.qpos), np.array(data.qvel), gravity)
    theirs = np.zeros((n, n))
    for k in range(n):
        mujoco.mj_mulM(model, data, theirs[k], np.eye(n)[k])
    passive = -tree.joint_friction * data.qvel
    if tree.spring_stiffness_n_m_per_rad is not None:
        stretch = data.qpos - tree.spring_reference_rad
        passive = passive - tree.spring_stiffness_n_m_per_rad * stretch
    if tree.compensated_masses is not None:
        borne = compensating_torques(tree, np.array(data.qpos), gravity)
        passive = passive + np.where(by_actuators(tree), 0, borne)
    for ours, found in ((M, theirs), (bias, data.qfrc_bias), (passive, data.qfrc_passive)):
        scale = max(float(np.max(np.abs(found))), 1e-6)
        np.testing.assert_allclose(ours, found, rtol=0, atol=1e-9 * scale)


def check_robot(content: bytes, file: Path) -> bool:
    """True when it loaded, with MuJoCo's dynamics; False when it was refused as it should be."""
    file.write_bytes(content)
    refusals = []
    for on_problem in ("refuse", "warn"):
        try:
            tree = parse_mjcf(file, on_problem=on_problem)
        except MjcfError as error:
            refusals.append(error)
    assert not Path("MUJOCO_LOG.TXT").exists(), "MuJoCo wrote into the current folder"
    for refusal in refusals:
        words = str(refusal)
        place = f"{re.escape(str(file.parent))}/(robot|parts).xml"
        assert re.match(rf"{place}(:\d+)?: ", words), words
        assert len(words) <= 2000
        assert str(pickle.loads(pickle.dumps(refusal))) == words
    if len(refusals) == 2:
        return False
    assert not refusals or tree.report, "left out without a word"
    check_dynamics(tree, file)
    return True


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for the robot, a package, beside files that are none of its business."""
    inside = tmp_path / "robot"
    (inside / "meshes").mkdir(parents=True)
    (inside / "package.xml").write_text("<package/>")
    (inside / "meshes" / "wedge.obj").write_text(TETRAHEDRON)
    (inside / "parts.xml").write_text(PARTS)
    for name in ("secret.xml", "secret.obj"):
        (tmp_path / name).write_text("<mujoco/>")
    monkeypatch.chdir(tmp_path)
    return inside


OPENED: list[str] = []
WATCHING: list[bool] = []


def _watch(event, arguments):
    if WATCHING and event == "open":
        OPENED.append(str(arguments[0]))


sys.addaudithook(_watch)


def test_a_spoilt_robot_has_mujocos_dynamics_or_is_refused(folder):
    draw = random.Random(17)
    warnings.simplefilter("ignore")
    loaded = 0
    for number in range(HOW_MANY):
        content = spoilt(draw)
        OPENED.clear()
        WATCHING.append(True)
        try:
            loaded += check_robot(content, folder / "robot.xml")
        except Exception as error:
            error.add_note(f"robot {number} of seed 17:\n{content.decode(errors='replace')}")
            raise
        finally:
            WATCHING.clear()
        assert not [name for name in OPENED if "secret" in name or "passwd" in name]
    print(f"{HOW_MANY}: {loaded} load, with MuJoCo's dynamics")
    assert 0.05 * HOW_MANY < loaded < 0.9 * HOW_MANY


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("parts.xml", "../secret.xml", "lies outside of"),
        ("parts.xml", "/etc/passwd", "lies outside of"),
        ("parts.xml", "robot.xml", "is included a second time"),
        ("parts.xml", "gone.xml", "no file 'gone.xml'"),
        ('"parts.xml"/>', '"parts.xml"><body/></include>', "has a <body> in it; expected nothing"),
        (
            'meshdir="meshes"',
            'meshdir=".."',
            "body 'torso' takes its mass from mesh 'wedge': .*outs",
        ),
        ("<worldbody>", '<worldbody><body name="&file;"/>', "not well-formed XML|undefined entity"),
        ('gear="30"', 'gear="nan"', "expected finite numbers"),
        ('type="capsule"', 'type="capsule" density="1e40"', "expected finite numbers"),
        ("<sensor>", "<extension/><sensor>", "loads code"),
        ("<sensor>", '<asset><model name="m" file="b.xml"/></asset><sensor>', "another model"),
        ('<light pos="0 0 3"/>', '<composite type="cable" count="9 1 1"/>', "is soft or made of"),
        ('<light pos="0 0 3"/>', '<replicate count="99999999"><site/></replicate>', "copies"),
        ("<mujoco model", '<!DOCTYPE a [<!ENTITY b "c">]><mujoco model', "expands no entities"),
    ],
)
def test_what_reaches_out_of_the_folder_or_has_no_end_is_refused(folder, old, new, expected):
    assert old in EVERYTHING
    file = folder / "robot.xml"
    file.write_text(EVERYTHING.replace(old, new))
    with pytest.raises(MjcfError, match=expected):
        parse_mjcf(file, on_problem="mend")


def test_a_link_out_of_the_folder_is_not_followed(folder):
    (folder / "parts.xml").unlink()
    (folder / "parts.xml").symlink_to(folder.parent / "secret.xml")
    (folder / "robot.xml").write_text(EVERYTHING)
    with pytest.raises(MjcfError, match="lies outside of"):
        parse_mjcf(folder / "robot.xml")
    (folder.parent / "secret.xml").write_text(PARTS)
    assert parse_mjcf(folder / "robot.xml", search_path=[folder.parent]).num_joints == 6
