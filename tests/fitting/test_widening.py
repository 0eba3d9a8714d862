"""Intervals by windows hold the truth: correlated noise, motions that differ, starts of one window.

Linear problems, thousands of logs: the slopes are central differences of matrix exponentials.
"""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import t as student

import mime
from fitting.motors import COLUMNS, NOISE, PERIOD, TRUE, UNKNOWNS, bench, clean_motor
from mime.fitting.rank import rank_of
from mime.fitting.unknown import WIDEST_LOG
from mime.fitting.widening import Residual, are_white, correlation_time, widened, windows
from sizes import FULL, sized

SEEDS = sized(1000, small=30)


def correlated(random, rows, rho):
    """AR(1) noise of deviation 1."""
    drawn = random.normal(size=rows + 500)
    return lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], drawn)[500:]


def motor_slopes(rows, step=1e-4):
    """Of speed and current, over the noise, by logarithms of the five parameters."""

    def readings(name, factor):
        return clean_motor(rows, parameters={**TRUE, name: factor * TRUE[name]})[2]

    slopes = [
        (readings(name, 1 + step) - readings(name, 1 - step)) / (2 * step) / NOISE for name in TRUE
    ]
    return [np.stack([slope[:, i] for slope in slopes], axis=1) for i in range(2)]


def half_widths(slopes, noise, times, logs=None):
    """The error of least squares and the half-widths, plain and widened, of one log's noise."""
    J, e = np.concatenate(slopes), np.concatenate(noise)
    z, *_ = np.linalg.lstsq(J, e, rcond=None)
    sigma = np.sqrt((e - J @ z) @ (e - J @ z) / (len(e) - J.shape[1]))
    logs = range(len(slopes)) if logs is None else logs
    left = [
        Residual(log, str(number), t, (own @ z - d) / sigma)
        for number, (log, t, own, d) in enumerate(zip(logs, times, slopes, noise, strict=True))
    ]
    count = J.shape[1]
    quantile = float(student.ppf(0.975, len(e) - count))
    rank = rank_of(J / sigma, np.full(count, WIDEST_LOG), np.zeros(count, bool), quantile)
    wide = widened(rank, left, J / sigma, np.zeros((0, count)))
    return z, rank.half_widths, wide.half_widths


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_motor_parameters_are_covered_under_correlated_noise(rho):
    rows, inside, plain, ratio = 1001, [], [], []
    slopes, t = motor_slopes(rows), PERIOD * np.arange(rows)
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        noise = [correlated(random, rows, rho) for _ in slopes]
        z, narrow, wide = half_widths(slopes, noise, [t, t], [0, 0])
        inside.append(np.abs(z) <= wide)
        plain.append(np.abs(z) <= narrow)
        ratio.append(wide / narrow)
    covered = np.mean(inside)
    # A thousand logs: 93 to 97 %. Thirty: three deviations of a count of 150 that go in pairs.
    assert 0.93 - (not FULL) * 0.06 < covered < 0.97 + (not FULL) * 0.03, covered
    if rho == 0.0:
        assert np.median(ratio) == 1.0  # white noise is seen to be white
    if rho == 0.9:
        assert np.mean(plain) < 0.6  # what the plain interval would cover


def motion(random, rows, period, kind):
    """Rows (angle, speed, acceleration) of six sines, and the torque of a joint: regressor, tau."""
    t = period * np.arange(rows)
    w, phase = 2 * np.pi * random.uniform(0.1, 1.5, 6), random.uniform(0.0, 2 * np.pi, 6)
    a = random.normal(size=6) / np.sqrt(w / (2 * np.pi))
    x = np.outer(t, w) + phase
    q, v, acceleration = np.sin(x) @ a, np.cos(x) @ (a * w), -np.sin(x) @ (a * w**2)
    Y = np.column_stack([acceleration, v, np.sign(v), np.sin(q)])
    missing = {
        "load": 0.25 * np.abs(np.sin(q) + 0.05 * acceleration) * np.tanh(v / 0.05),
        "cogging": 0.15 * np.sin(7 * q + 0.4),
        "Stribeck": 0.3 * np.sign(v) * np.exp(-((v / 0.5) ** 2)),
    }[kind]
    return Y, missing + 0.05 * random.normal(size=rows)


@pytest.mark.parametrize("kind", ["load", "cogging", "Stribeck"])
def test_values_of_a_model_that_lacks_a_part_are_covered_where_motions_differ(kind):
    """The truth is that of all motions together: what a fit to thousands of them ends at."""
    rows, period, motions = 500, 0.01, 12
    A, b = np.zeros((4, 4)), np.zeros(4)
    for seed in range(3000):
        Y, left = motion(np.random.default_rng(10**6 + seed), rows, period, kind)
        A, b = A + Y.T @ Y, b + Y.T @ left
    truth, t, inside, plain = np.linalg.solve(A, b), period * np.arange(rows), [], []
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        parts = [motion(random, rows, period, kind) for _ in range(motions)]
        slopes, left = [Y for Y, _ in parts], [d for _, d in parts]
        named = [t] * motions
        z, narrow, wide = half_widths(slopes, left, named)
        inside.append(np.abs(z - truth) <= wide)
        plain.append(np.abs(z - truth) <= narrow)
    covered = np.mean(inside)
    assert 0.93 - (not FULL) * 0.06 < covered < 0.98 + (not FULL) * 0.02, covered
    assert np.mean(plain) < covered - 0.08


