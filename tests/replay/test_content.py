"""What goes into a replay page, and what a drawing says: without a browser."""

import dataclasses
import importlib.util
import json
import os
import pickle
import shutil
import types
import warnings
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from mpl_toolkits.mplot3d import art3d

from mime import (
    ElasticJointNode,
    Gear,
    GraphManager,
    InputError,
    JointTrajectoryNode,
    MotorNode,
    Node,
    Output,
    ParameterError,
    RobotArmNode,
    Trajectory,
    Winding,
    load_scenario,
    parse_robot,
)
from mime.cli import main
from mime.control.kinematics import frame_pose
from mime.core.drawing import Drawing, Frame, Solid, Value
from mime.core.pose import pose_to_matrix
from mime.core.recorder import field_specs
from mime.maze.generator import random_maze
from mime.models import model_path
from mime.mouse.assembly import build_mouse
from mime.replay.codec import DRAWN, EXACT, Block, filled
from mime.replay.content import page_content
from mime.replay.meshes import MeshError, Meshes, read_mesh, thinned
from mime.replay.motion import world_matrices
from mime.replay.page import json_in_html
from mime.replay.robot import mass_table, robot_content
from mime.replay.still import still
from mime.running.scene import DrawingWarning, scene
from mime.scenarios.request import seen_fields
from mime.scenarios.source import ScenarioError

ROOT = Path(__file__).parents[2]
MOTOR = {"r_ohm": 1.0, "l_henry": 1e-3, "damping_n_m_s": 1e-4}


def unpacked(block, table):
    """What codec.js does, in NumPy."""
    import base64
    import gzip

    content = gzip.decompress(base64.b64decode(block.base64()))
    rows, columns = table["shape"]
    count = rows * columns
    planes = np.frombuffer(content, np.uint8, 4 * count, table["at"]).reshape(4, count)
    zigzag = np.ascontiguousarray(planes.T).view(np.uint32).reshape(rows, columns).astype(np.int64)
    k = np.cumsum((zigzag >> 1) ^ -(zigzag & 1), axis=0)
    k = (k + 2**31) % 2**32 - 2**31
    return k * np.asarray(table.get("step", 1)) + np.asarray(table.get("low", 0))


def test_numbers_come_back_within_half_a_step():
    rng = np.random.default_rng(1)
    table = np.cumsum(rng.normal(size=(500, 3)), axis=0) * [1.0, 1e-9, 1e9]
    table -= table[7]
    whole = rng.integers(-(2**31), 2**31, (50, 2))
    constant, flags = np.full((20, 1), 0.3), rng.integers(0, 3, (20, 4))
    block = Block()
    places = [block.add(table, bits) for bits in (DRAWN, EXACT)]
    more = block.add_whole(whole), block.add(constant, DRAWN), block.add(flags, DRAWN)
    for place, bits in zip(places, (DRAWN, EXACT)):
        error = np.abs(unpacked(block, place) - table).max(axis=0) / np.ptp(table, axis=0)
        assert (error <= 0.501 / (2**bits - 1)).all()
        assert (unpacked(block, place)[7] == 0.0).all()  # 0 is 0
    np.testing.assert_array_equal(unpacked(block, more[0]), whole)
    np.testing.assert_array_equal(unpacked(block, more[1]), constant)
    np.testing.assert_array_equal(unpacked(block, more[2]), flags)


def test_what_is_not_finite_is_what_was_before_it():
    x = np.array([[np.nan, 1.0], [2.0, np.inf], [np.nan, 3.0]])
    np.testing.assert_array_equal(filled(x), [[0.0, 1.0], [2.0, 1.0], [2.0, 3.0]])


