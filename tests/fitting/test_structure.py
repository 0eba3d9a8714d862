"""The table of docs/what_sensors_tell.md is what the Jacobians of the simulator say."""

from pathlib import Path

import jax
import numpy as np

import mime
from fitting.motors import COLUMNS, UNKNOWNS, bench, motor_log
from mime.fitting.combinations import combinations
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import experiment
from mime.fitting.log import Log
from mime.fitting.model import Model, first_fineness
from mime.fitting.rank import rank_of
from mime.fitting.solve import prior_of
from mime.fitting.unknown import WIDEST_LOG

PAGE = Path(__file__).parents[2] / "docs" / "what_sensors_tell.md"
SYMBOLS = dict(zip(UNKNOWNS, ("R", "L", "kt", "J", "b"), strict=True)) | {
    "joint.rotor_inertia_kg_m2": "J",
    "joint.output_inertia_kg_m2": "I",
    "joint.stiffness_n_m_per_rad": "k",
    "joint.damping_n_m_s": "v",
}
MOTOR = {
    "speed": "motor.rotor_angular_velocity",
    "angle": "motor.rotor_angle",
    "current": "motor.current",
}
JOINT = {"rotor angle": "joint.rotor_angle", "output angle": "joint.output_angle"}


def table(heading):
    """The rows of the page's table under a heading: sensors, rank, known, known together."""
    text = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip(" –") for cell in row] for row in rows[2:]]


def told(simulation, log, columns, unknowns):
    """A function: of some fields, the rank, what is known and what is known together."""
    with jax.enable_x64(True):
        one = experiment(simulation, Log(log), columns)
        found = coordinates(simulation, unknowns, [one])
        model = Model(simulation, (one,), found, first_fineness(simulation, [one]))
        z = prior_of(model).centre
        _, jacobian = model.programs.linearised(z, model.data)

    def of(fields):
        spread = {f: 1e-6 * np.std(s.measured) for s in one.sensors for f in [s.field]}
        J = np.concatenate([np.asarray(jacobian[f]) / spread[f] for f in fields])
        rank = rank_of(J, np.full(len(z), WIDEST_LOG), np.zeros(len(z), bool), 1.96)
        with jax.enable_x64(True):
            together = combinations(simulation, found, z, rank)
        known = [SYMBOLS[c.name] for c, k in zip(found, rank.kinds(), strict=True) if k == "known"]
        assert not any(c.is_local for c in together)
        return f"{rank.count} of {len(z)}", ", ".join(known), ", ".join(c.name for c in together)

    return of


def test_what_sensors_of_a_motor_tell():
    log = motor_log(rows=101)
    log["angle"] = np.cumsum(log["speed"]) * 1e-3
    columns = {name: mime.Channel(field, delay=0) for name, field in MOTOR.items()}
    columns["volts"] = COLUMNS["volts"]
    check(told(bench(1.0), log, columns, UNKNOWNS), MOTOR, "A motor, its voltage known")


def test_what_encoders_of_an_elastic_joint_tell():
    graph = mime.GraphManager()
    values = {"rotor_inertia_kg_m2": 0.02, "output_inertia_kg_m2": 0.05}
    spring = {"stiffness_n_m_per_rad": 60.0, "damping_n_m_s": 0.15}
    graph.add_node(mime.ElasticJointNode("joint", 2e-3, **values, **spring))
    graph.add_external_input("joint", "motor_torque")
    time = 2e-3 * np.arange(201)
    log = {"time": time, "torque": np.sign(np.sin(40 * time)), "x": time, "y": time}
    columns = {"torque": "joint.motor_torque"}
    columns |= {k: mime.Channel(f, delay=0) for k, f in zip("xy", JOINT.values(), strict=True)}
    names = [f"joint.{name}" for name in {**values, **spring}]
    of = told(graph.compile(), log, columns, names)
    check(of, JOINT, "An elastic joint, its torque known")


def check(of, sensors, heading):
    rows = table(heading)
    assert len(rows) >= 3
    for logged, *expected in rows:
        fields = [sensors[name] for name in logged.split(" + ")]
        assert list(of(fields)) == expected, logged
