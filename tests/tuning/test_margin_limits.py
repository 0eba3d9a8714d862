"""Margins that were asked for: slopes by differences, optima by SciPy on python-control's loops."""

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

import control
import mime
from mime.cli import main
from mime.tuning.bench import Bench, Run
from mime.tuning.loop_gain import LoopGain, growth_by_matrix
from mime.tuning.margin_limits import KINDS, MarginLimits
from mime.tuning.margins import distances
from mime.tuning.problem import question
from tuning.test_margins import pendulum
from tuning.test_tune import ERROR, FILE, GAINS, RUN, SCENARIO, B, drive  # noqa: F401  (a fixture)

DT = 1e-3
SAID = {
    "gain_db": 8.0,
    "gain_down_db": -8.0,
    "phase_deg": 50.0,
    "delay_s": 2e-3,
    "sensitivity": 1.6,
}


def conditional():
    """A PI around an unstable plant with a delay: margins of every kind, downwards too."""
    opened = np.array([[1.02, 0.0, 0.05], [0.1, 1.0, 0.0], [0.0, 0.0, 0.0]])
    return opened - np.outer([0.0, 0.0, 1.0], [3.0, 0.3, 0.0]), opened


def difference(function, A, step=1e-6):
    """Central differences by every entry of a matrix."""
    found = np.zeros_like(A)
    for at in np.ndindex(A.shape):
        off = np.zeros_like(A)
        off[at] = step
        found[at] = (function(A + off) - function(A - off)) / (2 * step)
    return found


def test_slopes_of_all_margins_are_their_differences():
    closed, opened = conditional()
    loop = LoopGain(closed, opened)
    assert loop.is_stable
    found = distances(loop, DT)
    for key, distance in found.items():
        assert np.isfinite(distance.value), key
        by_closed, by_opened = loop.by_matrices(distance.angle, distance.weight)

        def of(A1, A0, key=key):
            return distances(LoopGain(A1, A0), DT)[key].value

        scale = np.abs(by_closed).max()
        numbers = difference(lambda A, of=of: of(A, opened), closed)
        np.testing.assert_allclose(by_closed, numbers, atol=2e-5 * scale, err_msg=key)
        numbers = difference(lambda A, of=of: of(closed, A), opened)
        np.testing.assert_allclose(by_opened, numbers, atol=2e-5 * scale, err_msg=key)


def test_an_unstable_loop_is_further_beyond_the_more_it_grows():
    A = np.array([[1.05, 0.2], [-0.3, 0.9]])
    growth, slope = growth_by_matrix(A)
    np.testing.assert_allclose(slope, difference(lambda A: growth_by_matrix(A)[0], A), atol=1e-8)
    limits = MarginLimits(SAID, DT, 100.0)
    excess, by_closed, _ = limits.excess(A, np.zeros((2, 2)))
    np.testing.assert_allclose(excess, 1 + 100 * growth)
    np.testing.assert_allclose(by_closed, np.broadcast_to(100 * slope, (len(SAID), 2, 2)))
    nearly = limits.excess(np.diag([-1.0 + 1e-6, 0.5]), np.diag([0.0, 0.5]))[0]
    assert nearly[0] == pytest.approx(1.0, abs=1e-5)  # nothing is left of the gain margin
    beyond = limits.excess(np.diag([-1.0 - 1e-6, 0.5]), np.diag([0.0, 0.5]))[0]
    assert beyond[0] == pytest.approx(1.0, abs=1e-3)  # and it goes on from there
    assert limits.excess(np.eye(1), np.eye(1))[0][0] == 1.0  # no loop gain is no margin
    assert np.isnan(limits.excess(np.full((1, 1), np.nan), np.eye(1))[0]).all()


def test_slopes_of_margins_go_through_the_working_point(tmp_path):
    """Gains move the pendulum to where gravity is another spring: against differences."""
    with jax.enable_x64(True):
        goal = mime.Goal("rms_error", "arm.joint_angles", "pd.desired_joint_angles")
        run = Run(pendulum(60.0, 6.0, tmp_path), 0.2, {"pd": {"desired_joint_angles": [1.0]}})
        said = {"phase_deg": 60.0, "sensitivity": 1.2}
        bench = Bench(run, ["pd.kp"], [goal], {}, said, None, 1, np.random.default_rng(0))
        slopes, count = question(bench, 1.0)
        assert count == 2
        points = bench.gains.start + np.array([[0.0], [1e-5], [-1e-5]])
        value, slope, _, excess = slopes(points, np.zeros((3, 2)), np.ones(3))
        assert np.all(excess[0] > 0)
        assert slope[0, 0] == pytest.approx((value[1] - value[2]) / 2e-5, rel=1e-6)