def test_every_drawing_follows_fields_that_are_there_and_is_plain_data():
    springs = {"joint_stiffness_n_m_per_rad": [100.0, 50.0, 10.0], "wrench_frames": ["tool"]}
    springs["rotor_inertia_kg_m2"] = [1e-3, 1e-3, 1e-3]
    urdf = model_path("planar_arm_3link")
    warm = {"gear": Gear(5.0), "winding": Winding(10.0, 5.0)}
    every = [
        *build_mouse(random_maze(1, rows=4, cols=4)).nodes.values(),
        RobotArmNode("arm", 1e-3, urdf, end_effector_link_name="tool", **springs),
        MotorNode("motor", 1e-3, 1e-4, 0.05, **MOTOR, **warm),
        ElasticJointNode("joint", 1e-3, 0.01, 0.03, 50.0),
        JointTrajectoryNode("path", 1e-3, [[0.0], [1.0]], 1.0, 1.0, 1.0),
        JointTrajectoryNode("way", 1e-3, np.zeros((2, 3)), 1.0, 1.0, 1.0, tree=urdf),
    ]
    drawn = []
    for node in every:
        cls = type(node)
        drawing, specs = node.drawing(), field_specs(node)
        assert set(drawing.fields()) <= set(specs), cls
        for field, words in drawing.names.items():
            assert field not in specs or np.prod(specs[field].shape) == len(words), (cls, field)
        frames = {""}
        for frame in drawing.frames:
            assert frame.parent in frames, (cls, frame)
            assert frame.name not in frames, (cls, frame)
            frames.add(frame.name)
        assert {shape.frame for shape in drawing.shapes} <= frames, cls
        assert Drawing.from_data(json.loads(json.dumps(drawing.to_data()))) == drawing, cls
        drawn += [cls.__name__] if drawing else []
    assert {"RobotArmNode", "MotorNode", "ElasticJointNode", "DifferentialDriveNode"} <= set(drawn)
    assert drawn.count("JointTrajectoryNode") == 1  # the one that has a tree


class Gadget(Node):
    """Does nothing."""

    def boundary_input_spec(self):
        return {}

    def boundary_flux_spec(self):
        return {"tick": Output((), "s")}

    def state_spec(self):
        return {"tick": Output((), "s")}

    def update(self, state, boundary_inputs, dt):
        return {"tick": state["tick"] + dt}

    def compute_boundary_fluxes(self, state, boundary_inputs, dt):
        return {"tick": state["tick"]}


def arm_run(**more):
    graph = GraphManager()
    arm = {"end_effector_link_name": "tool", **more}
    graph.add_node(RobotArmNode("arm", 1e-2, model_path("planar_arm_3link"), **arm))
    return graph.compile().run(0.2, initial_state={"arm": {"joint_angles": [0.3, 0.2, 0.1]}})


@pytest.fixture(scope="module")
def run():
    return arm_run()


def test_frames_are_where_forward_kinematics_has_the_links(run):
    with jax.enable_x64(True):
        tree, q = parse_robot(model_path("planar_arm_3link")), run["arm"]["joint_angles"][-1]
        found = world_matrices(run.drawing, lambda value, step: value.scale * q[value.index])
        for name in tree.frame_names:
            ours = pose_to_matrix(frame_pose(tree, np.asarray(q, float), name))
            np.testing.assert_allclose(found[f"arm/{name}"], ours, atol=1e-14)  # a few roundings


def test_a_base_that_floats_carries_the_arm_along():
    graph = GraphManager()
    arm = RobotArmNode("sat", 1e-2, model_path("satellite_arm"), "tool", base="floating")
    graph.add_node(arm)
    turned = {"base_orientation_world": [0.6, 0.0, 0.8, 0.0]}
    run = graph.compile().run(0.1, initial_state={"sat": turned})

    def last(value, step):
        return run["sat"][value.field.partition(".")[2]][-1].ravel()[value.index + step]

    tip = world_matrices(run.drawing, last)["sat/tool tip"]
    ours = np.asarray(pose_to_matrix(run["sat"]["end_effector_pose_world"][-1]))
    np.testing.assert_allclose(tip, ours, atol=1e-6)  # single precision
    assert "sat.base_position_world_m" in run.drawing.fields()


