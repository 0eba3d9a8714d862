"""Compensated weight of a tree: what it adds, how it is changed with the tree, read and written."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tree_dynamics
from mime import RobotArmNode, parse_mjcf, parse_urdf
from mime.control.kinematics import (
    KinematicTree,
    actuator_torques,
    compensating_torques,
    forward_dynamics,
    gravity_vector,
    rnea,
)
from mime.control.kinematics.floating import floating_forward_dynamics
from mime.control.tree_values import tree_problems
from mime.models import model_path

G = np.array([0.4, -0.8, -9.7])
# Sums of a few products in another order; where accelerations are compared, times the condition.
RTOL = 1e-14
ARM = """<mujoco model="arm"><option gravity="0.4 -0.8 -9.7"/><worldbody>
<body name="base" pos="0 0 0.2" gravcomp="{}"><inertial mass="4" pos="0.1 0 0.05"
  diaginertia="0.2 0.2 0.2"/>
<body name="upper" pos="0 0 0.1" gravcomp="{}"><joint name="a" axis="0 1 1" pos="0.1 0 0"/>
  <inertial mass="2" pos="0.1 0 0.3" diaginertia="0.02 0.03 0.02"/>
  <body name="box" pos="0.3 0 0" euler="10 20 30" gravcomp="{}"><inertial mass="1" pos="0 0.1 0"
    diaginertia="0.01 0.01 0.01"/></body>
  <body name="fore" pos="0 0 0.5" gravcomp="{}"><joint name="b" axis="1 0 0" {}/>
    <inertial mass="0.7" pos="0 0.05 0.2" diaginertia="0.01 0.01 0.002"/>
    <body name="hand" pos="0 0 0.4" gravcomp="{}"><joint name="c" type="slide" axis="0 0 1"/>
      <inertial mass="0.3" pos="0.05 0 0" diaginertia="0.001 0.001 0.001"/></body></body></body>
