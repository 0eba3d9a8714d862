"""Spoilt robots: each loads with finite numbers and nothing dropped, or a `UrdfError` says where.

What is in a file is counted by another parser of XML, and its dynamics by Pinocchio. `MIME_FUZZ` is
how many: `make fuzz` tries 10,000.
"""

import dataclasses
import math
import os
import pickle
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import jax
import numpy as np
import pinocchio as pin
import pytest

from audit import events
from mime.control.kinematics import KinematicTree, UrdfError, parse_urdf
from mime.core.problem import InputError
from mime.models import model_path
from robot_table import silence
from tree_dynamics import mass_and_bias

HOW_MANY = int(os.environ.get("MIME_FUZZ", "80"))

LINK = """<link name="{}"><inertial><origin xyz="0.1 0 0" rpy="0 0 0.5"/><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0 0 1"/><geometry><mesh filename="a.stl" scale="1 1 1"/></geometry>
<material name="red"/></visual></link>"""
JOINT = """<joint name="{0}" type="{1}"><origin xyz="0 0 1" rpy="0 1 0"/><parent link="{2}"/>
<child link="{3}"/><axis xyz="0 1 1"/><limit lower="-1" upper="1" effort="5" velocity="2"/>
<dynamics damping="0.1" friction="0.2"/>{4}</joint>"""
GEAR = """<transmission name="t{0}"><joint name="{0}"/><actuator name="m{0}">
<mechanicalReduction>50</mechanicalReduction><rotorInertia>1e-5</rotorInertia></actuator>
</transmission>"""
ALL_TAGS = "\n".join(
    [
        '<robot name="all"><material name="red"><color rgba="1 0 0 1"/></material>',
        *map(LINK.format, "abcde"),
        JOINT.format("j", "revolute", "a", "b", ""),
        JOINT.format("k", "prismatic", "b", "c", '<mimic joint="j" multiplier="2" offset="0.1"/>'),
        JOINT.format("l", "continuous", "c", "d", ""),
        JOINT.format("m", "fixed", "d", "e", ""),
        GEAR.format("j"),
        GEAR.format("l"),
        "</robot>",
    ]
)
ROBOTS = [
    ALL_TAGS,
    *(model_path(name).read_text() for name in ("planar_arm_3link", "desktop_arm_6axis")),
]
VALUES = ["nan", "inf", "-inf", "1e308", "-1e200", "1e-320", "0", "-1", "", "x" * 5000, "1 2", "ä"]
VALUES += ["1_0", "0x10", "$(arg n)", "0 0 0", "1e200 0 0", "1e-200 0 0", "nan 0 0", "a", "j", "k"]
VALUES += [
    "TODO",
    "${ratio}",
    "1 1 1 1",
    "2",
    "0.5",
    "-2",
    "9",
    "../secret.stl",
    "package://etc/passwd",
]
VALUES += ["file:///etc/passwd", "/etc/passwd", "package://../secret.stl", "&a;"]
NAMES = ["inertial", "mass", "axis", "origin", "limit", "joint", "link", "mimic", "visual", "foo"]
NAMES += ["xacro:macro", "xacro:include", "include"]
ENTITY = '<!DOCTYPE robot [<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY b "1">]>'
HARMLESS_TWICE = {"visual", "material", "collision", "geometry"}
"""Tags of which a link may have more, or that stand only in pictures."""


