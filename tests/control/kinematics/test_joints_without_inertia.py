"""Joints that nothing resists, against the null space of a mass matrix that is computed apart."""

import dataclasses
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime.control.kinematics.floating import BASE, with_base_joints
from mime.core.problem import InputError
from tree_dynamics import mass_and_bias
from weak_robots import BROKEN, PLANAR, robot

X, Y, Z, O = np.eye(3)[0], np.eye(3)[1], np.eye(3)[2], np.zeros(3)
GRAVITY = np.array([0.3, -0.2, -9.81])
names = kin.joints_without_inertia


def null_space(tree, floats):
    """Coordinates of M's null space at a random posture, M by Jacobians (`tree_dynamics`)."""
    moving = with_base_joints(tree) if floats else tree
    q = np.random.default_rng(3).uniform(-1, 1, moving.num_joints)
    q[: BASE * floats] = 0.0
    M, _ = mass_and_bias(moving, q, np.zeros_like(q), np.zeros(3))
    size = np.sqrt(np.diag(M).max())
    values, vectors = np.linalg.eigh(M)
    part = np.abs(vectors[:, values <= 1e-12 * size**2]).max(axis=1, initial=0.0) > 1e-5
    return np.flatnonzero(part)


def test_a_sound_robot_has_none_and_a_massless_one_has_all(tmp_path):
    joints = [(-1, Z, O), (0, X, Z), (1, Y, X)]
    assert names(robot(tmp_path, joints, coms=[X, Z, Z])) == ()
    assert names(robot(tmp_path, joints, masses=np.zeros(3))) == ("j0", "j1", "j2")


def test_a_subtree_without_mass_a_point_on_an_axis_and_an_armature(tmp_path):
    joints = [(-1, Z, O), (0, X, Z), (1, Z, Z), (0, Y, X)]
    tree = robot(tmp_path, joints, masses=[1, 1, 1, 0], coms=[X, Z, Z, O])
    assert names(tree) == ("j2", "j3")  # the mass of l2 lies on its axis, l3 has none
    geared = dataclasses.replace(tree, rotor_inertia=np.array([0, 0, 0, 1e-6]))
    assert names(geared) == ("j2",)
    assert names(geared, np.array([0, 0, 1e-3, 0])) == ()
    assert names(dataclasses.replace(geared, gear_ratio=np.array([1.0, 1, 1, 0]))) == ("j2", "j3")


def test_a_right_angle_of_1_5708_puts_a_mass_on_an_axis_and_0_1_mm_do_not(tmp_path):
    turned = 0.3 * np.array([0.0, np.cos(1.5708), np.sin(1.5708)])  # 1e-6 m off
    assert names(robot(tmp_path, [(-1, Z, O)], coms=[turned])) == ("j0",)
    assert names(robot(tmp_path, [(-1, Z, O)], coms=[[0.0, 1e-4, 0.3]])) == ()


def test_joints_that_only_together_move_nothing_are_all_named(tmp_path):
    on_one_axis = [(-1, Z, O), (0, Z, Z)]
    assert names(robot(tmp_path, on_one_axis, masses=[0, 1], coms=[O, X])) == ("j0", "j1")
    wrist = [(-1, Z, O), (0, X, O), (1, Y, O)]
    tree = robot(tmp_path, wrist, masses=[0, 0, 1], coms=[O, O, [0.1, 0.2, 0.3]])
    assert names(tree) == ("j0", "j1", "j2")  # turning about the line from centre to mass
    assert names(dataclasses.replace(tree, inertias=np.stack([np.eye(3)] * 3))) == ()
    slides = [(-1, X, O, "prismatic"), (0, X, O, "prismatic")]
    assert names(robot(tmp_path, slides, masses=[0, 1])) == ("j0", "j1")


def test_a_mimicking_link_resists_with_its_coordinate(tmp_path):
    fingers = [(-1, Z, O), (-1, Z, X, "continuous", (0, -2.0))]
    assert names(robot(tmp_path, fingers, masses=[0, 1], coms=[O, X])) == ()
    assert names(robot(tmp_path, fingers, masses=[1, 0], coms=[X, O])) == ()
    assert names(robot(tmp_path, fingers, masses=[0, 0])) == ("j0",)
    # Turned back by its follower, a point on that one's axis only shifts; on the first it stands.
    back = [(-1, Z, O), (0, Z, X, "continuous", (0, -1.0))]
    assert names(robot(tmp_path, back, masses=[0, 1], inertias=[0 * PLANAR, PLANAR])) == ()
    back[1] = (0, Z, Z, "continuous", (0, -1.0))
    assert names(robot(tmp_path, back, masses=[0, 1], coms=[O, X])) == ("j0",)


