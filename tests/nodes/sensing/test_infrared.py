"""Infrared counts: the given case, inverse, gradients, what lies outside."""

import jax
import numpy as np
import pytest

from mime.core.problem import ParameterError
from mime.nodes.sensing.infrared import adc_from_distance, distance_from_adc

IR = (1.214233, 0.023794, 284.688506)


def test_a_thousand_counts_are_45_mm():
    assert float(distance_from_adc(1000.0, *IR)) == pytest.approx(0.04494939885, abs=5e-12)
    assert float(distance_from_adc(1030.0, *IR, offset=30.0)) == pytest.approx(0.04494939885)


def test_each_is_the_others_inverse_and_so_are_the_slopes():
    d = np.linspace(0.01, 0.2, 50)
    counts = adc_from_distance(d, *IR, 12.0)
    np.testing.assert_allclose(distance_from_adc(counts, *IR, 12.0), d, atol=1e-14)
    assert np.all(np.diff(counts) < 0)  # less light from further away
    there = jax.jit(jax.vmap(jax.grad(lambda d: adc_from_distance(d, *IR))))(d)
    counts = adc_from_distance(d, *IR)
    back = jax.jit(jax.vmap(jax.grad(lambda n: distance_from_adc(n, *IR))))(counts)
    np.testing.assert_allclose(there * back, 1.0, rtol=1e-11)


@pytest.mark.parametrize(
    ("function", "value"), [(distance_from_adc, 100.0), (adc_from_distance, 2.0)]
)
def test_without_light_it_is_the_limit_with_a_finite_gradient(function, value):
    limit, slope = jax.jit(lambda x: jax.value_and_grad(function)(x, *IR))(value)
    assert float(limit) == (IR[0] if function is distance_from_adc else IR[2])
    assert float(slope) == 0.0


def test_a_curve_that_grows_with_distance_is_refused():
    with pytest.raises(ParameterError, match="b must be > 0"):
        distance_from_adc(1000.0, 1.2, -0.1, 284.0)
