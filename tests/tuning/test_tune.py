"""Gains over a batch of plants: optimal where paper or SciPy knows it, within limits, reported."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mime
from mime.cli import main

DT, J, B = 1e-3, 1e-4, 3e-4
SPEED, WANTED, TORQUE = (
    f"motor.{name}" for name in ("rotor_angular_velocity", "commanded_velocity", "motor_torque")
)
GAINS = ["motor.velocity_kp", "motor.velocity_ki"]
RUN = {
    "duration": 0.1,
    "inputs": {"motor": {"commanded_velocity": 10.0}},
    "progress": False,
    "rounds": 25,
}
ERROR = mime.Goal("rms_error", SPEED, WANTED, name="error")


@pytest.fixture(scope="module")
def drive():
    graph = mime.GraphManager()
    constants = {"r_ohm": 1.0, "l_henry": 1e-3, "kt_n_m_per_a": 0.05, "damping_n_m_s": B}
    gains = {"velocity_kp": 0.01, "velocity_ki": 0.3, "command_mode": "velocity"}
    graph.add_node(mime.MotorNode("motor", DT, inertia_kg_m2=J, **constants, **gains))
    graph.add_external_input("motor", "commanded_velocity")
    return graph.compile()


def simulated(kp, ki, inertia, steps=100):
    """The same drive in NumPy: semi-implicit Euler with a PI."""
    w = integral = 0.0
    speeds, torques = [], [kp * 10.0]  # before anything moves
    for _ in range(steps):
        e = 10.0 - w
        integral += e * DT
        torque = kp * e + ki * integral
        w = (w + DT / inertia * torque) / (1 + DT * B / inertia)
        speeds.append(w)
        torques.append(kp * (10.0 - w) + ki * integral)
    return np.array(speeds), np.array(torques)


@pytest.fixture(scope="module")
def tuned(drive):
    goals = [ERROR, mime.Goal("overshoot", SPEED, target=10.0, at_most=4.0, name="overshoot")]
    return mime.tune(
        drive,
        GAINS,
        goals,
        limits={TORQUE: 0.15},
        plants={"motor.inertia_kg_m2": 0.2},
        members=3,
        starts=2,
        **RUN,
    )


def figures(values, inertias):
    runs = [simulated(*values, inertia) for inertia in inertias]
    errors = [np.sqrt(np.mean((w - 10.0) ** 2)) for w, _ in runs]
    over = [100 * max(0, (w.max() - 10.0) / (10.0 - w[0])) for w, _ in runs]
    torques = [np.abs(t).max() for _, t in runs]
    return np.array([errors, over, torques])


def test_the_gains_are_scipys_and_keep_the_limits(tuned):
    inertias = tuned.plants["motor.inertia_kg_m2"]
    assert inertias[0] == pytest.approx(J)
    found = [tuned[name].after for name in GAINS]
    errors, over, torques = figures(found, inertias)
    np.testing.assert_allclose(
        [row.after for row in tuned.figures], [errors, over, torques], rtol=1e-9
    )
    best = minimize(
        lambda z: np.mean(figures(np.exp(z), inertias)[0]),
        np.log(found),
        method="COBYLA",
        constraints=[
            {"type": "ineq", "fun": lambda z: 4.0 - figures(np.exp(z), inertias)[1]},
            {"type": "ineq", "fun": lambda z: 0.15 - figures(np.exp(z), inertias)[2]},
        ],
        options={"rhobeg": 0.1, "tol": 1e-6, "maxiter": 400},
    )
    assert np.mean(errors) == pytest.approx(best.fun, rel=2e-3)
    assert np.all(over <= 4.0 * 1.001)
    assert np.all(torques <= 0.15 * 1.001)
    assert tuned.keeps_limits
    assert tuned.figures[2].violations(tuned.figures[2].before) == 0.0


def test_it_is_told_saved_and_simulated(tuned, drive, tmp_path):
    words = str(tuned)
    assert "2 gains tuned for 3 plants" in words
    assert "kept in 3 of 3" in words
    assert "phase" in words
    tuned.save(tmp_path / "tuning.json")
    again = mime.Tuning.load(tmp_path / "tuning.json", drive)
    assert str(again) == words
    assert again.to_toml() == tuned.to_toml()
    node = again.simulation.nodes["motor"]
    assert float(node.velocity_kp) == pytest.approx(tuned["motor.velocity_kp"].after)
    assert "<h2>Margins" in tuned.report()
    with pytest.raises(mime.TuningError, match="has no model"):
        _ = mime.Tuning.load(tmp_path / "tuning.json").simulation
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(mime.TuningError, match="not a tuning"):
        mime.Tuning.load(tmp_path / "other.json")
    with pytest.raises(KeyError, match=r"no gain 'motor.kp'"):
        _ = tuned["motor.kp"]


def test_what_cannot_be_tuned_is_refused(drive):
    def refused(words, gains=GAINS, goals=ERROR, **options):
        with pytest.raises(mime.InputError, match=words):
            mime.tune(drive, gains, goals, **{**RUN, **options})

    refused("no node 'moter'", ["moter.velocity_kp"])
    refused("velocity_kq", ["motor.velocity_kq"])
    refused("nothing to tune", [])
    refused("the first below the second", {"motor.velocity_kp": (2.0, 1.0)})
    refused("can be from 0", {"motor.velocity_kp": (-2.0, 1.0)})
    refused("every goal is a limit", goals=mime.Goal("max", SPEED, at_most=1.0))
    refused("no field 'torque'", limits={"motor.torque": 1.0})
    refused("limits.*> 0", limits={TORQUE: -1.0})
    refused("is a gain to tune", plants={"motor.velocity_kp": 0.1})
    refused("no node 'arm'", plants={"arm.mass": 0.1})
    refused("the first below the second", plants={"motor.inertia_kg_m2": (2.0, 1.0)})
    refused("is of shape", plants={"motor.axis_in_parent_frame": 0.1})
    refused("duration", duration=None)


def test_gains_that_diverge_are_told(drive):
    wild = {"motor.velocity_kp": (1e6, 1e9)}
    with pytest.raises(mime.InputError, match=r"leave the finite numbers.*1 of 1 plants"):
        mime.tune(drive, wild, ERROR, **{**RUN, "duration": 0.4, "starts": 1})


FILE = """
scenario = "drive.toml"
gains = {"motor.velocity_kp" = [1e-3, 0.2], "motor.velocity_ki" = [1e-2, 5.0]}
starts = 1
rounds = 5

