"""Our two arms against the Euler-Lagrange equations, by automatic differentiation of the energies.

The energies are written here from 4x4 matrices alone, T = ½ Σ tr(Ẋ J Ẋᵀ) and V = -Σ m g·c: no
recursion of the library, no cross product, no Coriolis term is involved.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime.models import model_path

GRAVITY = np.array([0.4, 1.0, -9.81])
# Two nested derivatives of products of 4x4 matrices lose about three digits of double precision.
RTOL = 1e-10


def pseudo_inertia(mass, com, inertia):
    """J = ∫ [p; 1][p; 1]ᵀ dm of a link."""
    second = np.trace(inertia) / 2 * np.eye(3) - inertia + mass * np.outer(com, com)
    first = mass * com
    return np.block([[second, first[:, None]], [first[None, :], np.full((1, 1), mass)]])


def lagrangian(tree):
    J = [pseudo_inertia(*link) for link in zip(tree.masses, tree.coms, tree.inertias, strict=True)]

    def twist(i):
        x, y, z = tree.joint_axes_local[i]
        return np.array([[0, -z, y, 0], [z, 0, -x, 0], [-y, x, 0, 0], [0, 0, 0, 0.0]])

    def links(q):
        X = []
        for i, parent in enumerate(tree.parent_idxs):
            above = jnp.eye(4) if parent < 0 else X[parent]
            K = twist(i)
            turn = jnp.eye(4) + jnp.sin(q[i]) * K + (1.0 - jnp.cos(q[i])) * (K @ K)
            X.append(above @ tree.joint_frames[i] @ turn)
        return X

    def L(q, qd):
        X, X_dot = jax.jvp(links, (q,), (qd,))
        T = sum(0.5 * jnp.trace(v @ j @ v.T) for v, j in zip(X_dot, J, strict=True))
        V = -sum((x @ j)[:3, 3] @ GRAVITY for x, j in zip(X, J, strict=True))
        return T - V, (T, V)

    return L


@pytest.fixture(scope="module", params=["planar_arm_3link", "desktop_arm_6axis"])
def arm(request):
    tree = kin.parse_urdf(model_path(request.param))
    L = lagrangian(tree)
    momentum = jax.grad(lambda q, qd: L(q, qd)[0], argnums=1)

    @jax.jit
    def euler_lagrange(q, qd, qdd):
        """tau = d/dt ∂L/∂q̇ - ∂L/∂q"""
        _, rate = jax.jvp(momentum, (q, qd), (qd, qdd))
        M = jax.jacfwd(momentum, argnums=1)(q, qd)
        return rate - jax.grad(lambda q: L(q, qd)[0])(q), M, L(q, qd)[1]

    return tree, euler_lagrange


@pytest.mark.small(
    "planar_arm_3link-0", "planar_arm_3link-1", "planar_arm_3link-2", "planar_arm_3link-3"
)
@pytest.mark.parametrize("seed", range(4))
def test_torques_mass_matrix_and_energies_follow_from_the_lagrangian(arm, seed):
    tree, euler_lagrange = arm
    q, qd, qdd = np.random.default_rng(seed).uniform(-3.0, 3.0, (3, tree.num_joints))
    tau, M, (T, V) = euler_lagrange(q, qd, qdd)
    ours = kin.rnea(tree, q, qd, qdd, GRAVITY)
    np.testing.assert_allclose(ours, tau, rtol=0, atol=RTOL * np.max(np.abs(tau)))
    np.testing.assert_allclose(kin.mass_matrix(tree, q), M, rtol=0, atol=RTOL * np.max(np.abs(M)))
    np.testing.assert_allclose(kin.kinetic_energy(tree, q, qd), T, rtol=RTOL)
    np.testing.assert_allclose(kin.potential_energy(tree, q, GRAVITY), V, rtol=RTOL)
    back = kin.forward_dynamics(tree, q, qd, np.asarray(tau), GRAVITY)
    # cond(M) of the desktop arm is 1e5: that many digits of the torques' 1e-16 are lost.
    np.testing.assert_allclose(back, qdd, rtol=0, atol=1e-9)
