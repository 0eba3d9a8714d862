"""95 % intervals of motors with effects that are not linear hold the truth in 95 of 100 logs.

As `test_friction_coverage.py`, with other effects than Coulomb friction. The logs are SciPy's, from
event to event, with white noise.
"""

import numpy as np
import pytest

from fitting.covered import check_bars, check_width, covered, least_widths
from fitting.event_motor import EventBacklash, EventMotor
from fitting.test_dry_friction import COLUMNS, NOISE, PERIOD, TAU_C, TRUE, bench
from mime import Channel, Coulomb, ElasticJointNode, GraphManager, Limits, Stribeck
from sizes import sized

VOLTS = np.repeat((4.0, 0.0, -9.0, -1.5, 9.0, 0.0), 50)
STRIBECK = {"coulomb_torque_n_m": 6e-4, "static_torque_n_m": 1.2e-3, "velocity_rad_per_s": 25.0}
KNOWN_DELAYS = {
    name: field if name == "volts" else Channel(field, delay=0) for name, field in COLUMNS.items()
}


def stribeck(w):
    tau_c, tau_s, w_s = STRIBECK.values()
    return tau_c + (tau_s - tau_c) * np.exp(-((w / w_s) ** 2))


def noisy(volts, angle, current, seed):
    random = np.random.default_rng(seed)
    noise = random.normal(size=(2, len(volts)))
    return {
        "time": PERIOD * np.arange(len(volts)),
        "volts": volts,
        "angle": angle + NOISE["angle"] * noise[0],
        "current": current + NOISE["current"] * noise[1],
    }


def coulomb(w):
    return TAU_C


CASES = {
    "Stribeck": (stribeck, Stribeck, STRIBECK, None, 300),
    "current limit": (coulomb, Coulomb, {"torque_n_m": TAU_C}, 1.5, 300),
    "both": (stribeck, Stribeck, STRIBECK, 1.5, 100),
}
"""Friction of the reference and of the model, its values, the largest current, and how many logs
`make soak` takes: most intervals of the last case are profiles.
"""


@pytest.mark.slow
@pytest.mark.small("Stribeck", "current limit")
@pytest.mark.parametrize("case", CASES)
def test_intervals_of_a_motor_with_effects_cover_the_truth(case):
    friction, kind, values, i_max, count = CASES[case]
    machine = EventMotor(*list(TRUE.values())[:5], friction, i_max or np.inf)
    angle, current = machine.log(VOLTS, PERIOD)
    assert machine.changes["stop"] >= 3
    assert machine.changes["breakaway"] >= 2
    assert i_max is None or min(machine.changes["limit"], machine.changes["release"]) >= 5
    logs = [noisy(VOLTS, angle, current, seed) for seed in range(sized(count, small=20))]
    unknowns = {f"motor.{name}": value for name, value in TRUE.items()}
    unknowns |= {f"motor.friction.{name}": value for name, value in values.items()}
    if i_max is not None:
        unknowns["motor.limits.current_a"] = i_max

    def motor(wrong):
        limits = None if i_max is None else Limits(current_a=wrong * i_max)
        return bench(wrong, friction=kind(*(wrong * x for x in values.values())), limits=limits)

    inside, relative = covered(case, motor(1.03), KNOWN_DELAYS, unknowns, logs)
    assert np.isfinite(inside).mean() > 0.9  # nearly all have a value
    check_bars(inside)
    check_width(relative, least_widths(motor(1.0), logs[0], KNOWN_DELAYS, unknowns, NOISE))


@pytest.mark.slow
def test_intervals_of_a_joint_with_backlash_cover_the_truth():
    machine, period, sigma = EventBacklash(0.02, 0.05, 60.0, 0.15, 0.01), 2e-3, 2e-4
    time = period * np.arange(301)
    torque = 0.4 * np.sign(np.sin(40.0 * time + 6.0 * np.sin(5.0 * time)))
    clean = dict(zip(("rotor", "load"), machine.log(torque, period), strict=True))
    assert machine.changes >= 10  # through the slack and against its ends
    logs = []
    for seed in range(sized(1000, small=30)):
        random = np.random.default_rng(seed)
        noise = {name: random.normal(0.0, sigma, len(time)) for name in clean}
        noisy = {name: values + noise[name] for name, values in clean.items()}
        logs.append({"time": time, "torque": torque, **noisy})
    values = {
        "rotor_inertia_kg_m2": machine.rotor,
        "output_inertia_kg_m2": machine.output,
        "stiffness_n_m_per_rad": machine.stiffness,
        "damping_n_m_s": machine.damping,
        "backlash_rad": machine.backlash,
    }
    columns = {
        "torque": "joint.motor_torque",
        "rotor": Channel("joint.rotor_angle", delay=0),
        "load": Channel("joint.output_angle", delay=0),
    }

    def joint(wrong):
        graph = GraphManager()
        own = {name: wrong * value for name, value in values.items()}
        graph.add_node(ElasticJointNode("joint", period / 4, **own, integrator="implicit"))
        graph.add_external_input("joint", "motor_torque")
        return graph.compile()

    unknowns = {f"joint.{name}": value for name, value in values.items()}
    inside, relative = covered("backlash", joint(1.03), columns, unknowns, logs)
    assert np.isfinite(inside).mean() > 0.9  # nearly all have a value
    check_bars(inside)
    least = least_widths(joint(1.0), logs[0], columns, unknowns, dict.fromkeys(clean, sigma))
    check_width(relative, least)
