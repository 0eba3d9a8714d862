"""A scenario is the graph that one would have written in Python."""

import warnings
from importlib.metadata import EntryPoint

import jax
import numpy as np
import pytest

from mime import Gear, GraphManager
from mime.models import model_path
from mime.nodes.actuation.elastic_drive import elastic_drive
from mime.nodes.actuation.motor import MotorNode
from mime.nodes.actuation.motor.catalogue import CATALOGUE
from mime.running.checkpoint import fingerprint
from mime.scenarios import ScenarioError, load_scenario, node_types
from mime.scenarios.bundled import bundled_scenarios
from motor_scenario import motor_scenario

NOISY = """
[simulation]
duration = 0.01
timestep = 1e-3
seed = {seed}
[nodes.a]
type = "EncoderNode"
ticks_per_turn = 1000
noise_rad = 0.1
[nodes.b]
type = "EncoderNode"
ticks_per_turn = 1000
noise_rad = 0.1
"""

ARM = """
[simulation]
duration = 0.01
timestep = 1e-3
[nodes.arm]
type = "RobotArmNode"
urdf_path = "{urdf}"
end_effector_link_name = "tool"
[nodes.shoulder]
type = "EncoderNode"
ticks_per_turn = 4096
timestep = 2e-3
[[edges]]
from = "arm.joint_angles"
to = "shoulder.angle"
component = 0
scale = 2.0
negate = true
[[edges]]
from = "arm.joint_velocities"
to = "arm.commanded_joint_torques"
component = [2, 1, 0]
scale = -0.1
delay = true
"""


def test_a_scenario_gives_the_run_of_the_graph_in_python(write):
    scenario = load_scenario(write())
    graph = GraphManager()
    graph.add_node(MotorNode("rotor", 1e-4, 1e-4, 0.05, 1.0, 1e-3, 5e-4, command_mode="voltage"))
    graph.add_external_input("rotor", "commanded_voltage")
    expected = graph.compile().run(0.01, {"rotor": {"commanded_voltage": 5.0}})
    found = scenario.run()
    for field, values in expected["rotor"].items():
        np.testing.assert_array_equal(found["rotor"][field], values)


def test_single_precision_is_single(write):
    scenario = load_scenario(
        write(replace={"timestep = 1e-4": 'timestep = 1e-4\nprecision="single"'})
    )
    assert scenario.run()["rotor"]["current"].dtype == np.float32


def test_what_is_recorded_is_what_was_asked_for_and_what_plots_and_the_replay_need(write):
    added = '[[plots]]\nfields = ["rotor.commanded_voltage"]'
    record = {"timestep = 1e-4": 'timestep = 1e-4\nrecord = ["rotor.current"]\nevery = 5'}
    found = load_scenario(write(replace=record, add=added)).run()
    assert set(found["rotor"]) == {"current", "commanded_voltage", "rotor_angle"}
    assert len(found.time) == 20


def test_edges_take_components_scale_and_sign(write):
    scenario = load_scenario(write(ARM.format(urdf="model:planar_arm_3link")))
    edges = {str(edge): edge for edge in scenario.simulation.wiring.edges}
    x = np.array([1.0, 2.0, 3.0])
    assert edges["arm.joint_angles -> shoulder.angle"].value(x) == -2.0
    reversed_edge = edges["arm.joint_velocities -> arm.commanded_joint_torques"]
    np.testing.assert_allclose(reversed_edge.value(jax.numpy.asarray(x)), -0.1 * x[::-1])
    assert scenario.simulation.nodes["shoulder"].timestep == 2e-3


DRIVE = """
[simulation]
duration = 0.02
timestep = 1e-4
[nodes.motor]
type = "MotorNode"
inertia_kg_m2 = 1e-5
kt_n_m_per_a = 0.05
r_ohm = 1.0
l_henry = 1e-3
damping_n_m_s = 1e-5
gear = { ratio = 50.0 }
shaft = "driven"
command_mode = "voltage"
[nodes.joint]
type = "ElasticJointNode"
rotor_inertia_kg_m2 = 0.025
output_inertia_kg_m2 = 0.2
stiffness_n_m_per_rad = 60.0
[[edges]]
from = "motor.shaft_torque"
to = "joint.motor_torque"
[[edges]]
from = "joint.motor_velocity"
to = "motor.shaft_velocity"
[[coupling]]
nodes = ["motor", "joint"]
[inputs."motor.commanded_voltage"]
kind = "constant"
value = 12.0
"""


