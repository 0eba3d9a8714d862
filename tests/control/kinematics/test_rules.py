"""What becomes of each thing in a robot's file: an example for every line of the table."""

import pickle
import re
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import mime.control.kinematics as kin
from mime.control.kinematics import RobotFileWarning, parse_robot
from mime.control.kinematics.report import report_rows
from mime.control.kinematics.rules import RULES

INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
INERTIAL = f'<inertial><origin xyz="0.1 0 0"/><mass value="2"/>{INERTIA}</inertial>'
AXIS = '<axis xyz="0 0 1"/>'
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
JOINT = f'<joint name="j" type="revolute"><parent link="base"/><child link="arm"/>{AXIS}{LIMIT}'
ARM = f'<link name="base"/>\n<link name="arm">{INERTIAL}</link>\n{JOINT}</joint>'
TIP = '<link name="tip"/>' + JOINT.replace('"j"', '"k"').replace('"arm"', '"tip"') + "</joint>"
TIP = TIP.replace('parent link="base"', 'parent link="arm"')
HEAVY_TIP = f'<link name="tip">{INERTIAL}</link>'
FLYING = '<link name="world"/><joint name="free" type="floating"><origin xyz="1 2 3"/>'
FLYING += '<parent link="world"/><child link="base"/></joint>'
HEAVY_BASE = ARM.replace('<link name="base"/>', f'<link name="base">{INERTIAL}</link>')
VISUAL = '<visual><geometry><box size="1 1 1"/></geometry>{}</visual></link>'
MESH = '<visual><geometry><mesh filename="{}" scale="1 1 1"/></geometry></visual></link>'
GEARS = "<transmission name='t'><joint name='j'/><joint name='base'/><mechanicalReduction>3"
GEARS += "</mechanicalReduction>{}</transmission>"
SHARED = "<transmission name='t'><type>transmission_interface/DifferentialTransmission</type>"
SHARED += "<joint name='j'/><joint name='k'/><actuator name='a'><rotorInertia>1e-5</rotorInertia>"
SHARED += "</actuator><actuator name='b'/></transmission>"

PENDULUM = '<body name="a"><joint name="j" axis="0 1 0"/><geom name="g" size="0.1" contype="0"/>'
SECOND = '<body name="b" pos="0 0 1"><joint name="k" axis="0 1 0"/><geom size="0.1" contype="0"/>'
BOTH = f"<worldbody>{PENDULUM}</body>{SECOND}</body></worldbody>"
FREE = '<worldbody><body name="hull">{}<geom size="0.1" contype="0"/></body>{}</worldbody>'
NO_CONTACT = "<option><flag contact='disable'/></option>"


def urdf(body):
    """A URDF with this in it."""
    return f'<robot name="r">\n{body}</robot>'


def mjcf(inside=f"<worldbody>{PENDULUM}</body></worldbody>"):
    """An MJCF with this in it."""
    return f"<mujoco>\n{inside}\n</mujoco>"


def pendulum(inside):
    """An MJCF of a pendulum, with something more in it."""
    return mjcf(f"<worldbody>{PENDULUM}</body></worldbody>\n{inside}")


