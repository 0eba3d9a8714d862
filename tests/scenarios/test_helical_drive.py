"""The whole chain, arm to swimmer and back: its energy, what stops it, and what is refused."""

import jax
import numpy as np
import pytest

from mime import DivergenceError, ParameterError, load_scenario, optimise_study
from mime.scenarios import ScenarioError
from mime.studies.lanes import lane_of

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
    late = run.time > 3.0 - 0.5 * DT  # both ends of eight whole turns, at 8 Hz
    rotor, body = ({k: v[late] for k, v in run[name].items()} for name in ("rotor", "body"))
    i, w = rotor["current"], rotor["rotor_angular_velocity"]
    twist, arm = run["swimmer"]["twist_world"][late], run["arm"]["end_effector_twist_world"][late]
    shaft = integral(-body["load_torque"] * w)
    carried = integral(-np.sum(body["magnet_wrench_world"] * arm, axis=1))  # by the arm, as it goes
    moved = integral(np.sum(body["wrench_world"] * twist, axis=1))
    stored = body["potential_energy"][-1] - body["potential_energy"][0]
    # 8e-6 at this step, a quarter of it at half of the step: MIME-VER-190 has the order.
    assert shaft + carried == pytest.approx(stored + moved, rel=1.2e-5)
    assert moved == pytest.approx(2.354e-5, rel=1e-3)
    # The motor itself: 2.4e-5 J of the 0.26 J that go into it.
    power = VOLTS * i - i**2 - 1e-4 * w**2
    given, J = integral(power), 3.205e-5
    kept = np.diff(0.5e-3 * i[[0, -1]] ** 2 + 0.5 * J * w[[0, -1]] ** 2)[0]
    turned_along = J * w.mean() * (arm[-1, 3] - arm[0, 3])  # the mount turns, and the rotor stays
    assert given - kept - turned_along == pytest.approx(shaft, rel=1e-6)


@pytest.mark.slow
def test_the_swimmer_costs_the_motor_the_torque_of_its_reaction(scenario, run):
    changed = {"body.moment_a_m2": np.array([1e-12, 0.0, 0.0])}
    alone = scenario.simulation.with_parameters(changed).run(
        4.0, scenario.inputs, initial_state=scenario.initial_state, record={"rotor": ["current"]}
    )
    late = run.time > 3.0 - 0.5 * DT
    cost = (run["rotor"]["current"] - alone["rotor"]["current"])[late].mean()
    # The motor turns more slowly by it: kt² / (kt² + R b) of the torque over kt, 9.0 µA of 0.1 A.
    told = -run["body"]["load_torque"][late].mean() / 0.05 * 0.05**2 / (0.05**2 + 1e-4)
    assert told == pytest.approx(9.0e-6, rel=5e-3)
    assert cost == pytest.approx(told, rel=1e-3)


def integral(power):
    return DT * (np.sum(power) - 0.5 * (power[0] + power[-1]))


@pytest.mark.slow
def test_a_swimmer_in_the_magnet_stops_the_run_with_node_and_time(scenario):
    inside = {"pose_world": np.array([0.07, -0.33, 0.505, 0.5, -0.5, 0.5, -0.5])}
    start = scenario.initial_state | {"swimmer": inside}
    with pytest.raises(DivergenceError, match=r"body.*t = 0\.00025"):
        scenario.simulation.run(0.01, scenario.inputs, initial_state=start, record=scenario.record)


def test_a_study_builds_the_swimmer_for_each_shape_and_varies_all_else_at_once(scenario):
    simulation = scenario.simulation
    for name in ("swimmer.pitch_m", "swimmer.turns", "swimmer.tube.radius_m", "path.waypoints_m"):
        assert lane_of(name, simulation, scenario) is None, name
    for name in ("swimmer.viscosity_pa_s", "arm.base_pose_world[2]", "path.speed_m_per_s"):
        assert lane_of(name, simulation, scenario) is not None, name
    with pytest.raises(ParameterError, match="pitch_m varies in no batch and has no gradient"):
        jax.grad(lambda p: drag(simulation.with_parameters({"swimmer.pitch_m": p})))(3e-3)
    R = drag(simulation)
    # In the same tube, twice as far away from the wall: less drag along it.
    thinner = {"swimmer.helix_radius_m": 4e-4, "swimmer.viscosity_pa_s": 0.2}
    assert drag(simulation.with_parameters(thinner)) < 1.9 * R
    assert jax.grad(lambda mu: drag(simulation.with_parameters({"swimmer.viscosity_pa_s": mu})))(
        0.1
    ) == pytest.approx(R / 0.1)


def drag(simulation):
    return simulation.nodes["swimmer"].resistance()[2, 2]


@pytest.mark.soak("slopes of the whole chain are compiled, in half a minute")
def test_volts_and_the_arms_speed_are_optimised_by_gradients():
    found = optimise_study(
        "helical_drive",
        {"inputs.rotor.commanded_voltage.value": {"uniform": [1.0, 3.0]},
         "path.speed_m_per_s": {"uniform": [0.002, 0.008]}},
        {"maximise": "swum", "starts": 1, "budget": 2},
        set=["simulation.duration=0.02",
             'inputs.rotor.commanded_voltage={kind="constant", value=2.0}'],
        figures=[{"name": "swum", "kind": "final", "field": "swimmer.position_world[0]"}],
        progress=False,
    )  # fmt: skip
    assert "by gradients" in found.method
    swum = found.dataset["swum"].values
    assert found.figures()["swum"] == swum.max() > swum.min()


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
        ({"filament_radius_m = 2e-4": "filament_radius_m = 6e-4"}, 18, "nodes.swimmer.filament"),
        ({"pitch_m = 3e-3": "pitch_m = 3e-4"}, 15, "nodes.swimmer.pitch_m: must be > 0.0004 m"),
        ({"viscosity_pa_s = 0.1": 'viscosity_pa_s = 0.1\ntheory = "stokeslets"',
          "radius_m = 2e-3\n[nodes.rotor]": "radius_m = 1.9e-3\n[nodes.rotor]"}, 23,
         "nodes.swimmer.tube.radius_m: must be >= 0.002 m for Stokeslets"),
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
