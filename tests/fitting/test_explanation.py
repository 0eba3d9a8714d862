"""What is left of a log that a model does not explain, by its name."""

import re

import numpy as np
import pytest

import mime
from fitting.motors import sampled
from mime.fitting.explanation import has_line, resolution, resonance

ROTOR, LOAD, STIFFNESS, DAMPING = 0.02, 0.05, 78.5, 0.10
HERTZ = np.sqrt(STIFFNESS * (1 / ROTOR + 1 / LOAD)) / (2 * np.pi)
RATIO = 0.5 * DAMPING * (1 / ROTOR + 1 / LOAD) / (2 * np.pi * HERTZ)
PERIOD = 4e-3


def elastic_log(noise=0.02, rows=501):
    """Two masses and a spring, the torque known, the speed of the rotor logged."""
    J, I, k, v = ROTOR, LOAD, STIFFNESS, DAMPING
    A = np.array(
        [[0, 1, 0, 0], [-k / J, -v / J, k / J, v / J], [0, 0, 0, 1], [k / I, v / I, -k / I, -v / I]]
    )
    B = np.array([[0.0], [1 / J], [0.0], [0.0]])
    time = PERIOD * np.arange(rows)
    torque = np.where(time % 0.8 < 0.4, 0.4, -0.4)
    speed = sampled(A, B, torque, time, time)[:, 1]
    speed = speed + noise * np.random.default_rng(0).normal(size=rows)
    return {"time": time, "torque": torque, "speed": speed}


def rigid():
    """One mass, driven by a torque."""
    graph = mime.GraphManager()
    graph.add_node(
        mime.MotorNode(
            "motor", PERIOD, inertia_kg_m2=0.06, damping_n_m_s=0.01, kt_n_m_per_a=1.0,
            r_ohm=1.0, l_henry=1e-3, command_mode="torque",
        )
    )  # fmt: skip
    graph.add_external_input("motor", "commanded_torque")
    return graph.compile()


def fitted(log):
    columns = {"torque": "motor.commanded_torque", "speed": "motor.rotor_angular_velocity"}
    unknowns = ["motor.inertia_kg_m2", "motor.damping_n_m_s"]
    return mime.fit(rigid(), log, columns, unknowns, starts=1, progress=False)


@pytest.mark.parametrize("hertz", [2.0, 6.0, 17.3])
def test_a_line_is_named_unless_it_is_that_of_the_motion_or_a_multiple(hertz):
    time = PERIOD * np.arange(1001)
    torque = 0.4 * np.sin(2 * np.pi * 2.0 * time)
    A, B = np.array([[-0.01 / 0.06]]), np.array([[1 / 0.06]])
    speed = sampled(A, B, torque, time, time)[:, 0]
    # Its sign turns halfway: no parameter of the model follows that, not at 2 Hz either.
    hum = 0.05 * np.sin(2 * np.pi * hertz * time) * np.where(time < 2.0, 1.0, -1.0)
    noise = 0.005 * np.random.default_rng(0).normal(size=1001)
    fit = fitted({"time": time, "torque": torque, "speed": speed + hum + noise})
    assert not fit.is_explained
    kinds = [
        words for words in fit.explained["motor.rotor_angular_velocity"].kinds if "Hz" in words
    ]
    assert len(kinds) == (hertz == 17.3)
    for words in kinds:
        assert re.search(r" (17\.[1-5]) Hz", words), words


def test_a_resonance_that_the_model_has_not_is_named_by_its_frequency():
    assert pytest.approx(11.8, abs=0.01) == HERTZ
    fit = fitted(elastic_log())
    assert not fit.is_explained
    assert "it rings at 11.8 Hz, damped to 0.046 of critical: a resonance" in str(fit)
    assert fit["motor.inertia_kg_m2"].interval == "windows"


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_frequency_and_damping_are_those_of_the_spring(noise):
    log = elastic_log(noise)
    rigid = np.cumsum(log["torque"]) * PERIOD / (ROTOR + LOAD)
    found = resonance(rigid - log["speed"], [log["torque"]], PERIOD)
    # Averages over two rows, and a hold of 8 ms in them, move a pole by some percent.
    assert found[0] == pytest.approx(HERTZ, rel=0.01)
    assert found[1] == pytest.approx(RATIO, abs=0.015)


def test_noise_and_a_slow_drift_are_no_resonance():
    random = np.random.default_rng(1)
    assert resonance(np.cumsum(random.normal(size=1000)), [], 1e-3) is None
    assert resonance(np.zeros(1000), [], 1e-3) is None


def test_an_input_has_lines_where_its_sines_are_and_a_random_one_has_none():
    time = 1e-2 * np.arange(1000)
    sines = np.sin(2 * np.pi * 0.5 * time) + 0.5 * np.cos(2 * np.pi * 3.03 * time)
    assert [has_line(sines, f, 1e-2) for f in (0.5, 3.0, 1.2, 6.0)] == [True, True, False, False]
    # Five bins of 500 have a hundredth of white power, and rarely three times as much.
    noise = np.random.default_rng(0).normal(size=1000)
    assert not any(has_line(noise, f, 1e-2) for f in np.arange(0.5, 49.0))
    assert not has_line(np.ones(1000), 1.0, 1e-2)


def test_the_steps_of_an_encoder_are_seen():
    count, angle = 2 * np.pi / 48, np.cumsum(np.linspace(0.0, 0.3, 500))
    assert resolution(count * np.floor(angle / count)) == pytest.approx(count, rel=1e-9)
    assert resolution(angle) == 0.0
    assert resolution(np.random.default_rng(0).normal(size=500)) == 0.0
