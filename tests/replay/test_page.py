"""Replay pages in a real browser: opened from disk, with no way to any other machine."""

import contextlib
import io

import jax
import numpy as np
import pytest
from PIL import Image

from browsers import Opened, browser, wait_for
from mime import ElasticJointNode, GraphManager, MotorNode, RobotArmNode, Winding, parse_robot
from mime.control.kinematics import frame_pose
from mime.core.pose import pose_to_matrix
from mime.maze.generator import random_maze
from mime.models import model_path
from mime.mouse.assembly import build_mouse
from mime.replay.show import replay_scenario
from mime.reporting.html import embedded, page
from mime.running.trajectory import Trajectory
from mime.scenarios.scenario import load_scenario

pytestmark = pytest.mark.slow

SCENARIOS = {
    "arm_3link_pd": ("arm.joint_angles", 1),
    "arm_with_rotor": ("arm.joint_angles", 0),
    "geared_motor_voltage": ("motor.output_angle", 0),
}
"""And a number that moves the robot."""
MOTOR = {"r_ohm": 1.0, "l_henry": 1e-3, "damping_n_m_s": 1e-4}
MARKUP = "<img src=x onerror=document.title=0>"


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Every scenario's run, and the file of its page."""
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for name in SCENARIOS:
        scenario = load_scenario(name)
        run = scenario.run()
        found[name] = run, replay_scenario(scenario, run).save(folder / f"{name}.html")
    return found


@pytest.fixture(scope="module")
def pages(runs, chromium):
    """Every scenario's page, open: to load one takes longer than all that a test does with it."""
    with contextlib.ExitStack() as stack:
        opened = {
            name: stack.enter_context(Opened(chromium, file)) for name, (_, file) in runs.items()
        }
        for page in opened.values():
            page.ready()
        yield opened
        for name, page in opened.items():  # all of them, after all that was done to them
            assert page.said == [], name
            assert page.asked == [page.url], name


def pixels(page):
    """The 3D scene as the screen shows it."""
    return np.asarray(
        Image.open(io.BytesIO(page.locator("#view").screenshot())).convert("RGB"), int
    )


def moved(before, after):
    return int(np.sum(np.abs(before - after).max(axis=-1) > 24))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_page_opens_from_disk_and_time_moves_the_robot(name, runs, pages):
    (run, _), (field, index) = runs[name], SCENARIOS[name]
    node, _, leaf = field.partition(".")
    recorded = run[node][leaf].reshape(len(run.time), -1)[:, index]
    page = pages[name].page
    first = pixels(page)
    assert first.std() > 5  # something is drawn
    told = page.locator(".u-legend .u-series").first.inner_text()
    assert f"{run.time[0]:.3f} s" in told  # legends begin where the page does

    page.click("#play")
    wait_for(page, f"mimeReplay.time > {run.time[0] + 0.1}")
    page.click("#play")
    assert not page.evaluate("mimeReplay.playing")

    middle = 0.5 * (run.time[0] + run.time[-1])
    page.evaluate(
        "t => { const s = document.getElementById('scrub'); s.value = t;"
        " s.dispatchEvent(new Event('input')); }",
        middle,
    )
    assert page.evaluate("mimeReplay.time") == pytest.approx(middle, rel=1e-6)
    shown = page.evaluate(f"mimeReplay.value('{field}', {index})")
    # 28 bits of the range, and straight lines between samples.
    assert shown == pytest.approx(np.interp(middle, run.time, recorded), abs=1e-6)
    page.wait_for_timeout(200)
    assert moved(first, pixels(page)) > 200
    assert page.locator(".uplot").count() >= 1
    assert pages[name].said == []
    assert pages[name].asked == [pages[name].url]


