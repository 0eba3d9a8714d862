"""Leaving out windows: the exact steps of a linear problem, and coverage under correlated noise."""

import numpy as np

from mime.fitting.jackknife import jackknife

ROWS, WINDOWS = 400, 20


def problem(seed):
    """A linear problem of three unknowns, and its rows by window."""
    random = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, ROWS)
    J = np.column_stack([np.ones(ROWS), np.sin(7 * t), np.cos(19 * t)])
    return random, J, np.array_split(np.arange(ROWS), WINDOWS)


def covariance(J, r, windows):
    """By the rows of each window."""
    return jackknife([J[w] for w in windows], [J[w].T @ r[w] for w in windows], np.zeros((0, 3)))


def test_it_is_that_of_fits_without_a_window():
    random, J, windows = problem(0)
    y = random.normal(size=ROWS)
    z, *_ = np.linalg.lstsq(J, y, rcond=None)
    without = []
    for window in windows:
        kept = np.setdiff1d(np.arange(ROWS), window)
        without.append(np.linalg.lstsq(J[kept], y[kept], rcond=None)[0])
    apart = np.array(without) - np.mean(without, axis=0)
    expected = (WINDOWS - 1) / WINDOWS * apart.T @ apart
    found = covariance(J, J @ z - y, windows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # two ways to solve 3 x 3: rounding


def test_it_covers_the_truth_under_correlated_noise():
    inside = []
    for seed in range(300):
        random, J, windows = problem(seed)
        noise = random.normal(size=ROWS)
        for k in range(1, ROWS):
            noise[k] = 0.7 * noise[k - 1] + np.sqrt(1 - 0.7**2) * noise[k]
        z, *_ = np.linalg.lstsq(J, noise, rcond=None)
        spread = np.sqrt(np.diag(covariance(J, J @ z - noise, windows)))
        inside.append(np.abs(z) < 2.09 * spread)  # Student's t of 19 degrees
    # 900 of 95 %: a deviation of 0.7 %. Windows of 20 rows hold six correlation lengths, not all.
    assert 0.92 < np.mean(inside) < 0.975


def test_what_one_window_alone_tells_has_no_slope_in_it():
    _, J, windows = problem(0)
    J[windows[0][-1] + 1 :, 2] = 0.0
    r = np.random.default_rng(1).normal(size=ROWS)
    z, *_ = np.linalg.lstsq(J, r, rcond=None)
    spread = np.sqrt(np.diag(covariance(J, J @ z - r, windows)))
    assert spread[2] < 0.3 / np.linalg.norm(J[:, 2])  # of its deviation under white noise
