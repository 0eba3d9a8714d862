"""Intervals by profile, robust losses, outliers by row: beside SciPy on a motor of its own.

One small model for all of it: a motor's resistance and inductance from its current, 100 rows.
`make soak` takes as many logs as coverage asks for.
"""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.optimize import brentq, least_squares
from scipy.optimize._numdiff import approx_derivative
from scipy.stats import t as student

import mime
from fitting.motors import COLUMNS, PERIOD, TRUE, bench, motor_matrices, sampled
from mime.fitting import profile
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import experiment
from mime.fitting.explanation import _late_rows
from mime.fitting.loss import Loss, _moments, outliers
from mime.fitting.model import Model, in_double
from mime.fitting.solve import polish, prior_of
from sizes import sized

SEEDS = sized(1000, small=20)
ALLOWED = 4 * np.sqrt(0.95 * 0.05 / SEEDS)  # deviations of a count
ROWS = 101
TIME = PERIOD * np.arange(ROWS)
VOLTS = np.where(TIME < 0.02, 6.0, -3.0)
UNKNOWNS = ["motor.r_ohm", "motor.l_henry"]
TRUTH = dict(zip(UNKNOWNS, (TRUE["R"], TRUE["L"]), strict=True))
CURRENT = {"volts": COLUMNS["volts"], "current": mime.Channel("motor.current", delay=0)}
WIDE, NARROW = 1.6, 0.1
"""Noise, A: so much that an interval of the inductance is not linear, and a usual one."""


def current(R=TRUE["R"], L=TRUE["L"], late=0.0):
    matrices = motor_matrices(**{**TRUE, "R": R, "L": L})
    return sampled(*matrices, VOLTS, TIME, TIME, late)[:, 1]


CLEAN = current()


def log(seed, noise, outliers=0.0):
    """A log with noise, and with outliers of 10 to 100 times that in a part of its rows."""
    random = np.random.default_rng(seed)
    made = CLEAN + noise * random.normal(size=ROWS)
    is_out = random.uniform(size=ROWS) < outliers
    made = made + is_out * noise * random.choice([-1, 1], ROWS) * random.uniform(10, 100, ROWS)
    return {"time": TIME, "volts": VOLTS, "current": made}, np.flatnonzero(is_out[1:]) + 1


@pytest.fixture(scope="module")
def simulation():
    return bench(1.0)


def fitted(simulation, made, loss="linear"):
    return mime.fit(simulation, made, CURRENT, UNKNOWNS, starts=1, loss=loss, progress=False)


def whitened(made, sigma):
    """SciPy's side: a matrix exponential for a simulator; the first row is where it starts."""
    return lambda z: (current(*np.exp(z)) - made["current"])[1:] / sigma


def test_a_profile_is_that_of_scipy_and_asymmetric(simulation):
    made, _ = log(0, WIDE)
    fit = fitted(simulation, made)
    found = fit["motor.l_henry"]
    assert found.interval == "profile"
    assert found.nonlinearity > 0.1
    assert fit["motor.r_ohm"].interval == "linear"
    residuals = whitened(made, fit.noise["motor.current"][0])
    best = least_squares(residuals, np.log([*TRUTH.values()]), xtol=1e-12, ftol=1e-12)
    quantile = student.ppf(0.975, ROWS - 1 - 2)

    def beyond(log_inductance):
        others = least_squares(lambda z: residuals([z[0], log_inductance]), best.x[:1])
        return np.sqrt(max(2 * (others.cost - best.cost), 0.0)) - quantile

    middle = best.x[1]
    ends = [brentq(beyond, middle, middle + side * 1.2, xtol=1e-4) for side in (-1, 1)]
    # The search stops within 0.5 % of the half-width.
    half = 0.5 * (ends[1] - ends[0])
    np.testing.assert_allclose(np.log([found.low, found.high]), ends, atol=0.01 * half)
    linear = quantile * np.sqrt(np.linalg.inv(best.jac.T @ best.jac)[1, 1])
    assert abs(ends[1] - middle - linear) > 0.1 * linear  # the linear one would not do
    assert "intervals by profile, not linear enough: motor.l_henry" in str(fit)
    assert " + " in next(line for line in str(fit).splitlines() if "l_henry" in line)


