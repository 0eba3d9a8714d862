"""The gyroscope: each error against its definition, noise by its integral, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.core.problem import ParameterError
from mime.nodes.sensing.gyro import GyroNode

DT = 1e-3


@jax.jit
def scan(gyro, rates):
    def step(state, rate):
        state = gyro.update(state, {"turn_rate": rate}, DT)
        return state, gyro.compute_boundary_fluxes(state, {"turn_rate": rate}, DT)

    return jax.lax.scan(step, gyro.initial_state(), rates)[1]["measured_turn_rate"]


def measure(rates, **options):
    return np.asarray(scan(GyroNode("gyro", DT, **options), jnp.asarray(rates)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bandwidth_hz": 50.0, "bias_walk_rad_per_s_sqrt_s": 1e-3},
        {"noise_density_rad_per_s_sqrt_hz": 1e-4},
    ],
)
def test_metadata_is_whole(options):
    assert GyroNode("gyro", DT, **options).validate_mime_consistency() == []


def test_the_ideal_gyro_measures_the_rate():
    rates = np.linspace(-9, 9, 50)
    np.testing.assert_array_equal(measure(rates), rates)


def test_scale_bias_range_and_steps_come_in_this_order():
    rates = np.linspace(-9, 9, 501)
    ours = measure(
        rates, scale_error=0.02, bias_rad_per_s=0.1, range_rad_per_s=5.0, resolution_rad_per_s=0.03
    )
    theirs = 0.03 * np.round(np.clip(1.02 * rates + 0.1, -5, 5) / 0.03)
    np.testing.assert_allclose(ours, theirs, atol=1e-15)


@pytest.mark.parametrize("f", [1.0, 30.0, 1000.0])
def test_bandwidth_is_the_first_order_step_response(f):
    t = DT * np.arange(1, 101)
    ours = measure(np.full(100, 2.0), bandwidth_hz=f)
    np.testing.assert_allclose(ours, -2.0 * np.expm1(-2 * np.pi * f * t), rtol=1e-13)


@pytest.mark.small("options1")
@pytest.mark.parametrize(
    "options",
    [{"noise_rad_per_s": 0.02}, {"noise_density_rad_per_s_sqrt_hz": 0.02 * (2 * DT) ** 0.5}],
)
def test_noise_has_its_deviation_and_its_density_its_angle_walk(options):
    noise = measure(np.zeros(40_000), **options)
    assert np.std(noise) == pytest.approx(0.02, rel=0.02)  # 4 / sqrt(2 · 40000) and a margin
    if "noise_density_rad_per_s_sqrt_hz" in options:
        angles = DT * noise.reshape(400, 100).sum(axis=1)  # over 0.1 s
        expected = options["noise_density_rad_per_s_sqrt_hz"] ** 2 * 0.1 / 2
        assert np.var(angles) == pytest.approx(expected, rel=0.3)  # 4 sqrt(2 / 400)


def test_the_bias_walk_is_a_sum_of_independent_steps_of_k_root_dt():
    steps = np.diff(measure(np.zeros(10_000), bias_walk_rad_per_s_sqrt_s=0.1))
    assert np.std(steps) == pytest.approx(0.1 * DT**0.5, rel=0.03)  # 4 / sqrt(2 · 10000)
    lagged = np.mean(steps[1:] * steps[:-1]) / np.var(steps)
    assert abs(lagged) < 0.04  # 4 / sqrt(10000), so the variance grows as K² t
    assert not np.array_equal(
        steps, np.diff(measure(np.zeros(10_000), bias_walk_rad_per_s_sqrt_s=0.1, seed=1))
    )


def test_noise_and_walk_are_independent():
    gyro = GyroNode("gyro", DT, noise_rad_per_s=1.0, bias_walk_rad_per_s_sqrt_s=1.0)
    state, noise, drift = gyro.initial_state(), [], []
    for _ in range(300):
        state = gyro.update(state, {}, DT)
        noise.append(float(state["noise"]))
        drift.append(float(state["bias_drift"]))
    assert abs(np.corrcoef(noise[1:], np.diff(drift))[0, 1]) < 0.23  # 4 / sqrt(300)


def test_the_gradient_is_zero_or_straight_through():
    for straight, slope in ((False, 0.0), (True, 1.01)):
        gyro = GyroNode(
            "g", DT, scale_error=0.01, resolution_rad_per_s=0.1, straight_through=straight
        )
        read = lambda w: gyro.compute_boundary_fluxes({}, {"turn_rate": w}, DT)  # noqa: B023, E731
        assert float(jax.grad(lambda w: read(w)["measured_turn_rate"])(1.0)) == pytest.approx(slope)  # noqa: B023


def test_single_precision_stays_single():
    single = lambda tree: jax.tree.map(  # noqa: E731
        lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree
    )
    gyro = GyroNode(
        "g",
        DT,
        noise_density_rad_per_s_sqrt_hz=1e-3,
        bias_walk_rad_per_s_sqrt_s=1e-3,
        bandwidth_hz=30.0,
    )
    state = single(gyro).update(single(gyro.initial_state()), {}, DT)
    fluxes = single(gyro).compute_boundary_fluxes(state, {}, DT)
    assert fluxes["measured_turn_rate"].dtype == jnp.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"noise_density_rad_per_s_sqrt_hz": 1.0, "noise_rad_per_s": 1.0},
            "says the same as noise_rad_per_s. Give one",
        ),
        ({"bandwidth_hz": 0.0}, "bandwidth_hz must be > 0 Hz, got 0"),
        ({"scale_error": -1.0}, "scale_error must be > -1"),
    ],
)
def test_what_no_gyro_can_have_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        GyroNode("gyro", DT, **options)
