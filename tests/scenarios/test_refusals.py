"""What a scenario file can get wrong: each refusal with file, line, key, got and expected."""

from importlib.metadata import EntryPoint

import pytest

from elements import Rotor
from mime.scenarios import ScenarioError, load_scenario, node_types

ARM = """
[simulation]
duration = 0.01
timestep = 1e-3
[nodes.arm]
type = "RobotArmNode"
urdf_path = "model:planar_arm_3link"
end_effector_link_name = "tool"
[nodes.pd]
type = "JointPDNode"
tree = "node:arm"
kp = 10.0
kd = 1.0
[[edges]]
from = "pd.joint_torques"
to = "arm.commanded_joint_torques"
[[edges]]
from = "arm.joint_angles"
to = "pd.joint_angles"
delay = true
"""


def problems(file, *overrides):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file, overrides)
    return [str(problem).replace(f"{file.parent}/", "") for problem in caught.value.problems]


def assert_only(found, expected):
    """One mistake gives one problem: nothing follows from it."""
    assert [problem[: len(expected)] for problem in found] == [expected]


CASES = {
    "unknown key": (
        {"duration = 0.01": "duration = 0.01\nduratoin = 3"},
        "motor.toml:4: simulation.duratoin: unknown key (did you mean 'duration'?) (keys: ",
    ),
    "unknown table": (
        {"[simulation]": "[simulatoin]"},
        "motor.toml:2: simulatoin: unknown key (did you mean 'simulation'?)",
    ),
    "missing key": (
        {"duration = 0.01": ""},
        "motor.toml:2: simulation.duration: the key is missing",
    ),
    "out of range": (
        {"timestep = 1e-4": "timestep = 0"},
        "motor.toml:4: simulation.timestep: must be > 0, got 0",
    ),
    "not finite": (
        {"duration = 0.01": "duration = inf"},
        "motor.toml:3: simulation.duration: must be a finite number, got inf",
    ),
    "wrong type": (
        {"duration = 0.01": 'duration = "long"'},
        "motor.toml:3: simulation.duration: must be a number, got 'long'",
    ),
    "wrong choice": (
        {"timestep = 1e-4": 'timestep = 1e-4\nprecision = "duoble"'},
        "motor.toml:5: simulation.precision: must be one of 'single', 'double', got 'duoble' "
        "(did you mean 'double'?)",
    ),
    "unknown type": (
        {"MotorNode": "MotorNod"},
        "motor.toml:7: nodes.rotor.type: no node type 'MotorNod' (did you mean 'MotorNode'?)",
    ),
    "unknown parameter": (
        {"r_ohm": "r_om"},
        "motor.toml:10: nodes.rotor.r_om: MotorNode has no parameter 'r_om' "
        "(did you mean 'r_ohm'?)",
    ),
    "missing parameter": (
        {"r_ohm = 1.0\n": ""},
        "motor.toml:6: nodes.rotor: MotorNode needs r_ohm [Ω] as well",
    ),
    "parameter out of range": (
        {"r_ohm = 1.0": "r_ohm = -1.0"},
        "motor.toml:10: nodes.rotor.r_ohm: must be >= 0 Ω, got -1.0",
    ),
    "parameter not a number": (
        {"r_ohm = 1.0": "r_ohm = true"},
        "motor.toml:10: nodes.rotor.r_ohm: must be a number [Ω], got true",
    ),
    "parameter of a wrong shape": (
        {"r_ohm = 1.0": "r_ohm = [1.0, 2.0]"},
        "motor.toml:10: nodes.rotor.r_ohm: must have shape (), got (2,)",
    ),
    "option of a wrong type": (
        {'"voltage"': "3"},
        "motor.toml:13: nodes.rotor.command_mode: must be a string, got 3",
    ),
    "what only the node knows": (
        {'"voltage"': '"volts"'},
        "motor.toml:13: nodes.rotor.command_mode: must be one of 'auto', 'torque', "
        "'voltage', 'velocity', got 'volts'",
    ),
    "what parameters together cannot be": (
        {"r_ohm = 1.0": "r_ohm = 1.0\nke_v_s_per_rad = 0.06"},
        "motor.toml:11: nodes.rotor.ke_v_s_per_rad: must equal kt_n_m_per_a",
    ),
    "node name": (
        {"[nodes.rotor]": '[nodes."ro tor"]', '"rotor.': '"ro tor.'},
        'motor.toml:6: nodes."ro tor": a node\'s name has letters, digits, _ and -',
    ),
    "unknown kind of input": (
        {'"constant"': '"constnat"'},
        "motor.toml:16: inputs.\"rotor.commanded_voltage\".kind: 'constnat' is unknown "
        "(did you mean 'constant'?)",
    ),
    "key of another kind": (
        {'"constant"': '"step"\nafter = 1.0'},
        'motor.toml:18: inputs."rotor.commanded_voltage".value: unknown key',
    ),
    "input of an unknown node": (
        {"rotor.commanded_voltage": "rotr.commanded_voltage"},
        "motor.toml:15: inputs.\"rotr.commanded_voltage\": no node 'rotr' (did you mean 'rotor'?)",
    ),
    "unknown input": (
        {"rotor.commanded_voltage": "rotor.comanded_voltage"},
        'motor.toml:15: inputs."rotor.comanded_voltage": '
        "'rotor' has no input 'comanded_voltage' "
        "(did you mean 'commanded_voltage'?)",
    ),
    "input of a wrong shape": (
        {"value = 5.0": "value = [5.0, 1.0]"},
        'motor.toml:17: inputs."rotor.commanded_voltage".value: must be finite numbers of shape ()',
    ),
    "duration that is no whole number of steps": (
        {"duration = 0.01": "duration = 0.00015"},
        "motor.toml:3: simulation.duration: duration 0.00015 s is 1.5 steps of 0.0001 s",
    ),
    "more steps than can be counted": (
        {"duration = 0.01": "duration = 1e12"},
        "motor.toml:3: simulation.duration: is 1e+16 steps, more than",
    ),
    "more than a computer holds": (
        {"duration = 0.01": "duration = 1e5"},
        "motor.toml:2: simulation.every: 1000000000 samples would take",
    ),
}