EXAMPLES = {
    "visual": [
        urdf(ARM.replace("</link>", VISUAL.format("<material name='a'/><material name='b'/>"), 1)),
        urdf(ARM.replace("</link>", VISUAL.format("").replace("<box", "<box/><box"), 1)),
        urdf(ARM.replace("</link>", MESH.format("a.stl").replace("1 1 1", "2"), 1)),
        urdf(ARM.replace("</link>", MESH.format("a.stl").replace("1 1 1", "2 3 4 1"), 1)),
        urdf(ARM.replace("</link>", VISUAL.replace("box", "cone"), 1)),
        urdf(ARM.replace("</link>", "<visual/></link>", 1)),
        urdf(ARM + '<material name="red"><color rgba="1 0 0"/></material>'),
        urdf(ARM + '<material name="red"><color rgba="1 0 0 red"/></material>'),
        urdf(ARM + '<material name="red"><color/><texture filename="a.png"/></material>'),
    ],
    "mesh": [
        urdf(ARM.replace("</link>", MESH.format("a.stl"), 1)),
        urdf(ARM.replace("</link>", MESH.format("package://nowhere/a.stl"), 1)),
    ],
    "tag": [
        urdf(ARM.replace("</link>", "<collision/></link>", 1)),
        urdf(ARM + "<gazebo/>"),
        urdf(ARM.replace("</joint>", '<safety_controller k_velocity="1"/></joint>')),
        urdf(ARM.replace("effort=", 'acceleration="3" effort=')),
    ],
    "xml": [
        "\n\n<?xml version='1.0'?>" + urdf(ARM),
        urdf(ARM + "<!-- a -- b -->"),
        "\n<?xml version='1.0'?>" + mjcf(),
    ],
    "half inertial": [
        urdf(HEAVY_BASE.replace('<mass value="2"/>', '<density value="500"/>', 1)),
        urdf(HEAVY_BASE.replace(INERTIA, "", 1)),
    ],
    "twice": [urdf(ARM.replace(AXIS, AXIS + AXIS))],
    "floating": [urdf(FLYING + HEAVY_BASE)],
    "no limit": [
        urdf(ARM.replace('effort="5"', 'effort="-1"')),
        urdf(ARM.replace('effort="5"', 'effort="0"')),
        urdf(ARM.replace('velocity="2"', 'velocity="-1"')),
    ],
    "unused": [
        urdf(ARM.replace('"revolute"', '"continuous"')),
        urdf(ARM.replace('"revolute"', '"continuous"').replace('lower="-1"', 'lower="3"')),
        urdf(ARM.replace('"revolute"', '"fixed"').replace(LIMIT, '<dynamics damping="1"/>')),
        urdf(ARM + GEARS.format("")),
    ],
    "drives": [urdf(ARM + TIP.replace('<link name="tip"/>', HEAVY_TIP) + SHARED)],
    "unlimited": [urdf(ARM.replace(LIMIT, ""))],
    "no joint": [urdf(f'<link name="base">{INERTIAL}</link>'), mjcf("<worldbody/>")],
    "no mass": [urdf(ARM.replace(INERTIAL, ""))],
    "no inertia": [urdf(ARM + TIP)],
    "inertia": [
        urdf(ARM.replace('ixx="1"', 'ixx="9"')),
        urdf(ARM.replace('ixx="1"', 'ixx="0"').replace('iyy="1"', 'iyy="0"')),
        urdf(HEAVY_BASE.replace('ixx="1"', 'ixx="-1"', 1)),  # a base that stands feels nothing
    ],
    "mimic limits": [urdf(ARM + TIP.replace("</joint>", '<mimic joint="j" offset="5"/></joint>'))],
    "argument": [],  # xacro's: tests/control/kinematics/test_xacro.py
    "warning": [],  # xacro's: tests/control/kinematics/test_xacro.py
    "sensor": [
        pendulum('<sensor><jointpos joint="j"/></sensor>'),
        pendulum("<worldbody><camera/></worldbody>"),
        pendulum("<worldbody><light/></worldbody>"),
        pendulum('<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'),
    ],
    "contact": [
        pendulum('<worldbody><geom type="plane" size="1 1 1" contype="1"/></worldbody>').replace(
            'contype="0"', 'contype="1"'
        )
    ],
    "beside": [mjcf(FREE.format("<freejoint/>", '<body name="post"/>'))],
    "gravcomp": [mjcf().replace('name="a"', 'name="a" gravcomp="0.5"')],
    "mimic": [
        mjcf(f'{BOTH}<equality><joint joint1="j" joint2="k" polycoef="1 2 0 0 0"/></equality>'),
        pendulum('<equality><joint joint1="j" polycoef="0.5 0 0 0 0"/></equality>'),
    ],
    "renamed": [mjcf().replace("<joint", '<site name="a"/><joint')],
    "degrees": [
        urdf(ARM.replace('"-1"', '"-170"').replace('upper="1"', 'upper="170"')),
        pendulum('<compiler angle="radian"/><default><joint range="-170 170"/></default>'),
    ],
    "transmission": [
        urdf(ARM + GEARS.format("<rotorInertia>1e-5</rotorInertia>")),
        urdf(ARM + GEARS.format("<rotorInertia>TODO</rotorInertia>")),
    ],
    "include": [],  # xacro's: tests/control/kinematics/test_xacro.py
    "open loop": [],  # with open_loops=True, below
    "tendon": [pendulum('<tendon><fixed><joint joint="j" coef="1"/></fixed></tendon>')],
    "actuator": [
        pendulum(f"<actuator>{words}</actuator>")
        for words in (
            '<intvelocity joint="j" kp="1" actrange="-1 1"/>',
            '<position joint="j" kp="1" timeconst="1"/>',
            '<pid joint="j" kp="1" ki="1"/>',
            '<muscle joint="j" lengthrange="0 1"/>',
            '<motor joint="j" damping="1 2"/>',
            '<motor joint="j" delay="0.1" nsample="4"/>',
            '<adhesion body="a" ctrlrange="0 1"/>',
            '<dcmotor joint="j" motorconst="1" resistance="1" lugre="1 1 1 1 1"/>',
            '<dcmotor joint="j" motorconst="1" resistance="1" input="pos"/>',
        )
    ]
    + [
        mjcf()
        .replace("<joint", '<site name="s"/><joint')
        .replace("</mujoco>", '<actuator><motor site="s"/></actuator></mujoco>')
    ],
    "fluid": [pendulum('<option density="1.2"/>'), pendulum('<option viscosity="1e-5"/>')],
    "equality": [
        mjcf(f'{BOTH}<equality><joint joint1="j" joint2="k" polycoef="0 1 1"/></equality>'),
        mjcf(f'{BOTH}<equality><joint joint1="j" joint2="k" active="false"/></equality>'),
        mjcf(
            f'{BOTH}<equality><joint joint1="j" joint2="k"/>'
            '<joint joint1="k" joint2="j" polycoef="0 2 0 0 0"/></equality>'
        ),
    ],
    "friction": [pendulum('<default><joint frictionloss="0.1"/></default>')],
    "base passive": [
        mjcf(FREE.format(f'<joint type="free" {what}="1"/>', ""))
        for what in ("damping", "frictionloss", "armature", "stiffness")
    ],
    "nonlinear": [
        pendulum('<default><joint stiffness="1 2"/></default>'),
        pendulum('<default><joint damping="1 2"/></default>'),
        pendulum('<default><joint stiffness="1" springyield="0.1"/></default>'),
    ],
    "borne": [
        mjcf()
        .replace('name="a"', 'name="a" gravcomp="0.5"')
        .replace("<joint", '<joint actuatorgravcomp="true"')
    ],
    "one-sided": [pendulum('<default><joint actuatorfrcrange="-1 2"/></default>')],
    "malformed": [
        urdf(ARM)[:-9],
        "",
        "<sdf/>",
        '<!DOCTYPE r SYSTEM "file:///etc/passwd"><robot/>',
        urdf(ARM.replace('xyz="0 0 1"', 'xyz="0 0 0"')),
        urdf(ARM.replace('xyz="0 0 1"', 'xyz="0 0 nan"')),
        urdf(ARM.replace(' ixx="1"', "")),
        urdf(ARM.replace('type="revolute"', "")),
        urdf(ARM + GEARS.format("<rotorInertia>1:50</rotorInertia>")),
        pendulum("<wheels/>"),
        pendulum("<sensor><body/></sensor>"),
        pendulum('<default><joint type="bal"/></default>'),
        pendulum('<actuator><motor joint="q"/></actuator>'),
    ],
    "contradiction": [urdf(ARM.replace(AXIS, AXIS + '<axis xyz="1 0 0"/>'))],
    "structure": [
        urdf(""),
        urdf(ARM + '<link name="arm"/>'),
        urdf(ARM + '<link name="loose"/>'),
        urdf(ARM.replace('<link name="base"/>', "")),
        urdf(
            ARM
            + JOINT.replace('"j"', '"k"')
            .replace("base", "arm")
            .replace('child link="arm"', 'child link="base"')
            + "</joint>"
        ),
        urdf(ARM.replace("</joint>", '<mimic joint="k"/></joint>')),
        urdf(ARM.replace("</joint>", '<mimic joint="j"/></joint>')),
    ],
    "joint type": [
        urdf(ARM.replace('"revolute"', '"planar"')),
        urdf(HEAVY_BASE.replace('"revolute"', '"floating"')),
        urdf(FLYING + HEAVY_BASE.replace('"revolute"', '"floating"')),
    ],
    "negative": [
        urdf(ARM.replace('value="2"', 'value="-2"')),
        urdf(ARM.replace("</joint>", '<dynamics damping="-1"/></joint>')),
        urdf(ARM + GEARS.replace("<joint name='base'/>", "").replace("3<", "0<").format("")),
        pendulum('<default><joint armature="-1"/></default>'),
    ],
    "negative moment": [
        urdf(ARM.replace('ixx="1"', 'ixx="-1"')),
        urdf(FLYING + HEAVY_BASE.replace('ixx="1"', 'ixx="-1"', 1)),
    ],
    "swapped": [urdf(ARM.replace('lower="-1"', 'lower="3"'))],
    "negative limit": [urdf(ARM.replace('effort="5"', 'effort="-5"'))],
    "xacro": [urdf(ARM + '<xacro:include filename="x"/>')],
    "mesh mass": [
        mjcf()
        .replace("<worldbody>", '<asset><mesh name="m" file="gone.obj"/></asset><worldbody>')
        .replace('size="0.1"', 'type="mesh" mesh="m"')
    ],
    "code": [pendulum("<extension/>")],
    "soft": [pendulum("<deformable/>")],
    "loop": [
        urdf(
            ARM
            + '<link name="other"/>'
            + JOINT.replace('"j"', '"k"').replace("base", "other")
            + "</joint>"
            + JOINT.replace('"j"', '"l"').replace('"arm"', '"other"')
            + "</joint>"
        ),
        mjcf(f'{BOTH}<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>'),
        mjcf(f'{BOTH}<equality><weld body1="a"/></equality>'),
    ],
    "ball": [mjcf().replace("<joint", '<joint type="ball"').replace(' axis="0 1 0"', "")],
    "several bodies": [
        mjcf(FREE.format("<freejoint/>", f"{PENDULUM}</body>")),
        mjcf(FREE.format("<freejoint/>", '<body name="c"><freejoint/><geom size="1"/></body>')),
    ],
}
"""Robots by the rule that they fall under."""
CASES = [(rule, text) for rule, texts in EXAMPLES.items() for text in texts]


