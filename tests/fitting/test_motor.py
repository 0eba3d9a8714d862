"""A motor's parameters from logs that MIME did not make: right, or not told."""

import re

import numpy as np
import pytest
from scipy.optimize import least_squares

import mime
from fitting.motors import (
    COLUMNS,
    NAMES,
    NOISE,
    TRUE,
    UNKNOWNS,
    bench,
    clean_motor,
    motor_log,
    motor_matrices,
    sampled,
    sticking_motor_log,
)
from sizes import sized

TRUTH = dict(zip(UNKNOWNS, TRUE.values(), strict=True))
SPEED = {name: field for name, field in COLUMNS.items() if name != "current"}


@pytest.fixture(scope="module")
def simulation():
    return bench()


@pytest.fixture(scope="module")
def full(simulation):
    return mime.fit(simulation, motor_log(), COLUMNS, UNKNOWNS, progress=False)


def deviations(fit, truth):
    """How many half-widths of its 95 % interval a value is off."""
    return {
        name: abs(fit[name].value - value) / (0.5 * (fit[name].high - fit[name].low))
        for name, value in truth.items()
    }


def test_volts_speed_and_current_tell_all_five(full):
    assert full.rank == 5
    assert full.known == [*UNKNOWNS, "motor.rotor_angular_velocity delay", "motor.current delay"]
    assert max(deviations(full, TRUTH).values()) < 1.6  # 7 of 7 intervals within 3 sigma
    for name in UNKNOWNS:
        assert full[name].high / full[name].low < 1.03
    assert full.noise["motor.rotor_angular_velocity"][0] == pytest.approx(0.5, rel=0.08)
    assert full.noise["motor.current"][0] == pytest.approx(0.05, rel=0.08)
    assert full.step_error < 1e-6  # exact but for readings between the steps
    assert full.starts == (8, 8)


def test_a_fit_that_is_interrupted_ends_with_its_best_start_and_says_so(simulation, full):
    def stop(done, of):
        if done == 3:
            raise KeyboardInterrupt

    fit = mime.fit(simulation, motor_log(), COLUMNS, UNKNOWNS, progress=stop)
    assert not fit.is_complete
    assert fit.simulations < full.simulations
    for name in UNKNOWNS:
        assert fit[name].value == pytest.approx(full[name].value, rel=1e-6)
    assert "interrupted: the best of the starts until then, brought to its minimum" in str(fit)


def test_the_minimum_and_the_intervals_are_those_of_scipy_on_another_motor(full):
    """The same log; a matrix exponential for a simulator, difference quotients for a gradient."""
    log = motor_log()
    sigma = np.array([noise for noise, _ in full.noise.values()])
    measured = np.stack([log["speed"], log["current"]], axis=1)

    def residuals(z):
        parameters = dict(zip(TRUE, np.exp(z[:5]), strict=True))
        made = clean_motor(late=z[5:], parameters=parameters)[2]
        return ((made - measured) / sigma)[4:-3].ravel()  # the rows that a fit uses

    start = np.append(np.log(list(TRUE.values())), [0.02, 0.02])
    other = least_squares(residuals, start, jac="2-point", xtol=1e-9, ftol=1e-9)
    spread = np.sqrt(np.diag(np.linalg.inv(other.jac.T @ other.jac)))
    names = full.known
    ours = [np.log(full[n].value) if n in UNKNOWNS else 1e3 * full[n].value for n in names]
    # The weak anchor (width 100), and what is left of a difference quotient across a row.
    assert np.all(np.abs(ours - other.x) < 0.01 * spread)
    ends = [(full[n].low, full[n].high) for n in names]
    half = [0.5 * np.log(b / a) for a, b in ends[:5]] + [500 * (b - a) for a, b in ends[5:]]
    linear = [full[n].interval == "linear" for n in names]
    assert linear == [True] * 6 + [False]  # a delay of about none: another slope on either side
    np.testing.assert_allclose(np.array(half)[linear], 1.961 * spread[linear], rtol=0.01)


def test_volts_and_speed_tell_three_combinations_and_no_value(simulation, full):
    fit = mime.fit(simulation, motor_log(), SPEED, UNKNOWNS, starts=1, progress=False)
    assert fit.rank == 3
    assert "rank 3 of 5" in str(fit)
    assert [fit[name].kind for name in UNKNOWNS] == ["combination"] * 5
    assert all(fit[name].value is None for name in UNKNOWNS)
    assert fit.parameters == {}
    told = str(fit)
    for name in NAMES:
        line = next(line for line in told.splitlines() if name in line)
        assert re.search(r"\d", line.replace(name, "")) is None, line
    R, L, K, J, b = TRUE.values()
    truth = {
        "kt/(J L)": K / (J * L),
        "(R J + L b)/(J L)": (R * J + L * b) / (J * L),
        "(R b + kt²)/(J L)": (R * b + K**2) / (J * L),
    }
    assert [c.name for c in fit.combinations] == list(truth)
    for found in fit.combinations:
        assert not found.is_local
        assert abs(np.log(found.value / truth[found.name])) < 0.8 * np.log(found.high / found.low)
    # What the current would tell is what it does, but for its noise: 3.5 % of it, not 0.9 %.
    assert fit.advice.field == "motor.current"
    for name, half in fit.advice.known:
        assert 0.25 < half / (0.5 * np.log(full[name].high / full[name].low)) < 1.2, name
    assert [name for name, _ in fit.advice.known] == UNKNOWNS
    # A simulation keeps the prior where the log is silent, and gives the log all the same.
    values = {name: float(getattr(fit.simulation.nodes["motor"], name)) for name in NAMES}
    got = values["kt_n_m_per_a"] / (values["inertia_kg_m2"] * values["l_henry"])
    assert got == pytest.approx(fit.combinations[0].value, rel=1e-4)
    assert fit.not_known == UNKNOWNS


