"""Motor, gear and spring in one fit: electrical, mechanical and elastic unknowns together."""

import re

import numpy as np
import pytest

import mime
from fitting.motors import TRUE, sampled

RATIO, I, K, V = 20.0, 0.05, 60.0, 0.15
TRUTH = {
    "motor.r_ohm": TRUE["R"],
    "motor.l_henry": TRUE["L"],
    "motor.kt_n_m_per_a": TRUE["K"],
    "motor.inertia_kg_m2": TRUE["J"],
    "motor.damping_n_m_s": TRUE["b"],
    "joint.output_inertia_kg_m2": I,
    "joint.stiffness_n_m_per_rad": K,
    "joint.damping_n_m_s": V,
}
NOISE = np.array([0.1, 0.02, 0.002])
COLUMNS = {
    "volts": "motor.commanded_voltage",
    "current": "motor.current",
    "rotor": "motor.rotor_angle",
    "load": "joint.output_angle",
}


@pytest.fixture(scope="module")
def log():
    """Current, rotor and load by one matrix exponential of all five states."""
    R, L, kt, J, b = TRUE.values()
    Jr = RATIO**2 * J
    A = np.array(
        [
            [-R / L, 0, -kt * RATIO / L, 0, 0],
            [0, 0, 1, 0, 0],
            [RATIO * kt / Jr, -K / Jr, -(b * RATIO**2 + V) / Jr, K / Jr, V / Jr],
            [0, 0, 0, 0, 1],
            [0, K / I, V / I, -K / I, -V / I],
        ]
    )
    B = np.array([[1 / L], [0.0], [0.0], [0.0], [0.0]])
    time = 1e-3 * np.arange(601)
    volts = 8.0 * np.sign(np.sin(30 * time + 5 * np.sin(4 * time)))
    states = sampled(A, B, volts, time, time)[:, [0, 1, 3]] * [1.0, RATIO, 1.0]
    states = states + NOISE * np.random.default_rng(8).normal(size=states.shape)
    return {
        "time": time,
        "volts": volts,
        **dict(zip(("current", "rotor", "load"), states.T, strict=True)),
    }


@pytest.mark.slow
def test_volts_current_and_two_encoders_tell_motor_gear_spring_and_load(log, tmp_path):
    wrong = {name: 1.25 * value for name, value in TRUTH.items()}
    motor = {n.partition(".")[2]: v for n, v in wrong.items() if n.startswith("motor")}
    joint = {n.partition(".")[2]: v for n, v in wrong.items() if n.startswith("joint")}
    node = mime.MotorNode(
        "motor", 1e-3 / 32, **motor, command_mode="voltage", gear=mime.Gear(RATIO), shaft="driven"
    )
    simulation = mime.elastic_drive(node, **joint).compile()
    fit = mime.fit(simulation, log, COLUMNS, list(TRUTH), starts=1, progress=False)
    assert fit.is_explained
    assert fit.rank == 8
    assert fit.step_error < 0.03  # motor and joint exchange torque and speed to first order
    for name, truth in TRUTH.items():
        estimate = fit[name]
        assert abs(estimate.value - truth) < 0.8 * (estimate.high - estimate.low), name
        assert estimate.high / estimate.low < 1.15, name
    assert str(fit).count("trade-off") == 1  # one line for all that go together
    fit.to_mjcf(tmp_path / "drive.xml")
    written = (tmp_path / "drive.xml").read_text(encoding="utf-8")
    assert re.search(r"motor\.r_ohm: ± 0\.00\d+ \(fit, 95 %\)", written)
