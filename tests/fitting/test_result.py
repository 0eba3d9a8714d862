"""Several logs, starts that are not known, sensors with offsets; and what a fit gives to people."""

import dataclasses
import re

import numpy as np
import pytest

import mime
from fitting.motors import (
    COLUMNS,
    NOISE,
    PERIOD,
    TRUE,
    UNKNOWNS,
    bench,
    motor_log,
    motor_matrices,
    sampled,
    volts_of,
)

TRUTH = dict(zip(UNKNOWNS, TRUE.values(), strict=True))
SPEED_OFFSET, CURRENT_GAIN = 4.0, 1.08


def running_log(seed, rows=301):
    """The motor already turns at 50 rad/s, and both sensors are out of tune."""
    time = 10.0 + PERIOD * np.arange(rows)
    volts = volts_of(7 * (time - 10.0))
    states = sampled(*motor_matrices(**TRUE), volts, time, time, x0=[50.0, 0.5])
    noise = NOISE * np.random.default_rng(seed).normal(size=states.shape)
    return {
        "time": time,
        "volts": volts,
        "speed": states[:, 0] + SPEED_OFFSET + noise[:, 0],
        "current": CURRENT_GAIN * states[:, 1] + noise[:, 1],
    }


@pytest.fixture(scope="module")
def fit():
    start = {
        "motor.angular_velocity": mime.Unknown(start=30.0),
        "motor.current": mime.Unknown(start=0.0),
    }
    logs = [
        mime.Log(running_log(1), name="first", initial=start),
        mime.Log(running_log(2), name="second", initial=start),
        mime.Log(running_log(3), name="third", initial=start, held_out=True),
    ]
    columns = {
        "volts": COLUMNS["volts"],
        "speed": mime.Channel(COLUMNS["speed"], delay=0, offset=True),
        "current": mime.Channel(COLUMNS["current"], delay=0, gain=True, noise=NOISE[1]),
    }
    # Whatever scales the current scales R and L down, J and b up: one of them must be known.
    inertia = mime.Unknown(TRUE["J"], std=1e-3 * TRUE["J"])
    unknowns = {name: inertia if "inertia" in name else None for name in UNKNOWNS}
    return mime.fit(bench(1.3), logs, columns, unknowns, starts=1, progress=False)


def test_states_at_the_start_offsets_and_gains_are_found(fit):
    truth = {
        **TRUTH,
        "first: motor.angular_velocity at the start": 50.0,
        "second: motor.current at the start": 0.5,
        "motor.rotor_angular_velocity offset": SPEED_OFFSET,
        "motor.current gain": CURRENT_GAIN,
    }
    for name, value in truth.items():
        estimate = fit[name]
        assert estimate.is_known, name
        assert abs(estimate.value - value) < 0.8 * (estimate.high - estimate.low), name
    assert fit.noise["motor.current"] == (NOISE[1], "A")  # as was said


def test_the_log_held_out_is_explained_at_its_noise(fit):
    assert [check.log for check in fit.held_out] == ["third", "third"]
    for check in fit.held_out:
        assert check.over_noise == pytest.approx(1.0, abs=0.12)
        assert check.is_explained
    assert fit.is_explained


def test_the_simulation_has_what_was_found(fit):
    motor = fit.simulation.nodes["motor"]
    assert float(motor.r_ohm) == pytest.approx(fit["motor.r_ohm"].value, rel=1e-6)
    assert fit.parameters["motor.l_henry"] == fit["motor.l_henry"].value


def test_the_covariance_is_that_of_the_intervals(fit):
    names = fit.known
    assert fit.covariance.shape == (len(names), len(names))
    at = names.index("motor.r_ohm")
    half = 0.5 * (fit["motor.r_ohm"].high - fit["motor.r_ohm"].low)
    assert np.sqrt(fit.covariance[at, at]) == pytest.approx(half / 1.962, rel=0.01)


def test_a_saved_fit_is_the_same(fit, tmp_path):
    fit.save(tmp_path / "fit.json")
    loaded = mime.Fit.load(tmp_path / "fit.json")
    assert str(loaded) == str(fit)
    assert loaded.estimates == fit.estimates
    np.testing.assert_array_equal(loaded.covariance, fit.covariance)
    with pytest.raises(mime.FitError, match="has no model"):
        _ = loaded.simulation
    again = mime.Fit.load(tmp_path / "fit.json", fit.model).simulation
    assert float(again.nodes["motor"].r_ohm) == float(fit.simulation.nodes["motor"].r_ohm)
    (tmp_path / "fit.json").write_text('{"format": "another"}', encoding="utf-8")
    with pytest.raises(mime.FitError, match="not a fit"):
        mime.Fit.load(tmp_path / "fit.json")