def spoilt(draw: random.Random) -> tuple[bytes, str | None]:
    """A robot with one to three things wrong; and the tag that is there twice, if that is all."""
    text = draw.choice(ROBOTS)
    if draw.random() < 0.2:
        content = bytearray(text.encode())
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        return bytes(content), None
    if draw.random() < 0.05:
        body = text[text.index("<robot") :]
        head = draw.choice((" \n", f"{ENTITY}", "<!-- a -- b -->", "<!--\n---->\n"))
        declaration = '<?xml version="1.0"?>\n'
        whole = head + declaration + body if head.isspace() else declaration + head + body
        return whole.encode(), None
    robot = ElementTree.fromstring(text)
    twice = None
    changes = draw.choice((1, 1, 2, 3))
    for _ in range(changes):
        parents = {part: parent for parent in robot.iter() for part in parent}
        part = draw.choice(list(parents))
        parent = parents[part]
        what = draw.choice(
            ("value", "value", "value", "delete", "tag twice", "drop", "name", "move")
        )
        if what == "value" and part.attrib:
            part.set(draw.choice(list(part.attrib)), draw.choice(VALUES))
        elif what == "value":
            part.text = draw.choice(VALUES)
        elif what == "delete" and part.attrib:
            del part.attrib[draw.choice(list(part.attrib))]
        elif what == "tag twice":
            parent.insert(draw.randint(0, len(parent)), part)
            twice = part.tag if changes == 1 and parent.tag != "visual" else None
        elif what == "drop":
            parent.remove(part)
        elif what == "name":
            part.tag = draw.choice(NAMES)
        elif what == "move":
            parent.remove(part)
            draw.choice(list(robot.iter())).append(part)
    return ElementTree.tostring(robot, encoding="utf-8"), twice


def check_numbers(tree: KinematicTree) -> None:
    """All numbers are finite; a limit that is not there is infinite."""
    limits = {id(tree.joint_limits), id(tree.effort_limits), id(tree.velocity_limits)}
    for values in jax.tree.leaves(tree):
        assert not np.any(np.isnan(values))
        assert id(values) in limits or np.all(np.isfinite(values))
    assert np.all(np.isfinite(tree.armature))
    np.testing.assert_allclose(np.linalg.norm(tree.joint_axes_local, axis=1), 1.0, rtol=1e-12)
    for visual in tree.visuals:
        assert np.all(np.isfinite([*visual.size, *visual.xyz, *visual.rpy, *(visual.rgba or ())]))


def check_refusal(error: UrdfError, file: Path) -> None:
    words = str(error)
    assert re.match(rf"{re.escape(str(file))}:\d+: ", words), words
    assert len(words) <= 2000
    assert str(pickle.loads(pickle.dumps(error))) == words


def check_robot(content: bytes, file: Path, on_problem: str = "warn") -> KinematicTree | None:
    """The tree of a sound file; None when it was refused as it should be."""
    file.write_bytes(content)
    with events() as seen:
        try:
            tree = parse_urdf(file, on_problem=on_problem)
        except UrdfError as error:
            check_refusal(error, file)
            tree = None
    assert {name for event, name in seen if event == "open"} <= {str(file)}
    assert all(event == "open" for event, _ in seen), "code was run"
    if tree is None:
        return None
    check_numbers(tree)
    assert all(len(note) <= 2000 for note in tree.ignored)
    check_nothing_is_dropped(tree, content)
    return tree


def check_nothing_is_dropped(tree: KinematicTree, content: bytes) -> None:
    """All mass, every joint that moves, its limits and friction are in the tree or its report."""
    assert b"<!ENTITY" not in content
    text = re.sub(rb"<!--.*?-->", b"", content.strip(), flags=re.DOTALL)
    robot = ElementTree.fromstring(text.replace(b"drake:", b""))
    masses = [float(mass.get("value")) for mass in robot.findall("link/inertial[1]/mass[1]")]
    found = float(np.sum(tree.masses) + tree.root_body.mass)
    assert math.isclose(found, sum(masses), rel_tol=1e-12)
    mended = " ".join(finding.words for finding in tree.report if finding.kind == "mended")
    held = set(re.findall(r"moves by joint '(.*?)', to which", mended))
    if "has no mass in any" in mended:
        return
    moving = {j.get("name"): j for j in robot.findall("joint") if j.get("type") != "fixed"}
    assert set(tree.link_joint_names) == set(moving) - held
    mimics = any(joint.find("mimic") is not None for joint in moving.values())
    for i, name in enumerate(() if mimics else tree.joint_names):
        dynamics, limit = (moving[name].find(tag) for tag in ("dynamics", "limit"))
        said = {} if dynamics is None else dynamics.attrib
        assert tree.joint_friction[i] == float(said.get("damping", 0))
        assert tree.joint_coulomb_friction[i] == float(said.get("friction", 0))
        if limit is not None and {"lower", "upper"} <= set(limit.attrib):
            ends = sorted(float(limit.get(end)) for end in ("lower", "upper"))
            if moving[name].get("type") == "continuous":
                ends = [-np.inf, np.inf]
            np.testing.assert_array_equal(tree.joint_limits[i], ends)