@pytest.mark.small("huber")
@pytest.mark.parametrize("loss", ["soft_l1", "huber"])
def test_a_robust_fit_is_that_of_scipy_with_the_same_loss(simulation, loss):
    made, rows = log(1, NARROW, outliers=0.05)
    fit = fitted(simulation, made, loss)
    sigma = fit.noise["motor.current"][0]
    assert sigma == pytest.approx(NARROW, rel=0.25)
    assert len(rows) >= 3
    assert [o.rows for o in fit.outliers] == [tuple(rows)]
    assert f"{len(rows)} of 100 values of 'current' are outliers, row" in str(fit)
    scale = Loss(loss).scale
    if loss == "huber":
        assert scale == pytest.approx(1.345, abs=1e-4)  # Huber's own
    first, second = _moments(loss, scale)
    assert first**2 / second == pytest.approx(0.95, abs=1e-6)
    other = least_squares(
        whitened(made, sigma), np.log([*TRUTH.values()]), loss=loss, f_scale=scale,
        xtol=1e-12, ftol=1e-12, gtol=1e-12,
    )  # fmt: skip
    ours = np.log([fit[name].value for name in UNKNOWNS])
    np.testing.assert_allclose(ours, other.x, atol=1e-5)  # the noise is settled to 1e-4
    assert fit.checks[0].over_noise == pytest.approx(1.0, abs=0.05)
    if loss == "huber":  # the sandwich, by hand
        residuals = whitened(made, sigma)
        u, J = residuals(ours), approx_derivative(residuals, ours)
        inside = np.abs(u) < scale
        spread = np.sqrt(np.mean(np.clip(u, -scale, scale) ** 2)) / np.mean(inside)
        half = spread * np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
        half *= student.ppf(0.975, ROWS - 1 - 2)
        told = [0.5 * np.log(fit[name].high / fit[name].low) for name in UNKNOWNS]
        assert told[0] == pytest.approx(half[0], rel=1e-3)
        # Few rows tell the inductance, and some of them are beyond the scale: it is profiled.
        assert [fit[name].interval for name in UNKNOWNS] == ["linear", "profile"]
        assert told[1] == pytest.approx(half[1], rel=0.25)
    for name, truth in TRUTH.items():
        assert fit[name].low < truth < fit[name].high
    squares = fitted(simulation, made)
    for name in UNKNOWNS:
        assert squares[name].high / squares[name].low > (fit[name].high / fit[name].low) ** 3


def covered(simulation, noise, outliers, loss):
    """The part of logs whose intervals hold the truth, by unknown."""
    inside = dict.fromkeys(UNKNOWNS, 0)
    for seed in range(SEEDS):
        fit = fitted(simulation, log(100 + seed, noise, outliers)[0], loss)
        for name, truth in TRUTH.items():
            e = fit[name]
            inside[name] += bool(e.is_known and e.low <= truth <= e.high)
    return np.array([count / SEEDS for count in inside.values()])


def test_robust_intervals_cover_the_truth_with_two_outliers_in_a_hundred(simulation):
    part = covered(simulation, NARROW, 0.02, "huber")
    assert np.all(np.abs(part - 0.95) < ALLOWED), part


def test_an_interval_holds_a_second_minimum_that_the_log_allows():
    """kt/(R b + kt²) is the same for kt and R b/kt: over ln kt the cost has two minima of 0."""

    def t_over_q(distance):  # 0 where ln(kt / sqrt(R b)) is 1, and where it is -1
        return 1.6 * abs(np.cosh(1.0) - np.cosh(1.0 - distance))

    ends = [profile._crossing(t_over_q, first, 40.0) for first in (0.05, 0.15)]
    expected = brentq(lambda distance: t_over_q(distance) - 1.0, 1.5, 4.0, xtol=1e-12)
    # The search stops where t is within 5e-3 of q, and the slope of t over q there is 3.1.
    np.testing.assert_allclose(ends, expected, rtol=0, atol=5e-3 / 3.1)


def test_a_search_that_begins_where_a_simulation_diverges_ends_there(simulation):
    """A search for an end of a profile may begin there: it then goes back."""
    made, _ = log(7, NARROW)
    with jax.enable_x64(True):
        double = in_double(simulation)
        read = experiment(double, mime.Log(made), CURRENT)
        model = Model(double, (read,), coordinates(double, UNKNOWNS, [read]), 4)
        prior = prior_of(model)
        far = prior.centre + 800.0  # e^800 is no number
        z, cost, count = polish(model, far, {"motor.current": NARROW}, prior, Loss("linear"))
    assert (cost, count) == (np.inf, 1)
    np.testing.assert_array_equal(z, far)
    ends = profile._crossing(lambda d: np.inf if d > 0.7 else d / 0.6, 1.0, 4.0)
    assert ends == pytest.approx(0.6, rel=5e-3)  # its own tolerance


@pytest.mark.soak("a profile is compared with that of SciPy above")
def test_profiles_cover_the_truth(simulation):
    part = covered(simulation, WIDE, 0.0, "linear")
    assert np.all(np.abs(part - 0.95) < ALLOWED), part