def test_a_result_keeps_its_drawing_in_files_and_between_processes(run, tmp_path):
    run.save(tmp_path / "run.nc")
    loaded, sent = Trajectory.load(tmp_path / "run.nc"), pickle.loads(pickle.dumps(run))
    assert loaded.drawing == sent.drawing == run.drawing
    assert loaded.replay().html == run.replay().html == sent.replay().html


def test_a_field_that_was_not_recorded_is_told(run):
    simulation = run.program
    short = simulation.run(0.1, record=["arm.joint_velocities"])
    notes = page_content(short, "x")[0]["notes"]
    assert "arm.joint_angles was not recorded: it is shown as it was at the end" in notes
    nothing = dataclasses.replace(short, final_state=None)
    notes = page_content(nothing, "x")[0]["notes"]
    assert "arm.joint_angles was not recorded: what follows it stands still" in notes


def test_an_input_from_outside_is_recorded_by_default_where_it_is_seen():
    graph = GraphManager()
    urdf = model_path("planar_arm_3link")
    graph.add_node(RobotArmNode("arm", 1e-3, urdf, "tool", wrench_frames=["tool"]))
    graph.add_node(Broken("broken", 1e-3))
    for field in ("external_wrenches_at_frames", "commanded_joint_torques"):
        graph.add_external_input("arm", field)
    simulation = graph.compile()
    fields = dict(simulation.select(None))["arm"]
    assert "external_wrenches_at_frames" in fields
    assert "commanded_joint_torques" not in fields  # those that act are drawn
    (chosen,) = simulation.select(["arm.joint_angles"])
    assert chosen == ("arm", ("joint_angles",))


def test_scenarios_record_a_large_map_over_time_unless_the_run_is_very_long(monkeypatch):
    simulation = build_mouse(random_maze(3, rows=4, cols=4)).compile()
    maps = {"brain.horizontal", "brain.vertical"}  # of 20 numbers
    monkeypatch.setattr("mime.scenarios.request._SMALL", 19)
    monkeypatch.setattr("mime.scenarios.request._MOST_SEEN", 20 * 50)
    for duration, seen in ((0.1, maps), (0.102, set())):  # 50 samples of 2 steps of 1 ms, and 51
        times = types.SimpleNamespace(duration=duration, every=2)
        fields = seen_fields(types.SimpleNamespace(simulation=times), simulation)
        assert maps & set(fields) == seen
        assert "body.pose_world" in fields


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fields": ["arm.nothing"]}, "nothing"),
        ({"fields": ["arm.joint_angles[7]"]}, "no such component"),
        ({"members": [0]}, "no batch"),
        ({"samples": 1}, "samples"),
    ],
)
def test_bad_wishes_are_refused(run, options, words):
    with pytest.raises(InputError, match=words):
        run.replay(**options)


def test_a_still_has_no_use_for_what_fills_up_short_polygons(run, monkeypatch):
    """Matplotlib pads them with memory that holds anything: here, the largest numbers there are."""

    class Padded:
        def __getattr__(self, name):
            return getattr(np, name)

        def empty(self, shape, *args):
            return np.where(np.arange(np.prod(shape)) % 2, 1.7e308, -1.7e308).reshape(shape)

    monkeypatch.setattr(art3d, "np", Padded())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = still(run).axes[0]
    assert 0.1 < np.ptp(axes.get_xlim()) < 5.0  # metres: the arm's


def test_a_gif_is_written_by_matplotlib_and_other_films_are_refused(run, tmp_path):
    run.animate(tmp_path / "run.gif", fps=20)
    content = (tmp_path / "run.gif").read_bytes()
    assert content[:6] == b"GIF89a"
    from PIL import Image

    with Image.open(tmp_path / "run.gif") as film:
        assert film.n_frames == 4  # 0.19 s
    with pytest.raises(InputError, match=r"must end in \.gif or \.mp4"):
        run.animate(tmp_path / "run.avi")