def test_a_start_that_one_window_alone_tells_is_covered():
    """Slopes that decay within 40 of 1000 rows: the jackknife has nothing to leave out."""
    rows, inside, plain = 1000, [], []
    t = PERIOD * np.arange(rows)
    slopes = np.column_stack([np.exp(-t / 0.04), np.sin(40 * t), np.ones(rows)])
    for seed in range(sized(1000, small=60)):
        noise = correlated(np.random.default_rng(seed), rows, 0.9)
        z, narrow, wide = half_widths([slopes], [noise], [t])
        inside.append(abs(z[0]) <= wide[0])
        plain.append(abs(z[0]) <= narrow[0])
    # A window that tells nearly all counts too much in a jackknife: on the wide side.
    assert np.mean(inside) > 0.93, np.mean(inside)
    assert np.mean(plain) < 0.75


def residual(values, log=0, field="a", **options):
    return Residual(log, field, PERIOD * np.arange(len(values)), values, **options)


def test_white_noise_is_white_and_what_is_not_is_seen():
    random = np.random.default_rng(3)
    a, b = random.normal(size=(2, 1000))
    assert are_white([residual(a), residual(b, field="b")])
    assert not are_white([residual(correlated(random, 1000, 0.3))])
    assert not are_white([residual(a), residual(0.9 * a + 0.44 * b, field="b")])  # one disturbance
    assert not are_white([residual(a), residual(1.5 * b, log=1)])  # louder in one log
    assert not are_white([residual(1.5 * a, is_known=True)])


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_the_correlation_time_is_that_of_the_process(rho):
    expected = PERIOD * (1 + rho**2) / (1 - rho**2)  # 1 + 2 sum rho^(2 k)
    found = [
        correlation_time(residual(correlated(np.random.default_rng(seed), 20_000, rho)))
        for seed in range(5)
    ]
    # The largest partial sum has noise in it: too long rather than too short.
    assert expected <= np.mean(found) < 1.6 * expected


@pytest.mark.parametrize(
    ("logs", "expected"),
    [((1000,), 12), ((1000, 500), 12), ((100,) * 8, 16), ((300,) * 12, 12), ((50,) * 100, 12)],
)
def test_twelve_windows_are_of_one_log_each_or_of_many_logs(logs, expected):
    random = np.random.default_rng(0)
    left = [
        residual(random.normal(size=rows), log, field)
        for field in "ab"
        for log, rows in enumerate(logs)
    ]
    found = windows(left)
    assert len(np.unique(np.concatenate(found))) == expected
    for one, two in zip(found[: len(logs)], found[len(logs) :], strict=True):
        np.testing.assert_array_equal(one, two)  # both sensors of a log go together
    if len(logs) <= 24:
        sets = [set(own) for own in found[: len(logs)]]
        assert sum(map(len, sets)) == len(set.union(*sets))


def test_windows_are_longer_where_residuals_are_correlated():
    slow = correlated(np.random.default_rng(0), 1000, 0.98)
    assert len(np.unique(windows([residual(slow)])[0])) == 6


def test_the_covariance_has_the_deviations_of_the_intervals_and_is_one():
    rows = 1001
    slopes = np.concatenate(motor_slopes(rows))
    noise = correlated(np.random.default_rng(0), 2 * rows, 0.9)
    z, *_ = np.linalg.lstsq(slopes, noise, rcond=None)
    rank = rank_of(slopes, np.full(5, WIDEST_LOG), np.zeros(5, bool), 1.96)
    t = PERIOD * np.arange(rows)
    left = slopes @ z - noise
    parts = [Residual(0, f, t, own) for f, own in zip("ab", np.split(left, 2), strict=True)]
    wide = widened(rank, parts, slopes, np.zeros((0, 5)))
    deviations = np.sqrt(np.diag(wide.covariance))
    np.testing.assert_allclose(1.96 * deviations, wide.half_widths, rtol=1e-12)  # by construction
    assert np.linalg.eigvalsh(wide.covariance).min() > 0
    np.testing.assert_allclose(
        wide.plain.covariance, np.linalg.inv(slopes.T @ slopes), rtol=1e-8
    )  # two ways to invert
    assert wide.kinds() == rank.kinds()


@pytest.mark.soak("the same intervals in the linear problems above")
def test_whole_fits_cover_the_truth_under_correlated_noise():
    rows = 1001
    time, volts, clean = clean_motor(rows, late=(0.4, 1.0))
    truth = dict(zip(UNKNOWNS, TRUE.values(), strict=True))
    truth |= {f"{COLUMNS['speed']} delay": 0.4e-3, f"{COLUMNS['current']} delay": 1e-3}
    simulation, inside = bench(1.5), []
    for seed in range(100):
        random = np.random.default_rng(seed)
        noise = np.stack([correlated(random, rows, 0.9) for _ in NOISE], axis=1)
        speed, current = (clean + NOISE * noise).T
        log = {"time": time, "volts": volts, "speed": speed, "current": current}
        fit = mime.fit(simulation, log, COLUMNS, UNKNOWNS, starts=1, progress=False)
        inside += [fit[name].low <= value <= fit[name].high for name, value in truth.items()]
    assert 0.93 <= np.mean(inside) <= 0.98, np.mean(inside)