def test_another_input_tells_what_was_foretold_of_it(simulation, full):
    """The chirp that a fit proposes, run and fitted: the interval is as it says."""
    assert full.other_input.shape == "a chirp from 1 to 1e+02 Hz"
    ((name, half),) = full.other_input.known
    assert name == "motor.l_henry"
    assert half < 0.5 * 0.5 * np.log(full[name].high / full[name].low)
    rows = 1001
    part, time = np.arange(rows) / (rows - 1), 1e-3 * np.arange(rows)
    cycles = 0.1 * (rows - 1)
    volts = 1.5 + 4.5 * np.sin(2 * np.pi * (part + 0.5 * (cycles - 1.0) * part**2))
    clean = sampled(*motor_matrices(**TRUE), volts, time, time, 5e-4)  # no row ends at a jump
    noisy = clean + NOISE * np.random.default_rng(8).normal(size=clean.shape)
    log = {"time": time, "volts": volts, "speed": noisy[:, 0], "current": noisy[:, 1]}
    fit = mime.fit(simulation, log, COLUMNS, UNKNOWNS, starts=1, progress=False)
    assert 0.5 * np.log(fit[name].high / fit[name].low) == pytest.approx(half, rel=0.25)
    assert max(deviations(fit, TRUTH).values()) < 1.6


def test_without_a_prior_there_is_no_simulation(simulation):
    guesses = {name: mime.Unknown(prior=False) for name in UNKNOWNS}
    fit = mime.fit(simulation, motor_log(), SPEED, guesses, starts=1, progress=False)
    with pytest.raises(mime.FitError, match=r"without a prior: motor.r_ohm, motor.l_henry"):
        _ = fit.simulation


@pytest.mark.parametrize("late", [(1.0, 1.0), (0.4, 0.4), (-1.0, 0.0)])
def test_a_late_clock_is_found_to_a_tenth_of_a_row_and_changes_nothing_else(simulation, full, late):
    fit = mime.fit(simulation, motor_log(late=late), COLUMNS, UNKNOWNS, starts=1, progress=False)
    for field, rows in zip(("rotor_angular_velocity", "current"), late, strict=True):
        assert fit[f"motor.{field} delay"].value == pytest.approx(1e-3 * rows, abs=1e-4)
    assert max(deviations(fit, TRUTH).values()) < 1.6
    for name in UNKNOWNS:  # the noise is the same, its rows are not
        assert fit[name].value == pytest.approx(full[name].value, rel=0.02)


def test_three_of_five_with_a_late_clock_and_two_known_beforehand(simulation):
    """Where a fit without a delay says R +17 % ± 2 % and b -80 %."""
    known = {"motor.l_henry": TRUE["L"], "motor.inertia_kg_m2": TRUE["J"]}
    priors = {n: mime.Unknown(known[n], std=1e-4 * known[n]) for n in known}
    unknowns = {n: priors.get(n, mime.Unknown()) for n in UNKNOWNS}
    fit = mime.fit(
        simulation, motor_log(late=(1.0, 0.0)), SPEED, unknowns, starts=1, progress=False
    )
    assert fit.rank == 5
    assert max(deviations(fit, TRUTH).values()) < 1.6
    assert fit["motor.r_ohm"].high / fit["motor.r_ohm"].low < 1.2
    # To 0.1 row it would take the current: here the log itself leaves 0.1 row of deviation.
    delay = fit["motor.rotor_angular_velocity delay"]
    assert abs(delay.value - 1e-3) < 0.75 * (delay.high - delay.low) < 4e-4


def test_a_model_without_the_friction_of_the_log_has_values_wider_intervals_and_the_reason(
    simulation,
):
    log = sticking_motor_log()
    fit = mime.fit(simulation, log, COLUMNS, UNKNOWNS, starts=1, progress=False)
    assert not fit.is_explained
    told = str(fit)
    assert told.startswith("The model leaves ")
    assert "unexplained; intervals are widened" in told.splitlines()[0]
    assert "low speed" in told
    assert fit["motor.r_ohm"].interval == "windows"
    assert fit["motor.r_ohm"].low < TRUE["R"] < fit["motor.r_ohm"].high
    part = fit.explained["motor.rotor_angular_velocity"]
    assert (part.is_explained, part.percent > 1.0, part.patterned > 0.5) == (False, True, True)
    with pytest.warns(mime.FitWarning, match="The model leaves .* unexplained"):
        motor = fit.simulation.nodes["motor"]
    assert float(motor.r_ohm) == pytest.approx(fit["motor.r_ohm"].value, rel=1e-6)
    with pytest.raises(mime.FitError, match=r"the fit is strict\.\nThe model leaves"):
        mime.fit(simulation, log, COLUMNS, UNKNOWNS, starts=1, strict=True, progress=False)


def test_with_dry_friction_in_the_model_the_same_log_tells_how_much():
    """What the refusal above asks for; the log's own steps are explicit, of 10 microseconds."""
    model = bench(1.3, integrator="semi_implicit", friction=mime.Coulomb(0.03))
    columns = {name: mime.Channel(field, delay=0) for name, field in COLUMNS.items()}
    truth = {**TRUTH, "motor.friction.torque_n_m": 0.02}
    log = sticking_motor_log(rows=sized(1001, small=301))
    fit = mime.fit(model, log, columns, list(truth), starts=1, progress=False)
    assert fit.is_explained
    assert fit.rank == 6
    assert max(deviations(fit, truth).values()) < 1.6
    assert fit["motor.friction.torque_n_m"].high / fit["motor.friction.torque_n_m"].low < 1.08
