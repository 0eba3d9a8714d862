"""The optimiser against SciPy's, on problems whose minima SciPy or paper knows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, rosen

from mime.optimise.descent import KEPT_BY, minimise, minimise_by, slopes_by_hand


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def free(f):
    return lambda x: (f(x), jnp.zeros(0))


def test_rosenbrock_from_many_starts_at_once():
    starts = np.random.default_rng(0).normal(0.0, 1.0, (6, 4)) + 0.5
    found = minimise(free(rosenbrock), starts, rounds=400)
    best = minimize(rosen, starts[found.best], method="L-BFGS-B", options={"ftol": 1e-15})
    np.testing.assert_allclose(found.x[found.best], best.x, atol=1e-4)
    assert found.cost[found.best] < 1e-9
    assert found.is_complete


def test_bounds_are_kept_and_active_where_scipy_says():
    low, high = np.array([-2.0, -2.0, -2.0]), np.array([0.5, 2.0, 0.3])
    start = np.array([[-1.0, 0.5, 0.0]])
    found = minimise(free(rosenbrock), start, low, high, rounds=400)
    options = {"ftol": 1e-15, "gtol": 1e-10}
    bounds = list(zip(low, high, strict=True))
    best = minimize(rosen, start[0], bounds=bounds, method="L-BFGS-B", options=options)
    np.testing.assert_allclose(found.x[0], best.x, atol=1e-4)


def test_limits_that_bind_and_limits_that_do_not():
    def problem(x):  # nearest point to (2, 1) in the unit disc, right of x = -5
        return jnp.sum((x - jnp.array([2.0, 1.0])) ** 2), jnp.array([x @ x - 1.0, -x[0] - 5.0])

    found = minimise(problem, np.array([[0.0, 0.0], [-1.0, 2.0]]))
    np.testing.assert_allclose(found.x, np.tile([2.0, 1.0], (2, 1)) / np.sqrt(5.0), atol=1e-4)
    assert np.all(found.excess <= KEPT_BY)

    def by_hand(x):
        limits = np.array([x @ x - 1.0, -x[0] - 5.0])
        off = x - [2.0, 1.0]
        return off @ off, limits, lambda by: 2 * off + by[0] * 2 * x - by[1] * np.array([1.0, 0.0])

    same = minimise_by(slopes_by_hand(by_hand), 2, np.array([[0.0, 0.0], [-1.0, 2.0]]))
    np.testing.assert_allclose(same.x, found.x, rtol=1e-9)
    assert same.rounds == found.rounds


def test_hock_schittkowski_43():
    """Rosen and Suzuki: x = (0, 1, 2, -1), f = -44."""

    def problem(x):
        a, b, c, d = x
        f = a**2 + b**2 + 2 * c**2 + d**2 - 5 * a - 5 * b - 21 * c + 7 * d
        limits = [
            a**2 + b**2 + c**2 + d**2 + a - b + c - d - 8,
            a**2 + 2 * b**2 + c**2 + 2 * d**2 - a - d - 10,
            2 * a**2 + b**2 + c**2 + 2 * a - b - d - 5,
        ]
        return f, jnp.stack(limits)

    found = minimise(problem, np.zeros((1, 4)), passes=12)
    assert found.cost[0] == pytest.approx(-44.0, abs=2e-3)
    np.testing.assert_allclose(found.x[0], [0.0, 1.0, 2.0, -1.0], atol=5e-3)


def test_where_the_cost_is_not_finite_no_step_ends():
    def problem(x):  # log of a negative number beyond 1
        return jnp.sum(-jnp.log(1.0 - x) - 3.0 * x), jnp.zeros(0)

    found = minimise(problem, np.array([[0.0], [0.9], [1.5]]))
    np.testing.assert_allclose(found.x[:2, 0], 2 / 3, atol=1e-5)
    assert np.isinf(found.cost[2])
    assert found.best in (0, 1)


def test_limits_that_no_point_keeps_are_told():
    found = minimise(lambda x: (x @ x, jnp.array([1.0 - x[0], x[0]])), np.zeros((1, 1)))
    assert found.excess[found.best] == pytest.approx(0.5, abs=0.05)


def test_an_interrupt_ends_with_the_best_so_far():
    def stop(done):
        if done == 8:
            raise KeyboardInterrupt

    start = np.array([[-1.0, 1.5, 0.3]])
    found = minimise(free(rosenbrock), start, tell=stop)
    assert not found.is_complete
    assert found.cost[0] < rosen(start[0])
    assert jax.config.jax_enable_x64
