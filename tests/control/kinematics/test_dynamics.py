"""Closed forms, precision, batching and gradients of the kinematics and dynamics."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from compiling import QUICK, operations
from mime.core.pose import quat_from_matrix
from mime.models import model_path

GRAVITY = np.array([0.0, 0.0, -9.80665])
HOME = np.array([-0.02763, 0.49873, -1.51875, 1.54673, 1.55147, 0.0])


@pytest.fixture(scope="module")
def planar():
    return kin.parse_urdf(model_path("planar_arm_3link"))


@pytest.fixture(scope="module")
def desktop():
    return kin.parse_urdf(model_path("desktop_arm_6axis"))


def test_the_planar_arm_ends_where_trigonometry_says(planar):
    q = np.array([0.3, -0.8, 1.1])
    angles = np.cumsum(q)
    x = np.sum([0.4, 0.3, 0.2] * np.cos(angles))
    z = np.sum([0.4, 0.3, 0.2] * np.sin(angles))
    tip = kin.frame_transform(planar, q, "tool")
    np.testing.assert_allclose(tip[:3, 3], [x, 0.0, z], atol=1e-15)


def test_gravity_torque_of_the_stretched_arm_is_weight_times_lever(planar):
    # Bars of 2, 1.2, 0.6 kg with centres 0.2, 0.55, 0.8 m from the shoulder.
    g = kin.gravity_vector(planar, np.zeros(3), GRAVITY)
    assert g[0] == pytest.approx(9.80665 * (2 * 0.2 + 1.2 * 0.55 + 0.6 * 0.8))
    # Lifting is positive, so holding the arm up takes a positive torque.
    assert np.all(g > 0)


def test_a_released_arm_falls(planar):
    qdd = kin.forward_dynamics(planar, np.zeros(3), np.zeros(3), np.zeros(3), GRAVITY)
    assert qdd[0] < 0


def test_forward_dynamics_inverts_inverse_dynamics_with_wrenches(desktop):
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 6))
    F = rng.normal(size=(6, 6))
    tau = kin.rnea(desktop, q, qd, qdd, GRAVITY, F)
    # cond(M) is 1e5: that many digits of 1e-16 are lost by solving.
    back = kin.forward_dynamics(desktop, q, qd, tau, GRAVITY, F)
    np.testing.assert_allclose(back, qdd, atol=1e-10)


def test_wrenches_act_through_the_jacobian_transpose(desktop):
    rng = np.random.default_rng(1)
    q, F = rng.normal(size=6), rng.normal(size=(6, 6))
    torque = kin.rnea(desktop, q, None, None, 0 * GRAVITY, F)
    expected = -sum(kin.frame_jacobian(desktop, q, i).T @ F[i] for i in range(6))
    np.testing.assert_allclose(torque, expected, atol=1e-14)


def test_a_diagonal_term_stands_on_the_diagonal_of_m(desktop):
    q, qd, tau, d = np.random.default_rng(2).uniform(0.1, 1.0, (4, 6))
    M = kin.mass_matrix(desktop, q) + np.diag(d)
    expected = np.linalg.solve(M, tau - kin.nonlinear_bias(desktop, q, qd, GRAVITY))
    found = kin.forward_dynamics(desktop, q, qd, tau, GRAVITY, diagonal=d)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_mass_matrix_is_symmetric_to_the_bit_and_positive_definite(desktop):
    for q in np.random.default_rng(3).uniform(-3, 3, (20, 6)):
        M = kin.mass_matrix(desktop, q)
        np.testing.assert_array_equal(M, M.T)
        assert np.min(np.linalg.eigvalsh(M)) > 0


@pytest.mark.small("tool")
@pytest.mark.parametrize("frame", ["link_4", "tool"])
def test_frame_jacobian_is_the_derivative_of_the_frame(desktop, frame):
    point = np.array([0.01, -0.02, 0.05])

    def position(q):
        T = kin.frame_transform(desktop, q, frame)
        return T[:3, :3] @ point + T[:3, 3]

    def evaluate(q, qd, point):
        def jacobian(q):
            return kin.frame_jacobian_at(desktop, q, frame, point)

        def rotation(q):
            return kin.frame_transform(desktop, q, frame)[:3, :3]

        rate = kin.frame_jacobian_dot_qd_at(desktop, q, qd, frame, point)
        slope = jax.jacfwd(position)(q)
        return slope, jax.jvp(rotation, (q,), (qd,)), jax.jvp(jacobian, (q,), (qd,)), rate

    qd = np.linspace(-1.0, 1.0, 6)
    evaluate = jax.jit(evaluate, compiler_options=QUICK)
    slope, (R, R_dot), (J, J_dot), rate = jax.tree.map(np.asarray, evaluate(HOME, qd, point))
    np.testing.assert_allclose(J[:3], slope, atol=1e-14)
    # Angular rows: [w]× = Ṙ Rᵀ.
    W = R_dot @ R.T
    np.testing.assert_allclose(J[3:] @ qd, [W[2, 1], W[0, 2], W[1, 0]], atol=1e-14)
    np.testing.assert_allclose(rate, J_dot @ qd, atol=1e-13)


def test_frames_on_the_root_do_not_move(desktop):
    q = HOME
    np.testing.assert_array_equal(kin.frame_transform(desktop, q, "base_link"), np.eye(4))
    np.testing.assert_array_equal(kin.frame_jacobian_at(desktop, q, "base_link"), np.zeros((6, 6)))
    assert not np.any(kin.frame_jacobian_dot_qd_at(desktop, q, q, "base_link"))


def test_a_link_index_out_of_range_is_refused(desktop):
    with pytest.raises(IndexError, match="link_idx must be 0 to 5, got 6"):
        kin.frame_jacobian(desktop, HOME, 6)


def test_com_poses_are_link_frames_moved_to_the_centre_of_mass(desktop):
    T, C = kin.joint_to_world_transforms(desktop, HOME), kin.link_to_world_transforms(desktop, HOME)
    poses, turn = kin.link_world_poses(desktop, HOME), jax.jit(quat_from_matrix)
    for i in range(6):
        com = T[i] @ np.append(desktop.coms[i], 1.0)
        np.testing.assert_allclose(C[i][:3, 3], com[:3], atol=1e-15)
        np.testing.assert_array_equal(C[i][:3, :3], T[i][:3, :3])
        np.testing.assert_allclose(poses[i, :3], com[:3], atol=1e-15)
        np.testing.assert_allclose(poses[i, 3:], turn(T[i][:3, :3]), atol=1e-15)


@pytest.mark.small("float32")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept_even_where_the_result_is_constant(planar, dtype):
    q = jnp.zeros(3, dtype)
    results = [
        kin.mass_matrix(planar, q),
        kin.rnea(planar, q, q, q, GRAVITY),
        kin.forward_dynamics(planar, q, q, q, GRAVITY),
        kin.forward_dynamics(planar, q, q, q, GRAVITY, jnp.zeros((3, 6), dtype), diagonal=q),
        kin.gravity_vector(planar, q, 0 * GRAVITY),
        kin.link_to_world_transforms(planar, q),
        kin.link_world_poses(planar, q),
        kin.frame_jacobian(planar, q, 0),
        kin.frame_pose(planar, q, "base_link"),
        kin.kinetic_energy(planar, q, q),
        kin.potential_energy(planar, q, GRAVITY),
    ]
    assert all(isinstance(x, jax.Array) and x.dtype == dtype for x in results)


def test_numpy_in_gives_numpy_out_without_compiling(desktop):
    assert isinstance(kin.forward_dynamics(desktop, HOME, HOME, HOME, GRAVITY), np.ndarray)
    assert kin.mass_matrix(desktop, HOME.astype(np.float32)).dtype == np.float32


def test_batch_last_equals_one_by_one(desktop):
    q, qd, tau = np.random.default_rng(4).normal(size=(3, 6, 5))

    def step(q, qd, tau):
        return kin.forward_dynamics(desktop, q, qd, tau, GRAVITY)

    batched = jax.jit(jax.vmap(step, in_axes=-1, out_axes=-1))(*map(jnp.asarray, (q, qd, tau)))
    alone = np.stack([step(q[:, b], qd[:, b], tau[:, b]) for b in range(5)], axis=-1)
    np.testing.assert_allclose(batched, alone, rtol=1e-9)


def test_constants_of_the_urdf_fold_while_tracing(desktop):
    """The joint frames hold only 0 and ±1: as variables they would cost twice the operations."""
    q = jnp.full(6, 0.1)

    def size(tree):
        plain = kin.forward_dynamics.__wrapped__
        traced = jax.make_jaxpr(lambda q: plain(tree, q, q, q, GRAVITY))(q)
        return len(list(operations(traced.jaxpr)))

    frames = jnp.asarray(desktop.joint_frames)
    assert 2 * size(desktop) < size(dataclasses.replace(desktop, joint_frames=frames))


def test_torque_is_differentiable_in_the_inertial_parameters(desktop):
    q, qd, qdd = np.random.default_rng(5).normal(size=(3, 6))

    def torque(masses, coms):
        tree = dataclasses.replace(desktop, masses=masses, coms=coms)
        return jnp.sum(kin.rnea(tree, q, qd, qdd, GRAVITY) * jnp.arange(1.0, 7.0))

    masses, coms = np.asarray(desktop.masses), np.asarray(desktop.coms)
    both = jax.jit(jax.value_and_grad(torque, argnums=(0, 1)))
    d_masses, d_coms = map(np.asarray, both(masses, coms)[1])
    for i in range(6):
        h = 1e-6  # torque is linear in the mass: only rounding remains, 1e-16/1e-6
        heavier, higher = h * np.eye(6)[i], h * np.outer(np.eye(6)[i], np.eye(3)[2])
        up, down = (float(both(masses + s * heavier, coms)[0]) for s in (1, -1))
        np.testing.assert_allclose(d_masses[i], (up - down) / (2 * h), rtol=1e-7, atol=1e-8)
        up, down = (float(both(masses, coms + s * higher)[0]) for s in (1, -1))
        np.testing.assert_allclose(d_coms[i, 2], (up - down) / (2 * h), rtol=1e-7, atol=1e-8)


def test_the_whole_tree_can_be_traced(planar):
    q = jnp.array([0.3, -0.5, 0.2])
    traced = jax.jit(lambda tree, q: kin.forward_dynamics(tree, q, q, q, GRAVITY))(planar, q)
    folded = kin.forward_dynamics(planar, q, q, q, GRAVITY)
    np.testing.assert_allclose(traced, folded, rtol=1e-12)


@pytest.fixture(scope="module")
def gradients(planar):
    def everything(q):
        return (
            kin.frame_pose(planar, q, "tool"),
            kin.link_world_poses(planar, q),
            kin.forward_dynamics(planar, q, q, q, GRAVITY),
            kin.kinetic_energy(planar, q, q),
        )

    return jax.jit(jax.jacrev(everything), compiler_options=QUICK)


@pytest.mark.parametrize("angle", [0.0, np.pi / 2, np.pi, -np.pi, 2 * np.pi])
def test_gradients_are_finite_where_a_joint_can_stand(gradients, angle):
    for leaf in jax.tree.leaves(gradients(jnp.full(3, angle))):
        assert np.all(np.isfinite(leaf))


def test_the_quaternions_gradient_is_right_at_zero_and_half_a_turn(planar):
    def quaternion(x):
        return kin.frame_pose(planar, jnp.stack([x, 0 * x, 0 * x]), "tool")[3:]

    both = jax.jit(lambda x: (quaternion(x), jax.jacrev(quaternion)(x)), compiler_options=QUICK)
    for angle in (0.0, np.pi):
        found, gradient = both(angle)
        # Turning by x about -y is [cos(x/2), 0, -sin(x/2), 0], up to a common sign.
        sign = np.sign(found @ np.array([np.cos(angle / 2), 0, -np.sin(angle / 2), 0]))
        expected = sign * 0.5 * np.array([-np.sin(angle / 2), 0, -np.cos(angle / 2), 0])
        np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_energy_is_conserved_by_the_equations_of_motion(desktop):
    """dE/dt = q̇ᵀ tau, by the chain rule along the motion."""
    q, qd, tau = map(jnp.asarray, np.random.default_rng(6).normal(size=(3, 6)))

    def energy(q, qd):
        return kin.kinetic_energy(desktop, q, qd) + kin.potential_energy(desktop, q, GRAVITY)

    qdd = kin.forward_dynamics(desktop, q, qd, tau, GRAVITY)
    _, power = jax.jvp(energy, (q, qd), (qd, qdd))
    np.testing.assert_allclose(power, qd @ tau, rtol=1e-9)