@pytest.mark.parametrize(("replace", "expected"), CASES.values(), ids=CASES.keys())
def test_a_mistake_is_told_with_line_key_got_and_expected(write, replace, expected):
    assert_only(problems(write(replace=replace)), expected)


ADDED = {
    "record of an unknown field": (
        '[[plots]]\nfields = ["rotor.curent"]',
        "motor.toml:19: plots[0].fields[0]: 'rotor' has no field 'curent' (did you mean 'current'",
    ),
    "component that is not there": (
        '[[plots]]\nfields = ["rotor.rotor_pose_world[7]"]',
        "motor.toml:19: plots[0].fields[0]: rotor.rotor_pose_world has shape (7,); there is no "
        "component [7]",
    ),
    "figure of a vector": (
        '[[figures_of_merit]]\nname = "x"\nkind = "final"\nfield = "rotor.rotor_pose_world"',
        "motor.toml:21: figures_of_merit[0].field: final is of one component, got shape (7,)",
    ),
    "figure of an unknown kind": (
        '[[figures_of_merit]]\nname = "x"\nkind = "finale"\nfield = "rotor.current"',
        "motor.toml:20: figures_of_merit[0].kind: 'finale' is unknown (did you mean 'final'?)",
    ),
    "figure of two units": (
        '[[figures_of_merit]]\nname = "x"\nkind = "rms_error"\nfield = "rotor.current"\n'
        'reference = "rotor.rotor_angle"',
        "motor.toml:22: figures_of_merit[0].reference: has shape () in 'rad', the field () in 'A'",
    ),
    "unknown initial state": (
        "[simulation.initial_state.rotor]\ncurent = 1.0",
        "motor.toml:19: simulation.initial_state.rotor.curent: no such field of the state "
        "(did you mean 'current'?)",
    ),
    "initial state of a wrong shape": (
        "[simulation.initial_state.rotor]\ncurrent = [1.0]",
        "motor.toml:19: simulation.initial_state.rotor.current: must be finite numbers of shape ()",
    ),
    "edge of a wrong form": (
        '[[edges]]\nfrom = "rotor"\nto = "rotor.load_torque"',
        "motor.toml:19: edges[0].from: must be 'node.field', got 'rotor'",
    ),
    "unknown flux": (
        '[[edges]]\nfrom = "rotor.motor_torq"\nto = "rotor.load_torque"\ndelay = true',
        "motor.toml:19: edges[0].from: 'rotor' has no flux 'motor_torq' (did you mean",
    ),
    "a wrong unit": (
        '[[edges]]\nfrom = "rotor.rotor_angle"\nto = "rotor.load_torque"\ndelay = true',
        "motor.toml:18: edges[0]: edge rotor.rotor_angle -> rotor.load_torque: unit 'rad' into an "
        "input in 'N·m'. Convert it with a `transform` (in a scenario file: a `scale`)",
    ),
    "an undeclared cycle": (
        '[[edges]]\nfrom = "rotor.motor_torque"\nto = "rotor.load_torque"',
        "motor.toml:18: edges[0]: undeclared cycle: ",
    ),
    "two sources": (
        '[[edges]]\nfrom = "rotor.motor_torque"\nto = "rotor.commanded_voltage"\nscale = 1.0\n'
        "delay = true",
        'motor.toml:15: inputs."rotor.commanded_voltage": rotor.commanded_voltage is replacive and '
        "has 2 sources",
    ),
    "an unknown member": (
        '[[coupling]]\nnodes = ["rotor", "rtor"]',
        "motor.toml:19: coupling[0].nodes: no node 'rtor' (did you mean 'rotor'?)",
    ),
}