class Read(NamedTuple):
    """How a file is taken."""

    tree: kin.KinematicTree | None
    warned: list[str]
    findings: tuple[kin.Finding, ...]


@pytest.fixture
def read(tmp_path):
    def read(text: str, **options) -> Read:
        file = tmp_path / ("robot.xml" if "<mujoco" in text else "robot.urdf")
        file.write_text(text)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                tree = parse_robot(file, **options)
            except kin.RobotFileError as error:
                refusal = error
            else:
                refusal = None
        if refusal is not None:
            assert str(refusal).startswith(str(file))
            assert pickle.loads(pickle.dumps(refusal)).findings == refusal.findings
            return Read(None, [], refusal.findings)
        words = [str(w.message) for w in said if issubclass(w.category, RobotFileWarning)]
        return Read(tree, words, tree.report)

    return read


def test_every_line_of_the_table_has_an_example():
    assert set(EXAMPLES) == set(RULES)


@pytest.mark.parametrize(("rule", "text"), CASES)
def test_what_is_noted_loads_what_is_reported_warns_once_and_what_is_refused_stops(
    read, rule, text
):
    kind = RULES[rule].kind
    tree, warned, findings = read(text)
    mine = [finding for finding in findings if finding.rule == rule]
    assert mine, [finding.rule for finding in findings]
    assert {finding.kind for finding in mine} == {kind}
    assert (tree is None) == (kind == "refused")
    reported = [finding for finding in findings if finding.kind == "reported"]
    assert len(warned) == (1 if reported and tree is not None else 0)
    if kind == "reported":
        assert RULES[rule].effect in warned[0]
        assert all(finding.what[:100] in warned[0] for finding in mine[:3])
    if tree is not None:
        assert mine[0].what[:60] in repr(tree)
        assert (mine[0].what in tree.ignored) == RULES[rule].ignored


