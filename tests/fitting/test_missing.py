"""What is missing in a model is named: logs of machines that have one part more."""

from types import SimpleNamespace

import numpy as np
import pytest

import mime
from fitting.arms import graph_of
from fitting.motors import COLUMNS, NAMES, NOISE, PERIOD, TRUE, UNKNOWNS, bench, motor_log
from mime.fitting.missing import _joints, candidates, named
from mime.models import model_path

ROWS, FINE = 601, 50
TIME = PERIOD * np.arange(ROWS)
VOLTS = 6 * np.sin(2 * np.pi * 3 * TIME) + 3 * np.sin(2 * np.pi * 7.3 * TIME + 1)
LOAD = 0.06 * np.sin(2 * np.pi * 2.1 * TIME) + 0.05 * np.cos(2 * np.pi * 5.2 * TIME)
LOADED = {**COLUMNS, "load": "motor.load_torque"}


def log_with(dry=lambda load: 0.0, more=lambda q, w: 0.0):
    """The motor under a load; friction `dry` that sticks, and another torque; explicit steps."""
    p, dt, w, i, q = TRUE, PERIOD / FINE, 0.0, 0.0, 0.0
    readings = np.zeros((ROWS, 2))
    for k in range(ROWS - 1):
        for _ in range(FINE):
            i += dt / p["L"] * (VOLTS[k] - p["R"] * i - p["K"] * w)
            free = w + dt / p["J"] * (p["K"] * i + LOAD[k] - p["b"] * w + more(q, w))
            slowed = abs(free) - dt * dry(LOAD[k]) / p["J"]
            w = np.sign(free) * slowed if slowed > 0 else 0.0
            q += dt * w
        readings[k + 1] = w, i
    readings += NOISE * np.random.default_rng(0).normal(size=readings.shape)
    speed, current = readings.T
    return {"time": TIME, "volts": VOLTS, "load": LOAD, "speed": speed, "current": current}


@pytest.fixture(scope="module")
def simulation():
    values = {name: 1.2 * value for name, value in zip(NAMES, TRUE.values(), strict=True)}
    graph = mime.GraphManager()
    options = {"command_mode": "voltage", "integrator": "exact"}
    graph.add_node(mime.MotorNode("motor", PERIOD, **values, **options))
    for field in ("commanded_voltage", "load_torque"):
        graph.add_external_input("motor", field)
    return graph.compile()


CASES = {
    "load": (
        {"dry": lambda load: 0.3 * abs(load)},
        "friction that grows with the load motor.load_torque is missing at motor: ",
        0.3,
    ),
    "dry": ({"dry": lambda load: 0.02}, "dry friction is missing at motor: ", 0.02),
    "square": (
        {"more": lambda q, w: -2e-5 * w * abs(w)},
        "friction that grows with the square of speed is missing at motor: ",
        2e-5,
    ),
    "turn": (
        {"more": lambda q, w: -0.02 * np.sin(q)},
        "a torque that repeats with the position, each turn is missing at motor: ",
        0.02,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_part_that_the_log_has_and_the_model_has_not_is_named_with_its_size(simulation, case):
    parts, words, size = CASES[case]
    fit = mime.fit(simulation, log_with(**parts), LOADED, UNKNOWNS, starts=1, progress=False)
    assert not fit.is_explained
    first = fit.explained["motor.rotor_angular_velocity"].kinds[0]
    assert first.startswith(words), first
    remedies = {"load": "; LoadFriction has it", "dry": "; Coulomb has it"}
    assert first.endswith(remedies.get(case, "of what is left"))
    found = float(first.removeprefix(words).split()[0])
    # One linear step, beside parameters that have taken a part of it: up to a third.
    assert size / 1.5 < found < 1.1 * size
    assert f"\n    {first}\n" in str(fit)
    # What is left has its lines where the inputs have theirs: no resonance, and none is named.
    kinds = [words for sensor in fit.explained.values() for words in sensor.kinds]
    assert not [words for words in kinds if "Hz" in words]


def test_nothing_is_named_where_the_model_has_it_all(simulation):
    fit = mime.fit(simulation, log_with(), LOADED, UNKNOWNS, starts=1, progress=False)
    assert fit.is_explained
    assert "missing" not in str(fit)


def test_friction_that_drives_is_not_named():
    speed = np.sin(np.linspace(0.0, 20.0, 500))
    (dry, *_) = candidates(None, speed, {})
    (column,) = dry.columns
    tried = [("joint", dry, column[:, None])]
    J, rows = np.ones((500, 1)), {"torque": slice(0, 500)}
    (found,) = named(-0.7 * column, J, tried, rows)
    assert found.size == pytest.approx(0.7, rel=1e-12)  # linear: rounding
    assert found.part == pytest.approx(1.0, abs=1e-12)
    assert named(0.7 * column, J, tried, rows) == []
    assert named(-0.7 * column, column[:, None], tried, rows) == []  # the model has it


def test_joints_are_named_as_their_addresses(simulation):
    arm = graph_of(mime.parse_urdf(str(model_path("planar_arm_3link"))))
    for graph, names in (
        (arm, ["arm.joint[shoulder]", "arm.joint[elbow]", "arm.joint[wrist]"]),
        (simulation, ["motor"]),
    ):
        found = [joint.name for joint in _joints(SimpleNamespace(simulation=graph))]
        assert list(dict.fromkeys(found)) == names


def test_a_joint_that_rests_has_no_candidates():
    assert candidates(np.zeros(100), np.zeros(100), {"load": np.ones(100)}) == []


def test_a_log_of_another_shape_is_not_taken_for_another_unit():
    """Start values so far off that the speed is eleven times too small and lags behind."""
    model = bench(1.0).with_parameters({"motor.inertia_kg_m2": 0.3, "motor.damping_n_m_s": 0.1})
    log = motor_log(rows=301)
    fit = mime.fit(model, log, COLUMNS, UNKNOWNS, starts=1, progress=False)
    assert fit.known
