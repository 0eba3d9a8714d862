"""Quadratics within bounds and among bodies that exist: against SciPy's active sets and factors."""

import numpy as np
import pytest
from scipy.optimize import least_squares, lsq_linear

from mime.fitting.bounded import Cone, Region
from sizes import sized

SEEDS = sorted({*range(sized(60, small=4)), 30, 48})
"""In 30 and 48 a Newton step pushes values out of a bound that their slope leaves inwards."""
LEAST = 1e-6
"""The last weight of the barrier: a matrix of d rows costs d times as much at most."""


def box(low, high, start, width=np.inf):
    return Region(start, low, high, np.full(len(start), width), ())


@pytest.mark.parametrize("seed", SEEDS)
def test_values_end_where_scipys_bounded_least_squares_ends_and_on_the_bounds_exactly(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 30))
    W, aim = random.normal(size=(n, n)) * np.geomspace(1, 1e4, n), random.normal(size=n)
    low, high = np.zeros(n), np.where(random.random(n) < 0.5, 0.5, np.inf)
    expected = lsq_linear(W, W @ aim, (low, high), method="bvls", tol=1e-14)
    u = box(low, high, np.full(n, 0.3)).least(W, aim)
    # The gain that is left is below 1e-8, and gain = |W off|² / 2.
    assert np.linalg.norm(W @ (u - expected.x)) < 2e-4
    np.testing.assert_array_equal(u == low, expected.active_mask == -1)
    np.testing.assert_array_equal(u == high, expected.active_mask == 1)


def symmetric(random, d):
    """A basis of symmetric matrices, not the plain one."""
    made = random.normal(size=(d * (d + 1) // 2, d, d))
    return made + made.transpose(0, 2, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_matrix_stays_positive_definite_and_no_other_is_nearer(seed):
    """SciPy looks for the factor L of P = L Lᵀ, which has no bounds."""
    random = np.random.default_rng(seed)
    d = 3 + seed % 2
    slopes = symmetric(random, d)
    n = len(slopes)
    A = slopes.reshape(n, -1).T
    start = np.linalg.lstsq(A, np.eye(d).ravel(), rcond=None)[0]
    aim = start + 3.0 * random.normal(size=n)
    W = random.normal(size=(n, n)) * 10.0
    cone = Cone(np.arange(n), np.zeros((d, d)), slopes).in_its_own(start)
    free = np.full(n, np.inf)
    u = Region(start, -free, free, free, (cone,)).least(W, aim)
    assert np.linalg.eigvalsh(cone.at(u)).min() > 0
    if (values := np.linalg.eigvalsh(cone.at(aim))).min() > 0:  # it is there itself
        D = np.sum(values - np.log(values) - 1.0)
        assert 0.5 * np.sum((W @ (u - aim)) ** 2) <= LEAST * D  # of the barrier
        return

    # The slope of the quadratic as a matrix: Z ⪰ 0 with Z P = 0 proves that no other is nearer.
    basis = cone.slopes.reshape(n, -1)
    Z = np.linalg.lstsq(basis, W.T @ (W @ (u - aim)), rcond=None)[0].reshape(d, d)
    least = 2.0 * LEAST * (1.0 + np.trace(cone.at(u)))  # D's slope is 1 - P⁻¹
    assert np.linalg.eigvalsh(0.5 * (Z + Z.T)).min() > -least
    assert abs(np.trace(Z @ cone.at(u))) < least * d

    def cost(values):
        L = np.zeros((d, d))
        L[np.tril_indices(d)] = values
        return W @ (np.linalg.lstsq(A, (L @ L.T).ravel(), rcond=None)[0] - aim)

    tried = least_squares(cost, random.normal(size=n), method="lm")
    assert float(np.sum((W @ (u - aim)) ** 2)) < 2.0 * tried.cost + 2.0 * d * least


def test_a_matrix_that_has_rounded_to_a_singular_one_is_a_place_to_go_on_from():
    random = np.random.default_rng(3)
    slopes = symmetric(random, 3)
    A, free = slopes.reshape(6, -1).T, np.full(6, np.inf)
    start = np.linalg.lstsq(A, np.eye(3).ravel(), rcond=None)[0]
    aim, W = start + random.normal(size=6), 10.0 * random.normal(size=(6, 6))
    cone = Cone(np.arange(6), np.zeros((3, 3)), slopes).in_its_own(start)
    region = Region(start, -free, free, free, (cone,))
    singular = np.linalg.lstsq(A, np.diag([1.0, 1.0, -1e-15]).ravel(), rcond=None)[0]
    costs = [np.sum((W @ (region.least(W, aim, at) - aim)) ** 2) for at in (None, singular)]
    # Both end within the last weight of the barrier, twice for each of three rows.
    np.testing.assert_allclose(costs[1], costs[0], atol=2 * 3 * LEAST, rtol=1e-6)


def test_what_a_log_leaves_open_stays_at_the_start():
    random = np.random.default_rng(0)
    slopes = symmetric(random, 3)
    start = np.linalg.lstsq(slopes.reshape(6, -1).T, np.eye(3).ravel(), rcond=None)[0]
    start, free = np.append(start, 2.0), np.full(7, np.inf)
    cone = Cone(np.arange(6), np.zeros((3, 3)), slopes).in_its_own(start)
    width = np.append(np.full(6, np.inf), 100.0)
    region = Region(start, -free, free, width, (cone,))
    W = np.zeros((1, 7))
    np.testing.assert_allclose(region.least(W, start), start, rtol=1e-12)
    W[0, :6] = 1e3 * random.normal(size=6)
    aim = start + 0.1
    u = region.least(W, aim)
    # The gain that is left is below 1e-8, and gain = |W off|² / 2.
    assert abs(W @ (u - aim))[0] < 2e-4
    assert u[6] == start[6]
    # Of all u with that sum the nearest in the metric of D at the start, to first order.
    A = cone.slopes.reshape(6, -1).T
    metric = np.linalg.inv(A.T @ A)
    nearest = metric @ W[0, :6] * (W[0] @ (aim - start)) / (W[0, :6] @ metric @ W[0, :6])
    moved = u[:6] - start[:6]
    assert np.linalg.norm(A @ (moved - nearest)) < np.linalg.norm(A @ nearest) ** 2


def test_what_is_known_of_a_body_beforehand_holds_it():
    """Far from the cone's end D is its curvature: the mean of two, by their variances."""
    random = np.random.default_rng(1)
    slopes = symmetric(random, 3)
    A = slopes.reshape(6, -1).T
    start = np.linalg.lstsq(A, np.eye(3).ravel(), rcond=None)[0]
    aim = start + 1e-4 * random.normal(size=6)
    cone = Cone(np.arange(6), np.zeros((3, 3)), slopes, precision=25.0).in_its_own(start)
    free, W = np.full(6, np.inf), 3.0 * random.normal(size=(6, 6))
    u = Region(start, -free, free, free, (cone,)).least(W, aim)
    rows = cone.information(6)
    H = rows.T @ rows
    np.testing.assert_allclose(H, 25.0 * A.T @ A, rtol=1e-12, atol=1e-12 * np.abs(H).max())
    expected = np.linalg.solve(W.T @ W + H, W.T @ W @ aim + H @ start)
    # The third derivative of D: relative to the step as large as the step.
    assert np.linalg.norm(u - expected) < 1e-3 * np.linalg.norm(aim - start)
