"""95 % intervals of motors with effects that are not linear hold the truth in 95 of 100 logs.

As `test_friction_coverage.py`, with other effects than Coulomb friction. The logs are SciPy's, from
event to event, with white noise.
"""

import numpy as np
import pytest

from fitting.covered import check_bars, check_width, covered, least_widths
from fitting.event_motor import EventMotor
from fitting.test_dry_friction import COLUMNS, NOISE, PERIOD, TRUE, bench
from mime import Channel, Stribeck
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


@pytest.mark.slow
def test_intervals_of_a_motor_with_stribeck_friction_cover_the_truth():
    machine = EventMotor(*list(TRUE.values())[:5], stribeck)
    angle, current = machine.log(VOLTS, PERIOD)
    assert machine.changes["stop"] >= 3
    assert machine.changes["breakaway"] >= 2
    logs = [noisy(VOLTS, angle, current, seed) for seed in range(sized(300, small=20))]
    unknowns = {f"motor.{name}": value for name, value in TRUE.items()}
    unknowns |= {f"motor.friction.{name}": value for name, value in STRIBECK.items()}

    def motor(wrong):
        return bench(wrong, friction=Stribeck(*(wrong * x for x in STRIBECK.values())))

    inside, relative = covered("Stribeck", motor(1.03), KNOWN_DELAYS, unknowns, logs)
    assert np.isfinite(inside).mean() > 0.9  # nearly all have a value
    check_bars(inside)
    check_width(relative, least_widths(motor(1.0), logs[0], KNOWN_DELAYS, unknowns, NOISE))