def test_a_floating_base_is_named_in_words(tmp_path):
    def floats(mass, inertia, com=O, joints=((-1, Z, X),), **given):
        tree = robot(tmp_path, joints, root=(mass, inertia), **given)
        body = dataclasses.replace(tree.root_body, com=np.array(com))
        return dataclasses.replace(tree, root_body=body, base="floating")

    turns = [f"the base's turning about {axis}" for axis in "xyz"]
    assert names(floats(1.0, np.eye(3), coms=[X])) == ()
    assert names(floats(1.0, 0 * PLANAR, coms=[X])) == (*turns[:2],)  # about the line of both
    along_x = [(-1, X, X, "prismatic")]
    assert names(floats(1.0, 0 * PLANAR, joints=along_x)) == (turns[0],)
    assert names(floats(1.0, PLANAR, coms=[O], masses=[0.0])) == (*turns[:2], "j0")
    beside = floats(1.0, PLANAR, com=(0.3, 0.2, 0.1), joints=[])
    assert names(beside) == tuple(turns[:2])
    along = [f"the base's moving along {axis}" for axis in "xyz"]
    assert names(floats(0.0, 0 * PLANAR, joints=[])) == (*along, *turns)
    assert names(dataclasses.replace(beside, base="fixed")) == ()


@pytest.mark.parametrize("floats", [False, True])
def test_they_are_the_null_space_of_the_mass_matrix_of_random_robots(tmp_path, floats):
    """Axes and offsets along the links' own axes, so that many masses lie on many of them."""
    rng, found = np.random.default_rng(floats), set()
    for _ in range(150):
        n = int(rng.integers(1, 6))
        kinds = rng.choice(["continuous", "continuous", "prismatic"], n)
        joints = [
            [int(rng.integers(-1, i)) if i else -1, rng.choice([X, Y, Z]), rng.choice([O, X, Z])]
            for i in range(n)
        ]
        for i in range(n):
            mimic = [(0, rng.choice([-1.0, 0.5]))] if i and rng.random() < 0.2 else []
            joints[i] += [kinds[0] if mimic else kinds[i], *mimic]
        masses = rng.choice([0.0, 0.5], n)
        inertias = [m * rng.choice([0, 1]) * rng.choice([PLANAR, BROKEN]) for m in masses]
        root = (rng.choice([0.0, 2.0]), rng.choice([0 * PLANAR, PLANAR, BROKEN]))
        tree = robot(tmp_path, joints, masses, rng.choice([O, X, Y], n), inertias, root)
        rotor = rng.choice([0.0, 0.0, 0.1], tree.num_joints)
        base = "floating" if floats else "fixed"
        tree = dataclasses.replace(tree, rotor_inertia=rotor, base=base)
        expected, told = null_space(tree, floats), names(tree)
        joint_names = tuple(tree.joint_names[c - BASE * floats] for c in expected if c >= BASE)
        turns = tuple(f"the base's turning about {'xyz'[c - 3]}" for c in expected if 3 <= c < BASE)
        assert not floats or tuple(x for x in told if "turning" in x) == turns
        joint_names = joint_names if floats else tuple(tree.joint_names[c] for c in expected)
        assert tuple(x for x in told if x in tree.joint_names) == joint_names
        assert bool(told) == (len(expected) > 0)
        found.add(len(told))
    assert len(found) > 4, "robots of all kinds were drawn"


