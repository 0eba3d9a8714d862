"""The survey of robot files, by files of ours: what it counts, and that it finds a difference."""

import dataclasses
import json
import shutil
import subprocess

import numpy as np
import public_robots
import pytest
from survey import mjcf, workers
from survey.agreement import compared
from survey.checkouts import Repository, distinct, repositories, sampled
from survey.mujoco_peer import InMujoco
from survey.pinocchio_peer import InPinocchio
from survey.readers import normalised
from survey.staging import staged
from survey.xacro_calls import calls

from mime.control.kinematics import parse_mjcf, parse_urdf

INERTIA = '<inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0.001" iyz="0"/>'
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'


def link(name, inertia=INERTIA):
    origin = '<origin xyz="0.1 0.2 0.3"/>'
    return f'<link name="{name}"><inertial>{origin}<mass value="2"/>{inertia}</inertial></link>'


def joint(name, parent, child, kind="revolute"):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    place = '<origin xyz="0.1 0 0.2" rpy="0.3 0 0.5"/><axis xyz="0 0.6 0.8"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{place}{LIMIT}</joint>'


def robot(*parts):
    return f'<robot name="r">{"".join(parts)}</robot>'


ARM = robot('<link name="base"/>', link("a"), link("b"), joint("p", "base", "a"),
            joint("q", "a", "b"))  # fmt: skip
FLYING = robot('<link name="world"/>', link("body"), link("a"),
               joint("free", "world", "body", "floating"), joint("p", "body", "a"))  # fmt: skip
MIMIC = '<mimic joint="p" multiplier="-2" offset="0.1"/>'
BROKEN_LINE = ARM.replace('ixz="0.001"', 'ixz="0.001\n"', 1)
FOLLOWING = ARM.replace("</joint></robot>", MIMIC + "</joint></robot>")
REFUSED = robot(link("base"), link("a"), joint("p", "base", "a").replace("0 0.6 0.8", "0 0 0"))
MODEL = """<mujoco><compiler meshdir="../meshes"/>
<asset><mesh name="body" file="body.stl"/></asset>
<option gravity="0.5 0 -9" density="1.2"/>
<worldbody><body name="base" pos="0 0 1"><freejoint/><geom type="mesh" mesh="body"/>
<body name="a" pos="0.1 0 0.2" gravcomp="0.7"><joint name="p" axis="0 1 0.5" damping="0.3"
stiffness="4" armature="0.02"/><geom size="0.1" pos="0.2 0 0"/>
<body name="b" pos="0 0.3 0"><joint name="q" axis="1 0 0"/><geom size="0.05" pos="0 0.1 0"/></body>
</body></body></worldbody>
<equality><joint joint1="q" joint2="p" polycoef="0.1 -2 0 0 0"/></equality></mujoco>"""


