"""MIME-VER-120 to 124: the arm, in a vertical plane so that gravity loads every joint.

The references are the plane's own closed forms, written here from the geometry of the three bars:
they share no code with the library. `fault` breaks the sign of gravity, to see 122 and 123 fail.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime import GraphManager
from mime.control.kinematics import forward_dynamics, gravity_vector, mass_matrix, parse_urdf
from mime.models import model_path
from mime.nodes.actuation.robot_arm import RobotArmNode

LENGTHS = np.array([0.4, 0.3, 0.2])
G = 9.80665
GRAVITY = np.array([0.0, 0.0, -G])


@pytest.fixture(scope="module")
def tree():
    return parse_urdf(model_path("planar_arm_3link"))


def arm(tree, gravity=GRAVITY, **options):
    return RobotArmNode("arm", 1e-3, tree, "link_3", gravity_world=gravity, **options)


def angles(count):
    return np.random.default_rng(120).uniform(-np.pi, np.pi, (count, 3)) * [1, 0.89, 0.89]


def plane(tree, q):
    """Centres of mass and tip in the plane: sums of bars at absolute angles."""
    absolute = jnp.cumsum(q)
    along = jnp.stack([jnp.cos(absolute), jnp.sin(absolute)], axis=1)
    joints = jnp.concatenate([jnp.zeros((1, 2)), jnp.cumsum(along * LENGTHS[:, None], axis=0)])
    centres = joints[:3] + along * tree.coms[:, :1]
    return centres, joints[3]


def plane_dynamics(tree, q, qd, sign=1.0):
    """q̈ of the released arm, from the Lagrangian of three bars: M q̈ = -∂V/∂q - (Ṁ q̇ - ∂T/∂q)."""

    def kinetic(q, qd):
        _, velocities = jax.jvp(lambda q: plane(tree, q)[0], (q,), (qd,))
        spin = 0.5 * tree.inertias[:, 1, 1] @ jnp.cumsum(qd) ** 2
        return 0.5 * tree.masses @ jnp.sum(velocities**2, axis=1) + spin

    def potential(q):
        return sign * G * tree.masses @ plane(tree, q)[0][:, 1]

    M = jax.hessian(kinetic, argnums=1)(q, qd)
    momentum_rate = jax.jvp(lambda q: jax.grad(kinetic, argnums=1)(q, qd), (q,), (qd,))[1]
    force = -jax.grad(potential)(q) - momentum_rate + jax.grad(kinetic)(q, qd)
    return jnp.linalg.solve(M, force)


def test_ver120_forward_kinematics_matches_the_plane(tree):
    node = arm(tree, end_effector_offset_in_link=(0.2, 0, 0, 1, 0, 0, 0))
    worst = 0.0
    for q in angles(50):
        state = {"joint_angles": jnp.asarray(q), "joint_velocities": jnp.zeros(3)}
        fluxes = node.compute_boundary_fluxes(state, {}, 1e-3)
        centres, tip = plane(tree, jnp.asarray(q))
        pose = np.asarray(fluxes["end_effector_pose_world"])
        half = q.sum() / 2  # turned by q about -y
        quat = np.array([np.cos(half), 0, -np.sin(half), 0])
        error = [
            np.abs(pose[[0, 2]] - tip).max(),
            abs(pose[1]),
            np.abs(fluxes["link_poses_world"][:, [0, 2]] - centres).max(),
            min(np.abs(pose[3:] - quat).max(), np.abs(pose[3:] + quat).max()),
        ]
        worst = max(worst, *map(float, error))
    assert worst < 1e-10  # m; a dozen products of order one: it measures 4e-16


def test_ver121_mass_matrix_is_symmetric_positive_definite_and_right(tree):
    matrices = jax.jit(jax.vmap(lambda q: mass_matrix(tree, q)))(jnp.asarray(angles(200)))

    def kinetic(q, qd):
        _, velocities = jax.jvp(lambda q: plane(tree, q)[0], (q,), (qd,))
        spin = 0.5 * tree.inertias[:, 1, 1] @ jnp.cumsum(qd) ** 2
        return 0.5 * tree.masses @ jnp.sum(velocities**2, axis=1) + spin

    expected = jax.vmap(lambda q: jax.hessian(kinetic, argnums=1)(q, jnp.zeros(3)))(
        jnp.asarray(angles(200))
    )
    assert np.abs(matrices - matrices.transpose(0, 2, 1)).max() <= 1e-12
    assert np.linalg.eigvalsh(matrices).min() > 0
    np.testing.assert_allclose(matrices, expected, atol=1e-14, rtol=1e-12)


def free_fall_error(tree, gravity, reference_sign=1.0):
    q = jnp.asarray(angles(200))
    qd = jnp.asarray(np.random.default_rng(122).normal(size=(200, 3)))
    found = jax.jit(jax.vmap(lambda q, qd: forward_dynamics(tree, q, qd, jnp.zeros(3), gravity)))(
        q, qd
    )
    expected = jax.jit(jax.vmap(lambda q, qd: plane_dynamics(tree, q, qd, reference_sign)))(q, qd)
    scale = jnp.maximum(1.0, jnp.abs(expected))
    return float(jnp.max(jnp.abs(found - expected) / scale))


def test_ver122_free_fall_accelerations_match_the_lagrangian(tree):
    assert free_fall_error(tree, GRAVITY) < 1e-10  # condition of M (about 100) times eps


def held_drift(tree, compensation_gravity):
    """Drift over 1000 steps when each step is given the gravity torque at its own angles."""
    node = arm(tree)
    start = jnp.array([0.4, -0.7, 0.5])

    @jax.jit
    def hold(q):
        def step(state, _):
            tau = gravity_vector(tree, state["joint_angles"], compensation_gravity)
            return node.update(state, {"commanded_joint_torques": tau}, 1e-3), None

        state = {"joint_angles": q, "joint_velocities": jnp.zeros(3)}
        return jax.lax.scan(step, state, length=1000)[0]["joint_angles"]

    return float(jnp.max(jnp.abs(hold(start) - start)))


def test_ver123_gravity_torques_hold_the_arm(tree):
    assert held_drift(tree, GRAVITY) < 1e-3  # rad; the torques cancel to the bit: it measures 0


def test_ver124_pd_with_gravity_compensation_tracks_a_sine(tree):
    node = arm(tree)
    kp, kd = jnp.array([300.0, 100.0, 20.0]), jnp.array([20.0, 5.0, 0.5])
    phase, rate = jnp.array([0.0, 1.0, 2.0]), 0.5 * jnp.pi

    @jax.jit
    def track():
        def step(state, n):
            t = n * 1e-3
            wanted = 0.3 * jnp.sin(rate * t + phase)
            wanted_rate = 0.3 * rate * jnp.cos(rate * t + phase)
            q, qd = state["joint_angles"], state["joint_velocities"]
            tau = kp * (wanted - q) + kd * (wanted_rate - qd) + gravity_vector(tree, q, GRAVITY)
            state = node.update(state, {"commanded_joint_torques": tau}, 1e-3)
            return state, state["joint_angles"] - 0.3 * jnp.sin(rate * (t + 1e-3) + phase)

        start = {
            "joint_angles": 0.3 * jnp.sin(phase),
            "joint_velocities": 0.3 * rate * jnp.cos(phase),
        }
        return jax.lax.scan(step, start, jnp.arange(2000))[1]

    rms_degrees = np.degrees(np.sqrt(np.mean(np.asarray(track()) ** 2)))
    assert rms_degrees < 0.5  # what remains is inertia over stiffness, not truncation


def test_a_broken_sign_of_gravity_makes_122_and_123_fail(tree):
    assert free_fall_error(tree, -GRAVITY) > 1e-2
    assert held_drift(tree, -GRAVITY) > 1e-1


def test_the_energy_of_a_frictionless_pendulum_of_three_links_stays_bounded_over_1e5_steps(tree):
    from mime.control.kinematics import kinetic_energy, potential_energy

    pendulum = parse_urdf(model_path("planar_arm_3link"))
    node = RobotArmNode(
        "arm", 1e-3, pendulum, "link_3", joint_limit_override=np.tile([-np.inf, np.inf], (3, 1))
    )
    graph = GraphManager()
    graph.add_node(node)
    run = graph.compile().run(
        steps=100_000,
        every=100,
        record=["arm.joint_angles", "arm.joint_velocities"],
        # Hanging, swinging by half a radian about -pi/2: regular motion, as a bound needs.
        initial_state={"arm": {"joint_angles": np.array([-np.pi / 2 + 0.5, 0.2, 0.0])}},
    )
    energy = jax.jit(
        jax.vmap(lambda q, v: kinetic_energy(tree, q, v) + potential_energy(tree, q, GRAVITY))
    )(jnp.asarray(run["arm"]["joint_angles"]), jnp.asarray(run["arm"]["joint_velocities"]))
    energy = np.asarray(energy)
    error = np.abs(energy - energy[0]) / np.abs(energy[0])
    # First order in dt; M depends on q, so the scheme is not exactly symplectic: it measures 0.6 %.
    assert error.max() < 1e-2