@pytest.mark.parametrize(("add", "expected"), ADDED.values(), ids=ADDED.keys())
def test_a_table_that_does_not_fit_the_graph_is_told_with_its_line(write, add, expected):
    assert_only(problems(write(add=add)), expected)


NEW = """
[[figures_of_merit]]
name = "x"
kind = "max"
field = "rotor.current"
unit = "V"
[[figures_of_merit]]
name = "y"
kind = "max_distance"
field = "rotor.rotor_pose_world[0:3]"
reference = "rotor.rotor_pose_world[3:]"
[[figures_of_merit]]
name = "z"
kind = "max"
field = "rotor.rotor_pose_world[5:9]"
[[plots]]
title = "nothing"
[[plots]]
fields = ["rotor.current", "rotor.rotor_angle"]
unit = "mm"
against = ["rotor.current"]
minus = ["rotor.rotor_angle", "rotor.rotor_pose_world"]
"""
TOLD = [
    "23: figures_of_merit[0].unit: 'A' cannot be shown in 'V', expected one of 'A', 'mA'",
    "28: figures_of_merit[1].reference: has shape (4,) in 'm', the field (3,) in 'm'",
    "32: figures_of_merit[2].field: rotor.rotor_pose_world has shape (7,); there is no component "
    "[5:9]",
    "33: plots[0]: key 'fields' is missing (or 'drawing', of an assembly)",
    "37: plots[1].unit: 'A' cannot be shown in 'mm' (did you mean 'mA'?), expected one of 'A', "
    "'mA'",
    "38: plots[1].against: must be one for each of 2 fields, got ['rotor.current']",
    "39: plots[1].minus[0]: has shape () in 'rad', the field () in 'A'",
    "39: plots[1].minus[1]: has shape (7,) in 'm', the field () in 'rad'",
]


def test_units_parts_and_comparisons_that_do_not_fit_are_told(write):
    assert problems(write(add=NEW)) == [f"motor.toml:{line}" for line in TOLD]


