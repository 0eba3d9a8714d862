"""Where meshes, includes and packages are found, and what is not opened."""

import os
from pathlib import Path

import numpy as np
import pytest

from mime.control.kinematics import MjcfError, mass_matrix, nonlinear_bias, parse_mjcf, parse_urdf
from mime.control.kinematics.packages import NO_MESH, NotFoundError, Packages, bounds_of
from mime.replay.robot import robot_content
from mjcf_files import TETRAHEDRON

URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{}</link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
</joint></robot>"""
VISUAL = '<visual><geometry><mesh filename="{}"/></geometry></visual>'


def put(file: Path, content: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Path:
    """src with two packages, as ROS has them, and a secret beside them."""
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    src = tmp_path / "ws" / "src"
    for package in ("arm_description", "tool_description"):
        put(src / package / "package.xml", f"<package><name>{package}</name></package>")
        put(src / package / "meshes" / "a.STL", TETRAHEDRON)
    put(src / "not_a_package" / "a.stl")
    put(src / "secret.stl")
    put(src / "arm_description" / "urdf" / "arm.urdf")
    return src


def packages(workspace: Path, *search_path: Path) -> Packages:
    return Packages.of(workspace / "arm_description" / "urdf" / "arm.urdf", search_path)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("../meshes/a.STL", "arm_description/meshes/a.STL"),
        ("meshes/a.STL", "arm_description/meshes/a.STL"),  # from a folder above, in the bounds
        ("package://arm_description/meshes/a.STL", "arm_description/meshes/a.STL"),
        ("package://tool_description/meshes/a.STL", "tool_description/meshes/a.STL"),
        ("$(find tool_description)/meshes/a.STL", "tool_description/meshes/a.STL"),
        ("file://$(find arm_description)/meshes/a.STL", "arm_description/meshes/a.STL"),
        ("../../tool_description/meshes/a.STL", "tool_description/meshes/a.STL"),
        ("{src}/tool_description/meshes/a.STL", "tool_description/meshes/a.STL"),
        ("file://{src}/arm_description/meshes/a.STL", "arm_description/meshes/a.STL"),
        ("file:///{src}/arm_description/meshes/a.STL", "arm_description/meshes/a.STL"),
    ],
)
def test_a_name_leads_to_a_file_of_the_workspace(workspace, name, found):
    assert packages(workspace).file(name.format(src=workspace)) == workspace / found


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("package://not_a_package/a.stl", "package 'not_a_package' not found"),
        ("package://../secret.stl", "package '..' not found"),
        ("package://arm_description/../secret.stl", "lies outside of"),
        ("../../secret.stl", "lies outside of"),
        ("../../not_a_package/a.stl", "lies outside of"),
        ("{src}/secret.stl", "lies outside of"),
        ("file://{src}/secret.stl", "lies outside of"),
        ("/etc/passwd", "lies outside of"),
        ("../meshes/gone.stl", "no file 'gone.stl' in "),
        ("../package.xml", "is not one of .stl, .obj"),
        ("../meshes", "no file"),
        ("fifo.stl", "no file"),
        ("out.stl", "lies outside of"),
        ("loop.stl", "no file"),
        ("hidden.stl", "is not one of .stl"),
        ("", "has no name"),
        ("a\0.stl", "no file"),
        ("a" * 5000 + ".stl", "no file"),
    ],
)
def test_what_is_not_a_plain_mesh_in_the_bounds_is_not_opened(workspace, name, why):
    folder = workspace / "arm_description" / "urdf"
    os.mkfifo(folder / "fifo.stl")
    (folder / "out.stl").symlink_to(workspace / "secret.stl")
    (folder / "loop.stl").symlink_to(folder / "loop.stl")
    (folder / "hidden.stl").symlink_to(folder.parent / "package.xml")
    with pytest.raises(NotFoundError, match=why.replace(".", r"\.")):
        packages(workspace).file(name.format(src=workspace))


def test_bounds_end_at_a_package_a_repository_the_home_folder_or_after_four_levels(
    tmp_path, monkeypatch
):
    deep = tmp_path / "a" / "b" / "c" / "d" / "e"
    deep.mkdir(parents=True)
    assert bounds_of(deep) == (deep, *deep.parents[:4])
    monkeypatch.setenv("HOME", str(tmp_path / "a" / "b"))
    assert bounds_of(deep) == (deep, *deep.parents[:2])
    assert bounds_of(tmp_path / "a" / "b") == (tmp_path / "a" / "b",)
    assert bounds_of(tmp_path) == (tmp_path,)  # above the home folder
    (deep.parent / ".git").mkdir()
    assert bounds_of(deep) == (deep, deep.parent)
    put(deep / "package.xml")
    assert bounds_of(deep) == (deep,)
    monkeypatch.setenv("HOME", "/home/nobody")
    assert Path("/") not in bounds_of(Path("/one/two"))


def test_search_paths_go_first_and_an_installed_package_may_link_to_its_sources(
    workspace, tmp_path, monkeypatch
):
    name = "package://arm_description/meshes/a.STL"
    share = tmp_path / "install" / "arm" / "share"
    installed = share / "arm_description"
    (installed / "meshes").mkdir(parents=True)
    for file in ("package.xml", "meshes/a.STL"):
        (installed / file).symlink_to(workspace / "arm_description" / file)
    (installed / "meshes" / "b.stl").symlink_to(workspace / "secret.stl")
    elsewhere = put(tmp_path / "elsewhere" / "robot.urdf")
    put(tmp_path / "elsewhere" / "package.xml")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere{os.pathsep}{share.parent}")
    sources = workspace / "arm_description" / "meshes" / "a.STL"
    assert Packages.of(elsewhere, ()).file(name) == sources
    assert Packages.of(elsewhere, ()).file(f"file://{installed}/meshes/a.STL") == sources
    with pytest.raises(NotFoundError, match="lies outside of"):
        Packages.of(elsewhere, ()).file(name.replace("a.STL", "b.stl"))
    ros = put(tmp_path / "ros" / "arm_description" / "meshes" / "a.STL")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    assert Packages.of(elsewhere, ()).file(name) == ros
    given = put(tmp_path / "given" / "arm_description" / "meshes" / "a.STL")
    assert Packages.of(elsewhere, [tmp_path / "given"]).file(name) == given
    monkeypatch.chdir(tmp_path)
    assert Packages.of(Path("elsewhere/robot.urdf"), ["given"]).file(name) == given


def test_a_package_is_known_by_its_package_xml_where_its_folder_has_another_name(workspace):
    (workspace / "arm_description").rename(workspace / "arm_description-main")
    file = workspace / "arm_description-main" / "urdf" / "arm.urdf"
    found = Packages.of(file, ()).file("package://arm_description/meshes/a.STL")
    assert found == workspace / "arm_description-main" / "meshes" / "a.STL"


def test_a_link_to_a_robot_has_the_bounds_of_both_folders(workspace, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    put(tmp_path / "elsewhere" / "b.stl")
    link = tmp_path / "elsewhere" / "arm.urdf"
    link.symlink_to(workspace / "arm_description" / "urdf" / "arm.urdf")
    assert Packages.of(link, ()).file("b.stl") == tmp_path / "elsewhere" / "b.stl"
    found = Packages.of(link, ()).file("../meshes/a.STL")
    assert found == workspace / "arm_description" / "meshes" / "a.STL"


def test_a_folder_that_links_out_of_the_bounds_is_no_package(workspace, tmp_path):
    put(tmp_path / "private" / "package.xml")
    put(tmp_path / "private" / "a.stl")
    (workspace / "arm_description" / "other").symlink_to(tmp_path / "private")
    (workspace / "beside").symlink_to(tmp_path / "private")
    for name in ("other", "beside"):
        assert packages(workspace).found(name) == []


def test_a_mesh_that_is_missing_is_a_box_and_noted_and_nothing_else_is_opened(
    workspace, tmp_path, monkeypatch
):
    file = workspace / "arm_description" / "urdf" / "arm.urdf"
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    put(tmp_path / "cwd" / "here.stl", TETRAHEDRON)
    missing = ["gone.stl", "here.stl", f"{workspace}/secret.stl"]
    file.write_text(URDF.format("".join(map(VISUAL.format, missing))))
    tree = parse_urdf(file)
    assert [finding.what.startswith(NO_MESH) for finding in tree.report] == [True] * 3
    content, _ = robot_content(tree)
    assert [s["kind"] for s in content["shapes"] if s.get("layer", "robot") == "robot"] == (
        ["solid"] * 3
    )
    assert len([note for note in content["notes"] if "a box is drawn" in note]) == 3
    assert not any("not simulated" in note for note in content["notes"])


def test_a_missing_mesh_of_a_link_without_mass_is_a_cube_at_its_place(workspace):
    file = workspace / "arm_description" / "urdf" / "arm.urdf"
    visual = VISUAL.format("gone.stl").replace("<geom", '<origin xyz="1 2 3"/><geom', 1)
    file.write_text(
        URDF.format("").replace('<link name="base"/>', f'<link name="base">{visual}</link>')
    )
    content, _ = robot_content(parse_urdf(file))
    (cube,) = [s for s in content["shapes"] if s.get("layer", "robot") == "robot"]
    assert cube["pose"][:3] == [1.0, 2.0, 3.0]
    assert len(set(cube["size"])) == 1
    assert cube["size"][0] > 0


MJCF = """<mujoco><compiler meshdir="../meshes" {compiler}/><asset><mesh file="m.obj"/></asset>
<worldbody><geom type="mesh" mesh="m"/><body name="b"><joint name="j" axis="0 1 0"/>{inertial}
<geom type="{kind}" mesh="m" {geom}/><body name="c" pos="0.1 0 0.2"><joint name="k" axis="1 0 0"/>
<inertial mass="0.5" pos="0 0 0.1" diaginertia="0.1 0.1 0.1"/><geom size="0.1" contype="0"
conaffinity="0"/></body></body></worldbody></mujoco>"""
INERTIAL = '<inertial mass="1" pos="0 0.1 0.2" diaginertia="0.1 0.2 0.25"/>'
NO_CONTACT = 'contype="0" conaffinity="0"'
NEEDED = {
    "by default": {"inertial": "", "geom": ""},
    "a mass": {"inertial": "", "geom": 'mass="2"'},
    "a box that is fitted": {"inertial": "", "geom": "", "kind": "box"},
    "its group counts": {
        "inertial": "",
        "geom": 'group="1"',
        "compiler": 'inertiagrouprange="1 2"',
    },
    "geoms before inertials": {"geom": "", "compiler": 'inertiafromgeom="true"'},
}
NOT_NEEDED = {
    "an inertial": {"geom": ""},
    "a capsule that is fitted": {"geom": "", "kind": "capsule"},
    "no mass": {"inertial": f"<geom size='0.1' {NO_CONTACT}/>", "geom": 'mass="0"'},
    "another group": {
        "inertial": f"<geom size='0.1' group='3' {NO_CONTACT}/>",
        "geom": 'group="1"',
        "compiler": 'inertiagrouprange="2 5"',
    },
    "no mass from geoms": {"geom": "", "compiler": 'inertiafromgeom="false"'},
}


def written(tmp_path, case: dict[str, str]) -> Path:
    parts = {"compiler": "", "inertial": INERTIAL, "kind": "mesh"} | case
    parts["geom"] += f" {NO_CONTACT}"
    text = MJCF.format(**parts).replace('"m"/><body', f'"m" {NO_CONTACT}/><body', 1)
    return put(tmp_path / "robot" / "mjcf" / "r.xml", text)


@pytest.mark.parametrize("case", NEEDED)
@pytest.mark.parametrize("content", [None, "nonsense"])
def test_a_body_that_takes_its_mass_from_a_mesh_is_refused_without_it(tmp_path, case, content):
    file = written(tmp_path, NEEDED[case])
    mesh = put(tmp_path / "robot" / "meshes" / "m.obj", content or TETRAHEDRON)
    if content is None:
        parse_mjcf(file)
        mesh.unlink()
    with pytest.raises(MjcfError, match="body 'b' takes its mass from mesh 'm': ") as refusal:
        parse_mjcf(file)
    assert str(refusal.value).startswith(f"{file}:2: ")


def test_what_stands_still_needs_no_mass_from_a_mesh(tmp_path):
    post = '<mujoco><asset><mesh name="m" file="gone.obj"/></asset><worldbody><body name="post">'
    post += '<geom type="mesh" mesh="m"/>{}</body></worldbody></mujoco>'
    tree = parse_mjcf(put(tmp_path / "post.xml", post.format("")))
    assert (tree.num_joints, float(tree.root_body.mass)) == (0, 0.0)
    assert "it stands still, without mass" in str(tree.report)
    with pytest.raises(MjcfError, match="takes its mass from mesh 'm'"):
        parse_mjcf(put(tmp_path / "ball.xml", post.format("<freejoint/>")))


@pytest.mark.parametrize("case", NOT_NEEDED)
@pytest.mark.parametrize(
    "content", [None, "nonsense", "version https://git-lfs.github.com/spec/v1"]
)
def test_a_mesh_without_a_part_in_the_mechanics_is_a_box_with_mujocos_dynamics(
    tmp_path, case, content
):
    import mujoco

    file = written(tmp_path, NOT_NEEDED[case])
    mesh = put(tmp_path / "robot" / "meshes" / "m.obj", TETRAHEDRON)
    model = mujoco.MjModel.from_xml_path(str(file))  # with the mesh
    whole = parse_mjcf(file)
    assert whole.report == ()
    mesh.unlink() if content is None else mesh.write_text(content)
    tree = parse_mjcf(file)
    (note,) = tree.ignored
    assert note.startswith(f"{NO_MESH} '../meshes/m.obj'") or "m.obj" in note
    q, qd = np.array([0.3, -0.7]), np.array([0.5, 1.1])
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    M = np.zeros((2, 2))
    mujoco.mj_fullM(model, data, M)
    # A few operations on numbers of order 1, in another order.
    np.testing.assert_allclose(mass_matrix(tree, q), M, rtol=0, atol=1e-14)
    bias = nonlinear_bias(tree, q, qd, tree.gravity_m_per_s2)
    np.testing.assert_allclose(bias, data.qfrc_bias, rtol=0, atol=1e-13)
    content_of_page, _ = robot_content(tree)
    assert content_of_page["meshes"] == []


def test_includes_and_meshes_of_an_mjcf_have_the_bounds_of_its_package(tmp_path):
    folder = tmp_path / "robot" / "mjcf"
    put(tmp_path / "robot" / "package.xml")
    put(tmp_path / "robot" / "meshes" / "m.obj", TETRAHEDRON)
    put(
        tmp_path / "robot" / "parts" / "joint.xml",
        '<mujocoinclude><joint name="j"/></mujocoinclude>',
    )
    put(
        tmp_path / "robot" / "parts" / "joint.txt",
        '<mujocoinclude><joint name="j"/></mujocoinclude>',
    )
    put(tmp_path / "outside.xml", "<mujocoinclude/>")
    text = f"""<mujoco><compiler meshdir="../meshes"/><asset><mesh file="m.obj"/></asset><worldbody>
    <body><include file="../parts/joint.xml"/><geom type="mesh" mesh="m" {NO_CONTACT}/></body>
    </worldbody></mujoco>"""
    tree = parse_mjcf(put(folder / "r.xml", text))
    assert tree.joint_names == ("j",)
    assert tree.visuals[0].mesh_path == str(tmp_path / "robot" / "meshes" / "m.obj")
    for name, why in (
        ("../parts/joint.txt", "is not one of .xml, .mjcf"),
        ("../../outside.xml", "lies outside of"),
        ("../parts/gone.xml", "no file 'gone.xml' in "),
    ):
        file = put(folder / "wrong.xml", text.replace("../parts/joint.xml", name))
        with pytest.raises(MjcfError, match=why):
            parse_mjcf(file)


def test_a_fifo_or_a_device_in_the_place_of_a_robot_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "r.urdf")
    os.mkfifo(tmp_path / "r.xml")
    os.mkfifo(tmp_path / "r.xacro")
    from mime.control.kinematics import RobotFileError, parse_robot

    for name in ("r.urdf", "r.xml", "r.xacro"):
        with pytest.raises(RobotFileError, match="it is not a plain file"):
            parse_robot(tmp_path / name)
    with pytest.raises(RobotFileError, match="it is not a plain file"):
        parse_urdf("/dev/zero")
