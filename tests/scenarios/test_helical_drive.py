"""The whole chain, arm to swimmer and back: its energy, what stops it, and what is refused."""

import numpy as np
import pytest

from mime import DivergenceError, load_scenario
from mime.scenarios import ScenarioError

VOLTS, DT = 2.6138052, 2.5e-4
FIELDS = [
    "rotor.current", "rotor.rotor_angular_velocity", "body.load_torque", "body.wrench_world",
    "body.potential_energy", "body.magnet_wrench_world", "swimmer.twist_world",
    "arm.end_effector_twist_world",
]  # fmt: skip


@pytest.fixture(scope="module")
def scenario():
    return load_scenario("helical_drive", ["simulation.every=1", f"simulation.record={FIELDS}"])


@pytest.fixture(scope="module")
def run(scenario):
    return scenario.run()


@pytest.mark.slow
def test_every_figure_of_the_experiment_is_what_theory_tells(scenario, run):
    figures = scenario.figures(run)
    assert len(figures) == 6
    assert [figure.name for figure in figures if not figure.ok] == []


@pytest.mark.slow
def test_what_the_motor_gives_is_in_the_field_or_moves_the_swimmer(run):
    late = run.time > 3.0  # eight turns, at 8 Hz
    rotor, body = ({k: v[late] for k, v in run[name].items()} for name in ("rotor", "body"))
    i, w = rotor["current"], rotor["rotor_angular_velocity"]
    twist, arm = run["swimmer"]["twist_world"][late], run["arm"]["end_effector_twist_world"][late]
    shaft = -DT * np.sum(body["load_torque"] * w)
    carried = -DT * np.sum(body["magnet_wrench_world"] * arm)  # by the arm, as it moves
    moved = DT * np.sum(body["wrench_world"] * twist)
    stored = body["potential_energy"][-1] - body["potential_energy"][0]
    # Explicit steps: with steps of half the length the difference is half of this 9e-4.
    assert shaft + carried == pytest.approx(stored + moved, rel=1.5e-3)
    assert moved == pytest.approx(2.68e-5, rel=0.02)
    # The motor itself, by the trapezoidal rule: 2.7e-5 J of the 0.26 J that go into it.
    power = VOLTS * i - i**2 - 1e-4 * w**2
    given, J = DT * (np.sum(power) - 0.5 * (power[0] + power[-1])), 3.205e-5
    kept = np.diff(0.5e-3 * i[[0, -1]] ** 2 + 0.5 * J * w[[0, -1]] ** 2)[0]
    turned_along = J * w.mean() * (arm[-1, 3] - arm[0, 3])  # the mount turns, and the rotor stays
    assert given - kept - turned_along == pytest.approx(shaft, rel=2e-3)


@pytest.mark.slow
def test_a_swimmer_in_the_magnet_stops_the_run_with_node_and_time(scenario):
    inside = {"pose_world": np.array([0.07, -0.33, 0.505, 0.5, -0.5, 0.5, -0.5])}
    start = scenario.initial_state | {"swimmer": inside}
    with pytest.raises(DivergenceError, match=r"body.*t = 0\.00025"):
        scenario.simulation.run(0.01, scenario.inputs, initial_state=start, record=scenario.record)


SMALL = """
[simulation]
duration = 0.01
timestep = 1e-3
[nodes.magnet]
type = "PermanentMagnetNode"
moment_a_m2 = 18.89
radius_m = 0.0175
length_m = 0.02
[nodes.body]
type = "MagneticBodyNode"
moment_a_m2 = [1e-3, 0.0, 0.0]
[nodes.swimmer]
type = "HelicalSwimmerNode"
pitch_m = 3e-3
helix_radius_m = 8e-4
turns = 3.0
filament_radius_m = 2e-4
head_radius_m = 1e-3
viscosity_pa_s = 0.1
[nodes.swimmer.tube]
radius_m = 2e-3
[nodes.rotor]
type = "MotorNode"
inertia_kg_m2 = 3e-5
kt_n_m_per_a = 0.05
r_ohm = 1.0
l_henry = 1e-3
damping_n_m_s = 1e-4
reaction = "full"
[nodes.rotor.imbalance]
static_kg_m = [1e-5, 0.0, 0.0]
[inputs."rotor.commanded_voltage"]
kind = "points"
times = [0.0, 1.0]
points = [0.0, 5.0]
"""


@pytest.mark.parametrize(
    ("changes", "line", "words"),
    [
        ({"18.89": "0.0"}, 7, "nodes.magnet.moment_a_m2: must be > 0"),
        ({"[1e-3, 0.0, 0.0]": "[0.0, 0.0, 0.0]"}, 12, "nodes.body.moment_a_m2: is zero"),
        ({"filament_radius_m = 2e-4": "filament_radius_m = 2e-3"}, 18, "nodes.swimmer.filament"),
        ({"radius_m = 2e-3\n[nodes.rotor]": "radius_m = 9e-4\n[nodes.rotor]"}, 22,
         "nodes.swimmer.tube.radius_m: is too narrow: the helix"),
        ({"length_m = 0.02\n": ""}, 5, "nodes.magnet.length_m: is needed by a cylinder"),
        ({'reaction = "full"\n': ""}, 30, "nodes.rotor.imbalance: must be None with reaction"),
        ({"[1e-5, 0.0, 0.0]": "[0.0, 0.0, 1e-5]"}, 32,
         "nodes.rotor.imbalance.static_kg_m: must be at right angles"),
        ({"[0.0, 1.0]": "[1.0, 0.0]"}, 35, "times: must increase from one"),
        ({"[0.0, 5.0]": "[0.0]"}, 33, "has 2 times and 1 points"),
        ({"[0.0, 5.0]": "[0.0, [1.0, 2.0]]"}, 33, "finite numbers of shape (), got [1.0, 2.0]"),
    ],
)  # fmt: skip
def test_what_no_chain_can_have_is_refused_with_line_table_and_key(changes, line, words, tmp_path):
    text = SMALL
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    file = tmp_path / "chain.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as refused:
        load_scenario(file)
    message = str(refused.value)
    assert words in message
    assert f"chain.toml:{line}:" in message, message
