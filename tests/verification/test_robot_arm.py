"""The arm's independent evidence, MIME-VER-120 to 124: three bars in a vertical plane, in NumPy.

The closed forms are those of point positions p(q) and their differences: they share no code with
MIME. `mime verify 120-124` measures the same at more states, each with a deliberate fault.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.control.kinematics import (
    forward_dynamics,
    frame_pose,
    link_world_poses,
    mass_matrix,
    parse_urdf,
)
from mime.control.kinematics.rnea import nonlinear_bias
from mime.models import model_path
from mime.nodes.actuation.robot_arm import RobotArmNode

G = 9.80665
GRAVITY = np.array([0.0, 0.0, -G])
LENGTHS = np.array([0.4, 0.3, 0.2])
MASSES = np.array([2.0, 1.2, 0.6])
SUMS = np.tril(np.ones((3, 3)))
LEVERS = np.tril(np.tile(LENGTHS, (3, 1)), -1) + np.diag(LENGTHS / 2)
"""How far each bar carries each centre of mass."""
Q = np.random.default_rng(120).uniform(-2.5, 2.5, (20, 3))
QD = np.random.default_rng(122).normal(size=(20, 3))
DT = 1e-3


@cache
def tree():
    return parse_urdf(model_path("planar_arm_3link"))


def inertias():
    """About each centre, across the plane, as the file has them."""
    return tree().inertias[:, 1, 1]


def plane(q, qd):
    """M, c + g of the bars, by d'Alembert on the centres of mass c_i = Σ l_ij e(a_j)."""
    a, w = SUMS @ q, SUMS @ qd
    e, n = np.array([np.cos(a), np.sin(a)]), np.array([-np.sin(a), np.cos(a)])
    jacobian = np.einsum("ij,xj,jk->ixk", LEVERS, n, SUMS)
    M = np.einsum("i,ixk,ixm->km", MASSES, jacobian, jacobian)
    M += SUMS.T @ np.diag(inertias()) @ SUMS
    centripetal = -np.einsum("ij,xj,j->ix", LEVERS, e, w**2)
    upwards = np.array([0.0, G])
    return M, np.einsum("i,ixk,ix->k", MASSES, jacobian, centripetal + upwards)


def test_ver120_forward_kinematics():
    for q in Q:
        a = SUMS @ q
        bars = np.array([np.cos(a), np.sin(a)])
        tip = np.asarray(frame_pose(tree(), q, "tool"))
        np.testing.assert_allclose(tip[[0, 2]], bars @ LENGTHS, atol=1e-10)
        half = a[2] / 2  # a turn by a about -y; q and -q are one turn
        turn = np.array([np.cos(half), 0, -np.sin(half), 0])
        assert abs(turn @ tip[3:]) == pytest.approx(1.0, abs=1e-12)
        centres = np.asarray(link_world_poses(tree(), q))[:, [0, 2]]
        np.testing.assert_allclose(centres, LEVERS @ bars.T, atol=1e-10)


def test_ver121_mass_matrix():
    for q in Q:
        M = mass_matrix(tree(), q)
        np.testing.assert_allclose(M, plane(q, np.zeros(3))[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(M, M.T, atol=1e-12)
        assert np.all(np.linalg.eigvalsh(M) > 0)


def test_ver122_free_fall():
    for q, qd in zip(Q, QD, strict=True):
        M, bias = plane(q, qd)
        np.testing.assert_allclose(nonlinear_bias(tree(), q, qd, GRAVITY), bias, atol=1e-12)
        found = forward_dynamics(tree(), q, qd, np.zeros(3), GRAVITY)
        expected = np.linalg.solve(M, -bias)
        # 1e-10 of the acceleration: the condition of M, about 100, times some hundred roundings.
        np.testing.assert_allclose(found, expected, atol=1e-10 * max(1.0, np.abs(expected).max()))


@cache
def controlled():
    """A program: RMS and largest q - q* under PD control with the bars' gravity torques."""
    node = RobotArmNode("arm", DT, tree(), "link_3")
    levers, masses, sums = map(jnp.asarray, (LEVERS, MASSES, SUMS))

    def run(gains, centre, amplitude):
        phases = jnp.arange(3.0)

        def wanted(t):
            return centre + amplitude * jnp.sin(0.5 * jnp.pi * t + phases)

        rate = jax.jacfwd(wanted)

        def step(state, n):
            t, q, qd = n * DT, state["joint_angles"], state["joint_velocities"]
            gravity_torque = G * ((masses @ levers) * jnp.cos(sums @ q)) @ sums
            tau = gains[0] * (wanted(t) - q) + gains[1] * (rate(t) - qd) + gravity_torque
            state = node.update(state, {"commanded_joint_torques": tau}, DT)
            return state, state["joint_angles"] - wanted(t + DT)

        start = {"joint_angles": wanted(0.0), "joint_velocities": rate(0.0)}
        errors = jax.lax.scan(step, start, jnp.arange(2000))[1]
        return jnp.sqrt(jnp.mean(errors**2)), jnp.max(jnp.abs(errors))

    return jax.jit(run)


def test_ver123_gravity_hold():
    _, drift = controlled()(jnp.zeros((2, 3)), jnp.array([0.4, -0.7, 0.5]), 0.0)
    assert drift < 1e-10  # required: 1e-3 rad in 1000 steps; roundings of the torque for 2 s


def test_ver124_pd_tracking():
    gains = jnp.array([[300.0, 100.0, 20.0], [20.0, 5.0, 0.5]])
    rms, _ = controlled()(gains, jnp.zeros(3), 0.3)
    assert np.degrees(rms) < 0.5  # required over 2 s
