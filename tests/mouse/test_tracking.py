"""The controller: feed-forward, closed forms of its error, the supply's limits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.mouse.legs import Reference
from mime.mouse.tracking import Gains, track

R, W, DT = 0.0145, 0.053, 2e-3
GAINS = Gains(0.03, 4e-3, 3e-3)
IDEAL = Gains(1.0, 0.0, 0.0, 0.0, 0.0, heading_per_s=0.0, supply_v=1e9)
"""Volts are wheel speeds."""

run_track = jax.jit(track)


def reference(pose=(0.2, 0.3, 0.4), v=0.5, a=0.0, w=0.0, alpha=0.0):
    return Reference(*(jnp.asarray(x, float) for x in (pose, v, a, w, alpha)))


def command(ref, pose, measured=(0.0, 0.0), integral=(0.0, 0.0), resting=False, gains=GAINS):
    pose, measured, integral = (jnp.asarray(x, float) for x in (pose, measured, integral))
    got = run_track(ref, pose, measured, integral, resting, R, W, gains, DT)
    return jax.tree.map(np.asarray, got)


def wheels(v, w):
    return (v + np.array([0.5, -0.5]) * W * w) / R


@pytest.mark.parametrize(
    ("v", "a", "w", "alpha"), [(0.5, 0.0, 0.0, 0.0), (0.8, 3.0, 4.0, -90.0), (0.0, 0.0, 8.0, 50.0)]
)
def test_without_an_error_there_is_feed_forward_only(v, a, w, alpha):
    ref = reference(v=v, a=a, w=w, alpha=alpha)
    got = command(ref, ref.pose, wheels(v, w))
    accelerations = GAINS.driving_v_s2_per_rad * wheels(a, 0) + (
        GAINS.turning_v_s2_per_rad * wheels(0, alpha)
    )
    expected = GAINS.back_emf_v_s_per_rad * wheels(v, w) + accelerations
    np.testing.assert_allclose(got.volts, expected, rtol=1e-14)
    np.testing.assert_allclose(got.integral, 0.0, atol=1e-15)


def test_a_heading_error_of_whole_turns_is_none():
    ref = reference(pose=(0.2, 0.3, 0.4))
    once = command(ref, (0.2, 0.3, 0.3))
    thrice = command(ref, (0.2, 0.3, 0.3 - 4 * np.pi))
    np.testing.assert_allclose(thrice.volts, once.volts, rtol=1e-12)  # roundings of 4 pi


@pytest.mark.parametrize(
    ("ahead", "right", "turned", "faster"),
    [(0.01, 0, 0, (1, 1)), (0, 0.01, 0, (1, -1)), (0, 0, 0.1, (1, -1))],
    ids=["behind", "left of the way", "turned left"],
)
def test_wheels_turn_so_that_an_error_falls(ahead, right, turned, faster):
    """The reference is ahead, to the right, or turned clockwise (to the right)."""
    heading = 0.7
    ref = reference(pose=(0.0, 0.0, heading))
    cos, sin = np.cos(heading), np.sin(heading)
    pose = np.array([-cos * ahead + sin * right, -sin * ahead - cos * right, heading - turned])
    moved = command(ref, pose, gains=IDEAL).volts - wheels(0.5 * np.cos(turned), 0.0)
    assert np.all(np.sign(moved) == faster)


@partial(jax.jit, static_argnames="steps")
def ideal_unicycle(pose, v, steps, dt):
    """A mouse whose wheels do what they are told, beside a straight way along x."""

    def step(carry, _):
        pose, x = carry
        ref = Reference(jnp.stack([x, 0.0 * x, 0.0 * x]), v, 0.0 * v, 0.0 * v, 0.0 * v)
        left, right = track(ref, pose, jnp.zeros(2), jnp.zeros(2), False, R, W, IDEAL, dt).volts
        speed, rate = 0.5 * (left + right) * R, (left - right) * R / W
        middle = pose[2] + 0.5 * rate * dt
        pose = pose + dt * jnp.stack([speed * jnp.cos(middle), speed * jnp.sin(middle), rate])
        return (pose, x + v * dt), pose

    return jax.lax.scan(step, (pose, jnp.zeros(())), None, length=steps)[1]


def test_a_sideways_error_dies_out_critically_damped():
    """e(s) = e0 (1 + s/lambda) exp(-s/lambda), s = v t, for small errors and k_t = 0."""
    e0, v, dt, steps = 1e-4, 0.5, 1e-4, 8000
    path = np.asarray(ideal_unicycle(jnp.array([0.0, e0, 0.0]), jnp.asarray(v), steps, dt))
    s = v * dt * np.arange(1, steps + 1) / IDEAL.recovery_m
    # Angles are 1e-3, so linear to 1e-6; Euler's method is off by dt v/lambda = 8e-4.
    np.testing.assert_allclose(path[:, 1], e0 * (1 + s) * np.exp(-s), rtol=0, atol=1e-3 * e0)


def test_a_lag_dies_out_exponentially():
    """e' = -k_x e: straight behind, nothing else moves."""
    e0, v, dt, steps = 0.01, 0.5, 1e-4, 8000
    path = np.asarray(ideal_unicycle(jnp.array([-e0, 0.0, 0.0]), jnp.asarray(v), steps, dt))
    t = dt * np.arange(1, steps + 1)
    lag = v * t - path[:, 0]
    # Euler's method: (1 - k dt)^n against exp(-k n dt), k dt/2 of it at most.
    np.testing.assert_allclose(
        lag, e0 * np.exp(-IDEAL.ahead_per_s * t), rtol=0, atol=e0 * IDEAL.ahead_per_s * dt
    )
    assert np.all(path[:, 1:] == 0.0)