ARM_CASES = {
    "missing file": (
        {"model:planar_arm_3link": "no.urdf"},
        "motor.toml:7: nodes.arm.urdf_path: no such file: no.urdf",
    ),
    "unknown model": (
        {"model:planar_arm_3link": "model:planar_arm"},
        "motor.toml:7: nodes.arm.urdf_path: no model 'planar_arm' (did you mean 'planar_arm_3link'",
    ),
    "unknown link": (
        {'"tool"': '"tol"'},
        "motor.toml:8: nodes.arm.end_effector_link_name: names no link 'tol' (did you mean 'tool'",
    ),
    "reference to no node": (
        {"node:arm": "node:am"},
        "motor.toml:11: nodes.pd.tree: no node 'am' (did you mean 'arm'?)",
    ),
    "reference in a circle": (
        {"node:arm": "node:pd"},
        "motor.toml:9: nodes.pd: refers in a circle to 'pd'",
    ),
    "reference to what is not there": (
        {"kp = 10.0": 'kp = "node:arm"'},
        "motor.toml:12: nodes.pd.kp: node 'arm' (RobotArmNode) has no 'kp'",
    ),
    "shape that an edge does not fit": (
        {'from = "arm.joint_angles"': 'from = "arm.joint_angles"\ncomponent = 1'},
        "motor.toml:17: edges[1]: edge arm.joint_angles -> pd.joint_angles: its transform gives "
        "shape (), the input expects (3,)",
    ),
    "component beyond the end": (
        {'from = "arm.joint_angles"': 'from = "arm.joint_angles"\ncomponent = [0, 1, 3]'},
        "motor.toml:17: edges[1]: edge arm.joint_angles -> pd.joint_angles: its transform fails on "
        "shape (3,): component 3 is not in it",
    ),
}


def test_a_file_that_is_none_of_its_kind_is_told_at_the_key_that_names_it(write, tmp_path):
    (tmp_path / "bad.urdf").write_text(
        "<robot><link name='a'/><joint name='j' type='odd'/></robot>"
    )
    found = problems(write(ARM, {"model:planar_arm_3link": "bad.urdf"}))
    expected = "motor.toml:7: nodes.arm.urdf_path: bad.urdf:1: joint 'j' "
    assert [problem[: len(expected)] for problem in found] == [expected]


@pytest.mark.parametrize(("replace", "expected"), ARM_CASES.values(), ids=ARM_CASES.keys())
def test_files_and_references_that_lead_nowhere_are_told(write, replace, expected):
    assert_only(problems(write(ARM, replace)), expected)