def test_the_page_and_the_picture_show_every_sensor_and_what_is_not_explained(fit):
    assert len(fit.plot().axes) == 2 * len(fit.traces) == 12
    short = dataclasses.replace(fit, traces=fit.traces[:1])  # pictures take their time
    page = short.report()
    assert page.startswith("<!doctype html>")
    assert "motor.l_henry" in page
    assert "data:image/png;base64," in page
    bad = dataclasses.replace(fit.checks[0], is_explained=False, seen=("a line at 11.8 Hz",))
    unexplained = dataclasses.replace(short, checks=(bad, *fit.checks[1:]))
    page = unexplained.report()
    assert "11.8 Hz" in page
    assert "Ω" in page  # and its values
    part = unexplained.explained["motor.rotor_angular_velocity"]
    assert not part.is_explained
    assert part.kinds == ("a line at 11.8 Hz",)
    assert str(unexplained).startswith(f"The model leaves {part.percent:.2g} % of motor.rotor_ang")
    with pytest.warns(mime.FitWarning, match="of motor.rotor_angular_velocity unexplained"):
        assert unexplained.parameters["motor.r_ohm"] == fit["motor.r_ohm"].value
    with pytest.warns(mime.FitWarning, match="unexplained"):
        assert float(unexplained.simulation.nodes["motor"].r_ohm) == pytest.approx(1.3, rel=0.01)


def test_an_unknown_that_it_has_not_is_answered_with_the_nearest(fit):
    with pytest.raises(KeyError, match=r"did you mean 'motor.r_ohm'"):
        _ = fit["motor.r_ohms"]


def test_a_bound_that_is_reached_is_told():
    unknowns = {"motor.r_ohm": mime.Unknown(1.6, between=(1.5, 2.0))}
    columns = {**COLUMNS, "speed": mime.Channel(COLUMNS["speed"], delay=0)}
    columns["current"] = mime.Channel(COLUMNS["current"], delay=0)
    fit = mime.fit(bench(1.0), motor_log(rows=301), columns, unknowns, starts=1, progress=False)
    assert fit["motor.r_ohm"].kind == "bound"
    assert not fit.is_explained  # the truth is beyond it


def test_a_log_ten_times_too_large_is_refused_by_its_column():
    log = motor_log(rows=301)
    log["speed"] = log["speed"] * 30 / np.pi  # rpm, and nobody said so
    told = r":(\d+): column 'speed' is (-?\d+) rad/s here, .* is 9\.55 times .*than rad/s\?"
    with pytest.raises(mime.LogError, match=told) as refused:
        mime.fit(bench(1.0), log, COLUMNS, UNKNOWNS, progress=False)
    assert abs(log["speed"][refused.value.row]) == np.abs(log["speed"]).max()


def test_a_log_of_the_other_sign_is_refused_and_told():
    log = motor_log(rows=301)
    log["speed"] = -log["speed"]
    fit = mime.fit(bench(1.0), log, COLUMNS, UNKNOWNS, starts=1, progress=False)
    assert not fit.is_explained
    assert re.search(r"goes against the model \(correlation -1.*column 'speed', or of", str(fit))


def test_rows_that_jitter_and_a_step_of_first_order_do_not_move_the_values():
    """Semi-implicit Euler at the log's own rate would put its error into L: steps get finer."""
    time = PERIOD * np.arange(301)
    time[1:-1] += 3e-4 * np.random.default_rng(4).uniform(-1, 1, 299)
    columns = {**COLUMNS, "speed": mime.Channel(COLUMNS["speed"], delay=0)}
    columns["current"] = mime.Channel(COLUMNS["current"], delay=0)
    model = bench(1.2, integrator="semi_implicit")
    fit = mime.fit(model, motor_log(time=time), columns, UNKNOWNS, starts=1, progress=False)
    assert fit.timestep < 1e-4
    assert fit.step_error < 0.03
    for name in UNKNOWNS:
        assert abs(fit[name].value - TRUTH[name]) < 0.8 * (fit[name].high - fit[name].low), name