def test_plots_and_robot_have_one_time(runs, pages):
    (run, _), page = runs["arm_3link_pd"], pages["arm_3link_pd"].page
    assert {"tool path wanted", "tool path reached"} <= {
        key.inner_text() for key in page.locator("#curves .key").all()
    }
    page.evaluate(f"mimeReplay.setTime({run.time[0]})")
    page.wait_for_timeout(100)
    before = pixels(page)
    over = page.locator(".u-over").first
    box = over.bounding_box()
    y = box["y"] + 0.5 * box["height"]
    page.mouse.move(box["x"] + 0.2 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], y, steps=4)
    page.mouse.up()
    t = page.evaluate("mimeReplay.time")
    expected = run.time[0] + 0.75 * (run.time[-1] - run.time[0])
    assert t == pytest.approx(expected, abs=0.02 * run.time[-1])
    shown = page.evaluate("mimeReplay.value('arm.joint_angles', 0)")
    recorded = run["arm"]["joint_angles"][:, 0]
    assert shown == pytest.approx(np.interp(t, run.time, recorded), abs=1e-6)
    page.wait_for_timeout(200)
    assert moved(before, pixels(page)) > 200
    places = [
        line.evaluate("e => e.getBoundingClientRect().left")
        for line in page.locator(".u-cursor-x").all()
    ]
    assert len(places) >= 2
    assert np.ptp(places) <= 1  # the cursors of all plots, one above the other

    ticks = page.locator(".plot").first.screenshot()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 0.3 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert page.locator(".plot").first.screenshot() != ticks  # zoomed
    assert page.evaluate("mimeReplay.time") == t
    legend = page.locator(".u-legend .u-series").nth(1)
    legend.locator("th").click()
    assert "u-off" in legend.get_attribute("class")


def test_dark_and_narrow_pages_are_readable(pages):
    page = pages["arm_with_rotor"].page
    page.set_viewport_size({"width": 400, "height": 500})
    inks = {}
    for dark in (False, True):
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        for place in ("#view", "#play", "#scrub", "#clock", ".uplot"):
            box = page.locator(place).first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 400
        style = "getComputedStyle(document.body)"
        inks[dark] = page.evaluate(f"[{style}.color, {style}.backgroundColor]")
        ground = pixels(page)[5, 5]
        assert ground.mean() < 80 if dark else ground.mean() > 200
    assert inks[True] != inks[False]


