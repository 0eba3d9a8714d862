"""`mime fit fit.toml`: files, exit codes and messages."""

import json

import numpy as np
import pytest

import mime
from fitting.motors import (
    NAMES,
    NOISE,
    PERIOD,
    TRUE,
    motor_log,
    motor_matrices,
    sampled,
    sticking_motor_log,
    volts_of,
)
from mime.cli import main

BENCH = """
[simulation]
duration = 1.0
timestep = 1e-3
[nodes.motor]
type = "MotorNode"
inertia_kg_m2 = 1.5e-4
kt_n_m_per_a = 0.06
r_ohm = 2.0
l_henry = 4e-3
damping_n_m_s = 5e-4
command_mode = "voltage"
integrator = "exact"
[inputs."motor.commanded_voltage"]
kind = "constant"
value = 6.0
"""
FIT = """
title = "The motor of rig 3"
scenario = "bench.toml"
unknowns = ["motor.r_ohm", "motor.kt_n_m_per_a", "motor.inertia_kg_m2", "motor.damping_n_m_s"]
starts = 1

[columns]
volts = "motor.commanded_voltage"
speed = { field = "motor.rotor_angular_velocity", unit = "rpm" }

[logs.steps]
file = "steps.csv"
"""


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """`mime fit fit.toml` in a folder with these files: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    (tmp_path / "bench.toml").write_text(BENCH, encoding="utf-8")

    def call(text=FIT, log=None):
        log = motor_log(rows=301) if log is None else log
        speed = np.round(log["speed"] * 30 / np.pi, 3)
        table = np.column_stack([log["time"], log["volts"], speed, log["current"]])
        names = "time,volts,speed,current"
        np.savetxt("steps.csv", table, "%.6f", ",", header=names, comments="")
        (tmp_path / "fit.toml").write_text(text, encoding="utf-8")
        try:
            main(["fit", "fit.toml"])
            code = 0
        except SystemExit as ended:
            code = ended.code
        return (code, *capsys.readouterr())

    return call


def test_a_fit_is_told_saved_and_reported(cli, tmp_path):
    code, out, err = cli()
    assert code == 0
    assert all("steps/s" in line for line in err.splitlines())  # a loaded machine shows progress
    assert out.startswith("The motor of rig 3\n")
    assert "not known by itself; prior kept" in out
    saved = mime.Fit.load(tmp_path / "mime_output" / "fit" / "fit.json")
    assert saved.noise["motor.rotor_angular_velocity"][0] == pytest.approx(0.5, rel=0.15)
    page = (tmp_path / "mime_output" / "fit" / "report.html").read_text(encoding="utf-8")
    assert "Known only together" in page
    assert "<h1>The motor of rig 3</h1>" in page


def test_a_log_that_is_not_explained_is_told_and_a_strict_fit_fails(cli, tmp_path):
    log = sticking_motor_log(rows=301)
    code, out, _ = cli(log=log)
    assert code == 0
    assert "The model leaves " in out.splitlines()[1]
    code, out, err = cli(FIT.replace("starts = 1", "starts = 1\nstrict = true"), log=log)
    assert (code, out) == (1, "")
    assert "The model leaves " in err
    saved = mime.Fit.load(tmp_path / "mime_output" / "fit" / "fit.json")
    assert not saved.is_explained


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("bench.toml", "none.toml"), "fit.toml:3: scenario: no such file"),
        (("starts = 1", "start = 1"), r"fit.toml:5: start: unknown key (did you mean 'starts'?)"),
        (("starts = 1", 'loss = "cauchy"'), "fit.toml:5: loss: must be one of 'linear', 'soft_l1'"),
        (('"rpm"', '"rps"'), "fit.toml:9: columns.speed: 'rad/s' cannot be"),
        (("motor.r_ohm", "motor.r_ohms"), "no parameter 'r_ohms' (did you mean 'r_ohm'?)"),
        (("steps.csv", "step.csv"), "step.csv: no such file"),
        (
            ('"motor.kt_n_m_per_a"', '"motor.r_ohm"'),
            "fit.toml:4: unknowns: 'motor.r_ohm' is there t",
        ),
        (
            ('unit = "rpm"', "noise = 0.0"),
            "fit.toml: 1 problem\n  fit.toml:9: columns.speed.noise: mu",
        ),
        (
            ('"steps.csv"', '"steps.csv"\ntime_unit = "min"'),
            "fit.toml:13: logs.steps.time_unit: must be one of 's', 'ms'",
        ),
        (
            ('"steps.csv"', '"steps.csv"\n[logs.steps.initial]\n"motor.speed" = 1.0'),
            "fit.toml:14: logs.steps.initial.\"motor.speed\": the state of 'motor' has no field",
        ),
        (
            ('"steps.csv"', '"steps.csv"\n[logs.steps.initial."motor.angle"]\nbetween = [2, 1]'),
            'fit.toml:14: logs.steps.initial."motor.angle".between: between must be (least',
        ),
        (("volts =", "volt ="), "steps.csv: has no column 'volt' (did you mean 'volts'?)"),
    ],
)
def test_a_mistake_is_told_with_its_place(cli, change, expected):
    code, out, err = cli(FIT.replace(*change))
    assert (code, out) == (2, "")
    assert expected in err


def test_a_log_whose_time_is_in_another_unit_is_refused(cli):
    log = motor_log(rows=301)
    code, _, err = cli(log=log | {"time": 1e3 * log["time"]})
    assert code == 2
    assert "a row every 1 s, 1,000 steps of the model (0.001 s). Is its time in another unit" in err
    assert 'time_unit = "ms"' in err


def test_other_inputs_of_the_scenario_stay_constant_or_are_refused(cli, tmp_path):
    load = '[inputs."motor.load_torque"]\nkind = "sine"\namplitude = 0.1\nfrequency_hz = 2.0\n'
    (tmp_path / "bench.toml").write_text(BENCH + load, encoding="utf-8")
    code, _, err = cli()
    assert code == 2
    assert "changes motor.load_torque over time, and no column has it" in err


SERVO_LOGS = """
scenario = "bench.toml"
unknowns = ["motor.r_ohm", "motor.l_henry", "motor.kt_n_m_per_a", "motor.damping_n_m_s"]
starts = 1

