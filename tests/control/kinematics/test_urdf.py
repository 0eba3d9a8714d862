"""What `parse_urdf` reads, merges, reports and refuses."""

import dataclasses
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime.control.kinematics.physical_inertia import is_physical, nearest_physical_inertia
from mime.models import model_path

INERTIAL = (
    '<inertial><origin xyz="0.1 0 0"/><mass value="2"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="2"/>{inside}</joint>'
    )


@pytest.fixture
def parse(tmp_path: Path):
    def parse(body: str, head: str = '<robot name="r">', **options) -> kin.KinematicTree:
        path = tmp_path / "arm.urdf"
        path.write_text(f"{head}{body}</robot>" if head else body)
        return kin.parse_urdf(path, **options)

    return parse


ONE = link("base") + link("arm") + joint("j", "base", "arm")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "no <link>"),
        (link("a") + link("b"), "2 root links, 'a', 'b'"),
        (link("a") + link("a"), "link 'a' is there twice, first on line 1"),
        (ONE + joint("j", "arm", "base"), "joint 'j' is there twice"),
        (link("a") + joint("j", "a", "b"), "child link 'b', which does not exist"),
        (link("a") + link("b") + joint("j", "a", "b") + joint("k", "b", "a"), "cycle: a <- b <- a"),
        (link("r") + link("a") + link("b") + joint("j", "a", "b") + joint("k", "b", "a"), "cycle"),
        (ONE + link("c") + joint("k", "c", "arm"), "child of joints 'j' and 'k'"),
        (link("a") + link("b") + joint("j", "a", "b", "floating"), "joint 'j' is 'floating'"),
        (ONE.replace('xyz="0 0 1"', 'xyz="0 0 0"'), "joint 'j' has axis '0 0 0'"),
        (ONE.replace('xyz="0 0 1"', 'xyz="0 1"'), "xyz='0 1'; expected 3 finite numbers"),
        (ONE.replace('xyz="0 0 1"', 'xyz="0 0 nan"'), "expected 3 finite numbers"),
        (ONE.replace('value="2"', 'value="-2"'), "has mass -2.0 kg"),
        (ONE.replace('ixx="1"', 'ixx="-1"'), "principal moments of inertia -1"),
        (ONE.replace(' ixx="1"', ""), "<inertia> has no 'ixx' attribute"),
        (ONE.replace('lower="-1"', 'lower="3"'), "lower limit 3.0, above upper limit 1.0"),
        (ONE.replace('type="revolute"', ""), "joint 'j' has no 'type' attribute"),
        (
            link("a") + link("b") + joint("j", "a", "b", inside='<dynamics damping="-1"/>'),
            "damping -1.0",
        ),
        (
            link("a") + link("b") + joint("j", "a", "b", inside='<mimic joint="k"/>'),
            "mimics 'k', which does not exist",
        ),
        (
            link("a") + link("b") + joint("j", "a", "b", inside='<mimic joint="j"/>'),
            "mimics 'j', one that mimics it back",
        ),
        (ONE + '<xacro:include filename="x"/>', "xacro"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_file_line_and_reason(parse, body, message):
    with pytest.raises(kin.UrdfError, match=re.escape(message)) as refusal:
        parse(body)
    assert re.search(r"arm\.urdf:\d+: ", str(refusal.value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("  \n", "the file is empty"),
        ("<robot>", "not well-formed XML"),
        ("<sdf></sdf>", "the root element is <sdf>; expected <robot>"),
        (
            '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot>&b;</robot>',
            "DOCTYPE or ENTITY",
        ),
        ('<!DOCTYPE r SYSTEM "file:///etc/passwd"><robot/>', "DOCTYPE or ENTITY"),
    ],
)
def test_files_that_are_no_plain_urdf_are_refused(parse, text, message):
    with pytest.raises(kin.UrdfError, match=re.escape(message)):
        parse(text, head="")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(kin.UrdfError, match=r"nowhere\.urdf: cannot be read"):
        kin.parse_urdf(tmp_path / "nowhere.urdf")


def test_nothing_is_dropped_in_silence(parse):
    body = ONE.replace('effort="5"', 'effort="5" acceleration="3"')
    body = body.replace("</joint>", '<safety_controller k_velocity="1"/></joint>')
    body = body.replace("</link>", "<collision/></link>", 1)
    tree = parse(body + "<gazebo/><gazebo/>")
    assert tree.ignored == (
        "<link><collision>: 'base'",
        "<joint><limit> acceleration=: 'j'",
        "<joint><safety_controller>: 'j'",
        "<gazebo>, 2 times",
    )
    assert all(note in repr(tree) for note in tree.ignored)


def test_a_fixed_link_is_merged_and_stays_addressable(parse):
    fixed = '<joint name="f" type="fixed"><origin xyz="0 1 0" rpy="0 0 1.5707963267948966"/>'
    fixed += '<parent link="arm"/><child link="tool"/></joint>'
    tree = parse(ONE + link("tool") + fixed)
    assert tree.link_names == ("arm",)
    assert tree.frame_names == ("base", "arm", "tool")
    assert tree.masses[0] == 4.0
    # Two equal masses, at (0.1, 0, 0) and at (0, 1, 0) + Rz(90°)(0.1, 0, 0) = (0, 1.1, 0).
    np.testing.assert_allclose(tree.coms[0], [0.05, 0.55, 0.0], atol=1e-15)
    # Each lies half their distance away: 2 + 2·2·(0.05² + 0.55²) about z.
    assert tree.inertias[0][2, 2] == pytest.approx(2.0 + 4.0 * (0.05**2 + 0.55**2))
    link_idx, offset = tree.frame("tool")
    assert link_idx == 0
    np.testing.assert_array_equal(offset[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert tree.frame("base").link_idx == -1
    with pytest.raises(
        KeyError, match=r"names no link 'hand'\. It has 3 links: 'base', 'arm', 'tool'"
    ):
        tree.frame("hand")


def test_a_link_that_5000_others_are_not_is_answered_in_few_words(parse):
    names = tuple(f"segment_{i:04}" for i in range(5000))
    tree = dataclasses.replace(parse(ONE), frame_names=names)  # to merge so many takes seconds
    with pytest.raises(
        KeyError, match=r"did you mean 'segment_4000', .*It has 5000 links"
    ) as caught:
        tree.frame("segment_4000x")
    assert "did you mean 'segment_4000'" in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("unrolled", [True, False])
def test_a_wrench_acts_at_the_links_own_inertial_origin_where_a_tool_was_merged(
    parse, monkeypatch, unrolled
):
    fixed = '<joint name="f" type="fixed"><origin xyz="0.2 0 0"/>'
    fixed += '<parent link="arm"/><child link="tool"/></joint>'
    tree = parse(ONE + link("tool") + fixed)  # 2 kg at 0.1 m, and 2 kg at 0.3 m
    np.testing.assert_allclose(tree.coms, [[0.2, 0.0, 0.0]], atol=1e-15)
    push = np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    q = jnp.zeros(1)
    if not unrolled:
        monkeypatch.setattr("mime.control.kinematics.recursion.WORTH_LOOPS", -1000)
    torque = -kin.rnea(tree, q, None, None, np.zeros(3), push)
    np.testing.assert_allclose(torque, [0.1], rtol=1e-6)  # 1 N at 0.1 m, in single precision too
    J = kin.frame_jacobian(tree, q, 0)
    np.testing.assert_allclose(J.T @ push[0], torque, rtol=1e-6)
    np.testing.assert_allclose(kin.link_world_poses(tree, q)[0, :3], [0.1, 0, 0], atol=1e-7)


def test_a_link_without_inertial_is_pushed_at_its_own_origin_whatever_is_fixed_to_it(parse):
    body = ONE.replace(link("arm"), '<link name="arm"/>')
    fixed = '<joint name="f" type="fixed"><parent link="arm"/><child link="tool"/></joint>'
    tree = parse(body + link("tool") + fixed)
    np.testing.assert_array_equal(tree.coms, [[0.1, 0.0, 0.0]])
    np.testing.assert_array_equal(tree.inertial_origins, np.zeros((1, 3)))


def test_rounding_of_a_quarter_turn_folds_and_a_truncated_pi_does_not(parse):
    def frame(rpy):
        origin = f'<origin rpy="{rpy} 0 0"/>'
        return parse(ONE.replace("</joint>", origin + "</joint>")).joint_frames[0]

    assert frame("1.5707963267948966")[1, 1] == 0.0
    assert frame("1.5708")[1, 1] == np.cos(1.5708)
    assert frame("1.57079632679")[1, 1] == np.cos(1.57079632679)


def test_axes_are_normalised_and_limits_and_friction_are_read(parse):
    body = ONE.replace('xyz="0 0 1"', 'xyz="3 0 4"')
    body = body.replace("</joint>", '<dynamics damping="0.7" friction="0.2"/></joint>')
    tree = parse(body)
    np.testing.assert_allclose(tree.joint_axes_local, [[0.6, 0.0, 0.8]], atol=1e-16)
    assert tree.joint_friction == 0.7
    assert tree.joint_coulomb_friction == 0.2
    np.testing.assert_array_equal(tree.joint_limits, [[-1.0, 1.0]])
    assert (tree.effort_limits[0], tree.velocity_limits[0]) == (5.0, 2.0)


def test_a_continuous_joint_has_no_limits(parse):
    tree = parse(ONE.replace('"revolute"', '"continuous"'))
    np.testing.assert_array_equal(tree.joint_types, [kin.JOINT_TYPE_CONTINUOUS])
    np.testing.assert_array_equal(tree.joint_limits, [[-np.inf, np.inf]])
    assert any("continuous" in note for note in tree.ignored)


@pytest.mark.parametrize(
    "transmission",
    [
        '<joint name="j"><mechanicalReduction>50</mechanicalReduction></joint>'
        "<actuator name='m'><rotorInertia>2e-5</rotorInertia></actuator>",
        '<joint name="j"/><actuator name="m"><mechanicalReduction>-50</mechanicalReduction>'
        '<rotorInertia value="2e-5"/></actuator>',
        '<joint name="j"/><mechanicalReduction>50</mechanicalReduction>'
        "<rotorInertia>2e-5</rotorInertia>",
        '<joint name="j"/><actuator name="m"><drake:gear_ratio value="50"/>'
        '<drake:rotor_inertia value="2e-5"/></actuator>',
    ],
)
def test_gear_and_rotor_become_armature_on_the_diagonal(parse, transmission):
    tree = parse(ONE + f"<transmission name='t'>{transmission}</transmission>")
    assert tree.armature[0] == pytest.approx(50**2 * 2e-5)
    q = np.zeros(1)
    added = kin.mass_matrix(tree, q) - kin.mass_matrix(parse(ONE), q)
    assert added[0, 0] == pytest.approx(0.05)


def test_a_transmission_that_couples_joints_is_reported(parse):
    body = ONE + link("c") + joint("k", "arm", "c")
    body += "<transmission name='t'><joint name='j'/><joint name='k'/>"
    tree = parse(body + "<mechanicalReduction>3</mechanicalReduction></transmission>")
    assert tree.ignored == (
        "transmission 't' has 1 gears on 2 joints; one on one is simulated, and two on two of a "
        "differential or four-bar linkage with rotorInertia",
    )


def test_a_mimicking_joint_shares_its_masters_coordinate(parse):
    mimic = '<mimic joint="j" multiplier="-2" offset="0.5"/><dynamics damping="3" friction="1"/>'
    tree = parse(ONE + link("c") + joint("k", "arm", "c", inside=mimic))
    assert (tree.num_joints, tree.num_links) == (1, 2)
    assert tree.joint_names == ("j",)
    assert tree.joint_friction[0] == pytest.approx(2**2 * 3.0)
    assert tree.joint_coulomb_friction[0] == pytest.approx(2.0)
    # -1 <= -2 q + 0.5 <= 1 narrows the master's own -1..1.
    np.testing.assert_allclose(tree.joint_limits, [[-0.25, 0.75]])
    T = kin.joint_to_world_transforms(tree, np.array([0.3]))
    angle = 0.3 + (-2 * 0.3 + 0.5)
    np.testing.assert_allclose(T[1, :2, 0], [np.cos(angle), np.sin(angle)], atol=1e-15)


def test_links_come_depth_first_with_parents_before_children(parse):
    body = "".join(map(link, "abcde"))
    body += joint("j4", "d", "e") + joint("j2", "a", "c") + joint("j1", "a", "b")
    tree = parse(body + joint("j3", "b", "d"))
    assert tree.link_names == ("c", "b", "d", "e")
    assert tree.parent_idxs == (-1, -1, 1, 2)
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]
    np.testing.assert_array_equal(kin.ancestor_mask(tree.parent_idxs), np.array(expected, bool))


def test_shapes_are_kept_and_meshes_are_found(parse, tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").write_text("")
    shapes = "".join(
        f"<visual><geometry>{shape}</geometry></visual>"
        for shape in (
            '<box size="1 2 3"/>',
            '<mesh filename="meshes/a.stl"/>',
            f'<mesh filename="package://{tmp_path.name}/meshes/a.stl" scale="2 2 2"/>',
            '<mesh filename="package://elsewhere/b.stl"/>',
        )
    )
    tree = parse(ONE.replace("</link>", shapes + "</link>", 1))
    box, relative, package, missing = tree.visuals
    assert (box.frame_name, box.shape, box.size) == ("base", "box", (1.0, 2.0, 3.0))
    assert relative.mesh_path == package.mesh_path == str(tmp_path / "meshes" / "a.stl")
    assert missing.mesh_path == "package://elsewhere/b.stl"
    (note,) = tree.ignored
    assert note.startswith("package 'elsewhere' not found in search_path (none), ROS_PACKAGE_PATH ")
    assert f", or in {tmp_path} and up to " in note
    assert note.endswith(": its meshes are drawn as boxes")


def test_packages_are_looked_for_in_the_search_path_then_where_ros_does(
    parse, tmp_path, monkeypatch
):
    for folder in ("given", "ros"):
        (tmp_path / folder / "pack").mkdir(parents=True)
        (tmp_path / folder / "pack" / "a.stl").write_text("")
    shape = '<visual><geometry><mesh filename="package://pack/a.stl"/></geometry></visual>'
    body = ONE.replace("</link>", shape + "</link>", 1)
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{tmp_path / 'ros'}")
    for search_path, folder in (([], "ros"), ([tmp_path / "given"], "given")):
        (visual,) = parse(body, search_path=search_path).visuals
        assert visual.mesh_path == str(tmp_path / folder / "pack" / "a.stl")
    assert (
        parse(body, search_path=[tmp_path / "given" / "pack"]).ignored == ()
    )  # the package itself
    (gone,) = parse(body.replace("a.stl", "../../given/pack/b.stl")).ignored
    start = "a box is drawn for the mesh package://pack/../../given/pack/b.stl: no file "
    assert gone.startswith(start)


def test_lines_are_those_of_the_file_after_what_is_skipped(parse):
    for text in ('\n \n<?xml version="1.0"?>\n<robot>{}', "<robot>\n<!-- a -- b\n -->{}"):
        robot = ONE.replace("<axis", "\n<axis").replace('effort="5"', 'effort="-1"')
        whole = text.format(robot) + "</robot>"
        first, limit = parse(whole, head="").report
        assert (first.rule, first.line) == ("xml", 3 if "xml" in text else 2)
        assert limit.line == whole[: whole.index("<limit")].count("\n") + 1


def test_no_physical_inertia_is_nearer_than_the_one_that_is_taken():
    """I' is the projection of I: <I - I', J - I'> <= 0 for all physical J, and <I - I', I'> = 0."""
    rng = np.random.default_rng(17)
    A = rng.normal(size=(200, 3, 3))
    S = A @ A.transpose(0, 2, 1)
    physical = np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S
    for unphysical in rng.normal(size=(50, 3, 3)):
        I = unphysical + unphysical.T
        nearest = nearest_physical_inertia(I)
        assert is_physical(nearest, 0.0)
        slopes = np.einsum("ij,kij->k", I - nearest, physical - nearest)
        assert np.max(slopes) < 1e-12
        assert abs(np.sum((I - nearest) * nearest)) < 1e-12
    np.testing.assert_allclose(nearest_physical_inertia(physical[0]), physical[0], rtol=1e-13)


@pytest.mark.parametrize(("name", "joints"), [("planar_arm_3link", 3), ("desktop_arm_6axis", 6)])
def test_bundled_arms_load_whole_and_can_be_drawn(name, joints):
    tree = kin.parse_urdf(model_path(name))
    assert tree.num_joints == joints
    assert tree.ignored == ()
    assert {visual.frame_name for visual in tree.visuals} >= set(tree.link_names)
    assert np.all(np.isfinite(tree.effort_limits))


def test_an_unknown_bundled_robot_lists_the_known_ones():
    with pytest.raises(FileNotFoundError, match="desktop_arm_6axis, planar_arm_3link"):
        model_path("arm")