def open_loop(kp, ki, inertia):
    """The motor's PI by python-control: friction implicit, the sum before the product."""
    a = 1.0 / (1.0 + DT * B / inertia)
    plant = control.ss([[a]], [[a * DT / inertia]], [[1.0]], [[0.0]], DT)
    return control.series(control.ss([[1.0]], [[DT]], [[ki]], [[kp + ki * DT]], DT), plant)


@pytest.fixture(scope="module")
def tuned(drive):  # noqa: F811
    return mime.tune(
        drive,
        ["motor.velocity_kp"],
        ERROR,
        margins={"phase_deg": 45.0, "delay_s": 2.5e-3, "sensitivity": 2.0},
        plants={"motor.inertia_kg_m2": 0.2},
        members=3,
        starts=2,
        seed=1,
        **RUN,
    )


def test_the_worst_plant_keeps_the_margin_and_no_more(tuned):
    """A faster loop is the better one, so the tightest margin says how fast: its closed form."""
    inertias, kp = tuned.plants["motor.inertia_kg_m2"], tuned["motor.velocity_kp"].after
    lightest = int(np.argmin(inertias))

    def delay(kp, inertia=inertias[lightest]):
        _, phase, _, crossover = control.margin(open_loop(kp, 0.3, inertia))
        return np.radians(phase) / crossover

    assert kp == pytest.approx(brentq(lambda kp: delay(kp) - 2.5e-3, 0.01, 0.1), rel=1e-3)
    rows = {row.name: row for row in tuned.figures}
    row = rows["delay margin of motor"]
    assert row.tightest(row.after) == lightest
    np.testing.assert_allclose(row.after, [delay(kp, inertia) for inertia in inertias], rtol=1e-6)
    assert tuned.keeps_limits
    phase = rows["phase margin of motor"]
    assert phase.violations(phase.after) == 0
    words, page = str(tuned), tuned.report()
    told = f"at least 0.0025: kept in 3 of 3 (before: 3), tightest in plant {lightest} (motor.iner"
    assert told in words
    assert told in page
    assert "Ms 1." in words


def test_an_unstable_start_comes_back(drive):  # noqa: F811
    with pytest.warns(mime.StabilityWarning):
        wild = drive.with_parameters({"motor.velocity_kp": 0.21})  # beyond 0.2
    options = {**RUN, "duration": 0.03, "starts": 1}
    found = mime.tune(wild, ["motor.velocity_kp"], ERROR, margins={"gain_db": 9.0}, **options)
    assert not found.margins[0].before[0].is_stable
    assert found.margins[0].after[0].gain_db == pytest.approx(9.0, abs=0.01)
    assert "none -> 9 dB; at least 9: kept in 1 of 1 (before: 0)" in str(found)


def test_margins_that_cannot_be_kept_or_asked_for_are_refused(drive, tmp_path, capsys):  # noqa: F811
    def refused(words, margins):
        with pytest.raises(mime.InputError, match=words):
            mime.tune(drive, GAINS, ERROR, margins=margins, **RUN)

    refused(r"margins: no margin 'phase' \(did you mean 'phase_deg'\?\)", {"phase": 45.0})
    refused(r"phase_deg must be a finite number > 0 and < 180 °, got 180", {"phase_deg": 180})
    refused(r"sensitivity must be a finite number > 1, got 1", {"sensitivity": 1})
    refused(r"gain_down_db must be a finite number < 0 dB, got 6", {"gain_down_db": 6})
    refused(r"gain_db must be a finite number > 0 dB, got 'six'", {"gain_db": "six"})
    assert set(SAID) == set(KINDS)
    exact = SCENARIO.replace("velocity_kp", 'integrator = "exact"\nvelocity_kp')
    (tmp_path / "drive.toml").write_text(exact)
    (tmp_path / "tune.toml").write_text("margins = {phase_deg = 45.0}\n" + FILE)
    with pytest.raises(SystemExit):
        main(["tune", str(tmp_path / "tune.toml")])
    said = " ".join(capsys.readouterr().err.split())
    assert "tune.toml:1: margins: the loop of motor has no L(z) to hold to margins" in said
    (tmp_path / "drive.toml").write_text(SCENARIO)
    (tmp_path / "tune.toml").write_text(FILE + "\n[margins]\nphase_deg = 89.99\ndelay_s = 1.0\n")
    with pytest.raises(SystemExit):
        main(["tune", str(tmp_path / "tune.toml")])
    said = " ".join(capsys.readouterr().err.split())
    assert "no gains were found that keep all limits" in said
    assert "delay margin of motor: " in said
    assert "wanted at least 1 (kept in 0 of 1 plants)" in said
