"""The best members of a study: against closed forms, SciPy, Optuna's own front and full grids; and
each member that is asked for is run once.
"""

import numpy as np
import pytest

import mime
from mime.studies.experiment import Experiment

J, LOAD, TORQUE, END = 1e-4, 4e-2, 0.02, 0.02
"""Inertias of rotor and load, torque of the motor, end of the run."""
DRIVE = f"""
[simulation]
duration = {END}
timestep = 1e-3

[nodes.motor]
type = "MotorNode"
inertia_kg_m2 = {J}
kt_n_m_per_a = 0.05
r_ohm = 1.0
l_henry = 1e-3
damping_n_m_s = 0.0
command_mode = "torque"
gear = {{ratio = 5.0, output_inertia_kg_m2 = {LOAD}}}

[inputs."motor.commanded_torque"]
kind = "constant"
value = {TORQUE}

[[figures_of_merit]]
name = "speed"
kind = "final"
field = "motor.output_angular_velocity"

[[figures_of_merit]]
name = "rotor speed"
kind = "max"
field = "motor.rotor_angular_velocity"
unit = "rpm"
"""
STUDY = """
title = "Gear"
scenario = "drive.toml"

[vary]
"motor.gear.ratio" = {{loguniform = [1.0, 400.0]}}

[optimise]
maximise = "speed"
{more}
"""


def write(folder, more="", study=STUDY):
    (folder / "drive.toml").write_text(DRIVE)
    file = folder / "study.toml"
    file.write_text(study.format(more=more))
    return file


@pytest.fixture
def runs(monkeypatch):
    """How many members each run had."""
    found, plain = [], Experiment.run

    def counted(self, columns, threads=None):
        found.append(len(next(iter(columns.values()))))
        return plain(self, columns, threads)

    monkeypatch.setattr(Experiment, "run", counted)
    return found


def test_gradients_find_the_gear_of_the_fastest_start(tmp_path, runs):
    """w = n tau t / (Jo + n² J) is largest at n = sqrt(Jo / J)."""
    file = write(tmp_path)
    found = mime.optimise_study(file, out=tmp_path / "store", progress=False)
    # A relative error of 1e-9 in w, where descents stop, is one of about 3e-5 in n.
    np.testing.assert_allclose(found.parameters()["motor.gear.ratio"], np.sqrt(LOAD / J), rtol=1e-4)
    assert sum(runs) == found.computed == found.study.size < 150
    assert found.front == (found.best,)
    assert "8 starts by gradients, all arrived" in repr(found)
    assert "20" in repr(found)
    simulation = found.simulation()
    assert simulation.nodes["motor"].gear.ratio == found.parameters()["motor.gear.ratio"]
    end = simulation.run(END, {"motor": {"commanded_torque": TORQUE}}, progress=False)
    speed = end["motor"]["output_angular_velocity"][-1]
    np.testing.assert_allclose(found.figures()["speed"], speed, rtol=1e-14)
    again = mime.optimise_study(file, out=tmp_path / "store", progress=False)
    assert (again.computed, again.reused, again.best) == (0, found.study.size, found.best)
    assert sum(runs) == found.computed


def test_a_limit_that_presses_is_kept_and_met(tmp_path):
    """The rotor's speed n w is below a limit: n² = Jo w_max / (tau t - J w_max)."""
    most = 1.5  # rad/s; at n = 20 it would be 2
    limit = most * 30 / np.pi
    file = write(tmp_path, f'constraints = ["rotor speed <= {limit!r}"]\nstarts = 4')
    found = mime.optimise_study(file, progress=False)
    closed = np.sqrt(LOAD * most / (TORQUE * END - J * most))
    # The optimiser aims 1e-4 inside of a limit and may miss that by as much.
    figures = found.figures()
    assert limit * (1 - 2.5e-4) < figures["rotor speed"] <= limit
    np.testing.assert_allclose(found.parameters()["motor.gear.ratio"], closed, rtol=5e-4)
    assert found.feasible[found.best]
    assert "slack" in repr(found)


VOLTAGE = """
title = "Voltage"
scenario = "drive.toml"
set = ["motor.command_mode=voltage", "motor.damping_n_m_s=1e-4", "simulation.duration=0.2"]
constraints = ["motor.gear.ratio * motor.kt_n_m_per_a <= 1.0"]
{more}

[vary]
"motor.gear.ratio" = {{loguniform = [1.0, 100.0]}}
"motor.kt_n_m_per_a" = {{uniform = [0.01, 0.1]}}
"motor.l_henry" = {{equals = "1e-3 * motor.kt_n_m_per_a"}}
"""