</body></worldbody><actuator><motor joint="b"/></actuator></mujoco>"""
BY_B = 'actuatorgravcomp="true" actuatorfrcrange="-3 3"'


def parsed(tmp_path, parts, flag="", floats=False):
    text = ARM.format(*parts[:4], flag, parts[4])
    if floats:
        text = text.replace("<inertial", "<freejoint/><inertial", 1)
    file = tmp_path / "arm.xml"
    file.write_text(text)
    return parse_mjcf(file)


@pytest.fixture
def tree(tmp_path):
    return parsed(tmp_path, (0.3, 0.5, -1.0, 2.0, 1.0), BY_B)


@pytest.fixture
def balanced(tmp_path):
    return parsed(tmp_path, (1, 1, 1, 1, 1))


def close(ours, theirs, rtol=RTOL):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * np.max(np.abs(theirs)))


Q = np.array([0.4, -0.7, 0.1])


def test_parts_of_one_body_add_up_and_the_torques_are_those_of_their_weight(tree):
    np.testing.assert_allclose(tree.compensated_masses, [0.0, 1.4, 0.3], atol=1e-15)
    box = tree.frame("box").offset
    upper = 0.5 * 2 * np.array([0.0, 0, 0.3]) - (box @ [0, 0.1, 0, 1])[:3]
    close(tree.compensated_moments[0], upper)
    assert float(tree.root_compensated.mass) == 1.2
    close(compensating_torques(tree, Q, G), tree_dynamics.compensating_torques(tree, Q, G))
    assert tree.actuator_compensated_joints == ("b",)
    (note,) = [finding for finding in tree.report if "gravity" in finding.what]
    assert note.what == (
        "body 'base' is relieved of gravity (gravcomp -1 to 2), as are 4 more: 'upper', 'box', "
        "'fore', ..."
    )
    assert note.line == 2
    assert note.what in repr(tree)


def test_with_all_of_it_an_arm_is_in_balance(balanced, tmp_path):
    """The same numbers go through the same recursion: what is left is of the last subtraction."""
    none, g = np.zeros(3), np.array(balanced.gravity_m_per_s2)
    tau = compensating_torques(balanced, Q, g)
    assert np.max(np.abs(forward_dynamics(balanced, Q, none, tau, g))) < 1e-13
    lone = balanced.subtree("fore")  # without `box`, whose mass was merged
    lone = dataclasses.replace(lone, gravity_m_per_s2=balanced.gravity_m_per_s2)
    tau = compensating_torques(lone, Q[2:], g)
    np.testing.assert_array_equal(tau, gravity_vector(lone, Q[2:], g))
    assert abs(forward_dynamics(lone, Q[2:], none[2:], tau, g)[0]) < 1e-15  # a fused multiply-add
    floats = parsed(tmp_path, (1, 1, 1, 1, 1), floats=True)
    tau = compensating_torques(floats, Q, g)
    assert np.max(np.abs(floating_forward_dynamics(floats, Q, np.zeros(9), tau, g))) < 1e-13


def test_all_of_it_is_the_gravity_vector_and_none_is_zeros(balanced):
    close(compensating_torques(balanced, Q, G), gravity_vector(balanced, Q, G))
    none = parse_urdf(model_path("planar_arm_3link"))
    np.testing.assert_array_equal(compensating_torques(none, Q, G), np.zeros(3))
    assert none.compensated_masses is None


def test_it_is_not_part_of_the_dynamics(tree):
    bare = without(tree)
    np.testing.assert_array_equal(gravity_vector(tree, Q, G), gravity_vector(bare, Q, G))
    np.testing.assert_array_equal(rnea(tree, Q, Q, Q, G), rnea(bare, Q, Q, Q, G))


def without(tree) -> KinematicTree:
    names = ("compensated_masses", "compensated_moments")
    return dataclasses.replace(tree, **dict.fromkeys(names))


def test_a_locked_joint_joins_what_is_compensated(tree):
    locked = tree.lock(b=-0.7)
    assert locked.actuator_compensated_joints == ()
    close(compensating_torques(locked, Q[[0, 2]], G), compensating_torques(tree, Q, G)[[0, 2]])
    held = tree.lock(a=0.4)
    close(compensating_torques(held, Q[1:], G), compensating_torques(tree, Q, G)[1:])
    assert held.actuator_compensated_joints == ("b",)
    total = tree.compensated_masses[0] + 1.2
    assert float(held.root_compensated.mass) == pytest.approx(float(total), rel=1e-15)


def test_a_part_has_what_hangs_on_it(tree):
    R = tree.lock(a=0.4).frame("upper").offset[:3, :3]  # where `upper` stands then, in the world
    part = tree.subtree("upper")
    assert part.joint_names == ("b", "c")
    close(compensating_torques(part, Q[1:], R.T @ G), compensating_torques(tree, Q, G)[1:])
    assert float(part.root_compensated.mass) == 0.0  # 0.5 · 2 kg - 1 kg
    assert np.any(part.root_compensated.moment)


def test_what_is_attached_brings_its_own_and_a_payload_has_none(tree, balanced):
    planar = parse_urdf(model_path("planar_arm_3link"))
    both = planar.attach(tree, "link_2", [0.1, 0, 0.2, 0.6, 0, 0.8, 0], prefix="x_")
    q = np.concatenate([[0.1, -0.2, 0.3], Q])
    assert both.actuator_compensated_joints == ("x_b",)
    close(compensating_torques(both, q, G), tree_dynamics.compensating_torques(both, q, G))
    assert float(both.compensated_masses[1]) == 1.2  # of the second's root
    assert not np.any(both.compensated_masses[[0, 2]])
    other = tree.attach(planar, "hand", prefix="x_")
    q = np.concatenate([Q, [0.1, -0.2, 0.3]])
    close(compensating_torques(other, q, G)[:3], compensating_torques(tree, Q, G))
    np.testing.assert_array_equal(compensating_torques(other, q, G)[3:], np.zeros(3))
    loaded = tree.with_payload("hand", 5.0)
    np.testing.assert_array_equal(
        compensating_torques(loaded, Q, G), compensating_torques(tree, Q, G)
    )


def test_on_a_floating_base_the_force_and_the_moment_on_the_base_come_first(tmp_path):
    tree = parsed(tmp_path, (0.3, 0.5, -1.0, 2.0, 1.0), floats=True)
    F, N, tau = np.split(compensating_torques(tree, Q, G), [3, 6])
    fixed = tree.with_base("fixed")
    close(tau, compensating_torques(fixed, Q, G))
    poses = [*tree_dynamics.link_poses(fixed, Q), np.eye(4)]
    masses = [*tree.compensated_masses, tree.root_compensated.mass]
    moments = [*tree.compensated_moments, tree.root_compensated.moment]
    parts = [(m, T[:3, :3] @ h + m * T[:3, 3]) for m, h, T in zip(masses, moments, poses)]
    close(F, -sum(m for m, _ in parts) * G)
    close(N, -np.cross(sum(h for _, h in parts), G))


@pytest.mark.parametrize("floats", [False, True], ids=["fixed", "floating"])
def test_an_mjcf_is_written_and_read_with_it(tmp_path, floats):
    tree = parsed(tmp_path, (0.3, 0.5, 0.5, 2.0, 1.0), BY_B, floats)
    tree = tree.with_payload("hand", 0.2, (0.1, 0, 0))
    tree.to_mjcf(tmp_path / "out.xml")
    text = (tmp_path / "out.xml").read_text()
    assert 'name="upper"' in text
    assert text.count("gravcomp=") == (5 if floats else 4)  # of the joint too, and of a tiny body
    assert "link 'hand' is relieved of the weight of 0.3 kg beside its centre" in text
    again = parse_mjcf(tmp_path / "out.xml")
    assert again.actuator_compensated_joints == ("b",)
    assert again.effort_limits[1] == 3.0
    close(compensating_torques(again, Q, G), compensating_torques(tree, Q, G), 1e-12)
    close(gravity_vector(again, Q, G), gravity_vector(tree, Q, G), 1e-12)


def test_a_moment_without_a_weight_is_told_in_the_header(tmp_path):
    tree = parsed(tmp_path, (0.0, 0.5, -1.0, 1.0, 1.0))
    assert tree.compensated_masses[0] == 0.0
    tree.to_mjcf(tmp_path / "out.xml")
    words = "link 'upper' is relieved of a moment of "
    assert words in (tmp_path / "out.xml").read_text()


def test_a_urdf_lists_it_in_its_header(tree, tmp_path):
    tree.to_urdf(tmp_path / "out.urdf")
    text = (tmp_path / "out.urdf").read_text()
    assert "link 'fore' is relieved of the weight of 1.4 kg with the moment" in text
    assert "link 'world' is relieved of the weight of 1.2 kg" in text
    assert "actuators bear that of joint 'b', within its effort limit" in text
    assert parse_urdf(tmp_path / "out.urdf").compensated_masses is None


def test_actuators_give_it_within_the_effort_limit(tree):
    borne = compensating_torques(tree, Q, np.array(tree.gravity_m_per_s2))
    at_rest = actuator_torques(tree, [0.0], Q, np.zeros(3))
    np.testing.assert_array_equal(at_rest, [0.0, np.clip(borne[1], -3, 3), 0.0])
    close(actuator_torques(tree, [0.5 - borne[1]], Q, np.zeros(3)), [0.0, 0.5, 0.0])
    np.testing.assert_array_equal(actuator_torques(tree, [99.0], Q, np.zeros(3)), [0.0, 3.0, 0.0])
    unsaid = dataclasses.replace(tree, gravity_m_per_s2=None)
    with pytest.raises(ValueError, match=r"actuators bear weight at 'b'.* Pass gravity_world"):
        actuator_torques(unsaid, [0.0], Q, np.zeros(3))
    given = actuator_torques(unsaid, [0.0], Q, np.zeros(3), tree.gravity_m_per_s2)
    np.testing.assert_array_equal(given, at_rest)


def test_derivatives_are_those_of_the_formula(tree):
    def of(q, masses, moments):
        changed = dataclasses.replace(tree, compensated_masses=masses, compensated_moments=moments)
        return jnp.asarray(compensating_torques(changed, q, G))

    at = Q, jnp.asarray(tree.compensated_masses), jnp.asarray(tree.compensated_moments)
    for argument, x in enumerate(at):
        slope = jax.jacrev(of, argument)(*map(jnp.asarray, at))
        forwards = jax.jacfwd(of, argument)(*map(jnp.asarray, at))
        close(forwards, slope)
        way = np.random.default_rng(argument).normal(size=np.shape(x))
        near = [
            [*at[:argument], jnp.asarray(x) + s * 1e-5 * way, *at[argument + 1 :]] for s in (-1, 1)
        ]
        difference = (of(*near[1]) - of(*near[0])) / 2e-5
        along = np.tensordot(slope, way, way.ndim)
        np.testing.assert_allclose(along, difference, rtol=0, atol=1e-8 * np.abs(along).max())


def test_a_mass_can_be_varied_and_the_compensation_stays(tree):
    heavier = eqx.tree_at(lambda t: t.masses, tree, tree.masses * 2)
    np.testing.assert_array_equal(
        compensating_torques(heavier, Q, G), compensating_torques(tree, Q, G)
    )


def test_single_precision_batches_and_machine_code_agree(tree):
    whole = compensating_torques(tree, Q, G)
    assert isinstance(whole, np.ndarray)
    single = compensating_torques(tree, Q.astype(np.float32), G.astype(np.float32))
    assert single.dtype == np.float32
    close(single, whole, 1e-6)
    many = np.linspace(-1, 1, 15).reshape(5, 3)
    batch = jax.jit(jax.vmap(lambda q: compensating_torques(tree, q, G)))(jnp.asarray(many))
    for q, ours in zip(many, np.asarray(batch), strict=True):
        close(ours, compensating_torques(tree, q, G))
        close(ours, compensating_torques.__wrapped__(tree, q, G))  # as it is written


def test_a_long_chain_goes_in_loops(tree):
    chain = tree
    for k in range(15):
        chain = chain.attach(tree, chain.link_names[-1], prefix=f"{k}_")
    assert chain.num_links == 48
    q = np.linspace(-0.5, 0.5, 48)
    ours = jax.jit(lambda q: compensating_torques(chain, q, G))(jnp.asarray(q))
    close(ours, tree_dynamics.compensating_torques(chain, q, G), 1e-13)


def test_numbers_that_are_none_are_refused(tree):
    spoilt = dataclasses.replace(tree, compensated_masses=np.array([0.0, np.nan, 1.0]))
    (problem,) = tree_problems(spoilt)
    assert "link 'fore'" in str(problem)
    with pytest.raises(Exception, match="compensated_masses"):
        RobotArmNode("arm", 1e-3, spoilt, "hand")
