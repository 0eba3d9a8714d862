"""One body per recursion: unrolled or in loops, by the mass matrix or by articulated bodies."""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from compiling import QUICK, operations
from mime.control.kinematics.forward_dynamics import ARTICULATED_BODIES, MASS_MATRIX

pytestmark = pytest.mark.slow

# The package has functions of the same names.
forward_dynamics = sys.modules["mime.control.kinematics.forward_dynamics"]
recursion = sys.modules["mime.control.kinematics.recursion"]

GRAVITY = np.array([0.0, 0.0, -9.80665])


in_python = kin.forward_dynamics.__wrapped__
"""As it is written, and not as a kernel that is made once."""


def tree_of(tmp_path, parents, slides=(), quarter_turns=False):
    """A robot with these parents (-1: the root) and no number that is 0 or 1 by accident.

    With `quarter_turns` all joints turn about z, and their frames by a quarter about x.
    """
    rng = np.random.default_rng(len(parents))
    text = lambda x: " ".join(f"{v:.17g}" for v in x)  # noqa: E731
    parts = ['<robot name="made"><link name="root"/>']
    for i, parent in enumerate(parents):
        above = "root" if parent < 0 else f"l{parent}"
        x, y, z = rng.uniform(0.01, 0.02, 3)
        turn, axis = rng.normal(0, 1, (2, 3))
        if quarter_turns:
            turn, axis = (np.pi / 2 * (-1) ** i, 0, 0), (0, 0, 1)
        parts.append(
            f'<link name="l{i}"><inertial><origin xyz="{text(rng.normal(0, 0.1, 3))}"/>'
            f'<mass value="{rng.uniform(0.5, 2):.4f}"/><inertia ixx="{y + z}" iyy="{x + z}" '
            f'izz="{x + y}" ixy="0.001" ixz="-0.002" iyz="0.001"/></inertial></link>'
            f'<joint name="j{i}" type="{"prismatic" if i in slides else "revolute"}">'
            f'<parent link="{above}"/><child link="l{i}"/><limit effort="1" velocity="1"/>'
            f'<origin xyz="{text(rng.normal(0, 0.2, 3))}" rpy="{text(turn)}"/>'
            f'<axis xyz="{text(axis)}"/></joint>'
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


def by_articulated_bodies(monkeypatch, articulated):
    """From here on forward dynamics takes one of its algorithms, whatever the tree."""
    monkeypatch.setattr(
        forward_dynamics, "articulated_bodies_are_fewer_operations", lambda tree: articulated
    )


@pytest.mark.parametrize("which", TREES)
def test_articulated_bodies_agree_with_the_mass_matrix(tmp_path, monkeypatch, which):
    """Two algorithms that share the frames and the bias; NumPy in: evaluated by Python."""
    tree = tree_of(tmp_path, *TREES[which])
    q, qd, tau, gravity, F, d = arguments(tree)
    for F_ext, diagonal in ((None, None), (F, d)):
        found = []
        for articulated in (True, False):
            by_articulated_bodies(monkeypatch, articulated)
            found.append(in_python(tree, q, qd, tau, gravity, F_ext, diagonal))
        # cond(M) < 1e4: that many digits of 1e-16 are lost by solving.
        np.testing.assert_allclose(*found, rtol=0, atol=1e-11 * np.max(np.abs(found[0])))


def _operations(jaxpr):
    """Equations, also those of a function that has a derivative of its own."""
    inner = [eqn.params.get("call_jaxpr") for eqn in jaxpr.eqns]
    return sum(1 if closed is None else _operations(closed.jaxpr) for closed in inner)


def test_the_stated_operations_are_those_that_are_traced(tmp_path, monkeypatch):
    """On a chain with quarter turns between its axes, all offsets and all moments of inertia."""

    def counts(n, articulated):
        by_articulated_bodies(monkeypatch, articulated)
        tree, q = tree_of(tmp_path, range(-1, n - 1), quarter_turns=True), jnp.zeros(n)
        step = lambda *args: in_python(tree, *args[:3], GRAVITY, None, args[3])  # noqa: E731
        stated = ARTICULATED_BODIES if articulated else MASS_MATRIX
        return np.array([_operations(jax.make_jaxpr(step)(q, q, q, q).jaxpr), stated.of(tree)])

    # What two links more take; the difference of both algorithms, since they share a part.
    more = [counts(6, articulated) - counts(4, articulated) for articulated in (True, False)]
    traced, stated = more[0] - more[1]
    assert traced == pytest.approx(stated, abs=6)  # signs of the quarter turns


def test_the_algorithm_with_fewer_operations_is_taken(tmp_path):
    fewer = forward_dynamics.articulated_bodies_are_fewer_operations
    assert not fewer(tree_of(tmp_path, range(-1, 10)))
    assert fewer(tree_of(tmp_path, range(-1, 11)))
    two_arms_on_a_trunk = [-1, 0, 1, *range(2, 9), 2, *range(10, 16)]
    assert not fewer(tree_of(tmp_path, two_arms_on_a_trunk))


def arguments(tree, seed=1):
    rng, n = np.random.default_rng(seed), tree.num_joints
    q, qd, tau, d = rng.normal(size=(4, n))
    return q, qd, tau, np.array([0.3, -0.2, -9.81]), rng.normal(size=(n, 6)), d**2


@pytest.fixture(scope="module")
def figure(tmp_path_factory):
    """A trunk of two links with two arms, one of which slides: three runs."""
    return tree_of(tmp_path_factory.mktemp("figure"), [-1, 0, 1, 1], slides=[2])


def everything(tree, q, qd, tau, gravity, F_ext, diagonal):
    tip, other = tree.link_names[-1], tree.link_names[-3]
    return {
        "link frames": kin.joint_to_world_transforms(tree, q),
        "poses": kin.link_world_poses(tree, q),
        "one frame": kin.frame_transform(tree, q, other),
        "jacobian": kin.frame_jacobian(tree, q, tree.num_links - 1),
        "of another": kin.frame_jacobian_at(tree, q, other, gravity),
        "its rate": kin.frame_jacobian_dot_qd_at(tree, q, qd, tip, gravity),
        "torques": kin.rnea(tree, q, qd, tau, gravity, F_ext),
        "mass": kin.mass_matrix(tree, q),
        "accelerations": kin.forward_dynamics(tree, q, qd, tau, gravity, F_ext, diagonal),
        "kinetic": kin.kinetic_energy(tree, q, qd),
        "potential": kin.potential_energy(tree, q, gravity),
    }


@pytest.mark.soak("tests/oracles has six of them in loops beside Pinocchio")
def test_in_loops_all_functions_give_what_python_computes_unrolled(figure, monkeypatch):
    given = arguments(figure)
    expected = everything(figure, *given)  # NumPy in: evaluated by Python
    monkeypatch.setattr(recursion, "WORTH_LOOPS", -1000)
    with jax.disable_jit():  # the loops too run operation by operation
        found = everything(figure, *map(jnp.asarray, given))
    for name, value in expected.items():
        size = np.max(np.abs(value))
        # cond(M) < 1e4, as above; the others lose nothing but a few roundings.
        allowed = 1e-11 if name == "accelerations" else 1e-14
        np.testing.assert_allclose(found[name], value, rtol=0, atol=allowed * size, err_msg=name)


@pytest.mark.soak("tests/native/test_reverse.py has gradients of loops")
def test_gradients_in_loops_agree_with_differences(figure, monkeypatch):
    """With respect to all that may vary, the masses included."""

    def python(masses, *args):
        return kin.forward_dynamics(dataclasses.replace(figure, masses=masses), *args)

    rng = np.random.default_rng(2)
    x = figure.masses, *arguments(figure)
    changes = [rng.normal(size=np.shape(part)) for part in x]
    w = rng.normal(size=figure.num_joints)
    h = 1e-5  # error h² of the differences, 1e-10, and 1e-16/h of rounding
    ahead, behind = (
        python(*(part + sign * h * change for part, change in zip(x, changes, strict=True)))
        for sign in (1, -1)
    )
    expected = (ahead - behind) / (2 * h)
    monkeypatch.setattr(recursion, "WORTH_LOOPS", -1000)

    def slopes_along(w, *x):
        return jax.vjp(python, *x)[1](w)

    slopes = jax.jit(slopes_along, compiler_options=QUICK)(w, *x)
    tolerance = 1e-7 * np.max(np.abs(expected))
    along = sum(np.sum(slope * change) for slope, change in zip(slopes, changes, strict=True))
    np.testing.assert_allclose(along, w @ expected, rtol=0, atol=len(w) * tolerance)


@pytest.fixture(scope="module")
def snake(tmp_path_factory):
    return tree_of(tmp_path_factory.mktemp("snake"), range(-1, 44))


def test_the_program_of_a_long_chain_does_not_grow_with_it(snake, tmp_path):
    def program(tree):
        q = jnp.zeros(tree.num_joints)
        traced = jax.make_jaxpr(lambda q: in_python(tree, q, q, q, GRAVITY))(q)
        return list(operations(traced.jaxpr))

    assert program(snake) == program(tree_of(tmp_path, range(-1, 299)))
    assert "scan" in program(snake)
    assert "scan" not in program(tree_of(tmp_path, range(-1, 6)))
    # A mimicking joint couples distant links: that needs the mass matrix, unrolled.
    few = dataclasses.replace(
        snake, coordinate_idxs=(*range(44), 3), joint_names=snake.joint_names[:-1]
    )
    assert not forward_dynamics.articulated_bodies_are_fewer_operations(few)
    assert isinstance(recursion.walk(few, jnp.zeros(44)), recursion.Unrolled)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_chain_keeps_its_precision(snake, dtype):
    step = lambda q: kin.forward_dynamics(snake, q, q, q, GRAVITY)  # noqa: E731
    assert jax.eval_shape(step, jax.ShapeDtypeStruct((45,), dtype)).dtype == dtype


def test_long_chains_in_a_batch_are_what_python_computes_one_by_one(snake):
    q, qd, tau = np.random.default_rng(2).normal(size=(3, 45, 3))

    def step(q, qd, tau):
        return kin.forward_dynamics(snake, q, qd, tau, GRAVITY)

    step_all = jax.jit(jax.vmap(step, in_axes=-1, out_axes=-1), compiler_options=QUICK)
    batched = step_all(*map(jnp.asarray, (q, qd, tau)))
    alone = np.stack([step(q[:, b], qd[:, b], tau[:, b]) for b in range(3)], axis=-1)
    np.testing.assert_allclose(batched, alone, rtol=0, atol=1e-9 * np.max(np.abs(alone)))


@pytest.mark.soak("gradients in loops agree with differences above")
def test_gradients_of_a_long_chain_are_finite_where_a_joint_can_stand(snake):
    def last(masses, q):
        tree = dataclasses.replace(snake, masses=masses)
        return in_python(tree, q, q, 0 * q, GRAVITY)[-1]  # XLA compiles loops sooner

    gradients = jax.jit(jax.grad(last, argnums=(0, 1)), compiler_options=QUICK)
    for angle in (0.0, np.pi / 2, np.pi):
        for gradient in map(np.asarray, gradients(snake.masses, np.full(45, angle))):
            assert np.all(np.isfinite(gradient)), angle
            assert np.any(gradient != 0), angle
