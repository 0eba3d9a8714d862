"""Bounds of a fit by simulation: values on them, at zero, and intervals that end there."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import least_squares

import mime
from fitting.motors import NOISE, TRUE, bench, clean_motor, motor_matrices, sampled
from mime import Channel, Unknown
from mime.fitting.unknown import Coordinate

COLUMNS = {
    "volts": "motor.commanded_voltage",
    "speed": Channel("motor.rotor_angular_velocity", delay=0, noise=NOISE[0]),
    "current": Channel("motor.current", delay=0, noise=NOISE[1]),
}
INERTIA, DAMPING = "motor.inertia_kg_m2", "motor.damping_n_m_s"


def log(rows=301, seed=0, **parameters):
    time, volts, readings = clean_motor(rows, parameters={**TRUE, **parameters})
    readings = readings + NOISE * np.random.default_rng(seed).normal(size=readings.shape)
    return {"time": time, "volts": volts, "speed": readings[:, 0], "current": readings[:, 1]}


def fitted(table, unknowns, window="auto"):
    return mime.fit(bench(1.0), table, COLUMNS, unknowns, window=window, starts=2, progress=False)


@pytest.mark.parametrize("window", ["auto", 0.1])
def test_a_value_ends_on_its_bound_and_the_others_where_scipys_do(window):
    table, most = log(), 0.8 * TRUE["b"]
    unknowns = {INERTIA: None, DAMPING: Unknown(0.5 * TRUE["b"], between=(1e-6, most))}
    fit = fitted(table, unknowns, window)
    assert fit[DAMPING].kind == "bound"
    assert fit[DAMPING].value == pytest.approx(most, rel=1e-6)  # nearer is on it
    assert fit.kept[DAMPING] <= most * (1 + 1e-12)
    assert "at its bound, 0.00024 N·m·s/rad" in str(fit)
    if window != "auto":
        return

    def residuals(x):
        p = {**TRUE, "J": TRUE["J"] * np.exp(x[0]), "b": TRUE["b"] * np.exp(x[1])}
        y = sampled(*motor_matrices(**p), table["volts"], table["time"], table["time"])
        return ((y - np.stack([table["speed"], table["current"]], axis=1))[1:] / NOISE).ravel()

    ends = (-np.inf, np.log(0.8))
    low, high = np.transpose([(-1.0, 1.0), (-3.0, ends[1])])
    tight = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
    ended = least_squares(residuals, [0.0, -0.5], bounds=(low, high), **tight)
    assert ended.active_mask[1] == 1
    std = 1.0 / np.linalg.norm(ended.jac[:, 0])
    assert abs(np.log(fit[INERTIA].value / TRUE["J"]) - ended.x[0]) < 1e-3 * std


@pytest.mark.parametrize("window", ["auto", 0.1])
def test_friction_that_a_machine_has_not_is_at_its_bound(window):
    """Noise of this seed would have it below zero."""
    fit = fitted(log(seed=4, b=0.0), [INERTIA, DAMPING], window)
    assert fit[DAMPING].kind == "bound"
    assert fit[DAMPING].value == 0.0
    assert fit.kept[DAMPING] == 0.0
    assert float(fit.simulation.nodes["motor"].damping_n_m_s) == 0.0
    assert "at its bound, 0 N·m·s/rad" in str(fit)
    assert fit[INERTIA].low < TRUE["J"] < fit[INERTIA].high


def test_friction_near_zero_has_a_value_and_an_interval_that_contains_zero():
    """Beside SciPy, which looks for the damping itself, of either sign."""
    table = log(b=0.0)
    fit = fitted(table, [INERTIA, DAMPING])
    found = fit[DAMPING]
    assert found.kind == "known"
    assert found.low == 0.0

    def residuals(x):
        p = {**TRUE, "J": TRUE["J"] * np.exp(x[0]), "b": TRUE["b"] * x[1]}
        y = sampled(*motor_matrices(**p), table["volts"], table["time"], table["time"])
        return ((y - np.stack([table["speed"], table["current"]], axis=1))[1:] / NOISE).ravel()

    ended = least_squares(residuals, [0.0, 0.5], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    std = np.sqrt(np.linalg.inv(ended.jac.T @ ended.jac)[1, 1])
    # As far as two searches and SciPy's differences agree; 1.96 is Student's of 598 degrees.
    assert found.value / TRUE["b"] == pytest.approx(ended.x[1], abs=0.01 * std)
    assert found.high / TRUE["b"] == pytest.approx(ended.x[1] + 1.964 * std, rel=0.01)
    assert f"{found.value:.4g} N·m·s/rad, from 0 to {found.high:.2g}\n" in str(fit)


def test_what_is_open_towards_the_top_is_not_known():
    share = Coordinate(
        "motor.friction.external_load", "", "parameter", True, 0.1, 0.1, 0.0, np.inf, None, True,
        ("motor.friction.external_load",), True,
    )  # fmt: skip
    mass = dataclasses.replace(share, may_be_zero=False)
    z = np.log(0.0307)
    for low, high, narrow in (
        (0.0, 48.0, (False, False)),
        (0.0, np.inf, (False, False)),
        (0.0, 0.0614, (True, False)),
        (0.0, 0.2, (True, False)),  # half of it is the start, which is more than twice the value
        (0.0, 0.2001, (False, False)),
        (0.0307 / 2, 0.0614, (True, True)),
        (0.0307 / 2.1, 0.0614, (True, False)),
    ):
        ends = np.log(low) if low else -np.inf, np.log(high)
        assert tuple(c.is_narrow(z, *ends) for c in (share, mass)) == narrow, (low, high)


def test_what_no_row_feels_is_not_taken_for_zero():
    table = {**log(), "volts": np.zeros(301)}
    table["speed"], table["current"] = NOISE[:, None] * np.random.default_rng(1).normal(
        size=(2, 301)
    )
    fit = fitted(table, [INERTIA, DAMPING])
    assert {e.kind for e in fit.estimates} <= {"unknown", "combination"}


def test_intervals_end_at_bounds():
    table = log()
    free = fitted(table, [INERTIA, DAMPING])[DAMPING]
    ends = free.value - 0.3 * (free.value - free.low), free.value + 0.5 * (free.high - free.value)
    fit = fitted(table, {INERTIA: None, DAMPING: Unknown(free.value, between=ends)})
    assert fit[DAMPING].kind == "known"
    # The value is that of the free fit, and both ends are nearer than its own.
    assert fit[DAMPING].low == pytest.approx(ends[0], rel=1e-9)
    assert fit[DAMPING].high == pytest.approx(ends[1], rel=1e-9)