@pytest.mark.parametrize(("rule", "text"), CASES)
def test_refuse_stops_what_is_reported_too(read, rule, text):
    stops = RULES[rule].kind != "noted" or len(read(text).warned) > 0
    refusal = read(text, on_problem="refuse")
    assert (refusal.tree is None) == stops
    if RULES[rule].kind == "reported":
        assert rule in [finding.rule for finding in refusal.findings]


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, text in CASES if RULES[rule].mend]
)
def test_mend_mends_and_lists_what_the_table_says(read, rule, text):
    tree, warned, findings = read(text, on_problem="mend")
    assert tree is not None
    assert [finding for finding in findings if finding.rule == rule and finding.kind == "mended"]
    assert not warned


def test_what_was_mended_is_what_is_simulated(read):
    def mended(rule, at=0):
        return read(EXAMPLES[rule][at], on_problem="mend").tree

    np.testing.assert_allclose(np.diag(mended("inertia").inertias[0]), np.array([20, 10, 10]) / 3)
    np.testing.assert_allclose(np.diag(mended("negative moment").inertias[0]), [0, 1, 1])
    np.testing.assert_array_equal(mended("swapped").joint_limits, [[1.0, 3.0]])
    assert mended("negative limit").effort_limits[0] == 5.0
    held = mended("no inertia")
    assert (held.joint_names, held.frame_names) == (("j",), ("base", "arm", "tip"))
    outside = read(
        EXAMPLES["no inertia"][0]
        .replace('"k" type', '"k" type', 1)
        .replace(TIP[-100:], TIP[-100:].replace('lower="-1"', 'lower="0.5"')),
        on_problem="mend",
    ).tree
    T = outside.frame("tip").offset
    np.testing.assert_allclose(T[:2, 0], [np.cos(0.5), np.sin(0.5)])
    assert mended("no mass").num_joints == 0