def test_a_coupling_group_is_that_of_the_graph_in_python(write):
    found = load_scenario(write(DRIVE)).run()
    figures = (1e-5, 0.05, 1.0, 1e-3, 1e-5)
    options = {"gear": Gear(ratio=50.0), "shaft": "driven", "command_mode": "voltage"}
    motor = MotorNode("motor", 1e-4, *figures, **options)
    joint = {"output_inertia_kg_m2": 0.2, "stiffness_n_m_per_rad": 60.0}
    graph = elastic_drive(motor, iterated=True, **joint)
    expected = graph.compile().run(0.02, {"motor": {"commanded_voltage": 12.0}})
    np.testing.assert_allclose(found["joint"]["output_angle"], expected["joint"]["output_angle"])
    assert found["motor+joint"]["iterations"].max() > 1


def test_a_checkpoint_tells_edges_apart_by_their_transform(write):
    text = ARM.format(urdf="model:planar_arm_3link")

    def graph(text):
        simulation = load_scenario(write(text)).simulation
        return fingerprint(simulation, simulation.init_state(), {}, (), 1)["graph"]

    assert graph(text) == graph(text)
    assert graph(text) != graph(text.replace("scale = 2.0", "scale = 3.0"))


def test_files_are_relative_to_the_scenario(write, tmp_path, monkeypatch):
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "arm.urdf").write_bytes(model_path("planar_arm_3link").read_bytes())
    monkeypatch.chdir("/")
    scenario = load_scenario(write(ARM.format(urdf="robots/arm.urdf")))
    assert scenario.simulation.nodes["arm"].num_joints == 3


def test_each_node_has_its_own_random_numbers_set_by_the_seed(write):
    def ticks(seed):
        found = load_scenario(write(NOISY.format(seed=seed))).run()
        return found["a"]["ticks"], found["b"]["ticks"]

    a, b = ticks(1)
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(a, ticks(1)[0])
    assert not np.array_equal(a, ticks(2)[0])


def test_an_override_changes_a_parameter_and_a_simulation_key(write):
    scenario = load_scenario(
        write(),
        [
            "rotor.r_ohm=2.5",
            "rotor.integrator=exact",
            "simulation.duration=0.02",
            "inputs.rotor.commanded_voltage.value=1",
        ],
    )
    assert scenario.simulation.nodes["rotor"].r_ohm == 2.5
    assert scenario.simulation.nodes["rotor"].integrator == "exact"
    assert scenario.steps == 200
    assert scenario.inputs["rotor"]["commanded_voltage"] == 1.0


def test_a_bundled_scenario_is_loaded_by_its_name():
    assert load_scenario("motor_step").file == bundled_scenarios()["motor_step"]


def test_figures_of_a_batch_are_those_of_each_member():
    scenario = load_scenario("motor_step")
    ratios = np.array([0.5, 1.0, 2.0])
    resistance = float(scenario.simulation.nodes["motor"].r_ohm)
    options = {"record": scenario.record, "every": scenario.tables.simulation.every}
    batch = scenario.simulation.run_batch(
        scenario.tables.simulation.duration,
        scenario.inputs,
        parameters={"motor.r_ohm": ratios * resistance},
        **options,
    )
    figures = scenario.figures(batch)
    assert [f.name for f in figures] == [f.name for f in scenario.figures(scenario.run())]
    for member, ratio in enumerate(ratios):
        one = load_scenario("motor_step", [f"motor.r_ohm={float(ratio * resistance)!r}"])
        for many, single in zip(figures, one.figures(one.run()), strict=True):
            # A batch equals single runs to rounding; a time may fall between two other samples.
            np.testing.assert_allclose(many.value[member], single.value, rtol=1e-9)
            assert many.ok[member] == single.ok
            assert many.unit == single.unit
    assert figures[0].verdict.endswith("of 3 ok")


def test_a_scenarios_precision_holds_in_every_road(tmp_path):
    for precision, dtype in (("single", np.float32), ("double", np.float64)):
        file = tmp_path / f"{precision}.toml"
        file.write_text(
            motor_scenario(f'duration = 1e-3\ntimestep = 1e-4\nprecision = "{precision}"')
        )
        scenario = load_scenario(file)
        simulation = scenario.simulation
        whole = scenario.run()["rotor"]["current"]
        for x64 in (False, True):
            with jax.enable_x64(x64), warnings.catch_warnings():
                warnings.simplefilter("error")  # JAX says when it cuts numbers off
                state = simulation.init_state()
                last, _ = simulation.rollout(state, scenario.inputs, 10)
                stepped, _ = simulation.step(state, {"rotor": {"commanded_voltage": 5.0}})
                found = [
                    scenario.run()["rotor"]["current"],
                    simulation.run(1e-3, scenario.inputs)["rotor"]["current"],
                    simulation.run_batch(1e-3, scenario.inputs, batch_size=1)["rotor"]["current"][
                        0
                    ],
                ]
            assert {x.dtype for x in [*found, last.of("rotor")["current"]]} == {np.dtype(dtype)}
            assert (
                stepped.of("rotor")["current"].dtype == state.of("rotor")["current"].dtype == dtype
            )
            for values in found:
                np.testing.assert_array_equal(values, whole)