@pytest.fixture(autouse=True)
def python_computes(monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")


@pytest.fixture
def checkout(tmp_path):
    top = tmp_path / "checkouts" / "someone+robots"
    files = {
        "arm.urdf": ARM,
        "copy/arm.urdf": ARM,
        "refused.urdf": REFUSED,
        "xml/model.xml": MODEL,
        "xml/scene.xml": '<mujoco><include file="model.xml"/></mujoco>',
        "xml/part.xml": '<mujocoinclude><worldbody><joint name="x"/></worldbody></mujocoinclude>',
        "arm.urdf.xacro": ARM.replace("<robot", '<robot xmlns:xacro="http://ros.org/xacro"'),
        "arm_macro.xacro": "<robot/>",
    }
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return Repository("someone/robots", top)


def test_reasons_are_counted_without_names_and_numbers():
    one = "link 'a' (with 'b', 'c' and 3 more) has moments 1.5e-3, 0.2, -7 kg·m²; expected '0.1'"
    other = "link 'x' (with 'y') has moments 1, 2, 3 kg·m²; expected 'z'"
    assert normalised(one) == normalised(other)
    assert normalised(one) == "<link> (with '…') has moments # kg·m²; expected '…'"
    assert normalised("<geom> can touch") == normalised("geom 'g4' can touch")
    assert normalised("<geom> can touch") != normalised("<site> can touch")


def test_files_that_differ_in_digits_alone_are_sampled_evenly(tmp_path):
    repository = Repository("o/n", tmp_path)
    for i in range(100):
        (tmp_path / f"{i:03d}").mkdir()
        (tmp_path / f"{i:03d}" / f"{i:03d}.urdf").write_text(str(i // 2))
    (tmp_path / "other.urdf").write_text("other")
    single = distinct(repository.files(".urdf"))
    assert len(single) == 51
    assert single[0].copies == 2
    kept = [repository.relative(entry.file) for entry in sampled(repository, single, 5)]
    assert kept == [f"{i:03d}/{i:03d}.urdf" for i in (0, 20, 40, 60, 80)] + ["other.urdf"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git makes the snapshot")
def test_a_bare_snapshot_is_unpacked_without_what_it_lacks(tmp_path):
    source, bare = tmp_path / "source", tmp_path / "all" / "someone+robots" / "repo"
    source.mkdir()
    (source / "kept.urdf").write_text(ARM)
    (source / "lost.stl").write_text("large")
    (source / "out").symlink_to("../../elsewhere")
    (source / "inside").symlink_to("kept.urdf")

    def git(*words, folder=source):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(folder), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "robots")
    lost = git("rev-parse", "HEAD:lost.stl")
    git("clone", "-q", "--bare", str(source), str(bare), folder=tmp_path)
    (bare / "objects" / lost[:2] / lost[2:]).unlink()
    (repository,) = repositories(tmp_path / "all", tmp_path / "unpacked")
    assert repository.name == "someone/robots"
    assert sorted(file.name for file in repository.folder.iterdir()) == ["inside", "kept.urdf"]
    assert (repository.folder / "inside").read_text() == ARM


def test_a_missing_mesh_is_a_box_in_the_copy_alone(checkout, tmp_path):
    import mujoco

    before = sorted(checkout.folder.rglob("*"))
    copy = staged(checkout.folder / "xml" / "model.xml", checkout.folder, tmp_path / "copy")
    assert copy.replaced == 1
    assert sorted(checkout.folder.rglob("*")) == before
    model = mujoco.MjModel.from_xml_path(str(copy.file))
    np.testing.assert_allclose(model.body("base").mass, 1000 * 0.1**3, rtol=1e-6)  # float32 corners


def test_a_robots_mjcf_is_neither_scene_nor_fragment(checkout):
    assert [checkout.relative(file) for file in mjcf.robot_files(checkout)] == ["xml/model.xml"]
    assert [call.file for call in calls(checkout)] == ["arm.urdf.xacro"]


# Both sum some tens of products of double precision: 1e-15 each, beside matrices of condition 1e3.
CLOSE = 1e-12


@pytest.mark.parametrize("text", [ARM, FLYING, FOLLOWING])
def test_a_urdf_agrees_and_another_inertia_is_found(tmp_path, text):
    file = tmp_path / "robot.urdf"
    file.write_text(text)
    tree = parse_urdf(file)
    found = compared(tree, InPinocchio(tree, file))
    assert set(found["errors"]) == {"M", "bias", "acceleration", "frames"}
    assert max(found["errors"].values()) < CLOSE
    other = dataclasses.replace(tree, masses=tree.masses * (1 + 1e-6))
    worse = compared(other, InPinocchio(other, file))["errors"]
    assert min(worse[name] for name in ("M", "bias", "acceleration")) > 1e-8
    assert worse["frames"] < CLOSE
    if text is FOLLOWING:
        other = dataclasses.replace(tree, mimic_multiplier=np.array([1.0, -2.0 - 1e-6]))
        with pytest.raises(ValueError, match="<mimic> of joint 'q' does not hold"):
            compared(other, InPinocchio(other, file))


def test_an_mjcf_agrees_and_another_compensation_is_found(checkout, tmp_path):
    import mujoco

    copy = staged(checkout.folder / "xml" / "model.xml", checkout.folder, tmp_path / "copy")
    with pytest.warns(UserWarning, match="fluid"):
        tree = parse_mjcf(copy.file)
    assert (tree.num_links, tree.num_joints, tree.base) == (2, 1, "floating")

    def errors(of):
        return compared(of, InMujoco(of, mujoco.MjModel.from_xml_path(str(copy.file))))["errors"]

    assert set(errors(tree)) == {"M", "bias", "compensation", "acceleration", "frames"}
    assert max(errors(tree).values()) < CLOSE
    other = dataclasses.replace(tree, compensated_masses=tree.compensated_masses * (1 + 1e-6))
    assert errors(other)["compensation"] > 1e-8
    other = dataclasses.replace(tree, mimic_multiplier=np.array([1.0, -2.0 - 1e-6]))
    with pytest.raises(ValueError, match="equality 0 of joint 'q' does not hold"):
        errors(other)


@pytest.mark.slow
def test_the_page_counts_and_names(checkout, tmp_path, capsys):
    (checkout.folder / "dropped.urdf").write_text(BROKEN_LINE)
    rows_file = tmp_path / "rows.json"
    folder = checkout.folder.parent
    assert public_robots.main([str(folder), "--jobs", "1", "--json", str(rows_file)]) == 0
    page = capsys.readouterr().out
    assert "| someone/robots | 4 | 3 | 3 (100 %) | 2 (67 %) |" in page
    assert "### Refused by MIME, loaded by Pinocchio: 1" in page
    assert "- someone/robots/refused.urdf: line 1: " in page
    assert "Pinocchio drops an inertia with a line break in an attribute" in page
    assert "| someone/robots | 1 | 1 (100 %) | 1 | 1 | 0 | 1 (100 %) |" in page
    rows = {row["file"]: row for row in json.loads(rows_file.read_text())}
    assert set(rows) == {
        *("arm.urdf", "refused.urdf", "dropped.urdf", "xml/model.xml", "arm.urdf.xacro")
    }
    for name in ("arm.urdf", "xml/model.xml", "arm.urdf.xacro"):
        assert max(rows[name]["agreement"]["errors"].values()) < CLOSE


@pytest.mark.slow
def test_a_file_that_kills_or_stops_its_reader_costs_its_row_alone(tmp_path, monkeypatch):
    source = """import os, time
def answer(question):
    yield "first", 1
    if question["file"] == "kills":
        os._exit(7)
    if question["file"] == "stops":
        time.sleep(60)
    yield "second", 2
"""
    (tmp_path / "fragile.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    import fragile

    asked = [{"repository": "o/n", "file": name} for name in ("kills", "stops", "good")]
    found = workers.rows(fragile.answer, asked, workers=1, seconds=10.0, title="t")
    assert [row.get("lost") for row in found] == [
        *("the process died with 7", "no answer in 10 s", None)
    ]
    assert [row.get("second") for row in found] == [None, None, 2]
    assert all(row["first"] == 1 for row in found)