MANY = """title = 3
[simulaton]
[simulation]
duration = 0.00015
timestep = 1e-4
precision = "half"
record = ["good.current", "good.curent", "bad.current"]
[simulation.initial_state.good]
angel = 1.0
[nodes.good]
type = "MotorNode"
inertia_kg_m2 = 1e-4
kt_n_m_per_a = 0.05
r_ohm = 1.0
l_henry = 1e-3
damping_n_m_s = 5e-4
[nodes.bad]
type = "MotorNode"
inertia_kg_m2 = 1e-4
kt_n_m_per_a = 0.05
r_ohm = -1.0
l_henri = 1e-3
damping_n_m_s = 5e-4
gear = { ratio = 0 }
[nodes.worse]
type = "MotorNod"
[[edges]]
from = "bad.motor_torque"
to = "good.load_torque"
[[edges]]
from = "god.motor_torque"
to = "good.load_torqe"
[[edges]]
from = "good.rotor_angle"
to = "good.load_torque"
delay = true
[[edges]]
from = "good.motor_torque"
to = "good.load_torque"
delay = "yes"
[[coupling]]
nodes = ["good", "bad"]
method = "gauss"
[inputs."good.commanded_voltage"]
kind = "stepp"
[inputs."good.commanded_torque"]
kind = "constant"
value = [1.0]
[inputs."worse.anything"]
kind = "constant"
value = [1.0]
[[plots]]
fields = ["good.rotor_angle[3]", "worse.x"]
[[figures_of_merit]]
name = "x"
kind = "finale"
field = "good.courant"
[[figures_of_merit]]
name = "y"
kind = "rms_error"
field = "good.current"
reference = "good.rotor_angle"
unit = "V"
"""
ALL = [
    "1: title: must be a string, got 3",
    "2: simulaton: unknown key (did you mean 'simulation'?)",
    "4: simulation.duration: duration 0.00015 s is 1.5 steps of 0.0001 s",
    "6: simulation.precision: must be one of 'single', 'double', got 'half'",
    "7: simulation.record[1]: 'good' has no field 'curent' (did you mean 'current'?)",
    "9: simulation.initial_state.good.angel: no such field of the state (did you mean 'angle'?)",
    "21: nodes.bad.r_ohm: must be >= 0 Ω, got -1.0",
    "22: nodes.bad.l_henri: MotorNode has no parameter 'l_henri' (did you mean 'l_henry'?)",
    "24: nodes.bad.gear.ratio: must be > 0, got 0",
    "26: nodes.worse.type: no node type 'MotorNod' (did you mean 'MotorNode'?)",
    "31: edges[1].from: no node 'god' (did you mean 'good'?)",
    "32: edges[1].to: 'good' has no input 'load_torqe' (did you mean 'load_torque'?)",
    "33: edges[2]: edge good.rotor_angle -> good.load_torque: unit 'rad' into an input in 'N·m'",
    "40: edges[3].delay: must be true or false, got 'yes'",
    "43: coupling[0].method: must be one of 'gauss_seidel', 'jacobi', got 'gauss'",
    "45: inputs.\"good.commanded_voltage\".kind: 'stepp' is unknown (did you mean 'step'?)",
    '48: inputs."good.commanded_torque".value: must be finite numbers of shape (), got [1.0]',
    "53: plots[0].fields[0]: good.rotor_angle has shape (); there is no component [3]",
    "56: figures_of_merit[0].kind: 'finale' is unknown (did you mean 'final'?)",
    "57: figures_of_merit[0].field: 'good' has no field 'courant' (did you mean 'current'?)",
    "62: figures_of_merit[1].reference: has shape () in 'rad', the field () in 'A'",
    "63: figures_of_merit[1].unit: 'A' cannot be shown in 'V'",
]


def test_mistakes_of_all_stages_are_told_in_one_round_and_nothing_follows_from_them(write):
    found = problems(write(MANY))
    assert len(found) == len(ALL), "\n".join(found)
    for problem, expected in zip(found, ALL, strict=True):
        assert problem.startswith(f"motor.toml:{expected}")


def test_a_problem_is_a_value_with_file_line_and_place(write):
    file = write(replace={"r_ohm = 1.0": "r_ohm = -1"})
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.override) == (file, 10, "")
    assert problem.place == ("nodes", "rotor", "r_ohm")
    assert problem.message == "must be >= 0 Ω, got -1"
    with pytest.raises(ScenarioError) as caught:
        load_scenario(write(), ["rotor.r_ohm=-2"])
    (problem,) = caught.value.problems
    assert (problem.line, problem.override) == (None, "rotor.r_ohm=-2")


class Stubborn(Rotor):
    """A node of another package that refuses itself, with no problem to its name."""

    def __check_init__(self):
        raise TypeError("no such thing\nas a rotor")