def has_pinocchios_dynamics(tree: KinematicTree, file: Path) -> bool:
    """True where the mass matrix is Pinocchio's, False where it does not read all of the file."""
    try:
        with silence():
            model = pin.buildModelFromUrdf(str(file))
    except (ValueError, RuntimeError):
        return False
    text = re.sub(rb"<!--.*?-->", b"", file.read_bytes().strip(), flags=re.DOTALL)
    robot = ElementTree.fromstring(text.replace(b"drake:", b""))
    inertias, axes = robot.iter("inertia"), robot.findall("joint/axis")
    six = {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}
    if any(six - set(inertia.attrib) for inertia in inertias):
        return False  # one without `iyz` is dropped by urdfdom; MIME takes it as 0
    if any("1e-200" in axis.get("xyz") for axis in axes):
        return False  # the square of its length is 0, and Pinocchio makes no unit vector of it
    q = np.random.default_rng(1).uniform(-1, 1, tree.num_joints)
    full, G = pin.neutral(model), np.zeros((model.nv, tree.num_joints))
    for i, name in enumerate(tree.link_joint_names):
        joint, c = model.joints[model.getJointId(name)], tree.coordinate_idxs[i]
        x = tree.mimic_multiplier[i] * q[c] + tree.mimic_offset[i]
        G[joint.idx_v, c] = tree.mimic_multiplier[i]
        full[joint.idx_q : joint.idx_q + joint.nq] = x if joint.nq == 1 else (np.cos(x), np.sin(x))
    M = pin.crba(model, model.createData(), full)
    theirs = G.T @ (np.triu(M) + np.triu(M, 1).T) @ G
    ours = mass_and_bias(tree, q, 0 * q, np.zeros(3))[0] - np.diag(tree.armature)
    # The sum with the armature, and mimics of 1e20, lose what is 1e16 smaller.
    largest = max(np.max(np.abs(theirs)), np.max(tree.armature))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * largest)
    return True


@pytest.mark.filterwarnings("ignore::mime.control.kinematics.RobotFileWarning")
@pytest.mark.filterwarnings("error")
def test_a_spoilt_robot_loads_whole_or_is_refused_with_file_and_line(tmp_path):
    draw = random.Random(15)
    file = tmp_path / "arm.urdf"
    (tmp_path.parent / "secret.stl").write_text("")
    sound = [check_robot(text.encode(), file) for text in ROBOTS]
    notes = {finding.what for tree in sound for finding in tree.report}
    loaded = compared = mended = 0
    for number in range(HOW_MANY):
        content, twice = spoilt(draw)
        try:
            tree = check_robot(content, file)
            said = tree is None or {finding.what for finding in tree.report} - notes
            assert said or twice in HARMLESS_TWICE | {None}, f"a second <{twice}> was dropped"
            forgiven = check_robot(content, file, "mend")
            changed = forgiven is not None and any(f.kind == "mended" for f in forgiven.report)
            if tree is not None:
                same = jax.tree.structure(tree) == jax.tree.structure(forgiven)
                same = same and jax.tree.all(jax.tree.map(np.array_equal, tree, forgiven))
                assert changed or same, "mended in silence"
                compared += has_pinocchios_dynamics(tree, file)
                loaded += 1
            elif forgiven is not None:
                assert changed, "mended in silence"
            mended += changed
        except Exception as error:
            error.add_note(f"robot {number} of seed 15:\n{content.decode(errors='replace')}")
            raise
    print(f"{HOW_MANY}: {loaded} load, {mended} mended, {compared} compared with Pinocchio")
    assert min(loaded, compared) > 0.1 * HOW_MANY
    assert mended > 0.004 * HOW_MANY  # one in a hundred is mended: few mistakes have a mending