[columns]
duty = { field = "motor.commanded_voltage", gain = 0.01 }
PWM = { field = "motor.current", mix = { raw = 0.001 } }
[columns.raw]
wraps_at_bits = 16
[columns.count]
field = "motor.rotor_angle"
counts_per_turn = 4096
wraps_at_bits = 12
delay = 0

[logs.discs]
file = "disc_*.json"
rows = "entries"
time = "ms"
time_unit = "ms"
set = { "motor.inertia_kg_m2" = "head.disc" }
"""


@pytest.fixture
def discs(cli, tmp_path):
    """Two discs: 12-bit counts of its angle, mA in 16 bits, percent of 100 V."""
    A, B = motor_matrices(**TRUE)
    time, random = PERIOD * np.arange(301), np.random.default_rng(0)
    for name, factor in (("a", 1.0), ("b", 3.0)):
        A, B = motor_matrices(**(TRUE | {"J": factor * TRUE["J"]}))
        A = np.block([[A, np.zeros((2, 1))], [1.0, 0.0, 0.0]])
        states = sampled(A, np.append(B, [[0.0]], 0), volts_of(time), time, time)
        current = np.round(1e3 * (states[:, 1] + NOISE[1] * random.normal(size=301)))
        count = np.mod(np.round((states[:, 2] + 0.3) * 4096 / (2 * np.pi)), 4096)
        rows = zip(1e3 * time, 0.01 * volts_of(time), np.mod(current, 2**16), count, strict=True)
        names = "ms", "duty", "raw", "count"
        entries = [dict(zip(names, map(float, row), strict=True)) for row in rows]
        head = {"disc": factor * TRUE["J"], "kind": "disc"}
        text = json.dumps({**head, "entries": entries})
        (tmp_path / f"disc_{name}.json").write_text(text, encoding="utf-8")
    return cli


def test_logs_of_different_machines_are_fitted_at_once_by_a_file_alone(discs, tmp_path):
    text = SERVO_LOGS.replace("wraps_at_bits = 12", "wraps_at_bits = 12\noffset = 195.57")
    code, out, _ = discs(text)
    assert code == 0, out
    fit = mime.Fit.load(tmp_path / "mime_output" / "fit" / "fit.json")
    for name, symbol in zip(NAMES, "RLKJb", strict=True):
        if symbol != "J":
            found = fit[f"motor.{name}"]
            assert found.low < TRUE[symbol] < found.high  # seed 0; coverage is tested elsewhere


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("disc_*", "disk_*"), "disk_*.json: no such files"),
        (('rows = "entries"', ""), "disc_a.json: has no column 'duty' (columns: 'entries'). Are "),
        (
            ("head.disc", "head.disk"),
            "no 'head.disk' (did you mean 'disc'?) (head: 'disc', 'kind')",
        ),
        (("head.disc", "head.kind"), "= 'head.kind' must be a finite number, got 'disc'"),
        (('"head.disc"', "-1.0"), 'fit.toml:22: logs.discs.set."motor.inertia_kg_m2": MotorNode'),
        (
            ("wraps_at_bits = 16", "wraps_at_bits = 8"),
            "disc_a.json:1: column 'raw' must be a whole",
        ),
        (
            ("counts_per_turn = 4096", 'counts_per_turn = 4\nunit = "rad"'),
            "columns.count.unit: unit must be absent",
        ),
        (
            ("raw = 0.001", "rav = 0.001"),
            "fit.toml:9: columns.raw: has no field, and no mix takes it",
        ),
        (("gain = 0.01", "gain = true"), "fit.toml:7: columns.duty: motor.commanded_voltage is an"),
        (('time_unit = "ms"', "rate_hz = 1e3"), "rate_hz is of a log without a column of the time"),
        (('time_unit = "ms"', "rate = 1e3"), "rate: unknown key (did you mean 'rate_hz'?)"),
        (
            ('rows = "entries"', 'rows = "entries"\nspan = [1]'),
            "fit.toml:20: logs.discs.span: span must be two",
        ),
        (
            ('"disc_*.json"', "[]"),
            "fit.toml:18: logs.discs.file: must name a file, got an empty list",
        ),
        (('"disc_*.json"', '{ a = "disc_a.json" }'), "no 'head.disc' (head: 'a')"),
    ],
)
def test_a_mistake_in_what_a_log_is_is_told_with_its_place(discs, change, expected):
    code, out, err = discs(SERVO_LOGS.replace(*change))
    assert (code, out) == (2, "")
    assert expected in err
