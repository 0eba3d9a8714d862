"""95 % intervals hold the truth in 95 of 100 logs: Monte Carlo, all logs in one batch."""

import jax
import numpy as np
import pytest

from fitting.motors import COLUMNS, NOISE, TRUE, UNKNOWNS, bench, clean_motor, motor_log
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import experiment
from mime.fitting.log import Log
from mime.fitting.model import Model, first_fineness
from mime.fitting.solve import estimated_noise, first_noise, levenberg_marquardt, prior_of

SEEDS, ROWS = 1000, 401


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
        rows = [sensor.positions.astype(int) for sensor in one.sensors]
        measured = [[readings[:, at, i] for i, at in enumerate(rows)]]
        prior, fields = prior_of(model), model.fields
        noise = {f: np.full(SEEDS, sigma) for f, sigma in first_noise(model).items()}
        z = np.tile(prior.centre, (SEEDS, 1))

        def normal(z):
            return model.programs.normal_of_many(z, measured, model.data)

        for rounds in (30, 6):
            z, _, _ = levenberg_marquardt(normal, z, noise, prior, rounds)
            parts = normal(z)
            counts = {f: len(at) for f, at in zip(fields, rows, strict=True)}
            noise = estimated_noise(parts, counts, noise, prior, dict.fromkeys(fields, 0.0))
        total = np.diag(prior.width**-2.0) + sum(
            np.asarray(parts[f][2]) / noise[f][:, None, None] ** 2 for f in fields
        )
        half = 1.963 * np.sqrt(np.einsum("bii->bi", np.linalg.inv(total)))
        truth = [*TRUE.values(), 0.4e-3, 1e-3]
        expected = np.array([c.z(value) for c, value in zip(unknowns, truth, strict=True)])
        return z - expected, half, {f: noise[f] for f in fields}


def test_every_interval_covers_the_truth_in_93_to_97_percent_of_a_thousand_logs(found):
    error, half, _ = found
    covered = np.mean(np.abs(error) <= half, axis=0)
    assert np.all((covered >= 0.93) & (covered <= 0.97)), covered


def test_the_spread_over_the_logs_is_the_one_that_is_told_and_nothing_is_biased(found):
    error, half, noise = found
    told = np.mean(half, axis=0) / 1.963
    spread = np.std(error, axis=0)
    np.testing.assert_allclose(spread, told, rtol=4 / np.sqrt(2 * SEEDS))  # 4 sigma of a spread
    assert np.all(np.abs(np.mean(error, axis=0)) < 4 * spread / np.sqrt(SEEDS))
    for sigma, truth in zip(noise.values(), NOISE, strict=True):
        assert np.mean(sigma) == pytest.approx(truth, rel=0.005)


def test_the_delays_are_found_to_a_tenth_of_a_row(found):
    error, _, _ = found
    assert np.all(np.sqrt(np.mean(error[:, 5:] ** 2, axis=0)) < 0.1)
