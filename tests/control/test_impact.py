"""Blows at hard stops: the law of impact against enumeration, its energy, its gradient."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.control.impact import complementary_impulses, velocities_after_blow
from sizes import sized

MANY = sized(400, small=120)


def random_states(n, seed):
    """Mass matrices with condition numbers up to about 1e3, velocities, stops at random sides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(MANY, n, n))
    H = X @ X.transpose(0, 2, 1) + 0.05 * np.eye(n)
    side = rng.choice([-1.0, 0.0, 1.0], size=(MANY, n))
    return H, rng.normal(size=(MANY, n)), side


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, None))
def after_blow(H, v, side, e):
    return velocities_after_blow(H, v, jnp.diag(side), side != 0, e)


def by_enumeration(A, b):
    """The one subset of stops that can push: all 2^k are tried."""
    k = len(b)
    for count in range(k + 1):
        for subset in map(list, itertools.combinations(range(k), count)):
            pushes = np.zeros(k)
            if subset:
                pushes[subset] = np.linalg.solve(A[np.ix_(subset, subset)], -b[subset])
            if (pushes >= 0).all() and (A @ pushes + b >= -1e-11).all():
                return pushes
    raise AssertionError("a positive definite problem has a solution")


@pytest.mark.small("5")
@pytest.mark.parametrize("n", range(1, 7))
def test_several_stops_at_once_agree_with_the_enumeration_of_all_subsets(n):
    H, v, side = random_states(n, seed=n)
    found = np.asarray(after_blow(H, v, side, 0.0))
    for k in range(MANY):
        J = np.diag(side[k])[side[k] != 0]
        response = np.linalg.solve(H[k], J.T)
        pushes = by_enumeration(J @ response, J @ v[k])
        # Two solves of condition 1e3: 1e3 eps.
        np.testing.assert_allclose(found[k], v[k] + response @ pushes, rtol=0, atol=1e-12)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_blow_never_raises_the_kinetic_energy_and_leaves_every_stop(e):
    H, v, side = random_states(5, seed=10)
    after = np.asarray(after_blow(H, v, side, e))

    def energy(u):
        return 0.5 * np.einsum("bi,bij,bj->b", u, H, u)

    assert np.max(energy(after) / energy(v)) <= 1 + 1e-13  # a few roundings
    assert np.min(side * (after + e * v)) >= -1e-12
    if e == 1.0:
        np.testing.assert_allclose(energy(after), energy(v), rtol=1e-12)


def test_without_a_stop_nothing_changes_to_the_last_bit():
    H, v, side = random_states(5, seed=11)
    np.testing.assert_array_equal(after_blow(H, v, np.zeros_like(side), 0.0), v)


def test_a_single_stop_is_the_textbooks_formula():
    H, v, _ = random_states(5, seed=12)
    side = np.zeros((MANY, 5))
    side[:, 2] = 1.0
    inverse = np.linalg.inv(H)
    push = np.maximum(-v[:, 2] / inverse[:, 2, 2], 0.0)
    expected = v + 1.5 * inverse[:, :, 2] * push[:, None]
    np.testing.assert_allclose(after_blow(H, v, side, 0.5), expected, atol=1e-12)


def test_the_gradient_is_that_of_the_solution():
    H, v, side = (x[0] for x in random_states(4, seed=13))
    side = np.array([1.0, -1.0, 0.0, 1.0])

    @jax.jit
    @jax.value_and_grad
    def f(v):
        return jnp.sum(velocities_after_blow(jnp.asarray(H), v, jnp.diag(side), side != 0) ** 2)

    step = 1e-6
    for i, slope in enumerate(np.asarray(f(v)[1])):
        ahead, behind = (f(v + s * step * np.eye(4)[i])[0] for s in (1, -1))
        # Central differences: rounding 1e-16/1e-6, curvature 1e-12.
        assert float(slope) == pytest.approx(float(ahead - behind) / (2 * step), abs=1e-8)


def test_single_precision_stays_single():
    H, v, side = (jnp.asarray(x[0], jnp.float32) for x in random_states(3, seed=14))
    after = jax.eval_shape(velocities_after_blow, H, v, jnp.diag(side), side != 0)
    assert after.dtype == jnp.float32


def test_impulses_are_complementary_on_a_nearly_singular_problem():
    A = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    b = np.array([-1.0, -1.0])
    pushes = np.asarray(jax.jit(complementary_impulses)(A, b, np.ones(2, bool)))
    assert float(pushes.min()) >= 0
    np.testing.assert_allclose(A @ pushes + b, 0.0, atol=1e-9)