def test_an_mp4_is_written_by_ffmpeg_or_the_program_is_asked_for(run, tmp_path, monkeypatch):
    if shutil.which("ffmpeg"):
        run.animate(tmp_path / "run.mp4", fps=20)
        assert (tmp_path / "run.mp4").read_bytes()[4:8] == b"ftyp"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"ffmpeg.*not on the PATH.*or write a \.gif"):
        run.animate(tmp_path / "no.mp4")
    assert not (tmp_path / "no.mp4").exists()


def test_a_motor_sits_where_the_joint_is_that_it_drives():
    graph = GraphManager()
    urdf = model_path("planar_arm_3link")
    graph.add_node(RobotArmNode("arm", 1e-3, urdf, end_effector_link_name="tool"))
    for j in range(2):
        graph.add_node(MotorNode(f"motor{j}", 1e-3, 1e-4, 0.05, **MOTOR))
        ends = f"motor{j}", "arm", "motor_torque", "commanded_joint_torques"
        graph.add_edge(*ends, lambda tau, j=j: tau * np.eye(3)[j + 1])
    simulation = graph.compile()
    drawing = scene(simulation.nodes, simulation.wiring)
    at_rest = world_matrices(drawing, lambda value, step: 0.0)
    tree = simulation.nodes["arm"].tree
    for j in range(2):
        where = at_rest[f"arm/link:{tree.link_names[j + 1]}"][:3, 3]
        np.testing.assert_allclose(at_rest[f"motor{j}/"][:3, 3], where, atol=1e-12)
    assert not any("wrench" in field for field in drawing.fields())  # nobody pushes


class Odd(Gadget):
    """What a user may get wrong in a drawing."""

    def drawing(self):
        on = Frame("on", "nowhere", turn=Value("nothing"))
        return Drawing((on,), (Solid("elsewhere", rgba=(np.float32(1.0), 0, 0, np.inf)),))


class Broken(Gadget):
    """Or that fails."""

    def drawing(self):
        raise RuntimeError("not today")


def test_a_wrong_drawing_is_a_warning_and_the_run_is_kept(tmp_path):
    graph = GraphManager()
    graph.add_node(Odd("odd", 1e-3))
    graph.add_node(Broken("broken", 1e-3))
    run = graph.compile().run(0.01)
    with pytest.warns(DrawingWarning) as told:
        run.save(tmp_path / "run.nc")
    words = sorted((str(warning.message) for warning in told), reverse=True)
    assert "no frame before it" in words[0]
    assert "is on 'elsewhere'" in words[0]
    assert "no field 'nothing'" in words[0]
    assert "not today" in words[1]
    assert not Trajectory.load(tmp_path / "run.nc").drawing