def test_thousands_of_links_take_a_moment(tmp_path):
    n = 3000
    short = robot(tmp_path, [(-1, Z, O), (0, X, Z)], coms=[X, Z])

    def rows(a):
        return np.resize(a, (n, *np.shape(a)[1:]))

    fields = ("joint_frames", "joint_axes_local", "mimic_multiplier", "mimic_offset", "masses")
    fields += ("coms", "inertial_shifts", "inertias", "gear_ratio", "rotor_inertia")
    snake = dataclasses.replace(
        short,
        **{name: rows(getattr(short, name)) for name in fields},
        joint_names=tuple(f"j{i}" for i in range(n)),
        link_names=tuple(f"l{i}" for i in range(n)),
        link_joint_names=tuple(f"j{i}" for i in range(n)),
        joint_kinds=short.joint_kinds[:1] * n,
        parent_idxs=tuple(range(-1, n - 1)),
        coordinate_idxs=tuple(range(n)),
    )
    begin = time.perf_counter()
    assert names(snake) == ()
    assert time.perf_counter() - begin < 1.0
    masses = np.array(snake.masses)
    masses[[5, n - 1]] = 0.0
    assert names(dataclasses.replace(snake, masses=masses)) == (f"j{n - 1}",)
    assert time.perf_counter() - begin < 10.0


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_forward_dynamics_name_them_and_say_what_to_do(tmp_path, precision):
    joints = [(-1, Z, O), (0, X, Z), (1, Y, X)]
    tree = robot(tmp_path, joints, masses=[1, 1, 0], coms=[X, Y, O])
    q, g = np.full(3, 0.5, precision), GRAVITY.astype(precision)
    words = r"tree 'made' gives no inertia to 'j2': link 'l2' has no mass\. Give a mass.*"
    words += r"with_payload.*rotor_inertia_kg_m2=.*lock=\{'j2': 0\.0\}"
    for step in (kin.forward_dynamics, jax.jit(lambda *x: kin.forward_dynamics(tree, *x))):
        given = (q, q, q, g)
        with pytest.raises(InputError, match=words):
            step(*given) if step is not kin.forward_dynamics else step(tree, *given)
    ends = np.array([[-1.0, 1.0], [-1.0, 1.0], [0.25, 0.5]])
    with pytest.raises(InputError, match=r"lock=\{'j2': 0\.25\}"):
        kin.forward_dynamics(dataclasses.replace(tree, joint_limits=ends), q, q, q, g)
    assert np.all(np.isfinite(kin.forward_dynamics(tree, q, q, q, g, None, np.full_like(q, 0.1))))
    geared = dataclasses.replace(tree, rotor_inertia=np.full(3, 1e-3))
    found = kin.forward_dynamics(geared, q, q, q, g)
    assert found.dtype == precision
    assert np.all(np.isfinite(found))
    empty = robot(tmp_path, joints, masses=np.zeros(3))
    with pytest.raises(InputError, match=r"no mass in any link.*it is for kinematics\. Use frame_"):
        kin.forward_dynamics(empty, q, q, q, g)


@pytest.mark.parametrize("native", ["", "off"])
def test_a_tree_is_judged_once_and_not_in_every_call(tmp_path, monkeypatch, native):
    monkeypatch.setenv("MIME_NATIVE", native)
    module = sys.modules["mime.control.kinematics.joints_without_inertia"]
    judged, whole = [], module._links
    monkeypatch.setattr(module, "_links", lambda *given: judged.append(given) or whole(*given))
    tree = robot(tmp_path, [(-1, Z, O)], coms=[X])
    for _ in range(3):
        kin.forward_dynamics(tree, O[:1], O[:1], O[:1], GRAVITY)
    assert len(judged) == 1


def test_a_floating_base_without_inertia_is_named_by_its_forward_dynamics(tmp_path):
    tree = robot(tmp_path, [(-1, Z, X)], coms=[X], root=(1.0, 0 * PLANAR))
    tree = dataclasses.replace(tree, base="floating")
    u = np.zeros(7)
    with pytest.raises(InputError, match="no inertia to the base's turning about x, the base's"):
        kin.floating_forward_dynamics(tree, np.zeros(1), u, u, GRAVITY)


def test_masses_that_are_traced_are_not_judged(tmp_path):
    tree = robot(tmp_path, [(-1, Z, O)], masses=[0.0], coms=[X])
    one = np.ones(1)

    def acceleration(masses):
        heavier = dataclasses.replace(tree, masses=masses)
        assert names(heavier) == ()
        return kin.forward_dynamics(heavier, one, one, one, GRAVITY)[0]

    # q̈ = (tau - g) / (m x²)
    down = -GRAVITY @ np.array([-np.sin(1.0), np.cos(1.0), 0.0])
    assert jax.jit(acceleration)(jnp.full(1, 2.0)) == pytest.approx((1 - 2 * down) / 2, rel=1e-6)


def test_all_but_forward_dynamics_work_without_any_mass(tmp_path):
    tree = robot(tmp_path, [(-1, Z, O), (0, X, Z)], masses=np.zeros(2))
    q, zero = np.array([0.3, -0.4]), np.zeros(2)
    for torques in (
        kin.rnea(tree, q, q, q, GRAVITY),
        kin.gravity_vector(tree, q, GRAVITY),
        kin.nonlinear_bias(tree, q, q, GRAVITY),
        kin.mass_matrix(tree, q),
    ):
        np.testing.assert_array_equal(torques, np.zeros(np.shape(torques)))
    assert kin.kinetic_energy(tree, q, q) == kin.potential_energy(tree, q, GRAVITY) == 0.0
    assert np.all(np.isfinite(kin.frame_jacobian(tree, q, 1)))
    whole = kin.whole_body(tree, q, q)
    assert whole.mass == 0.0
    np.testing.assert_array_equal(whole.com, zero[:1].repeat(3))
