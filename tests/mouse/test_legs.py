"""Legs: curves lead from edge to edge, and speeds, accelerations and turn rates belong together."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import j0

from mime.mouse import legs
from mime.mouse.legs import CURVE, CURVE_LENGTH, PIVOT, REST, SHARPEST, STRAIGHT

LIMITS = 2.0, 5.0, 400.0  # m/s, m/s², m/s³
plan = jax.jit(legs.plan)


@partial(jax.jit, static_argnames=("steps", "cell_size_m"))
def follow(leg, pose, dt, steps, cell_size_m):
    """The references after each of the steps of dt."""

    def step(carry, _):
        leg, reference = legs.follow(*carry, dt, cell_size_m)
        return (leg, reference.pose), reference

    (leg, _), references = jax.lax.scan(step, (leg, pose), None, length=steps)
    return leg, references


def drive(leg, pose, steps, cell_size_m=0.18):
    """From its start to its end exactly; times, and what the mouse should do then."""
    dt = jnp.sum(leg.segment_times) / steps
    _, references = follow(leg, jnp.asarray(pose), dt, steps, cell_size_m)
    return dt * np.arange(1, steps + 1), jax.tree.map(np.asarray, references)


def curve(turn, cell_size_m, v0=0.5, vf=0.5):
    return plan(CURVE, turn, CURVE_LENGTH * cell_size_m, v0, vf, max(v0, vf), *LIMITS[1:])


def test_the_length_of_a_curve_holds_the_bessel_function():
    assert pytest.approx(1 / (np.sqrt(2) * j0(np.pi / 4)), rel=1e-15) == CURVE_LENGTH
    ahead = quad(lambda u: np.cos(np.pi / 4 * (1 - np.cos(np.pi * u))), 0, 1, epsabs=1e-14)[0]
    assert pytest.approx(0.5, abs=1e-14) == CURVE_LENGTH * ahead


@pytest.mark.small("0-0.18-1.0", "0-0.18--1.0", "3-0.18-1.0", "3-0.18--1.0")
@pytest.mark.parametrize("turn", [1.0, -1.0])
@pytest.mark.parametrize("cell_size_m", [0.09, 0.18, 0.3])
@pytest.mark.parametrize("heading", [0, 3])
def test_a_curve_leads_from_the_middle_of_one_side_to_the_middle_of_the_next(
    turn, cell_size_m, heading
):
    v, steps = 0.5, 500
    start = np.array([0.4, 0.2, heading * np.pi / 2])
    times, references = drive(curve(turn, cell_size_m), start, steps, cell_size_m)
    # Half a cell ahead, half a cell to the side.
    ahead = np.array([np.cos(start[2]), np.sin(start[2])])
    side = turn * np.array([-ahead[1], ahead[0]])
    end = start[:2] + 0.5 * cell_size_m * (ahead + side)
    # A chord is short of its arc by (w dt)²/24, its direction off by alpha dt²/8.
    L, dt = CURVE_LENGTH * cell_size_m, times[0]
    w, alpha = v * SHARPEST / cell_size_m, v**2 * np.pi**3 / (4 * L**2)
    np.testing.assert_allclose(
        references.pose[-1, :2], end, rtol=0, atol=L * dt**2 * (w**2 / 24 + alpha / 8)
    )
    assert references.pose[-1, 2] - start[2] == pytest.approx(turn * np.pi / 2, abs=1e-12)


@pytest.mark.soak("a curve leads where it should above")
def test_the_error_of_a_curve_falls_with_the_square_of_the_tick():
    ends = [
        drive(curve(1.0, 0.18), np.zeros(3), steps)[1].pose[-1, :2] - 0.09 for steps in (50, 100)
    ]
    assert np.linalg.norm(ends[0]) / np.linalg.norm(ends[1]) == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_the_turn_rate_of_a_curve_is_zero_at_both_ends_and_has_no_jump(turn):
    steps = 500
    leg = curve(turn, 0.18)
    start = legs.follow(leg, jnp.zeros(3), 0.0, 0.18)[1]
    times, references = drive(leg, np.zeros(3), steps)
    peak = 0.5 * SHARPEST / 0.18
    assert float(start.w) == 0.0
    assert abs(references.w[-1]) < 1e-12 * peak
    assert np.max(turn * references.w) == pytest.approx(peak, rel=1e-5)  # (pi/2 steps)²/2
    assert np.all(turn * references.w[:-1] > 0)
    # No step exceeds alpha dt, whose largest value is w pi v/L at the ends.
    largest = peak * np.pi * 0.5 / (CURVE_LENGTH * 0.18) * times[0]
    assert np.max(np.abs(np.diff(references.w, prepend=0.0))) <= largest * (1 + 1e-9)


@pytest.mark.parametrize(
    "leg",
    [
        lambda: plan(STRAIGHT, 0.0, 0.9, 0.0, 0.5, *LIMITS),
        lambda: curve(-1.0, 0.18, 0.5, 0.8),
        lambda: plan(PIVOT, -1.0, np.pi, 0.0, 0.0, 8.0, 100.0, 2000.0),
    ],
    ids=["straight", "curve that speeds up", "pivot"],
)
def test_speeds_and_accelerations_are_the_derivatives_of_the_pose(leg):
    leg = leg()
    times, references = drive(leg, np.zeros(3), 4000)
    dt = times[0]

    def slope(x):
        return (x[2:] - x[:-2]) / (2 * dt)

    def check(derivative, of):
        # Central differences: dt²/6 of the third derivative; where the jerk jumps, dt/4 of it.
        scale = max(1.0, np.max(np.abs(derivative)))
        error = np.abs(derivative[1:-1] - slope(of))
        assert np.max(error) <= max(float(leg.jerk), 400.0) * dt * scale
        assert np.median(error) <= 1e-5 * scale

    steps = np.linalg.norm(np.diff(references.pose[:, :2], axis=0), axis=1)
    s = np.concatenate([[0.0], np.cumsum(steps)])
    check(references.v, s)
    check(references.a, references.v)
    check(references.w, references.pose[:, 2])
    check(references.alpha, references.w)


def test_a_straight_keeps_its_limits_and_arrives_with_its_speed():
    leg = plan(STRAIGHT, 0.0, 0.9, 0.0, 0.5, *LIMITS)
    _, references = drive(leg, [0.1, 0.2, np.pi / 2], 1000)
    assert references.pose[-1] == pytest.approx([0.1, 1.1, np.pi / 2], abs=1e-12)
    assert references.v[-1] == pytest.approx(0.5, abs=1e-12)
    assert np.max(references.v) <= LIMITS[0] * (1 + 1e-12)
    assert np.max(np.abs(references.a)) <= LIMITS[1] * (1 + 1e-12)
    assert np.all(references.w == 0.0)


@pytest.mark.parametrize("turn", [1.0, -1.0])
@pytest.mark.parametrize("angle", [np.pi / 2, np.pi, 0.0])
def test_a_pivot_turns_by_its_angle_on_the_spot(turn, angle):
    leg = plan(PIVOT, turn, angle, 0.0, 0.0, 8.0, 100.0, 2000.0)
    _, references = drive(leg, [0.1, 0.2, 0.3], 300)
    assert references.pose[-1, 2] - 0.3 == pytest.approx(turn * angle, abs=1e-12)
    assert np.all(references.pose[:, :2] == [0.1, 0.2])
    assert np.all(references.v == 0.0)
    assert np.max(np.abs(references.w)) <= 8.0 * (1 + 1e-12)


def test_a_leg_is_over_when_its_time_has_passed():
    leg = plan(STRAIGHT, 0.0, 0.18, 0.5, 0.5, *LIMITS)
    T = float(jnp.sum(leg.segment_times))
    for time, over in ((0.0, False), (T * (1 - 1e-9), False), (T, True), (2 * T, True)):
        assert bool(legs.is_over(leg._replace(time=jnp.asarray(time)))) is over


def test_a_rest_never_ends_and_stays_where_it_is():
    zero = jnp.zeros(())
    leg = legs.Leg(jnp.int32(REST), zero, zero, jnp.zeros(7), zero, zero, jnp.asarray(1e9))
    leg, reference = legs.follow(leg, jnp.array([0.1, 0.2, 0.3]), 1.0, 0.18)
    assert not legs.is_over(leg)
    np.testing.assert_array_equal(reference.pose, [0.1, 0.2, 0.3])
    assert [float(x) for x in (reference.v, reference.a, reference.w, reference.alpha)] == [0.0] * 4
