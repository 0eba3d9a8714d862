"""`[assemblies.NAME]`: nodes that belong together, mazes as data, and what a file can get wrong."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest

from mime import GraphManager
from mime.maze import random_maze, write_maze
from mime.nodes.actuation.motor import MotorNode
from mime.scenarios import ScenarioError, assemblies, load_scenario
from mime.scenarios.assemblies import Assembled, Assembly, Drawing

MOUSE = """
[simulation]
duration = 0.1
timestep = 1e-3
[assemblies.mouse]
type = "mouse"
maze = {maze}
"""
SEEDED = "{ seed = 3, rows = 4, cols = 5 }"
DRAWN = '''"""
    o---o---o---o---o---o
    |                   |
    o   o---o---o---o   o
    |   |     G |   |   |
    o   o---o   o   o   o
    |   |           |   |
    o   o   o---o---o   o
    | S |               |
    o---o---o---o---o---o
"""'''


class Pair(Assembly):
    """Two motors, for a test."""

    r_ohm: float
    r_ohm_ratio: float = 1.0

    def build(self, surroundings):
        graph = GraphManager()
        for name, r in (("first", self.r_ohm), ("second", self.r_ohm * self.r_ohm_ratio)):
            figures = (1e-4, 0.05, r, 1e-3, 5e-4)
            motor = MotorNode(name, surroundings.timestep, *figures, command_mode="voltage")
            graph.add_node(motor)
        drawing = Drawing(("first.current",), lambda run: None)
        return Assembled(graph, {"first": {"angular_velocity": 7.0}}, {"both": drawing})


PAIR = """
[simulation]
duration = 0.01
timestep = 1e-4
record = []
[assemblies.pair]
type = "pair"
r_ohm = 1.0
[inputs."second.commanded_voltage"]
kind = "constant"
value = 5.0
[[plots]]
drawing = "pair.both"
[[edges]]
from = "first.motor_torque"
to = "second.load_torque"
delay = true
"""


@pytest.fixture
def plugged(monkeypatch):
    """As if a package had plugged in `pair`, one that does not load and one that is none."""
    monkeypatch.setattr(EntryPoint, "load", lambda entry: {"pair": Pair, "wrong": dict}[entry.name])
    names = ("pair", "broken", "wrong")
    entries = [EntryPoint(name, f"there:{name}", assemblies.GROUP) for name in names]
    monkeypatch.setattr(assemblies, "entry_points", lambda group: entries)


def problems(file, *overrides):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file, overrides)
    return [str(problem).replace(f"{file.parent}/", "") for problem in caught.value.problems]


def walls(scenario):
    body = scenario.simulation.nodes["body"]
    return np.asarray(body.horizontal_walls), np.asarray(body.vertical_walls)


def test_a_maze_is_a_seed_a_file_or_a_drawing(write, tmp_path, monkeypatch):
    expected = random_maze(3, 4, 5)
    seeded = load_scenario(write(MOUSE.format(maze=SEEDED)))
    np.testing.assert_array_equal(walls(seeded)[0], expected.horizontal)
    assert seeded.initial_state["body"] == {"x": 0.09, "y": 0.63, "heading": 1.5 * np.pi}
    (tmp_path / "mazes").mkdir()
    for name in ("here.txt", "here.num"):
        write_maze(expected, tmp_path / "mazes" / name)
        named = load_scenario(write(MOUSE.format(maze=f'"mazes/{name}"')))
        for found, wanted in zip(walls(named), walls(seeded), strict=True):
            np.testing.assert_array_equal(found, wanted)
    # What the command line names is looked for where the command is given.
    monkeypatch.chdir(tmp_path / "mazes")
    (tmp_path / "elsewhere").mkdir()
    elsewhere = write(MOUSE.format(maze=DRAWN)).rename(tmp_path / "elsewhere" / "mouse.toml")
    drawn = load_scenario(elsewhere)
    assert walls(drawn)[1][1].tolist() == [1, 1, 0, 1, 1, 1]
    assert drawn.simulation.nodes["brain"].goals[1, 2] == 1.0
    named = load_scenario(elsewhere, ["mouse.maze=here.txt"])
    np.testing.assert_array_equal(walls(named)[0], expected.horizontal)


def test_keys_reach_the_mouse_and_its_noise_has_its_own_seed(write):
    text = MOUSE.format(maze=SEEDED) + "range_noise_m = 2e-3\nrace = { top_speed_m_per_s = 1.5 }\n"
    one, other = (
        load_scenario(write(text), ["mouse.gear_ratio=4", f"simulation.seed={seed}"])
        for seed in (1, 2)
    )
    nodes = one.simulation.nodes
    assert nodes["left_motor"].gear.ratio == 4.0
    assert nodes["ranges"].noise_m == 2e-3
    race = nodes["brain"].race
    assert (race.top_speed_m_per_s, race.turn_speed_m_per_s) == (1.5, 0.6)
    assert nodes["ranges"].seed != other.simulation.nodes["ranges"].seed


CASES = {
    "unknown type": (
        {'"mouse"': '"mose"'},
        "motor.toml:6: assemblies.mouse.type: no assembly 'mose' (did you mean 'mouse'?), expected",
    ),
    "unknown key": (
        {"maze =": "range_noise = 1e-3\nmaze ="},
        "motor.toml:7: assemblies.mouse.range_noise: unknown key (did you mean 'range_noise_m'?)",
    ),
    "out of range": (
        {"maze =": "mass_kg = 0\nmaze ="},
        "motor.toml:7: assemblies.mouse.mass_kg: must be > 0, got 0",
    ),
    "no maze": (
        {f"maze = {SEEDED}": ""},
        "motor.toml:5: assemblies.mouse.maze: the key is missing",
    ),
    "no seed": (
        {"seed = 3": "sed = 3"},
        "motor.toml:7: assemblies.mouse.maze.sed: unknown key (did you mean 'seed'?)",
    ),
    "unknown key of the maze": (
        {"rows": "row"},
        "motor.toml:7: assemblies.mouse.maze.row: unknown key (did you mean 'rows'?) "
        "(keys: 'seed', 'rows', 'cols', 'loops', 'winding')",
    ),
    "too large": (
        {"rows = 4": "rows = 40"},
        "motor.toml:7: assemblies.mouse.maze.rows: must be <= 32, got 40",
    ),
    "no such file": (
        {SEEDED: '"none.txt"'},
        "motor.toml:7: assemblies.mouse.maze: no such file: none.txt in /",
    ),
    "not a maze": (
        {SEEDED: '"motor.toml"'},
        "motor.toml:7: assemblies.mouse.maze: motor.toml: neither its suffix nor its contents",
    ),
    "bad drawing": (
        {SEEDED: DRAWN.replace("| S |", "| X |")},
        "motor.toml:7: assemblies.mouse.maze: the drawing: line 8, character 3, cell (3, 0): got "
        "'X', expected",
    ),
    "walled in": (
        {SEEDED: DRAWN.replace("o   o   o---o---o", "o---o   o---o---o")},
        "motor.toml:7: assemblies.mouse.maze: ",
    ),
    "number for a maze": (
        {SEEDED: "3"},
        "motor.toml:7: assemblies.mouse.maze: must be a string, got 3",
    ),
    "unknown motor": (
        {"maze =": 'motor = "faulhaber_1331t006s"\nmaze ='},
        "motor.toml:7: assemblies.mouse.motor: no motor 'faulhaber_1331t006s' (did you mean "
        "'faulhaber_1331t006sr'?)",
    ),
    "speeds that contradict": (
        {"maze =": "race = { top_speed_m_per_s = 0.1 }\nmaze ="},
        "motor.toml:7: assemblies.mouse.race: turn_speed_m_per_s must be at most top_speed_m_per_s",
    ),
    "cells too small": (
        {"maze =": "cell_size_m = 0.01\nmaze ="},
        "motor.toml:7: assemblies.mouse.cell_size_m: ",
    ),
    "name": (
        {"assemblies.mouse": 'assemblies."a mouse"'},
        'motor.toml:5: assemblies."a mouse": an assembly\'s name has letters, digits, _ and -',
    ),
    "clash": (
        {"[assemblies": '[nodes.gyro]\ntype = "GyroNode"\n[assemblies'},
        "motor.toml:7: assemblies.mouse: makes 'gyro', as does [nodes.gyro]. Rename",
    ),
    "two of them": (
        {"[assemblies": f'[assemblies.m]\ntype = "mouse"\nmaze = {SEEDED}\n[assemblies'},
        "motor.toml:8: assemblies.mouse: makes 'brain', 'left_motor', ",
    ),
    "nothing at all": (
        {f'[assemblies.mouse]\ntype = "mouse"\nmaze = {SEEDED}': ""},
        "motor.toml: nothing to simulate: add a table [nodes.NAME] or [assemblies.NAME]",
    ),
}


@pytest.mark.parametrize(("replace", "expected"), CASES.values(), ids=CASES.keys())
def test_a_mistake_is_told_with_line_key_got_and_expected(write, replace, expected):
    found = problems(write(MOUSE.format(maze=SEEDED), replace))
    assert [problem[: len(expected)] for problem in found] == [expected]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("mouse.maze.rows=2", "--set mouse.maze.rows=2: assemblies.mouse.maze.rows: must be >= 3"),
        ("mouse.maze=x.num", "--set mouse.maze=x.num: assemblies.mouse.maze: no such file: x.num"),
        ("mose.mass_kg=1", "--set mose.mass_kg=1: must be NODE.PARAMETER=VALUE, simulation.KEY"),
        ("brain.tick=1", "--set brain.tick=1: must be NODE.PARAMETER=VALUE"),
    ],
)
def test_a_mistake_of_the_command_line_names_its_words(write, override, expected):
    found = problems(write(MOUSE.format(maze=SEEDED)), override)
    assert [problem[: len(expected)] for problem in found] == [expected]


def test_an_assembly_of_another_package_plugs_in_by_entry_point(write, plugged):
    scenario = load_scenario(write(PAIR), ["pair.r_ohm_ratio=3"])
    assert scenario.simulation.nodes["second"].r_ohm == 3.0
    seen = ["first.rotor_angle", "second.rotor_angle"]  # what the replay follows
    assert scenario.record == ["first.current", *seen]
    assert list(scenario.drawings) == ["pair.both"]
    assert scenario.initial_state == {"first": {"angular_velocity": 7.0}}
    more = "[simulation.initial_state.first]\nangle = 1.0\n[assemblies"
    started = load_scenario(write(PAIR, {"[assemblies": more})).initial_state
    assert started == {"first": {"angular_velocity": 7.0, "angle": 1.0}}


PLUGGED = {
    "a plug-in that fails": (
        {'"pair"': '"broken"'},
        "motor.toml:7: assemblies.pair.type: assembly 'broken' of 'there:broken' does not load: "
        "KeyError",
    ),
    "a plug-in that is none": (
        {'"pair"': '"wrong"'},
        "motor.toml:7: assemblies.pair.type: entry point 'wrong': 'there:wrong' is not a subclass",
    ),
    "a refusal of its nodes": (
        {"r_ohm = 1.0": "r_ohm = -1.0"},
        "motor.toml:8: assemblies.pair.r_ohm: MotorNode 'first': r_ohm must be >= 0",
    ),
    "edge to a node that it does not make": (
        {"second.load": "third.load"},
        "motor.toml:16: edges[0].to: no node 'third'",
    ),
    "edge that does not fit": (
        {"second.load_torque": "second.load_torqe"},
        "motor.toml:16: edges[0].to: 'second' has no input 'load_torqe' (did you mean",
    ),
    "unknown drawing": (
        {"pair.both": "pair.bth"},
        "motor.toml:13: plots[0].drawing: no drawing 'pair.bth' (did you mean 'pair.both'?)",
    ),
    "drawing with fields": (
        {'"pair.both"': '"pair.both"\nfields = ["first.current"]'},
        "motor.toml:14: plots[0].fields: a drawing has its own: take the key out",
    ),
}


@pytest.mark.parametrize(("replace", "expected"), PLUGGED.values(), ids=PLUGGED.keys())
def test_what_an_assembly_makes_is_checked_like_all_else(write, plugged, replace, expected):
    found = problems(write(PAIR, replace))
    assert [problem[: len(expected)] for problem in found] == [expected]