def test_inertias_are_the_file_s_to_the_bit(read):
    planar, beyond = (read(EXAMPLES["inertia"][at]).tree for at in (1, 0))
    np.testing.assert_array_equal(planar.inertias[0], np.diag([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(beyond.inertias[0], np.diag([9.0, 1.0, 1.0]))


def test_a_robot_without_masses_has_all_its_joints(read):
    tree, warned, (finding, *others) = read(urdf((ARM + TIP).replace(INERTIAL, "")))
    assert (tree.joint_names, warned, others) == (("j", "k"), [], [])
    assert "for kinematics" in finding.consequence
    np.testing.assert_array_equal(kin.rnea(tree, np.zeros(2), None, np.ones(2), np.ones(3)), 0.0)
    T = kin.joint_to_world_transforms(tree, np.array([0.5, 0.25]))
    np.testing.assert_allclose(T[1, :2, 0], [np.cos(0.75), np.sin(0.75)], rtol=1e-15)


def test_a_floating_joint_lets_the_base_float_from_its_origin_or_is_held(read):
    text = urdf(FLYING + HEAVY_BASE)
    for base in (None, "floating"):
        tree = read(text, base=base).tree
        assert (tree.base, tree.root_link_name, tree.joint_names) == ("floating", "base", ("j",))
        assert tree.base_start_pose_world == (1, 2, 3, 1, 0, 0, 0)
        assert float(tree.root_body.mass) == 2.0
    held = read(text, base="fixed").tree
    assert (held.base, held.root_link_name) == ("fixed", "world")
    np.testing.assert_array_equal(held.frame("base").offset[:3, 3], [1, 2, 3])


def test_limits_that_are_none_are_infinite_and_others_are_kept(read):
    for text, limits in zip(
        EXAMPLES["no limit"], [(np.inf, 2), (np.inf, 2), (5, np.inf)], strict=True
    ):
        tree = read(text).tree
        assert (tree.effort_limits[0], tree.velocity_limits[0]) == limits
    for text in EXAMPLES["degrees"]:
        np.testing.assert_array_equal(read(text).tree.joint_limits, [[-170.0, 170.0]])


def test_a_warning_is_one_block_with_counts_effects_and_three_names(read):
    joints = "".join(
        f'<body><joint name="j{i}" frictionloss="1"/><geom size="0.1" contype="0"/>'
        for i in range(5)
    )
    inside = f"<worldbody>{joints}{'</body>' * 5}</worldbody><option density='1'/>"
    (warned,) = read(mjcf(inside)).warned
    lines = warned.splitlines()
    assert lines[0] == "robot.xml: parts of the file are not simulated as they are written"
    assert lines[1] == f"  {RULES['friction'].what} (5): {RULES['friction'].effect}"
    assert re.fullmatch(r" +robot\.xml:2: joint 'j0' has frictionloss 1", lines[2])
    assert lines[5] == "    and 2 more"
    assert lines[6].startswith(f"  {RULES['fluid'].what} (1)")
    assert "tree.report" in lines[-1]


def test_the_old_word_report_names_the_new_one(tmp_path):
    (tmp_path / "a.urdf").write_text(urdf(ARM))
    with pytest.raises(ValueError, match=r"'warn', 'refuse' or 'mend'.*is 'warn' now"):
        parse_robot(tmp_path / "a.urdf", on_problem="report")


def test_parts_that_are_taken_out_are_not_judged(read):
    ball = '<body name="tail"><joint name="ball" type="ball"/><geom size="0.1" contype="0"/></body>'
    loop = f"<worldbody>{PENDULUM}{SECOND}{ball}</body></body></worldbody><equality>"
    loop += (
        '<weld body1="b"/></equality><tendon><fixed><joint joint="k" coef="1"/></fixed></tendon>'
    )
    assert {finding.rule for finding in read(mjcf(loop)).findings} == {"ball", "loop"}
    arm = read(mjcf(loop), subtree={"root": "world", "tip": "a"})
    assert (arm.tree.joint_names, arm.warned, arm.findings) == (("j",), [], ())
    held = read(mjcf(loop), lock={"k": 0.5, "j": 0.0, "ball": 0})
    assert (held.tree.joint_names, held.warned) == ((), [])
    open_ = read(mjcf(loop), lock={"ball": 0}, open_loops=True)
    assert open_.tree.joint_names == ("j", "k")
    assert [f.rule for f in open_.findings] == ["tendon", "open loop"]
    bent = read(mjcf(loop), lock={"ball": 0.1})
    assert bent.tree is None
    two = mjcf(FREE.format("<freejoint name='f'/>", f"{PENDULUM}</body>"))
    assert read(two, subtree="hull").tree.base == "floating"
    assert read(two, subtree="a").tree.joint_names == ()  # nothing moves beyond the pendulum
    assert read(two, lock={"f": 0}).tree.joint_names == ("j",)
    with pytest.raises(
        ValueError, match=r"subtree names no body or site 'hul' \(did you mean 'hull'"
    ):
        parse_robot(_written(two, read), subtree="hul")


def test_parts_of_a_urdf_that_are_taken_out_are_not_judged_either(read):
    (loop, *_), weak = EXAMPLES["loop"], EXAMPLES["negative moment"][0]
    part = read(loop, subtree={"root": "base", "tip": "other"})
    assert (part.tree.joint_names, part.tree.frame_names) == (("l",), ("base", "other"))
    planar = ARM + TIP.replace('"revolute"', '"planar"') + GEARS.format("").replace("'j'", "'k'")
    assert read(urdf(planar)).tree is None
    for options in ({"subtree": {"root": "base", "tip": "arm"}}, {"lock": {"k": 0}}):
        tree, warned, findings = read(urdf(planar), **options)
        assert (tree.joint_names, warned) == (("j",), [])
        assert {finding.rule for finding in findings} <= {"unused"}
    with pytest.raises(kin.UrdfError, match=r"is locked at 0\.1; expected 0, where the file"):
        parse_robot(_written(urdf(planar), read), lock={"k": 0.1})
    assert read(weak, subtree={"root": "base", "tip": "base"}).tree.joint_names == ()
    with pytest.raises(ValueError, match=r"subtree\.root.*'bas'.*did you mean 'base'"):
        parse_robot(_written(urdf(ARM), read), subtree="bas")


def _written(text, read):
    read(text)
    name = "robot.xml" if "<mujoco" in text else "robot.urdf"
    return read.__closure__[0].cell_contents / name


def test_a_second_parent_is_cut_where_loops_are_opened(read):
    tree, warned, findings = read(EXAMPLES["loop"][0], open_loops=True)
    assert tree.joint_names == ("j", "l")
    assert [finding.rule for finding in findings if finding.kind == "reported"] == ["open loop"]
    assert len(warned) == 1


def test_notes_that_differ_in_names_alone_share_a_row(tmp_path):
    file = tmp_path / "r.urdf"
    file.write_text(urdf((ARM + TIP).replace('effort="5"', 'effort="0"')))
    rows = report_rows(parse_robot(file).report)
    assert [row for row in rows if "effort" in row[2]] == [
        (
            "noted",
            "r.urdf:4",
            "joint 'j' has effort limit 0; and 1 more like it: 'k'",
            "no effort limit",
        )
    ]


def test_loops_name_their_bodies_and_two_alike_on_one_line_count_once(read):
    weld = '<weld body1="b" body2="a"/>'
    text = mjcf(f"{BOTH}<equality>{weld}{weld}<connect body1='a' anchor='0 0 0'/></equality>")
    assert [finding.what for finding in read(text).findings if finding.rule == "loop"] == [
        "<weld> closes a loop between bodies 'b' and 'a'",
        "<connect> closes a loop between bodies 'a' and 'world'",
    ]
    (warned,) = read(text, open_loops=True).warned
    assert f"{RULES['open loop'].what} (2)" in warned