@partial(jax.jit, static_argnames="steps")
def driven(pose, load_v, steps):
    """A mouse with motors and a constant load, on a circle at 0.5 m/s."""
    v, w = 0.5, 2.0

    def step(carry, _):
        pose, omega, integral, at = carry
        zero = jnp.zeros(())
        ref = Reference(at, jnp.asarray(v), zero, jnp.asarray(w), zero)
        out = track(ref, pose, omega, integral, False, R, W, GAINS, DT)
        target = (out.volts - load_v) / GAINS.back_emf_v_s_per_rad
        decay = jnp.exp(-DT * GAINS.back_emf_v_s_per_rad / GAINS.driving_v_s2_per_rad)
        omega = target + (omega - target) * decay
        speed, rate = 0.5 * jnp.sum(omega) * R, (omega[0] - omega[1]) * R / W

        def move(pose, speed, rate):
            middle = pose[2] + 0.5 * rate * DT
            return pose + DT * jnp.stack([speed * jnp.cos(middle), speed * jnp.sin(middle), rate])

        return (move(pose, speed, rate), omega, out.integral, move(at, v, w)), (pose - at, out)

    start = jnp.array([0.0, 0.0, 0.0])
    carry = (start + pose, jnp.zeros(2), jnp.zeros(2), start)
    return jax.lax.scan(step, carry, None, length=steps)[1]


@pytest.mark.parametrize("load_v", [0.0, 0.5])
def test_errors_are_driven_to_zero_with_motors_and_a_load(load_v):
    errors, out = driven(jnp.array([-0.01, 0.01, 0.1]), load_v, 4000)
    errors = np.asarray(errors)
    # After 8 s, 64 times 1/k_x; what is left is the tick between reference and pose: 1 mm.
    assert np.max(np.abs(errors[-500:, :2])) < 1e-3
    assert np.max(np.abs(errors[-500:, 2])) < 1e-2
    carried = GAINS.integral_v_per_rad * np.asarray(out.integral[-1])
    np.testing.assert_allclose(carried, load_v, atol=0.05)


def test_volts_end_at_the_supply_and_the_integral_waits():
    ref = reference(v=0.5)
    behind = np.asarray(ref.pose) - 10.0 * np.array([np.cos(0.4), np.sin(0.4), 0.0])
    got = command(ref, behind, integral=(0.3, -0.2))
    np.testing.assert_array_equal(got.volts, [7.4, 7.4])
    np.testing.assert_array_equal(got.integral, [0.3, -0.2])
    ahead = 2 * np.asarray(ref.pose) - behind
    np.testing.assert_array_equal(command(ref, [*ahead[:2], 0.4]).volts, [-7.4, -7.4])


def test_one_wheel_may_saturate_alone():
    ref = reference(v=1.0, w=0.0)
    got = command(ref, ref.pose, measured=(wheels(1.0, 0)[0] - 10, -1e3))
    assert abs(got.volts[0]) < 7.4
    assert got.volts[1] == 7.4
    np.testing.assert_allclose(got.integral, [10 * DT, 0.0], rtol=1e-12)


def test_at_rest_there_are_no_volts_and_no_integral():
    got = command(reference(), (0.0, 0.0, 0.0), (3.0, 4.0), (0.5, 0.6), resting=True)
    np.testing.assert_array_equal(got.volts, [0.0, 0.0])
    np.testing.assert_array_equal(got.integral, [0.0, 0.0])
