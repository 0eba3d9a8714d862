"""The page of a run: what it says once, what it judges; on a phone, and in the dark."""

import itertools
import re
from html import unescape

import numpy as np
import pytest

from browsers import Opened, browser
from mime import GraphManager, MotorNode, Trajectory, load_scenario
from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.reporting.graph_picture import draw_graph, draw_program
from mime.reporting.html import page, png_bytes
from mime.reporting.report import verdict_words, write_report
from mime.reporting.summary import fields_table, wide_console
from mime.scenarios.merits import FigureOfMerit

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def arm():
    return load_scenario("arm_with_rotor")


@pytest.fixture(scope="module")
def mouse():
    return load_scenario("mouse_in_maze", ["mouse.maze.seed=3"])


def figure(name="rise", value=1.0, ok=True, **more):
    return FigureOfMerit(name, value, "s", "≤ 2 s", ok, **more)


@pytest.fixture(scope="module")
def report(arm):
    found = [figure(), figure(EVIL, 3.0, ok=False, window=" (from 0.5 s on)")]
    found.append(figure("home", float("nan"), ok=False))
    graph = png_bytes(draw_graph(arm))
    return write_report(arm, found, [("a plot", graph)], graph, "mime run arm")


def boxes(drawn):
    """The extents of all words of a figure, in pixels, and those of the boxes around them."""
    drawn.draw_without_rendering()
    (axis,) = drawn.axes
    words = [text.get_window_extent() for text in axis.texts]
    return words, [patch.get_window_extent() for patch in axis.patches]


def test_no_words_of_a_graph_meet_others_and_none_leave_their_box(arm, mouse):
    graph = GraphManager()
    for name in ("a", "a_node_with_a_name_that_is_long_enough", "$b$"):
        graph.add_node(MotorNode.from_datasheet(name, 1e-4, CATALOGUE["maxon_re40_148877"]))
        graph.add_edge("a", name, "rotor_angular_velocity", "commanded_velocity", delay=True)
        graph.add_edge(name, "$b$", "motor_torque", "load_torque", delay=True)
    for drawn in (draw_graph(arm), draw_graph(mouse), draw_program(graph.compile())):
        words, around = boxes(drawn)
        page = drawn.bbox
        for first, second in itertools.combinations(words, 2):
            # Lines of one box are set solid: they may share a pixel.
            assert not first.padded(-1).overlaps(second.padded(-1))
        for first, second in itertools.combinations(around, 2):
            assert not first.overlaps(second)
        for extent in words:
            inside = [b for b in around if b.x0 <= extent.x0 and extent.x1 <= b.x1]
            assert any(b.y0 <= extent.y0 + 1 and extent.y1 - 1 <= b.y1 for b in inside)
            assert page.x0 <= extent.x0
            assert extent.x1 <= page.x1


def test_a_robot_is_told_once_and_folded_away(report):
    assert report.count("<summary>Robot desktop_arm_6axis") == 1
    assert "as arm and controller know it" in report
    assert report.count("<td>joint_3</td>") == 1
    assert "tree." not in report.partition("<h2>Parameters</h2>")[2].partition("<h2>Run")[0]


def test_every_number_has_a_unit(report):
    tables = re.findall(r"(?s)<table class=stack>(.*?)</table>", report)
    assert len(tables) == 4
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for t in tables for row in t.split("</tr>")]
    rows = [row for row in rows if row]
    assert len(rows) > 20
    numbers = [row for row in rows if re.match(r"[\d\[-]|array", row[1])]
    assert len(numbers) > 12
    assert all(unit for _, _, unit, _ in numbers)


def test_figures_say_what_became_of_their_limits_and_from_when_on(report):
    assert "<span class=ok>ok</span>" in report
    assert "<span class=outside>outside its limits</span>" in report
    assert "not reached</td><td>≤ 2 s</td><td><span class=unfinished>unfinished</span>" in report
    assert f"{EVIL} (from 0.5 s on)" in unescape(report)
    assert "<img src=x" not in report
    assert unescape(verdict_words([figure(), figure("rest", 3.0, ok=False)])) == (
        "<span class=ok>1 ok</span>, <span class=outside>1 outside: rest</span>"
    )


def still(scenario):
    """A run in which the mouse has not moved."""
    time = np.linspace(0.1, 1.0, 10)
    shapes = {"brain.estimated_pose": (3,), "body.pose_world": (3,)}
    fields, units = {}, {}
    for merit in scenario.tables.figures_of_merit.values():
        for name in (merit.field, getattr(merit, "reference", merit.field)):
            whole = name.partition("[")[0]
            node, _, field = whole.partition(".")
            fields.setdefault(node, {})[field] = np.zeros((10, *shapes.get(whole, ())))
            units.setdefault(node, {})[field] = "m" if "pose" in field else "s"
    return Trajectory(time, fields, units, units, {})


def test_a_mouse_that_is_not_home_says_so_and_limits_of_another_maze_are_not_judged(mouse):
    run = still(mouse)
    home, walls = mouse.figures(run)[1], mouse.figures(run)[3]
    assert (home.name, home.reached, home.ok) == ("home again", False, True)
    assert home.verdict == "not judged: its limits are of another mouse.maze"
    assert walls.verdict == "ok"
    same = load_scenario("mouse_in_maze", ["mouse.range_noise_m=0.002"])
    assert same.figures(run)[1].verdict == "unfinished"
    console = wide_console()
    with console.capture() as told:
        console.print(fields_table(run, mouse.never()))
    lines = {line.split()[0]: line.split()[1:] for line in told.get().splitlines() if line}
    assert lines["brain.time_home"] == ["never"]
    assert lines["body.touching"] == ["0", "0", "0", "s"]


def test_the_page_fits_a_phone_and_follows_the_reader_into_the_dark(report, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(report)
    evil = tmp_path / "evil.html"
    evil.write_text(page(EVIL, ""))
    seen = {}
    with browser() as chromium:
        for dark in (False, True):
            with Opened(chromium, file, dark=dark, size=(400, 900)) as opened:
                assert opened.page.evaluate("document.documentElement.scrollWidth") == 400
                ask = "getComputedStyle(document.body)"
                colours = [f"{ask}.{what}" for what in ("backgroundColor", "color")]
                seen[dark] = [
                    sum(map(int, re.findall(r"\d+", opened.page.evaluate(colour))[:3]))
                    for colour in colours
                ]
                meaning = "document.querySelector('.stack tr:nth-child(2) td:nth-child(4)')"
                place = opened.page.evaluate(f"{meaning}.getBoundingClientRect().right")
                assert place <= 400
                assert opened.said == []
                assert opened.asked == [opened.url]
        with Opened(chromium, evil) as opened:
            assert opened.page.title() == EVIL
            assert opened.page.inner_text("h1") == EVIL
            assert opened.asked == [opened.url]
    assert seen[False][0] > 3 * 240 > 3 * 60 > seen[False][1]
    assert seen[True][0] < 3 * 60 < 3 * 200 < seen[True][1]
