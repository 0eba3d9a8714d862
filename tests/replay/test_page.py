"""Replay pages in a real browser: opened from disk, with no way to any other machine."""

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


def pixels(page):
    """The 3D scene as the screen shows it."""
    return np.asarray(
        Image.open(io.BytesIO(page.locator("#view").screenshot())).convert("RGB"), int
    )


def moved(before, after):
    return int(np.sum(np.abs(before - after).max(axis=-1) > 24))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_page_opens_from_disk_and_time_moves_the_robot(name, runs, chromium):
    (run, file), (field, index) = runs[name], SCENARIOS[name]
    node, _, leaf = field.partition(".")
    recorded = run[node][leaf].reshape(len(run.time), -1)[:, index]
    with Opened(chromium, file) as opened:
        page = opened.ready()
        first = pixels(page)
        assert first.std() > 5  # something is drawn

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
        assert opened.said == []
        assert opened.asked == [opened.url]


def test_plots_and_robot_have_one_time(runs, chromium):
    run, file = runs["arm_3link_pd"]
    with Opened(chromium, file) as opened:
        page = opened.ready()
        assert {"tool path wanted", "tool path reached"} <= {
            key.inner_text() for key in page.locator("#curves .key").all()
        }
        before = pixels(page)
        told = page.locator(".u-legend .u-series").first.inner_text()
        assert f"{run.time[0]:.3f} s" in told  # legends begin where the page does
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
        assert opened.said == []


def test_dark_and_narrow_pages_are_readable(runs, chromium):
    _, file = runs["arm_with_rotor"]
    inks = {}
    for dark in (False, True):
        with Opened(chromium, file, dark=dark, size=(400, 900)) as opened:
            page = opened.ready()
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


def test_names_with_markup_are_words(tmp_path, chromium):
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
    graph = GraphManager()
    graph.add_node(MotorNode(MARKUP, 1e-3, 1e-4, 0.05, **MOTOR))
    run = graph.compile().run(0.01)
    run.replay(tmp_path / "run.html", title=MARKUP)
    for name, places in (
        ("robot.html", ("#title", ".joint span", "#masses", "#notes")),
        ("run.html", ("#title", ".plot summary")),
    ):
        with Opened(chromium, tmp_path / name) as opened:
            page = opened.ready()
            assert page.title() == MARKUP
            assert page.locator("img").count() == 0
            for place in places:
                assert MARKUP in page.locator(place).first.inner_text()
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


def hand_made(graph, node, **fields):
    """A run whose fields are as given, an instant every second: nothing is computed for it."""
    labels = {node: dict.fromkeys(fields, "")}
    arrays = {name: np.asarray(values, float) for name, values in fields.items()}
    time = np.arange(float(len(next(iter(arrays.values())))))
    return Trajectory(time, {node: arrays}, labels, labels, {}, program=graph.compile())


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
    arm = GraphManager()
    urdf = model_path("planar_arm_3link")  # its joints can give 60, 25 and 8 N m
    arm.add_node(RobotArmNode("arm", 1e-2, urdf, "tool", wrench_frames=["tool"]))
    arm.add_external_input("arm", "external_wrenches_at_frames")
    torques = [[0, 0, 0], [60, 0, 0], [0, 0, -8], [0, 12.5, 0], [0, 0, 0]]
    forces = np.zeros((5, 1, 6))
    forces[4, 0, 2] = 3.0
    shown = {"joint_angles": np.zeros((5, 3)), "joint_torques_actual": torques}
    run = hand_made(arm, "arm", **shown, external_wrenches_at_frames=forces)
    run.replay(tmp_path / "arm.html")
    with Opened(chromium, tmp_path / "arm.html") as opened:
        page = opened.ready()
        assert "8 … 60 N·m (limit)" in page.inner_text("#scales")
        rest, first, last, middle, pushed = (hues(page, t) for t in run.time)
        assert rest["blue"] > 1000 > 20 > max(rest["red"], rest["yellow"], rest["pink"])
        assert first["red"] > 500 < first["blue"]  # one link of three is at its limit
        assert last["red"] > 200  # so is the smallest one, the other way round
        assert middle["yellow"] > 500 > 20 > middle["red"]  # half of it
        assert pushed["pink"] > 20  # an arrow
        page.locator("#layers label", has_text="colours by value").locator("input").click()
        assert hues(page, 1.0)["red"] < 20
        assert opened.said == []

    motor = GraphManager()
    heat = Winding(10.0, 5.0, ambient_temperature_c=20.0, max_temperature_c=120.0)
    motor.add_node(MotorNode("motor", 1e-3, 1e-4, 0.05, **MOTOR, winding=heat))
    run = hand_made(motor, "motor", rotor_angle=[0, 1, 2, 0], winding_temperature=[20, 70, 120, 20])
    run.replay(tmp_path / "motor.html")
    with Opened(chromium, tmp_path / "motor.html") as opened:
        page = opened.ready()
        assert "20" in page.inner_text("#scales")
        assert "120 °C (limit)" in page.inner_text("#scales")
        cold, warm, hot, again = (hues(page, t) for t in run.time)
        assert cold["blue"] > 5000 < warm["yellow"]
        assert hot["red"] > 5000 > 100 > max(hot["blue"], cold["red"])
        assert again == cold

    joint = GraphManager()
    joint.add_node(ElasticJointNode("joint", 1e-3, 0.01, 0.03, 50.0))
    run = hand_made(joint, "joint", deflection=[0.0, 0.002, 0.004])
    run.replay(tmp_path / "joint.html")
    with Opened(chromium, tmp_path / "joint.html") as opened:
        page = opened.ready()
        assert "× 100" in page.inner_text("#layers")  # 0.4 rad are seen, 0.8 would be too many
        none, half, whole = (hues(page, t)["green"] for t in run.time)
        assert none < 20
        assert whole == pytest.approx(2 * half, rel=0.15)


def test_members_of_a_batch_are_ghosts_and_one_is_shown_in_full(tmp_path, chromium):
    graph = GraphManager()
    graph.add_node(MotorNode("motor", 1e-3, 1e-4, 0.05, **MOTOR))
    speeds = {"motor": {"angular_velocity": np.array([1.0, 5.0, 9.0])}}
    run = graph.compile().run_batch(0.1, initial_state=speeds)
    assert run.batch_size == 3
    run.replay(tmp_path / "batch.html")
    with Opened(chromium, tmp_path / "batch.html") as opened:
        page = opened.ready()
        page.evaluate("mimeReplay.setTime(0.1)")
        angles = []
        for member in range(3):
            page.select_option("#member", str(member))
            angles.append(page.evaluate("mimeReplay.value('motor.rotor_angle')"))
        np.testing.assert_allclose(angles, run["motor"]["rotor_angle"][:, -1], rtol=1e-6)
        assert opened.said == []


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
