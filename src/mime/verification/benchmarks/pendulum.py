"""MIME-VER-160 and 161: a pendulum by forward dynamics, against closed forms."""

import jax.numpy as jnp
import numpy as np
import scipy

from mime.control.kinematics import forward_dynamics
from mime.verification.benchmark import Measurement, benchmark, largest
from mime.verification.benchmarks.elastic_arm import PENDULUM, pendulum
from mime.verification.programs import quick_jit


def swing(
    forward_dynamics,
    armature: float,
    stiffness: float,
    gravity: float,
    start: float,
    times: np.ndarray,
) -> np.ndarray:
    """(q, q') at `times`, from rest at `start`: forward dynamics, integrated by SciPy to 1e-12."""

    @quick_jit
    def slope(x: jnp.ndarray) -> jnp.ndarray:
        tau, g = -stiffness * x[:1], jnp.array([0.0, 0.0, -gravity])
        J = jnp.full(1, armature)
        q_acc = forward_dynamics(pendulum(), x[:1], x[1:], tau, g, diagonal=J)
        return jnp.concatenate([x[1:], q_acc])

    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "t_eval": times}
    return scipy.integrate.solve_ivp(
        lambda t, x: np.asarray(slope(x)), times[[0, -1]], [start, 0.0], **options
    ).y.T


def _no_armature(forward_dynamics):
    """the armature left out"""
    return lambda tree, q, qd, tau, g, diagonal: forward_dynamics(tree, q, qd, tau, g)


@benchmark(
    160,
    "Armature adds to the pendulum's inertia",
    forward_dynamics,
    _no_armature,
    node_id="MIME-NODE-102",
)
def armature(
    forward_dynamics,
    *,
    body=PENDULUM,
    armature_kg_m2=0.1,
    stiffness_n_m_per_rad=500.0,
    gravity_m_per_s2=0.0,
    start_rad=0.1,
    duration_s=2.0,
):
    """(m l² + J) q'' = -k q

    Reference: SciPy's exponential of q' = w, w' = -k q / (m l² + J).
    Procedure:
    1. Integrate our forward dynamics with J on the diagonal of M by SciPy's DOP853, to 1e-12.
    2. Compare angle and velocity at 201 times.
    Covers: rotor inertia as armature on the diagonal of M
    Excludes: MIME's own steps (MIME-VER-123 to 129)
    """
    (m, l), J, k = body.values(), armature_kg_m2, stiffness_n_m_per_rad
    times = np.linspace(0.0, duration_s, 201)
    A = np.array([[0.0, 1.0], [-k / (m * l**2 + J), 0.0]])
    truth = np.array([scipy.linalg.expm(A * t) @ [start_rad, 0.0] for t in times])
    error = swing(forward_dynamics, J, k, gravity_m_per_s2, start_rad, times) - truth
    why = "the integrator's 1e-12 over three periods"
    yield Measurement("error of the angle", largest(error[:, 0]), 1e-10, unit="rad", why=why)
    yield Measurement("error of the velocity", largest(error[:, 1]), 1e-10, unit="rad/s", why=why)


def _upward_gravity(forward_dynamics):
    """the sign of gravity reversed"""
    return lambda tree, q, qd, tau, g, diagonal: forward_dynamics(
        tree, q, qd, tau, -g, diagonal=diagonal
    )


@benchmark(
    161,
    "A plain pendulum by elliptic functions",
    forward_dynamics,
    _upward_gravity,
    node_id="MIME-NODE-102",
)
def plain_pendulum(
    forward_dynamics, *, body=PENDULUM, gravity_m_per_s2=9.81, start_rad=2.0, duration_s=5.0
):
    """sin(q/2) = k sn(K(k²) - w t, k²),   k = sin(q(0)/2),   w = sqrt(g/l)

    Reference: SciPy's Jacobi elliptic function sn and complete integral K, from rest.
    Procedure:
    1. Integrate our forward dynamics by SciPy's DOP853, to 1e-12.
    2. Compare the angle at 201 times.
    Covers: gravity on a joint at any angle
    Excludes: several links (MIME-VER-122); MIME's own steps (MIME-VER-123 to 129)
    """
    times, g = np.linspace(0.0, duration_s, 201), gravity_m_per_s2
    k, w = np.sin(start_rad / 2), np.sqrt(g / body["length_m"])
    truth = 2.0 * np.arcsin(
        k * scipy.special.ellipj(scipy.special.ellipk(k**2) - w * times, k**2)[0]
    )
    error = swing(forward_dynamics, 0.0, 0.0, g, start_rad, times)[:, 0] - truth
    yield Measurement(
        "error of the angle",
        largest(error),
        limit=1e-10,
        unit="rad",
        why="the integrator's 1e-12 over two periods",
    )
