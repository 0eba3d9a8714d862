"""95 % intervals hold the truth in 95 of 100 logs: Monte Carlo, all logs in one batch.

`make soak` takes the thousand logs that the bar of 93 to 97 % is meant for.
"""

import jax
import numpy as np
import pytest

import mime
from fitting.motors import COLUMNS, NOISE, TRUE, UNKNOWNS, bench, clean_motor, motor_log
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import experiment
from mime.fitting.log import Log
from mime.fitting.model import Model, first_fineness
from mime.fitting.solve import estimated_noise, first_noise, levenberg_marquardt, prior_of
from sizes import sized

SEEDS, ROWS = sized((1000, 401), small=(100, 151))


@pytest.fixture(scope="module")
def found():
    """z, half-widths and noise of every seed, by the steps that `mime.fit` takes for one log."""
    with jax.enable_x64(True):
        simulation = bench()
        one = experiment(simulation, Log(motor_log(rows=ROWS)), COLUMNS)
        unknowns = coordinates(simulation, UNKNOWNS, [one])
        model = Model(simulation, (one,), unknowns, first_fineness(simulation, [one]))
        _, _, clean = clean_motor(ROWS, late=(0.4, 1.0))
        draws = np.random.default_rng(2).normal(size=(SEEDS, ROWS, 2))
        readings = clean + NOISE * draws
        fields = model.fields
        rows = [sensor.positions.astype(int) for sensor in one.sensors]
        measured = {
            f: readings[:, at, i] for i, (f, at) in enumerate(zip(fields, rows, strict=True))
        }
        prior = prior_of(model)
        noise = {f: np.full(SEEDS, sigma) for f, sigma in first_noise(model).items()}
        truth = [*TRUE.values(), 0.4e-3, 1e-3]
        expected = np.array([c.z(value) for c, value in zip(unknowns, truth, strict=True)])
        z = np.tile(expected, (SEEDS, 1))  # where it starts is no matter: see the last test

        def normal(z):
            return model.programs.normal_of_many(z, measured, model.data)

        bare = {
            f: np.tile(clean[at, i], (SEEDS, 1))
            for i, (f, at) in enumerate(zip(fields, rows, strict=True))
        }
        squares = model.programs.normal_of_many(z, bare, model.data)
        exact = {f: np.sqrt(float(squares[f][0][0]) / len(rows[0])) for f in fields}
        for rounds in (12, 6):
            z, _, _ = levenberg_marquardt(normal, z, noise, prior, rounds)
            parts = normal(z)
            counts = {f: len(at) for f, at in zip(fields, rows, strict=True)}
            noise = estimated_noise(parts, counts, noise, prior, dict.fromkeys(fields, 0.0))
        total = np.diag(prior.width**-2.0) + sum(
            np.asarray(parts[f][2]) / noise[f][:, None, None] ** 2 for f in fields
        )
        half = 1.963 * np.sqrt(np.einsum("bii->bi", np.linalg.inv(total)))
        return z - expected, half, {f: noise[f] for f in fields}, exact


def test_every_interval_covers_the_truth_in_95_of_100_logs(found):
    error, half, _, _ = found
    covered = np.mean(np.abs(error) <= half, axis=0)
    allowed = 0.02 * np.sqrt(1000 / SEEDS)  # 2.9 deviations of a count, for each of the seven
    assert np.all(np.abs(covered - 0.95) <= allowed), covered


def test_the_spread_over_the_logs_is_the_one_that_is_told_and_nothing_is_biased(found):
    error, half, noise, _ = found
    told = np.mean(half, axis=0) / 1.963
    spread = np.std(error, axis=0)
    np.testing.assert_allclose(spread, told, rtol=4 / np.sqrt(2 * SEEDS))  # 4 sigma of a spread
    assert np.all(np.abs(np.mean(error, axis=0)) < 4 * spread / np.sqrt(SEEDS))
    for sigma, truth in zip(noise.values(), NOISE, strict=True):
        assert np.mean(sigma) == pytest.approx(truth, rel=0.15 / np.sqrt(SEEDS))


def test_readings_between_the_steps_are_exact(found):
    """0.4 rows late, against the matrix exponential: a polynomial of degree 4 and 4 steps a row."""
    *_, exact = found
    assert exact["motor.rotor_angular_velocity"] < 1e-7  # of 50 rad/s
    assert exact["motor.current"] < 1e-12  # one whole row late


@pytest.mark.soak("a thousand whole fits: four minutes; the batch above has the same logs at once")
def test_whole_fits_that_start_away_cover_the_truth_as_well():
    """`mime.fit` of each log, every start 1.5 times the truth: parts of the log, profiles and all.

    A current that is one whole row late has a minimum on either side of it, since volts jump there;
    which of the two a descent ends in is no matter to the coverage.
    """
    time, volts, clean = clean_motor(ROWS, late=(0.4, 1.0))
    draws = np.random.default_rng(2).normal(size=(SEEDS, ROWS, 2))
    truth = dict(zip(UNKNOWNS, TRUE.values(), strict=True))
    truth |= {f"{COLUMNS['speed']} delay": 0.4e-3, f"{COLUMNS['current']} delay": 1e-3}
    simulation, covered = bench(1.5), np.zeros(len(truth))
    for noise in NOISE * draws:
        speed, current = (clean + noise).T
        log = {"time": time, "volts": volts, "speed": speed, "current": current}
        fit = mime.fit(simulation, log, COLUMNS, UNKNOWNS, starts=1, progress=False)
        assert fit.is_explained
        covered += [fit[name].low <= value <= fit[name].high for name, value in truth.items()]
    assert np.all(np.abs(covered / SEEDS - 0.95) <= 0.02), covered / SEEDS
