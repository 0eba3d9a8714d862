"""The implicit step of servos against the law that defines it: its solution is the only one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.control import falling_torques
from mime.control.falling_torques import implicit_step
from mime.control.joint_friction import coulomb_step
from mime.control.positive_definite import solve_held
from mime.control.servo_lines import servo_lines
from mime.native.folding import jit_folding

DT = 1e-3


def arms(n, count, seed=0):
    """Random arms: strongly coupled inertias, gains over eight decades, some without limits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, n, n))
    H = X @ X.transpose(0, 2, 1) + 0.02 * np.eye(n)
    v = 3 * rng.normal(size=(count, n))
    K = 10 ** rng.uniform(-2, 6, (count, n)) * (rng.random((count, n)) < 0.9)
    b = K * 3 * rng.normal(size=(count, n)) + 30 * rng.normal(size=(count, n))
    T = 10 ** rng.uniform(0, 3, (count, n))
    V = 10 ** rng.uniform(-1, 1, (count, n))
    T[rng.random((count, n)) < 0.2] = np.inf
    V[rng.random((count, n)) < 0.3] = np.inf
    friction = rng.uniform(0, 1000, (count, n)) * (rng.random((count, n)) < 0.5)
    return H, v, b, K, T, V, friction


def stepped(problem):
    """As machine code, each arm in a lane."""

    def step(_, H, v, *law):
        return implicit_step(H, H @ v, servo_lines(*law), DT, solve_held, v)

    compiled = jit_folding(step)
    return map(np.asarray, jax.jit(jax.vmap(lambda *arm: compiled(None, *arm)))(*problem))


def assert_lawful(problem, v, tau, rtol=1e-9):
    """H (v - v_free) = dt (servo - friction), the servo within its limits, friction opposing.

    The residual of the linear solve grows with the condition of H, up to 1e5 here.
    """
    H, v_free, b, K, T, V, friction = problem
    pushed = np.einsum("kij,kj->ki", H, v - v_free) / DT
    size = np.einsum("kij,kj->ki", np.abs(H), np.abs(v) + np.abs(v_free)) / DT + np.abs(tau)
    np.testing.assert_allclose(pushed / size, tau / size, atol=rtol)
    slack = rtol * (size + np.abs(b) + K * np.abs(v))
    wanted = b - K * v
    # What the servo may do at this velocity; anything between where the line is upright.
    low, high = np.clip(wanted, -T, T), np.clip(wanted, -T, T)
    near = rtol * (1 + np.abs(v))
    low = np.where(v >= V - near, -T, low)
    high = np.where(v > V + near, -T, high)
    high = np.where(v <= -V + near, T, high)
    low = np.where(v < -V - near, T, low)
    low = low - friction * np.where(v == 0, 1, np.sign(v))
    high = high - friction * np.where(v == 0, -1, np.sign(v))
    assert np.all(tau >= low - slack)
    assert np.all(tau <= high + slack)


@pytest.mark.small("8")
@pytest.mark.parametrize("passes", [falling_torques.JOINT_PASSES, 0])
def test_every_arm_obeys_the_law_also_when_only_the_first_joint_may_move(monkeypatch, passes):
    monkeypatch.setattr(falling_torques, "JOINT_PASSES", passes)
    problem = arms(4, 1000)
    v, tau = stepped(problem)
    assert_lawful(problem, v, tau)
    T, V, friction = problem[4:]
    servo = np.abs(tau + friction * np.sign(v))
    counts = [np.isclose(np.abs(v), V), np.isclose(servo, T), v == 0]
    assert all(count.mean() > 0.02 for count in counts), "all kinds of segments occur"


def test_without_a_servo_it_is_the_step_of_dry_friction():
    H, v, _, _, _, _, friction = arms(4, 200, seed=2)
    none, free = np.zeros_like(v), np.full_like(v, np.inf)
    ours, _ = stepped((H, v, none, none, free, free, friction))
    theirs = np.asarray(jax.jit(jax.vmap(coulomb_step))(H, v, DT * friction))

    def cost(x):
        energy = 0.5 * np.einsum("ki,kij,kj->k", x - v, H, x - v)
        return energy + DT * np.sum(friction * np.abs(x), 1)

    # Its sweeps do not settle for some of such strongly coupled arms: there ours is the minimum.
    same = np.abs(ours - theirs).max(1) < 1e-8
    assert same.mean() > 0.9
    assert np.all(cost(ours)[~same] < cost(theirs)[~same])


def test_gradients_are_those_of_the_solution():
    problem = [x[0] for x in arms(2, 40, seed=3)]
    H, v_free, b, K, T, V, friction = problem
    T, V = np.where(np.isinf(T), 50.0, T), np.where(np.isinf(V), 2.0, V)

    def result(x):
        lines = servo_lines(b * (1 + 2 * x), K, T * (1 - x), V * (1 + x), friction * (1 + 3 * x))
        heavier = jnp.asarray(H) * (1 + x)
        v, _ = implicit_step(heavier, heavier @ v_free, lines, DT, solve_held, jnp.asarray(v_free))
        return jnp.sum(v * np.arange(1.0, 3.0))

    h = 1e-6
    compiled = jit_folding(lambda _, x: result(x))
    central = (compiled(None, jnp.float64(h)) - compiled(None, jnp.float64(-h))) / (2 * h)
    slope = jax.grad(lambda x: compiled(None, x))(jnp.float64(0.0))
    np.testing.assert_allclose(slope, central, rtol=1e-6)


def test_the_step_does_not_depend_on_where_the_search_begins():
    H, v_free, *law = arms(4, 200, seed=5)

    def step(_, H, p, start, *law):
        return implicit_step(H, p, servo_lines(*law), DT, solve_held, start)

    compiled = jit_folding(step)
    many = jax.jit(jax.vmap(lambda *arm: compiled(None, *arm)))
    p = np.einsum("kij,kj->ki", H, v_free)
    v, _ = many(H, p, v_free, *law)
    for start in (np.zeros_like(v_free), -100 * v_free):
        other, _ = many(H, p, start, *law)
        # The same segments, or neighbours that meet there: the linear system has condition 1e5.
        np.testing.assert_allclose(other, v, rtol=1e-8, atol=1e-10)