def members_are_shown(page, run):
    """One of a batch in full, which can be chosen, the others as ghosts."""
    page.evaluate("mimeReplay.setTime(0.1)")
    angles = []
    for member in range(run.batch_size):
        page.select_option("#member", str(member))
        angles.append(page.evaluate("n => mimeReplay.value(n + '.rotor_angle')", MARKUP))
    np.testing.assert_allclose(angles, run[MARKUP]["rotor_angle"][:, -1], rtol=1e-6)
    page.wait_for_timeout(100)
    crowded = pixels(page)
    page.locator("#layers label", has_text="other members").locator("input").click()
    page.wait_for_timeout(100)
    assert moved(crowded, pixels(page)) > 20  # their marks stand elsewhere


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A batch of three motors whose name is markup, and the file of its page."""
    graph = GraphManager()
    graph.add_node(MotorNode(MARKUP, 1e-3, 1e-4, 0.05, **MOTOR))
    speeds = {MARKUP: {"angular_velocity": np.array([1.0, 5.0, 9.0])}}
    run, file = graph.compile().run_batch(0.1, initial_state=speeds), tmp_path_factory.mktemp("c")
    run.replay(file / "run.html", title=MARKUP)
    return run, file / "run.html"


def test_names_with_markup_are_words_and_members_of_a_batch_are_ghosts(tmp_path, crowd, chromium):
    """Of a title, a node, a link, a joint, and of a mesh that is missing."""
    escaped = MARKUP.replace("&", "&amp;").replace("<", "&lt;")
    urdf = f"""<robot name="{escaped}"><link name="root"/>
    <joint name="{escaped}" type="revolute"><parent link="root"/><child link="{escaped}"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="1" velocity="1"/></joint>
    <link name="{escaped}"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="gone.stl"/></geometry></visual></link></robot>"""
    (tmp_path / "robot.urdf").write_text(urdf)
    parse_robot(tmp_path / "robot.urdf").show(tmp_path / "robot.html")
    for file, places in (
        (tmp_path / "robot.html", ("#title", ".joint span", "#masses", "#notes")),
        (crowd[1], ("#title", ".plot summary")),
    ):
        with Opened(chromium, file) as opened:
            page = opened.ready()
            assert page.title() == MARKUP
            assert page.locator("img").count() == 0
            for place in places:
                assert MARKUP in page.locator(place).first.inner_text()
            if file == crowd[1]:
                members_are_shown(page, crowd[0])
            assert opened.said == []
            assert opened.asked == [opened.url]


def test_forward_kinematics_of_the_page_are_ours(tmp_path, chromium):
    with jax.enable_x64(True):
        tree = parse_robot(model_path("desktop_arm_6axis"))
        rng = np.random.default_rng(0)
        tree.show(tmp_path / "arm.html")
        with Opened(chromium, tmp_path / "arm.html") as opened:
            page = opened.ready()
            worst = 0.0
            for _ in range(5):
                q = rng.uniform(-3, 3, tree.num_joints)
                page.evaluate("q => q.forEach((x, i) => mimeReplay.setJoint(i, x))", q.tolist())
                for name in tree.frame_names:
                    ours = pose_to_matrix(frame_pose(tree, q, name))
                    theirs = np.reshape(page.evaluate("n => mimeReplay.frame(n)", name), (4, 4))
                    worst = max(worst, float(np.abs(ours - theirs).max()))
            assert worst < 1e-12  # both are in double precision; 1e-6 is what was promised
            before = pixels(page)
            slider = page.locator("#joint-1")
            slider.fill("1.2")
            page.wait_for_timeout(200)
            assert page.evaluate("mimeReplay.value('q', 1)") == pytest.approx(1.2)
            assert moved(before, pixels(page)) > 200
            assert "kg" in page.locator("#masses").inner_text()
            assert opened.said == []


def by_hand(graph, fields):
    """A run whose fields are as given, an instant every second: nothing is computed for it."""
    labels = {node: dict.fromkeys(found, "") for node, found in fields.items()}
    return Trajectory(np.arange(5.0), fields, labels, labels, {}, program=graph.compile())


def hues(page, t):
    """How many pixels of the scene are blue, yellow, red, green and pink at a time."""
    page.evaluate(f"mimeReplay.setTime({t})")
    page.wait_for_timeout(150)
    shot = Image.fromarray(pixels(page).astype(np.uint8)).convert("HSV")
    h, s, _ = np.moveaxis(np.asarray(shot, int), -1, 0)
    degrees, strong = h * 360 / 255, s > 100
    spans = {"blue": (200, 225), "yellow": (40, 60), "green": (135, 165), "pink": (315, 345)}
    found = {
        name: int(np.sum(strong & (a < degrees) & (degrees < b))) for name, (a, b) in spans.items()
    }
    return found | {"red": int(np.sum(strong & ((degrees < 8) | (degrees > 352))))}


def test_colours_say_torque_over_its_limit_how_warm_a_winding_is_and_how_far_a_spring_gives(
    tmp_path, chromium
):
    """By hand: at each instant something else is at its limit, or half way to it."""
    urdf = model_path("planar_arm_3link")  # its joints can give 60, 25 and 8 N m
    arm = GraphManager()
    arm.add_node(RobotArmNode("arm", 1e-3, urdf, "tool", wrench_frames=["tool"]))
    arm.add_external_input("arm", "external_wrenches_at_frames")
    torques, forces = np.zeros((5, 3)), np.zeros((5, 1, 6))
    torques[1, 0], torques[2, 2], torques[3, 1], forces[4, 0, 2] = 60.0, -8.0, 12.5, 3.0
    moves = {"joint_angles": np.zeros((5, 3)), "joint_torques_actual": torques}
    fields = {"arm": moves | {"external_wrenches_at_frames": forces}}
    by_hand(arm, fields).replay(tmp_path / "arm.html")
    with Opened(chromium, tmp_path / "arm.html") as opened:
        page = opened.ready()
        assert page.inner_text("#scales").split() == [
            "joint",
            "torque:",
            "0",
            "8",
            "…",
            "60",
            "N·m",
            "(limit)",
        ]
        rest, first, last, middle, pushed = (hues(page, t) for t in range(5))
        assert rest["blue"] > 1000
        assert max(rest[name] for name in rest if name != "blue") < 20
        assert first["red"] > 500 < first["blue"]  # one link of three
        assert last["red"] > 200  # the smallest, the other way round
        assert middle["yellow"] > 500 > 20 > middle["red"]  # half of a limit
        assert pushed["pink"] > 20  # an arrow
        page.locator("#layers label", has_text="colours by value").locator("input").click()
        assert hues(page, 1.0)["red"] < 20
        assert opened.said == []

    drive = GraphManager()
    heat = Winding(10.0, 5.0, ambient_temperature_c=20.0, max_temperature_c=120.0)
    drive.add_node(MotorNode("motor", 1e-3, 1e-4, 0.05, **MOTOR, winding=heat))
    drive.add_node(ElasticJointNode("joint", 1e-3, 0.01, 0.03, 50.0))
    fields = {
        "motor": {"winding_temperature": np.array([20.0, 70, 120, 20, 20])},
        "joint": {"deflection": np.array([0.0, 0, 0, 0.002, 0.004])},
    }
    by_hand(drive, fields).replay(tmp_path / "drive.html")
    with Opened(chromium, tmp_path / "drive.html") as opened:
        page = opened.ready()
        assert "120 °C (limit)" in page.inner_text("#scales")
        assert "× 100" in page.inner_text("#layers")  # 0.4 rad are seen, 0.8 would be too many
        cold, warm, hot, half, whole = (hues(page, t) for t in range(5))
        assert cold["blue"] > 1000 < warm["yellow"]
        assert hot["red"] > 1000 > 100 > max(cold["red"], warm["red"])
        assert half["green"] - cold["green"] > 100
        twice = 2 * (half["green"] - cold["green"])
        assert whole["green"] - cold["green"] == pytest.approx(twice, rel=0.15)


@pytest.mark.soak("a maze in WebGL by software: 9 s; its page is read in test_content.py")
def test_a_mouse_is_drawn_with_its_maze_and_what_it_believes(tmp_path, chromium):
    """By hand, as a mouse's program takes long to compile: it stands, then its map grows."""
    maze = random_maze(3, rows=4, cols=4)
    simulation = build_mouse(maze).compile()
    horizontal = np.zeros((3, 5, 4), np.int8)
    horizontal[1:, 0], horizontal[2, 2] = 2, 2
    fields = {
        "body": {"pose_world": np.array([[0.09, y, -1.57] for y in (0.63, 0.45, 0.27)])},
        "brain": {
            "horizontal": horizontal,
            "vertical": np.zeros((3, 4, 5), np.int8),
            "moves": np.array([0, 0, 2]),
            "route": np.array([[0] * 16, [0] * 16, [3, 0] + [0] * 14]),
        },
        "ranges": {"reading": np.full((3, 7), 0.08)},
    }  # fmt: skip
    labels = {node: dict.fromkeys(found, "") for node, found in fields.items()}
    run = Trajectory(np.array([0.1, 0.2, 0.3]), fields, labels, labels, {}, program=simulation)
    replay = run.replay()
    (tmp_path / "mouse.html").write_text(page("Report", embedded(replay.html, "the mouse")))
    with Opened(chromium, tmp_path / "mouse.html") as opened:
        frame = opened.ready(opened.page.frames[1])
        shots = []
        for t in run.time:
            frame.evaluate(f"mimeReplay.setTime({t})")
            opened.page.wait_for_timeout(150)
            shots.append(pixels(frame))
        assert moved(shots[0], shots[1]) > 100
        assert moved(shots[1], shots[2]) > 100
        place = np.reshape(frame.evaluate("mimeReplay.frame('body/body')"), (4, 4))
        np.testing.assert_allclose(place[:3, 3], [0.09, -0.27, 0.0], atol=1e-9)
        assert "was not recorded" in frame.locator("#notes").text_content()
        assert opened.said == []
        assert [url for url in opened.asked if url.startswith("http")] == []
