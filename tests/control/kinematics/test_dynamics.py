"""Closed forms, precision, batching and gradients of the kinematics and dynamics."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime.control.kinematics.aba import articulated_bodies
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


@pytest.mark.parametrize("frame", ["link_4", "tool"])
def test_frame_jacobian_is_the_derivative_of_the_frame(desktop, frame):
    point = np.array([0.01, -0.02, 0.05])

    def position(q):
        T = kin.frame_transform(desktop, q, frame)
        return T[:3, :3] @ point + T[:3, 3]

    q, qd = jnp.asarray(HOME), jnp.linspace(-1.0, 1.0, 6)
    J = kin.frame_jacobian_at(desktop, q, frame, jnp.asarray(point))
    np.testing.assert_allclose(J[:3], jax.jacfwd(position)(q), atol=1e-14)
    # Angular rows: [w]× = Ṙ Rᵀ.
    R, R_dot = jax.jvp(lambda q: kin.frame_transform(desktop, q, frame)[:3, :3], (q,), (qd,))
    W = R_dot @ R.T
    np.testing.assert_allclose(J[3:] @ qd, [W[2, 1], W[0, 2], W[1, 0]], atol=1e-14)
    _, J_dot = jax.jvp(
        lambda q: kin.frame_jacobian_at(desktop, q, frame, jnp.asarray(point)), (q,), (qd,)
    )
    rate = kin.frame_jacobian_dot_qd_at(desktop, q, qd, frame, jnp.asarray(point))
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
    poses = kin.link_world_poses(desktop, HOME)
    for i in range(6):
        com = T[i] @ np.append(desktop.coms[i], 1.0)
        np.testing.assert_allclose(C[i][:3, 3], com[:3], atol=1e-15)
        np.testing.assert_array_equal(C[i][:3, :3], T[i][:3, :3])
        np.testing.assert_allclose(poses[i, :3], com[:3], atol=1e-15)
        np.testing.assert_allclose(poses[i, 3:], quat_from_matrix(T[i][:3, :3]), atol=1e-15)


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

    def operations(tree):
        return len(jax.make_jaxpr(lambda q: kin.forward_dynamics(tree, q, q, q, GRAVITY))(q).eqns)

    frames = jnp.asarray(desktop.joint_frames)
    assert 2 * operations(desktop) < operations(dataclasses.replace(desktop, joint_frames=frames))


def test_torque_is_differentiable_in_the_inertial_parameters(desktop):
    q, qd, qdd = np.random.default_rng(5).normal(size=(3, 6))

    def torque(masses, coms):
        tree = dataclasses.replace(desktop, masses=masses, coms=coms)
        return jnp.sum(kin.rnea(tree, q, qd, qdd, GRAVITY) * jnp.arange(1.0, 7.0))

    masses, coms = jnp.asarray(desktop.masses), jnp.asarray(desktop.coms)
    d_masses, d_coms = jax.jit(jax.grad(torque, argnums=(0, 1)))(masses, coms)
    value = jax.jit(torque)
    for i in range(6):
        h = 1e-6  # torque is linear in the mass: only rounding remains, 1e-16/1e-6
        up, down = (value(masses.at[i].add(s), coms) for s in (h, -h))
        np.testing.assert_allclose(d_masses[i], (up - down) / (2 * h), rtol=1e-7, atol=1e-8)
        up, down = (value(masses, coms.at[i, 2].add(s)) for s in (h, -h))
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

    return jax.jit(jax.jacrev(everything))


@pytest.mark.parametrize("angle", [0.0, np.pi / 2, np.pi, -np.pi, 2 * np.pi])
def test_gradients_are_finite_where_a_joint_can_stand(gradients, angle):
    for leaf in jax.tree.leaves(gradients(jnp.full(3, angle))):
        assert jnp.all(jnp.isfinite(leaf))


@pytest.mark.parametrize("angle", [0.0, np.pi])
def test_the_quaternions_gradient_is_right_at_zero_and_half_a_turn(planar, angle):
    def quaternion(x):
        return kin.frame_pose(planar, jnp.stack([x, 0 * x, 0 * x]), "tool")[3:]

    # Turning by x about -y is [cos(x/2), 0, -sin(x/2), 0], up to a common sign.
    sign = jnp.sign(quaternion(angle) @ jnp.array([np.cos(angle / 2), 0, -np.sin(angle / 2), 0]))
    expected = sign * 0.5 * np.array([-np.sin(angle / 2), 0, -np.cos(angle / 2), 0])
    np.testing.assert_allclose(jax.jacrev(quaternion)(jnp.asarray(angle)), expected, atol=1e-12)


def test_energy_is_conserved_by_the_equations_of_motion(desktop):
    """dE/dt = q̇ᵀ tau, by the chain rule along the motion."""
    q, qd, tau = map(jnp.asarray, np.random.default_rng(6).normal(size=(3, 6)))

    def energy(q, qd):
        return kin.kinetic_energy(desktop, q, qd) + kin.potential_energy(desktop, q, GRAVITY)

    qdd = kin.forward_dynamics(desktop, q, qd, tau, GRAVITY)
    _, power = jax.jvp(energy, (q, qd), (qd, qdd))
    np.testing.assert_allclose(power, qd @ tau, rtol=1e-9)


def tree_of(tmp_path, parents, slides=(), mimics=None):
    """A robot with these parents (-1: the root) and no number that is 0 or 1 by accident."""
    rng = np.random.default_rng(len(parents))
    text = lambda x: " ".join(f"{v:.6f}" for v in x)  # noqa: E731
    parts = ['<robot name="made"><link name="root"/>']
    for i, parent in enumerate(parents):
        above = "root" if parent < 0 else f"l{parent}"
        x, y, z = rng.uniform(0.01, 0.02, 3)
        parts.append(
            f'<link name="l{i}"><inertial><origin xyz="{text(rng.normal(0, 0.1, 3))}"/>'
            f'<mass value="{rng.uniform(0.5, 2):.4f}"/><inertia ixx="{y + z}" iyy="{x + z}" '
            f'izz="{x + y}" ixy="0.001" ixz="-0.002" iyz="0.001"/></inertial></link>'
            f'<joint name="j{i}" type="{"prismatic" if i in slides else "revolute"}">'
            f'<parent link="{above}"/><child link="l{i}"/><limit effort="1" velocity="1"/>'
            f'<origin xyz="{text(rng.normal(0, 0.2, 3))}" rpy="{text(rng.normal(0, 1, 3))}"/>'
            f'<axis xyz="{text(rng.normal(0, 1, 3))}"/>'
            + (f'<mimic joint="{mimics[i]}"/>' if mimics and i in mimics else "")
            + "</joint>"
        )
    path = tmp_path / "made.urdf"
    path.write_text("".join(parts) + "</robot>")
    tree = kin.parse_urdf(path)
    n = tree.num_joints
    return dataclasses.replace(tree, gear_ratio=np.full(n, 50.0), rotor_inertia=np.full(n, 1e-6))


TREES = {
    "one joint": ([-1], []),
    "chain": (range(-1, 4), []),
    "chain that also slides": (range(-1, 4), [1, 3]),
    "slider": ([-1, 0], [0, 1]),
    "branches": ([-1, 0, 1, 1, -1], [3]),
}


@pytest.mark.parametrize("which", TREES)
def test_articulated_bodies_agree_with_the_mass_matrix(tmp_path, which):
    """Two algorithms that share no step but the frames; NumPy arguments take the mass matrix."""
    tree = tree_of(tmp_path, *TREES[which])
    n = tree.num_joints
    rng = np.random.default_rng(0)
    q, qd, tau, d = rng.normal(size=(4, n))
    gravity, F = np.array([0.3, -0.2, -9.81]), rng.normal(size=(n, 6))
    for F_ext, diagonal in ((None, None), (F, d**2)):
        expected = kin.forward_dynamics(tree, q, qd, tau, gravity, F_ext, diagonal)
        variables = jax.tree.map(jnp.asarray, (q, qd, tau, gravity, F_ext, diagonal))
        found = jax.jit(lambda *args: articulated_bodies(tree, *args))(*variables)
        # cond(M) < 1e4: that many digits of 1e-16 are lost by solving.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def test_gradients_of_articulated_bodies_agree_with_differences_of_the_mass_matrix(tmp_path):
    tree = tree_of(tmp_path, *TREES["branches"])
    n = tree.num_joints
    x = np.random.default_rng(1).normal(size=3 * n)

    def by_bodies(x):
        return articulated_bodies(tree, x[:n], x[n : 2 * n], x[2 * n :], GRAVITY, None, None)

    def by_mass_matrix(x):  # NumPy in: evaluated by Python
        return kin.forward_dynamics(tree, x[:n], x[n : 2 * n], x[2 * n :], GRAVITY)

    rng = np.random.default_rng(2)
    w = jnp.asarray(rng.normal(size=n))

    def both(x, u):
        return jax.jvp(by_bodies, (x,), (u,))[1], jax.vjp(by_bodies, x)[1](w)[0]

    # It runs three times: what LLVM would gain by optimizing it is a small part of what it takes.
    both = jax.jit(both, compiler_options={"xla_backend_optimization_level": 0})
    h = 1e-5  # error h² of the differences, 1e-10, and 1e-16/h of rounding
    for u in rng.normal(size=(3, 3 * n)):
        expected = (by_mass_matrix(x + h * u) - by_mass_matrix(x - h * u)) / (2 * h)
        tolerance = 1e-7 * np.max(np.abs(expected))
        found, reverse = both(jnp.asarray(x), jnp.asarray(u))
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
        np.testing.assert_allclose(reverse @ u, w @ expected, rtol=0, atol=n * tolerance)


@pytest.fixture(scope="module")
def snake(tmp_path_factory):
    return tree_of(tmp_path_factory.mktemp("snake"), range(-1, 29))


def test_a_deep_chain_takes_the_articulated_bodies_at_a_size_that_does_not_grow(snake, tmp_path):
    def operations(tree):
        q = jnp.zeros(tree.num_joints)
        jaxpr = jax.make_jaxpr(lambda q: kin.forward_dynamics(tree, q, q, q, GRAVITY))(q)
        return len(jaxpr.eqns), any(e.primitive.name == "scan" for e in jaxpr.eqns)

    shorter = tree_of(tmp_path, range(-1, 19))
    assert operations(snake) == operations(shorter)
    assert operations(snake)[1]
    assert not operations(tree_of(tmp_path, range(-1, 6)))[1]
    # A mimicking joint couples distant links: that needs the mass matrix.
    assert not operations(tree_of(tmp_path, range(-1, 14), mimics={12: "j3"}))[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_deep_chain_keeps_its_precision(snake, dtype):
    q = jnp.zeros(30, dtype)
    assert kin.forward_dynamics(snake, q, q, q, GRAVITY).dtype == dtype


def test_a_deep_chain_in_a_batch_equals_one_by_one(snake):
    q, qd, tau = np.random.default_rng(2).normal(size=(3, 30, 3))

    def step(q, qd, tau):
        return kin.forward_dynamics(snake, q, qd, tau, GRAVITY)

    batched = jax.jit(jax.vmap(step, in_axes=-1, out_axes=-1))(*map(jnp.asarray, (q, qd, tau)))
    alone = np.stack([step(q[:, b], qd[:, b], tau[:, b]) for b in range(3)], axis=-1)
    np.testing.assert_allclose(batched, alone, rtol=0, atol=1e-9 * np.max(np.abs(alone)))


@pytest.mark.parametrize("angle", [0.0, np.pi / 2, np.pi])
def test_gradients_of_a_deep_chain_are_finite_where_a_joint_can_stand(snake, angle):
    def last(masses, q):
        tree = dataclasses.replace(snake, masses=masses)
        return kin.forward_dynamics(tree, q, q, 0 * q, GRAVITY)[-1]

    gradients = jax.grad(last, argnums=(0, 1))(jnp.asarray(snake.masses), jnp.full(30, angle))
    assert all(jnp.all(jnp.isfinite(g)) and jnp.any(g != 0) for g in gradients)


def test_frames_of_a_deep_chain_are_those_that_python_computes(snake):
    q = np.random.default_rng(3).normal(size=30)
    for where in (
        kin.joint_to_world_transforms,
        kin.link_to_world_transforms,
        kin.link_world_poses,
        lambda tree, q: kin.frame_pose(tree, q, "l20"),
    ):
        compiled = jax.jit(lambda q, where=where: where(snake, q))(jnp.asarray(q))
        np.testing.assert_allclose(compiled, where(snake, q), atol=1e-13)