DATASHEET = """
[simulation]
duration = 0.01
timestep = 1e-4
[nodes.motor]
type = "MotorNode"
command_mode = "voltage"
{sheet}
"""
FIGURES = """
[nodes.motor.datasheet]
nominal_voltage_v = 12.0
no_load_speed_rpm = 9800.0
no_load_current_a = 0.007
rotor_inertia_kg_m2 = 5.6e-8
r_ohm = 19.8
l_henry = 4.2e-4
"""


def test_a_motor_comes_from_the_catalogue_or_from_a_sheet(write):
    named = DATASHEET.format(sheet='datasheet = "faulhaber_1524t012sr"\ngear = { ratio = 20 }')
    motor = load_scenario(write(named)).simulation.nodes["motor"]
    expected = MotorNode.from_datasheet("motor", 1e-4, CATALOGUE["faulhaber_1524t012sr"])
    assert motor.kt_n_m_per_a == expected.kt_n_m_per_a
    assert motor.gear.ratio == 20.0
    figures = load_scenario(write(DATASHEET.format(sheet=FIGURES))).simulation.nodes["motor"]
    assert figures.r_ohm == 19.8
    assert figures.inertia_kg_m2 == 5.6e-8


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        (
            'datasheet = "faulhaber_1524"',
            "no motor 'faulhaber_1524' .did you mean 'faulhaber_1524t",
        ),
        (
            FIGURES.replace("r_ohm", "r_om"),
            ":14: nodes.motor.datasheet.r_om: no figure of a data sh",
        ),
        (FIGURES.replace("19.8", "'x'"), ":14: nodes.motor.datasheet.r_ohm: must be a number, got"),
        (FIGURES.replace("19.8", "-1.0"), ":14: nodes.motor.datasheet.r_ohm: must be > 0"),
        (
            FIGURES.replace("nominal_voltage_v = 12.0", ""),
            "datasheet.nominal_voltage_v: the key is missing",
        ),
    ],
)
def test_a_sheet_that_is_none_is_told(write, sheet, message):
    with pytest.raises(ScenarioError, match=message):
        load_scenario(write(DATASHEET.format(sheet=sheet)))


def test_a_node_of_another_package_plugs_in_by_entry_point(write, monkeypatch):
    entry = EntryPoint("RotorNode", "elements:Rotor", node_types.GROUP)
    broken = EntryPoint("BrokenNode", "no_such_package:Node", node_types.GROUP)
    wrong = EntryPoint("WrongNode", "json:dumps", node_types.GROUP)
    monkeypatch.setattr(node_types, "entry_points", lambda group: [entry, broken, wrong])
    text = """
[simulation]
duration = 0.01
timestep = 1e-3
[nodes.rotor]
type = "RotorNode"
"""
    with pytest.raises(ScenarioError, match="Rotor needs inertia"):
        load_scenario(write(text))
    with pytest.raises(ScenarioError, match="BrokenNode' of 'no_such_package:Node' does not load"):
        load_scenario(write(text.replace("RotorNode", "BrokenNode")))
    with pytest.raises(ScenarioError, match="is not a subclass of"):
        load_scenario(write(text.replace("RotorNode", "WrongNode")))


def test_scenarios_execute_nothing(write, tmp_path):
    marker = tmp_path / "executed"
    word = f"__import__('pathlib').Path('{marker}').touch()"
    for replace in ({'"voltage"': f'"{word}"'}, {"value = 5.0": f'value = "{word}"'}):
        with pytest.raises(ScenarioError):
            load_scenario(write(replace=replace))
    assert not marker.exists()


@pytest.mark.parametrize(
    "name", sorted(bundled_scenarios().keys() - {"helical_drive", "mouse_in_maze"})
)  # these have their own tests
@pytest.mark.slow
def test_a_bundled_scenario_keeps_its_limits(name):
    scenario = load_scenario(bundled_scenarios()[name])
    assert scenario.tables.title
    assert scenario.tables.description
    assert scenario.tables.plots
    figures = scenario.figures(scenario.run())
    assert any(figure.limits for figure in figures)
    assert all(figure.ok for figure in figures), figures