@pytest.mark.filterwarnings("ignore::mime.control.kinematics.RobotFileWarning")
def test_a_part_of_a_spoilt_robot_is_that_of_the_whole(tmp_path):
    """What the file has wrong beyond the part does not matter; all else is as in the whole."""
    draw = random.Random(33)
    file = tmp_path / "arm.urdf"
    equal = more = 0
    for number in range(max(HOW_MANY // 2, 60)):
        content, _ = spoilt(draw)
        file.write_bytes(content)
        names = [*re.findall(r'<link name="(\w+)"', content.decode(errors="replace")), "zz"]
        root, tip = draw.choice(names), draw.choice([*[None] * 5, *names])
        try:
            part = parse_urdf(file, subtree=root if tip is None else {"root": root, "tip": tip})
        except UrdfError as error:
            check_refusal(error, file)
            part = None
        except InputError as error:  # of the tree: a name that it does not have, a tip elsewhere
            words, part = str(error), None
            if "subtree" not in words:
                raise
        try:
            expected = parse_urdf(file).subtree(root, tip)
        except ValueError:
            if part is not None:
                check_numbers(part)
                more += 1
            continue
        try:
            assert part is not None, "the whole has this part"
            for field in dataclasses.fields(part):
                if field.name != "report":
                    mine, theirs = (getattr(tree, field.name) for tree in (part, expected))
                    np.testing.assert_equal(mine, theirs, err_msg=field.name)
        except AssertionError as error:
            words = content.decode(errors="replace")
            error.add_note(f"robot {number} of seed 33, {root} to {tip}:\n{words}")
            raise
        equal += 1
    assert equal > 0.05 * HOW_MANY
    assert more > 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'<?xml version="1.0" encoding="foo"?><robot/>', "its encoding cannot be read"),
        (b'<?xml version="1.0" encoding="shift_jis"?><robot/>', "its encoding cannot be read"),
        (ALL_TAGS.replace('ixx="1"', 'ixx="1e308"'), "expected at most 1e+30"),
        (ALL_TAGS.replace('multiplier="2"', 'multiplier="1e155"'), "expected at most 1e+30"),
        (ALL_TAGS.replace('xyz="0 1 1"', 'xyz="1e200 0 0"'), "expected at most 1e+30"),
        (ALL_TAGS.replace(">50<", ">nan<"), "<mechanicalReduction> holds 'nan'"),
        (ALL_TAGS.replace(">1e-5<", ">inf<"), "<rotorInertia> holds 'inf'"),
        (ALL_TAGS.replace('xyz="0 1 1"', f'xyz="{"1" * 10**6}"'), "expected 3 finite numbers"),
        (ALL_TAGS.replace("a.stl", "m" * 300), ""),
        (ALL_TAGS.replace("</robot>", GEAR.format("j") + "</robot>"), "as does that on line"),
        *(
            (ALL_TAGS.replace(f"<{tag} ", f"<{tag} {kept}/><{tag} ", 1), f"a second <{tag}>")
            for tag, kept in (
                ("mass", 'value="1"'),
                ("dynamics", ""),
                ("limit", ""),
                ("axis", 'xyz="1 0 0"'),
                ("origin", ""),
                ("mimic", 'joint="j"'),
            )
        ),
    ],
)
def test_what_a_review_found_is_refused_in_words(tmp_path, content, expected):
    file = tmp_path / "arm.urdf"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    if not expected:
        assert any("a box is drawn for the mesh" in note for note in parse_urdf(file).ignored)
        return
    with pytest.raises(UrdfError, match=re.escape(expected)) as refusal:
        parse_urdf(file)
    assert len(str(refusal.value)) < 2000


def test_a_chain_of_a_thousand_mimics_is_read_in_seconds(tmp_path):
    links = [LINK.partition("<visual>")[0].format(i) + "</link>" for i in range(1001)]
    chain = [JOINT.format("j0", "revolute", 0, 1, "")]
    chain += [
        JOINT.format(f"j{i}", "revolute", i, i + 1, f'<mimic joint="j{i - 1}"/>')
        for i in range(1, 1000)
    ]
    tree = check_robot(f"<robot>{''.join(links + chain)}</robot>".encode(), tmp_path / "arm.urdf")
    assert tree is not None
    assert tree.num_joints == 1