def test_an_error_without_problems_is_told_at_the_nodes_table(write, monkeypatch):
    entry = EntryPoint("Stubborn", "test_refusals:Stubborn", node_types.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda entry: Stubborn)
    monkeypatch.setattr(node_types, "entry_points", lambda group: [entry])
    table = '[nodes.odd]\ntype = "Stubborn"\ninertia_kg_m2 = 1.0\ndamping_n_m_s = 1.0\n'
    found = problems(write(add=table))
    assert found == ["motor.toml:18: nodes.odd: TypeError: no such thing as a rotor"]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("rotor.r_ohm=-1", "--set rotor.r_ohm=-1: nodes.rotor.r_ohm: must be >= 0 Ω, got -1"),
        ("rotr.r_ohm=1", "--set rotr.r_ohm=1: must be NODE.PARAMETER=VALUE, simulation.KEY=VALUE "),
        ("rotor", "--set rotor: must be NODE.PARAMETER=VALUE"),
        (
            'inputs.rotor.commanded_voltage={kind="constant", value="six"}',
            '--set inputs.rotor.commanded_voltage={kind="constant", value="six"}: inputs.',
        ),
        ("rotor.r_om=1", "--set rotor.r_om=1: nodes.rotor.r_om: MotorNode has no parameter 'r_om'"),
        ("simulation.seed=x", "--set simulation.seed=x: simulation.seed: must be a whole number"),
        ("rotor.r_ohm.x=1", "--set rotor.r_ohm.x=1: nodes.rotor.r_ohm: is not a table"),
    ],
)
def test_a_mistake_of_the_command_line_names_its_words(write, override, expected):
    assert_only(problems(write(), override), expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"x = \n", "bad.toml:1: column 5: not TOML: Invalid value"),
        (b"\n[a\n", "bad.toml:2: column 3: not TOML: "),
        (b"a = 1\nb = '\xff'\n", "bad.toml:2: not UTF-8 text"),
        (b"", "bad.toml: simulation: the table is missing"),
        (b"x = " + b"[" * 100_000, "bad.toml: not a scenario: nested too deep"),
        (b"simulation" + b".a" * 1_000 + b" = 1", "bad.toml: not a scenario: nested too deep"),
        (b"x = " + b"9" * 10_000, "bad.toml: not TOML: "),
    ],
    ids=["value", "table", "bytes", "empty", "deep arrays", "deep keys", "long number"],
)
def test_what_is_no_toml_is_told_with_its_line(tmp_path, content, expected):
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    found = problems(file)
    assert any(problem.startswith(expected) for problem in found), found


def test_a_missing_file_is_told(tmp_path):
    assert problems(tmp_path / "none.toml") == [
        "none.toml: cannot be read: No such file or directory"
    ]


CSV = "time,volts\n0,0\n0.005,2\n0.01,2\n"


@pytest.mark.parametrize(
    ("content", "column", "expected"),
    [
        (None, "volts", "file: cannot read drive.csv: no such file"),
        (CSV, "volt", "column: drive.csv has no column 'volt' (did you mean 'volts'?)"),
        (CSV.replace("0.005", "x"), "volts", "column: drive.csv:3: not a number in every column"),
        (CSV.replace("0.01", "0.001"), "volts", "time_column: drive.csv:4: column 'time' must"),
        ("time,volts\n0,1\n", "volts", "file: drive.csv has 1 rows of numbers"),
        ("", "volts", "file: drive.csv is empty"),
        (CSV.replace("2", "nan"), "volts", "column: drive.csv:3: values must be finite"),
    ],
)
def test_a_csv_file_that_does_not_serve_is_told(write, tmp_path, content, column, expected):
    if content is not None:
        (tmp_path / "drive.csv").write_text(content)
    table = f'"csv"\nfile = "drive.csv"\ncolumn = "{column}"'
    found = problems(write(replace={'"constant"': table, "value = 5.0": ""}))
    assert any(f'"rotor.commanded_voltage".{expected}' in problem for problem in found), found


def test_nothing_follows_from_a_node_of_which_only_an_effect_is_left(write):
    effect = "\n[nodes.rotor.gear]\nratio = 2.0\n"
    found = problems(write(replace={"[nodes.rotor]": "[nodes.otor]"}, add=effect))
    assert all("nodes.rotor" in problem for problem in found)