def test_a_missing_mesh_is_the_inertia_box_and_is_named(tmp_path):
    import trimesh

    trimesh.creation.icosphere(subdivisions=4, radius=0.1).export(tmp_path / "ball.stl")
    link = """<link name="{name}"><inertial><mass value="2"/><inertia ixx="0.05" iyy="0.04"
    izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry><mesh filename="{file}"/>
    </geometry></visual></link>"""
    joint = """<joint name="{name}" type="continuous"><parent link="{parent}"/>
    <child link="{name}"/><axis xyz="0 0 1"/></joint>"""
    text = '<robot name="r"><link name="root"/>'
    for name, parent, file in (("a", "root", "ball.stl"), ("b", "a", "gone.dae")):
        text += link.format(name=name, file=file) + joint.format(name=name, parent=parent)
    (tmp_path / "r.urdf").write_text(text + "</robot>")
    tree = parse_robot(tmp_path / "r.urdf")
    content, _ = robot_content(tree)
    notes = [note for note in content["notes"] if "mesh" in note]
    assert len(notes) == 1
    assert "gone.dae" in notes[0]
    assert "link 'b'" in notes[0]
    links = [s["kind"] for s in content["shapes"] if s.get("layer", "robot") == "robot"]
    assert links == ["mesh", "solid"]
    # a² = 6 (I_y + I_z - I_x) / m, by the definition of a box's moments
    box = next(s for s in content["shapes"] if s["kind"] == "solid")
    a, b, c = box["size"]
    moments = 2.0 / 12.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    np.testing.assert_allclose(np.sort(moments), [0.03, 0.04, 0.05], rtol=1e-12)
    assert mass_table(tree)[-1][1] == "4"

    ball = read_mesh(str(tmp_path / "ball.stl"))
    assert ball.flat
    assert len(thinned(ball, 3).corners) < 0.5 * len(ball.corners)
    meshes = Meshes(Block(), most=len(ball.corners) // 2)
    meshes.read(str(tmp_path / "ball.stl"))
    assert "of their" in meshes.packed()[2][0]


def test_a_mesh_has_the_colours_of_its_own_folder_and_waits_for_nothing(tmp_path):
    folder = tmp_path / "robot"
    folder.mkdir()
    (folder / "red.mtl").write_text("newmtl red\nKd 1 0 0\n")
    (tmp_path / "blue.mtl").write_text("newmtl red\nKd 0 0 1\n")
    os.mkfifo(folder / "fifo.mtl")
    triangle = "mtllib {}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl red\nf 1 2 3\n"
    colours = {}
    for name in ("red.mtl", "../blue.mtl", "fifo.mtl", "gone.mtl"):
        (folder / "a.obj").write_text(triangle.format(name))
        colours[name] = read_mesh(str(folder / "a.obj")).colours
    assert colours.pop("red.mtl") == ((1.0, 0.0, 0.0),)
    assert (0.0, 0.0, 1.0) not in {colour for found in colours.values() for colour in found}
    with pytest.raises(MeshError, match="there is no such file"):
        read_mesh("a.obj")


TRAJECTORY = """[simulation]
duration = 1.0
timestep = 0.01
[nodes.path]
type = "JointTrajectoryNode"
tree = "{tree}"
waypoints_rad = [[0.1, 0.2, 0.3], {goal}]
velocity_limits_rad_per_s = 2.0
acceleration_limits_rad_per_s2 = 8.0
jerk_limits_rad_per_s3 = 80.0
"""


@pytest.mark.parametrize("tree", ["model:planar_arm_3link", "arm.urdf"])
def test_a_trajectory_with_a_tree_is_drawn_without_an_arm(tmp_path, tree):
    shutil.copy(model_path("planar_arm_3link"), tmp_path / "arm.urdf")
    file = tmp_path / "way.toml"
    file.write_text(TRAJECTORY.format(tree=tree, goal="[0.9, -0.7, 0.5]"))
    scenario = load_scenario(file)
    run = scenario.run()
    content, _ = page_content(run, "way")
    arm = RobotArmNode("arm", 0.01, model_path("planar_arm_3link"), "tool")
    robot = [shape for shape in arm.drawing().shapes if shape.layer == "robot"]
    drawn = [shape for shape in content["shapes"] if shape.get("layer", "robot") == "robot"]
    assert len(drawn) == len(robot) > 0
    tree = arm.tree
    (plot,) = [p for p in content["plots"] if p["title"].startswith("path.desired_joint_angles")]
    assert [curve["label"] for curve in plot["curves"]] == list(tree.joint_names)
    values = np.asarray(run["path"]["desired_joint_angles"])[-1]
    frames = world_matrices(run.drawing, lambda value, step: float(values[value.index]))
    assert run.drawing.fields() == ["path.desired_joint_angles"]
    expected = np.asarray(pose_to_matrix(frame_pose(tree, np.array([0.9, -0.7, 0.5]), "tool")))
    np.testing.assert_allclose(frames["path/tool"], expected, atol=1e-6)  # single precision


def test_a_trajectory_of_a_robot_without_masses_is_drawn_and_held_to_its_joints(tmp_path):
    tree = parse_robot(model_path("planar_arm_3link"))
    bare = eqx.tree_at(lambda t: (t.masses, t.inertias), tree, (0 * tree.masses, 0 * tree.inertias))
    rows = np.zeros((2, 3))
    way = JointTrajectoryNode("way", 1e-3, rows, 1.0, 1.0, 1.0, tree=bare)
    drawn = [shape for shape in way.drawing().shapes if shape.layer == "robot"]
    assert len(drawn) == len(tree.visuals) > 0
    assert JointTrajectoryNode("way", 1e-3, rows, 1.0, 1.0, 1.0).drawing() == Drawing()
    names = "'shoulder', 'elbow', 'wrist'"
    with pytest.raises(
        ParameterError, match=f"must have 3 numbers in each row, got 2(?s:.*){names}"
    ):
        JointTrajectoryNode("way", 1e-3, np.zeros((2, 2)), 1.0, 1.0, 1.0, tree=tree)
    with pytest.raises(ParameterError, match="puts joint 'elbow' at 9 rad, outside its limits"):
        JointTrajectoryNode("way", 1e-3, [rows[0], [0, 9, 0]], 1.0, 1.0, 1.0, tree=tree)
    (tmp_path / "way.toml").write_text(TRAJECTORY.format(tree="model:planar_arm_3lnk", goal="[0]"))
    with pytest.raises(ScenarioError, match="did you mean 'planar_arm_3link'"):
        load_scenario(tmp_path / "way.toml")


def test_a_small_deflection_is_shown_many_times_as_large():
    graph = GraphManager()
    graph.add_node(ElasticJointNode("joint", 1e-3, 0.01, 0.03, 50.0))
    run = graph.compile().run(0.05, initial_state={"joint": {"deflection": 0.002}})
    content, _ = page_content(run, "x", samples=20)
    twist = next(shape for shape in content["shapes"] if shape["kind"] == "twist")
    largest = np.abs(run["joint"]["deflection"]).max()
    assert 0.2 < twist["factor"] * largest <= 0.6
    assert "20 of 50 recorded instants are shown" in content["notes"]


def test_no_word_of_the_data_can_end_its_script():
    words = {"a": "</script><script>alert(1)</script><!--", "b": "\u2028 & 'x'"}
    text = json_in_html(words)
    assert not set("<>&") & set(text)
    assert json.loads(text) == words


def test_the_bundle_is_that_of_the_sources():
    spec = importlib.util.spec_from_file_location("bundle", ROOT / "tools/replay_bundle.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    banner = (tool.PAGE / "replay.min.js").read_text(encoding="utf-8").partition("\n")[0]
    assert tool.digest() in banner, "run python tools/replay_bundle.py"
    assert all(name in banner for name in tool.PACKAGES)


def test_mime_view_writes_a_page(tmp_path, monkeypatch, capsys, run):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    shown = []
    monkeypatch.setattr("mime.commands.view._opened", lambda file: shown.append(file) or True)
    main(["view", "model:planar_arm_3link"])
    run.save("run.nc")
    main(["view", "run.nc", "--out", "here.html", "--no-open"])
    main(["view", "motor_step"])
    assert [file.name for file in shown] == ["planar_arm_3link.html", "motor_step.html"]
    for name in ("planar_arm_3link.html", "here.html", "motor_step.html"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>")
    capsys.readouterr()
    (tmp_path / "wrong.urdf").write_text("<robot/>")
    with pytest.raises(SystemExit) as ended:
        main(["view", "wrong.urdf"])
    assert ended.value.code == 2
    assert "wrong.urdf" in capsys.readouterr().err
