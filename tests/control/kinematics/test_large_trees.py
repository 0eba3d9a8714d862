"""Trees that are too large to be unrolled in one piece: link by link, or in loops."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from compiling import QUICK, operations
from mime.control.kinematics.forward_dynamics import DynamicsInputs, by_articulated_bodies
from mime.xla.keep_call import keep_call

pytestmark = pytest.mark.slow

GRAVITY = np.array([0.0, 0.0, -9.80665])


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
        compiled = jax.jit(
            lambda *args: by_articulated_bodies(DynamicsInputs(tree, *args))[0],
            compiler_options=QUICK,
        )
        found = compiled(*variables)
        # cond(M) < 1e4: that many digits of 1e-16 are lost by solving.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


@pytest.fixture(scope="module")
def figure(tmp_path_factory):
    """Large but not deep: a trunk with two arms, one of which slides, and two legs."""
    parents = [-1, 0, 1, 2, 1, 4, 5, -1, 7, -1, 9]
    return tree_of(tmp_path_factory.mktemp("figure"), parents, slides=[2])


def arguments(tree, seed=1):
    rng, n = np.random.default_rng(seed), tree.num_joints
    q, qd, tau, d = rng.normal(size=(4, n))
    return q, qd, tau, np.array([0.3, -0.2, -9.81]), rng.normal(size=(n, 6)), d**2


def test_a_large_tree_unrolled_link_by_link_agrees_with_python_and_evaluates_nothing_twice(figure):
    given = arguments(figure)
    expected = kin.forward_dynamics(figure, *given)  # NumPy in: evaluated by Python
    variables = tuple(map(jnp.asarray, given))
    compiled = (
        jax.jit(lambda *args: kin.forward_dynamics(figure, *args)).lower(*variables).compile()
    )
    found = compiled(*variables)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))
    assert compiled.as_text().count(" cosine(") == figure.num_joints - 1  # one of them slides


def test_what_is_constant_stays_constant_apart_from_the_rest():
    def both(x, factor):
        assert isinstance(factor, float)
        return {"product": x * factor, "factor": 3.0}

    result = jax.jit(lambda x: keep_call(both, x, 2.0)["product"])(jnp.ones(()))
    assert result == 2.0
    assert keep_call(both, jnp.ones(()), 2.0)["factor"] == 3.0


def test_gradients_of_a_large_tree_agree_with_differences(figure):
    """With respect to all that may vary, the masses included."""

    def python(masses, *args):
        return kin.forward_dynamics(dataclasses.replace(figure, masses=masses), *args)

    rng = np.random.default_rng(2)
    x = figure.masses, *arguments(figure)
    changes = [rng.normal(size=np.shape(part)) for part in x]
    w = rng.normal(size=figure.num_joints)

    @partial(jax.jit, compiler_options=QUICK)
    def both(x, changes, w):
        return jax.jvp(python, x, changes)[1], jax.vjp(python, *x)[1](w)

    found, slopes = both(*jax.tree.map(jnp.asarray, (tuple(x), tuple(changes), w)))
    h = 1e-5  # error h² of the differences, 1e-10, and 1e-16/h of rounding
    ahead, behind = (
        python(*(part + sign * h * change for part, change in zip(x, changes, strict=True)))
        for sign in (1, -1)
    )
    expected = (ahead - behind) / (2 * h)
    tolerance = 1e-7 * np.max(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    along = sum(np.sum(slope * change) for slope, change in zip(slopes, changes, strict=True))
    np.testing.assert_allclose(along, w @ expected, rtol=0, atol=len(w) * tolerance)


def test_a_large_tree_in_a_batch_gives_the_values_and_gradients_of_each(figure):
    q, qd, tau, gravity, *_ = arguments(figure)
    many = np.stack([q, 2.0 * q, -q])

    def last(q, qd):  # NumPy in: evaluated by Python
        return kin.forward_dynamics(figure, q, qd, tau, gravity)[-1]

    @partial(jax.jit, compiler_options=QUICK)
    @partial(jax.vmap, in_axes=(0, None))
    def compiled(q, qd):
        return last(q, qd), jax.grad(last)(q, qd)

    values, slopes = compiled(jnp.asarray(many), jnp.asarray(qd))
    h, direction = 1e-5, np.random.default_rng(3).normal(size=q.shape)
    for q, value, slope in zip(many, values, slopes, strict=True):
        assert value == pytest.approx(last(q, qd), rel=1e-10)
        difference = (last(q + h * direction, qd) - last(q - h * direction, qd)) / (2 * h)
        assert slope @ direction == pytest.approx(difference, rel=1e-6)


@pytest.fixture(scope="module")
def snake(tmp_path_factory):
    return tree_of(tmp_path_factory.mktemp("snake"), range(-1, 29))


def test_a_deep_chain_takes_the_articulated_bodies_at_a_size_that_does_not_grow(snake, tmp_path):
    def program(tree):
        q = jnp.zeros(tree.num_joints)
        traced = jax.make_jaxpr(lambda q: kin.forward_dynamics(tree, q, q, q, GRAVITY))(q)
        return list(operations(traced.jaxpr))

    shorter = tree_of(tmp_path, range(-1, 19))
    assert program(snake) == program(shorter)
    assert "scan" in program(snake)
    assert "scan" not in program(tree_of(tmp_path, range(-1, 6)))
    # A mimicking joint couples distant links: that needs the mass matrix.
    assert "scan" not in program(tree_of(tmp_path, range(-1, 14), mimics={12: "j3"}))


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


def test_gradients_of_a_deep_chain_are_finite_where_a_joint_can_stand(snake):
    def last(masses, q):
        tree = dataclasses.replace(snake, masses=masses)
        return kin.forward_dynamics(tree, q, q, 0 * q, GRAVITY)[-1]

    gradients = jax.jit(jax.grad(last, argnums=(0, 1)), compiler_options=QUICK)
    for angle in (0.0, np.pi / 2, np.pi):
        for gradient in map(np.asarray, gradients(snake.masses, np.full(30, angle))):
            assert np.all(np.isfinite(gradient)), angle
            assert np.any(gradient != 0), angle


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