def test_a_spike_is_refused_with_the_remedy_and_a_robust_fit_lives_with_it(simulation):
    made, _ = log(5, NARROW)
    made["current"][60] = 900.0
    with pytest.raises(mime.LogError, match=r'log:60: column .current. is 900.*loss="soft_l1"'):
        fitted(simulation, made)
    fit = fitted(simulation, made, "soft_l1")
    assert fit.outliers[0].rows == (60,)
    assert abs(fit["motor.r_ohm"].value / TRUE["R"] - 1) < 0.02


def test_a_late_sensor_that_may_not_be_late_is_seen(simulation):
    made, _ = log(6, 0.03)
    made["current"] = made["current"] - CLEAN + current(late=1.5 * PERIOD)
    fit = fitted(simulation, made)
    assert not fit.is_explained
    assert "rows late; let `delay` be unknown" in str(fit)


def test_what_is_late_in_one_log_and_early_in_another_is_no_delay_of_the_sensor(simulation):
    logs = []
    for number, late in enumerate((1.5, -1.5)):
        made, _ = log(6 + number, 0.03)
        made["current"] = made["current"] - CLEAN + current(late=late * PERIOD)
        logs.append(mime.Log(made, name=f"run{number}"))
    fit = fitted(simulation, logs)
    assert not fit.is_explained
    assert "rows late" not in str(fit)
    assert "rows early" not in str(fit)


def test_a_delay_is_named_from_a_tenth_of_a_row_on():
    rows = np.arange(200.0)
    for late, named in ((0.3, 0.3), (-0.3, -0.3), (0.05, 0.0)):
        sensor = SimpleNamespace(measured=np.sin(0.1 * (rows - late)), positions=rows)
        # Slopes are differences over two rows: off by (0.1)²/6.
        assert _late_rows(sensor, np.sin(0.1 * rows)) == pytest.approx(named, rel=5e-3)


def test_so_many_logs_would_make_it_known(simulation):
    """With noise that N logs like it would have, the interval is as foretold, and without 0."""
    wide = 4.0 * WIDE
    made, _ = log(1, wide)
    fit = fitted(simulation, made)
    assert fit["motor.l_henry"].low == 0.0
    ((name, half),) = fit.longer.known
    assert name == "motor.l_henry"
    assert f"with {fit.longer.times} such logs: motor.l_henry ± " in str(fit)
    assert half == pytest.approx(1.0, rel=0.3)  # the least number of logs: up to 1
    quiet = log(1, wide / np.sqrt(fit.longer.times))[0]
    then = fitted(simulation, quiet)["motor.l_henry"]
    assert then.low > 0.0
    # At the values found then, which are others: the information is not the same there.
    assert 0.5 * (then.high - then.low) / then.value == pytest.approx(half, rel=0.35)


def test_what_is_told_survives_a_file(simulation, tmp_path):
    made, _ = log(1, NARROW, outliers=0.05)
    fit = fitted(simulation, made, "huber")
    fit.save(tmp_path / "fit.json")
    again = mime.Fit.load(tmp_path / "fit.json")
    assert str(again) == str(fit)
    assert again.outliers == fit.outliers
    assert again.loss == "huber"


def test_another_loss_is_refused(simulation):
    with pytest.raises(ValueError, match=r"loss must be one of 'linear', 'soft_l1', 'huber'"):
        fitted(simulation, log(0, NARROW)[0], "cauchy")


def test_rows_beyond_the_noise_for_long_are_structure_and_no_outliers():
    """A hump and a ringing that the model has not, and spikes before and after them."""
    rows = np.arange(400)
    u = np.random.default_rng(0).normal(size=400)
    u += 30.0 * np.exp(-0.5 * ((rows - 200) / 20.0) ** 2)
    u += np.where((rows >= 300) & (rows < 320), np.where(rows % 2, 15.0, -15.0), 0.0)  # it rings
    assert np.count_nonzero(np.abs(u) > 5.0) > 80
    assert not outliers(u).any()
    spikes = [0, 50, 51, 399]
    u[spikes] += 60.0
    assert list(np.flatnonzero(outliers(u))) == spikes


def test_outliers_of_many_logs_are_one_line(simulation):
    logs = []
    for number in range(5):
        made, _ = log(number, NARROW)
        made["current"][30 + number] += 40.0 * NARROW
        logs.append(mime.Log(made, name=f"run{number}"))
    fit = fitted(simulation, logs, "soft_l1")
    (line,) = [line for line in str(fit).splitlines() if "outliers" in line]
    assert line == (
        "5 of 500 values of 'current' are outliers: run0 row 30; run1 row 31; run2 row 32; "
        "2 more logs"
    )