[[goals]]
figure = "error"
weight = 1.0
"""
MORE = """
[[goals]]
kind = "rms"
field = "motor.motor_torque"
"""
SCENARIO = """
[simulation]
duration = 0.1
timestep = 1e-3

[nodes.motor]
type = "MotorNode"
r_ohm = 1.0
l_henry = 1e-3
kt_n_m_per_a = 0.05
inertia_kg_m2 = 1e-4
damping_n_m_s = 3e-4
command_mode = "velocity"
velocity_kp = 0.01
velocity_ki = 0.3

[inputs."motor.commanded_velocity"]
kind = "constant"
value = 10.0

[[figures_of_merit]]
name = "error"
kind = "rms_error"
field = "motor.rotor_angular_velocity"
reference = "motor.commanded_velocity"
at_most = 1e-9
"""


def test_the_command_writes_gains_and_a_report(tmp_path, capsys):
    (tmp_path / "drive.toml").write_text(SCENARIO)
    (tmp_path / "tune.toml").write_text(FILE)
    main(["tune", str(tmp_path / "tune.toml"), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "motor.velocity_kp" in said
    assert (tmp_path / "out" / "gains.toml").read_text().startswith("[nodes.motor]\nvelocity_kp = ")
    assert (tmp_path / "out" / "report.html").is_file()
    found = mime.Tuning.load(tmp_path / "out" / "tuning.json")
    assert found.figures[0].after[0] < found.figures[0].before[0]
    (tmp_path / "bad.toml").write_text(FILE.replace('"error"', '"eror"').replace("rounds", "round"))
    with pytest.raises(SystemExit):
        main(["tune", str(tmp_path / "bad.toml")])
    assert "unknown key" in capsys.readouterr().err
    (tmp_path / "bad.toml").write_text(FILE.replace('"error"', '"eror"'))
    with pytest.raises(SystemExit):
        main(["tune", str(tmp_path / "bad.toml")])
    assert "the scenario has no figure 'eror'" in capsys.readouterr().err
    for wrong, told in (
        (MORE.replace('"rms"', '"rmss"'), "bad.toml:12: goals[1].kind: no kind 'rmss'"),
        (MORE.replace("motor_torque", "torque"), "bad.toml:13: goals[1].field: rms of motor.torqu"),
        ('[limits]\n"motor.torque" = 0.1\n', 'bad.toml:11: limits."motor.torque": largest of'),
        ('[plants]\n"motor.inertia_kg_m2" = [2.0, 1.0]\n', "bad.toml:11: plants"),
    ):
        (tmp_path / "bad.toml").write_text(FILE + wrong)
        with pytest.raises(SystemExit):
            main(["tune", str(tmp_path / "bad.toml")])
        assert told in " ".join(capsys.readouterr().err.split()), wrong
    (tmp_path / "bad.toml").write_text(FILE.replace("weight = 1.0", "") + MORE)
    with pytest.raises(SystemExit):
        main(["tune", str(tmp_path / "bad.toml")])
    assert "no gains were found that keep all limits" in (said := capsys.readouterr().err)
    assert "wanted at most 1e-09 (kept in 0 of 1 plants)" in said
