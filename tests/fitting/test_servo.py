"""A servo's logs in the layout of Rhoban/bam, fitted from a file alone, whole and in windows."""

import json
import re

import numpy as np
import pytest

import mime
from mime.fitting.file import load_fit
from mime.scenarios.bundled import bundled_scenarios

TRUE = {"motor.r_ohm": 4.0, "motor.kt_n_m_per_a": 1.4e-3, "motor.inertia_kg_m2": 1.9e-8}
SAMPLE, ROW, ROWS = 1.25e-3, 5e-3, 120
"""Seconds. In the fit's first steps the servo fires in each one, in finer ones in some."""
NOISE = 1e-2
FIT = """
scenario = "bench.toml"
starts = 1
window = {window}
unknowns = {unknowns}
[columns]
goal_position = "servo.goal_angle"
input_volts = "servo.supply_voltage"
torque_enable = "servo.torque_enabled"
[columns.position]
field = "motor.output_angle"
delay = 0
[logs.bench]
file = "kp*.json"
rows = "entries"
time = "timestamp"
set = {{"servo.kp" = "head.kp"}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A bench without dry friction, and two logs of it that were simulated in fine steps."""
    where = tmp_path_factory.mktemp("servo")
    text = bundled_scenarios()["servo_pendulum"].read_text(encoding="utf-8")
    text = re.sub(r"(?s)\[nodes.motor.friction\].*?\n\n|\[inputs.*", "", text)
    text = re.sub(r"supply_voltage_v = .*", "straight_through = true", text)
    text = text.replace("timestep = 1e-3", f"timestep = {SAMPLE}")
    text = text.replace("timestep = 2.5e-4", f"timestep = {SAMPLE}")  # as coarse as the servo
    for name, value in (("goal_angle", 0.0), ("supply_voltage", 5.0), ("torque_enabled", 1.0)):
        text += f'\n[inputs."servo.{name}"]\nkind = "constant"\nvalue = {value}\n'
    (where / "bench.toml").write_text(text, encoding="utf-8")
    fine = 64
    changes = [f"{name}={value}" for name, value in TRUE.items()]
    changes.append(f"simulation.timestep={ROW / fine}")
    simulation = mime.load_scenario(where / "bench.toml", changes).simulation
    t, random = ROW * np.arange(ROWS), np.random.default_rng(0)
    goal = 0.6 * np.sin(9.0 * t) + 0.4 * np.sign(np.sin(7.0 * t + 1.0))
    volts, on = 5.0 - 0.3 * np.sin(4.0 * t), np.where(t < 0.45, 1.0, 0.0)
    given = {"goal_angle": goal, "supply_voltage": volts, "torque_enabled": on}
    inputs = {"servo": {name: np.repeat(x, fine) for name, x in given.items()}}
    for kp in (150.0, 500.0):
        run = simulation.with_parameters({"servo": {"kp": kp}}).run(
            steps=fine * ROWS, inputs=inputs, every=fine, progress=False
        )
        angle = np.concatenate([[0.0], run["motor"]["output_angle"]])[:-1]
        position = angle + random.normal(0.0, NOISE, ROWS)
        rows = [
            {
                "timestamp": t[k],
                "position": position[k],
                "goal_position": goal[k],
                "input_volts": volts[k],
                "torque_enable": bool(on[k]),
            }
            for k in range(ROWS)
        ]
        log = {"mass": 0.2, "length": 0.1, "kp": kp, "entries": rows}
        (where / f"kp{kp:.0f}.json").write_text(json.dumps(log))
    return where


@pytest.mark.slow
@pytest.mark.small("0.3")
@pytest.mark.parametrize("window", ['"auto"', "0.3"])
def test_a_servos_logs_at_two_gains_tell_its_motor(folder, window):
    file = folder / "fit.toml"
    file.write_text(FIT.format(window=window, unknowns=list(TRUE)))
    found = load_fit(file).run(progress=False)
    for name, value in TRUE.items():
        estimate = found[name]
        assert estimate.kind == "known"
        # 1.6 half-widths of a 95 % interval are three standard deviations.
        half = 0.5 * (estimate.high - estimate.low)
        assert abs(estimate.value - value) < 1.6 * half, estimate
        assert half < 0.3 * value
