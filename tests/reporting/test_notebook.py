"""What `print` and a notebook show: a screen of it, with units, and every word as text."""

import re
import sys
import types
from html.parser import HTMLParser

import numpy as np
import pytest

from elements import Rotor, Spring
from mime import Gear, GraphManager, MotorNode, Trajectory, load_scenario, model_path, parse_urdf
from mime.core.upward import drawer
from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.running import progress

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def arm():
    return load_scenario("arm_with_rotor")


@pytest.fixture(scope="module")
def run(arm):
    """As recorded, without the time of a run: zeros."""
    fields = {"arm": {"joint_angles": np.linspace(0, 1, 50)[:, None] * np.ones(6)}}
    units = {"arm": {"joint_angles": "rad"}}
    words = {"arm": {"joint_angles": EVIL}}
    return Trajectory(np.linspace(0.1, 5.0, 50), fields, units, words, {}, program=arm.simulation)


@pytest.fixture(scope="module")
def things(arm, run):
    robot = parse_urdf(model_path("desktop_arm_6axis"))
    nodes = arm.simulation.nodes
    sheet = CATALOGUE["maxon_re40_148877"]
    return [*nodes.values(), arm.graph, arm.simulation, arm, run, robot, sheet]


def test_all_fit_on_a_screen(things):
    for thing in things:
        lines = repr(thing).splitlines()
        assert len(lines) <= 40, thing
        assert max(map(len, lines)) <= 160, thing


def test_a_long_list_is_cut_and_says_where_the_rest_is():
    graph = GraphManager()
    for k in range(200):
        graph.add_node(Rotor(f"rotor_{k}", 1e-3, inertia_kg_m2=1.0))
    for text in (repr(graph), repr(graph.compile())):
        assert len(text.splitlines()) == 32
        assert text.endswith("  ... and 170 more: .nodes")
    fields = {f"field_{k}": np.zeros(3) for k in range(200)}
    units = dict.fromkeys(fields, "m")
    long = Trajectory(np.arange(3.0), {"n": fields}, {"n": units}, {"n": units}, {})
    assert repr(long).endswith("  ... and 170 more: .fields")
    assert long._repr_html_().count("<svg") == 60


def test_print_names_parameters_with_their_units(arm):
    motor = repr(arm.simulation.nodes["rotor"])
    assert motor.startswith("MotorNode 'rotor', every 0.001 s\n")
    assert "\n  r_ohm = 1 Ω\n" in motor
    assert "tree: KinematicTree 'desktop_arm_6axis': 6 joints" in repr(arm.simulation.nodes["arm"])
    sheet = CATALOGUE["maxon_re40_148877"]
    geared = MotorNode.from_datasheet("m", 1e-4, sheet, gear=Gear(ratio=20.0))
    assert "\n  gear: Gear\n    ratio = 20" in repr(geared)


def test_a_traced_node_can_be_printed():
    import jax

    texts = []

    def inertia(value):
        node = Rotor("r", 1e-3, inertia_kg_m2=value)
        texts.append(repr(node))
        return node.inertia_kg_m2

    jax.grad(inertia)(2.0)
    assert "inertia_kg_m2 = traced" in texts[0]


class Tags(HTMLParser):
    """All tags of a piece of HTML, and that each is closed."""

    def __init__(self, html):
        super().__init__()
        self.found, self.open = [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)
        if tag not in ("img", "br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_notebook_shows_all_of_them(things):
    for thing in things:
        tags = Tags(thing._repr_html_()).found
        assert "table" in tags or "img" in tags
        assert "script" not in tags


def test_a_notebook_shows_parameters_with_units_and_fields_with_a_small_plot(arm, run):
    node = arm.simulation.nodes["rotor"]._repr_html_()
    assert "<td>r_ohm</td><td class=n>1</td><td>Ω</td><td>R, armature resistance</td>" in node
    html = run._repr_html_()
    assert html.count("<polyline") == 6
    assert "&lt;script&gt;alert(1)" in html
    tree = arm.simulation.nodes["arm"].tree._repr_html_()
    assert re.search(r"<td>joint_3</td><td>revolute</td><td>link_3</td><td class=n>0.1787", tree)
    assert "<td>rad, N·m, rad/s, kg·m²</td>" in tree


def test_names_of_users_are_text():
    spring = Spring(EVIL, 1e-3, stiffness_n_m_per_rad=1.0)
    graph = GraphManager()
    graph.add_node(spring)
    for thing in (spring, graph, graph.compile()):
        assert "script" not in Tags(thing._repr_html_()).found


def test_a_graph_that_is_not_whole_says_what_is_missing():
    graph = GraphManager()
    graph.add_node(Rotor("rotor", 1e-3, inertia_kg_m2=1.0))
    graph.add_edge("rotor", "arm", "angle", "angle")
    html = graph._repr_html_()
    assert "<td>rotor</td><td>Rotor</td>" in html
    assert "&#x27;arm&#x27;" in html


def test_every_picture_in_the_table_is_there():
    from mime.core import upward

    for name in upward._OWN:
        assert callable(drawer(name))


class Slow:
    """A clock that a test turns."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    slow = Slow()
    monkeypatch.setattr(progress, "time", slow)
    return slow


def walk(clock, seconds_each, total=1000, chunk=50, first=0.0):
    with progress.progress_bar(total, 0, True) as show:
        clock.now += first
        for done in range(chunk, total + 1, chunk):
            clock.now += seconds_each
            show(done)


def test_progress_in_a_pipe_is_a_line_at_each_tenth(clock, capsys):
    walk(clock, 10.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "10 %, 5 steps/s, 3 min 0 s left"
    assert lines[-1] == "100 %, 5 steps/s, 0 s left"
    assert len(lines) == 10


def test_progress_of_a_short_run_is_quiet(clock, capsys):
    """However long its program took to compile."""
    walk(clock, 0.09, first=60.0)
    assert capsys.readouterr().err == ""


def test_progress_in_a_notebook_is_a_bar_that_goes(clock, capsys, monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=shown.append)

    def display(html, display_id):
        assert display_id
        shown.append(html)
        return handle

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display, ipython.display.HTML = display, str
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    walk(clock, 1.0)
    assert shown[0].startswith('<progress value="50" max="1000"></progress> 5 %')
    assert shown[-2].startswith('<progress value="1000" max="1000"></progress> 100 %')
    assert shown[-1] == ""
    assert capsys.readouterr().err == ""
