"""An arm of inertias that no body has moves as its equations say; one without inertia is refused.

In a plane only the moment about its normal is felt. So an arm of planar inertias, or of broken
triangles, moves there as the arm of real bodies does that has the same moments about the normal.
"""

import dataclasses

import jax
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import (
    Coulomb,
    GraphManager,
    JointPDNode,
    ParameterError,
    Payload,
    RobotArmNode,
    Servo,
    model_path,
    parse_urdf,
)
from mime.control.tree_values import tree_problems
from mime.core.problem import InputError, StabilityWarning
from weak_robots import BROKEN, PLANAR, robot

X, Y, Z, O = np.eye(3)[0], np.eye(3)[1], np.eye(3)[2], np.zeros(3)
TREE = parse_urdf(model_path("planar_arm_3link"))
AXIS = TREE.joint_axes_local[0]
ABOUT = np.einsum("i,lij,j->l", AXIS, TREE.inertias, AXIS)
SHAPES = {
    "planar": [moment * np.outer(AXIS, AXIS) for moment in ABOUT],
    "broken": [moment * (0.9 * np.outer(AXIS, AXIS) + 0.1 * np.eye(3)) for moment in ABOUT],
}
START = {"arm": {"joint_angles": [0.5, 0.3, 0.2]}}
SPRINGS = {
    "joint_stiffness_n_m_per_rad": [400.0, 300.0, 200.0],
    "rotor_inertia_kg_m2": [1e-4] * 3,
    "gear_ratio": [50.0] * 3,
}
BALL = {"joint_model": "inserted_body", "inserted_inertia_kg_m2": [1e-3] * 3}
OPTIONS = {
    "implicit": {},
    "explicit": {"integrator": "explicit"},
    "midpoint": {"integrator": "midpoint"},
    "gauss4": {"integrator": "gauss4"},
    "rk4": {"integrator": "rk4"},
    "elastic": SPRINGS,
    "elastic rk4": {"integrator": "rk4", **SPRINGS},
    "inserted bodies": {**SPRINGS, **BALL},
    "servo": {"servo": Servo(50.0, 5.0), "friction": Coulomb([0.1] * 3)},
    "soft stops": {"joint_limits": "spring"},
}


def with_inertias(inertias):
    return dataclasses.replace(TREE, inertias=np.array(inertias))


def end(tree, **options):
    graph = GraphManager()
    graph.add_node(RobotArmNode("arm", 1e-3, tree, tree.frame_names[-1], **options))
    run = graph.compile().run(0.1, initial_state=START)
    return np.asarray(run["arm"]["joint_angles"][-1])


@pytest.mark.small("planar-implicit", "broken-gauss4", "broken-elastic", "planar-inserted bodies")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_it_moves_as_the_arm_of_real_bodies(shape, options):
    assert np.all(TREE.joint_axes_local == AXIS)
    with jax.enable_x64(True):
        expected = end(TREE, **OPTIONS[options])
        found = end(with_inertias(SHAPES[shape]), **OPTIONS[options])
    assert np.abs(expected - START["arm"]["joint_angles"]).max() > 0.01
    # A hundred steps of rounding; what is left out of the plane is an exact 0.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_in_single_precision_too():
    found = end(with_inertias(SHAPES["planar"]))
    # A hundred steps in single precision, of angles of some 1 rad.
    np.testing.assert_allclose(found, end(TREE), rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_springs_too_stiff_for_a_step_are_found_as_with_real_bodies(shape):
    words = []
    for tree in (TREE, with_inertias(SHAPES[shape])):
        sprung = dataclasses.replace(
            tree,
            spring_stiffness_n_m_per_rad=np.array([1e7, 0.0, 0.0]),
            spring_reference_rad=np.zeros(3),
        )
        with pytest.warns(StabilityWarning, match="too stiff for a timestep") as warned:
            RobotArmNode("arm", 1e-3, sprung, tree.frame_names[-1])
        words.append(str(warned[0].message))
    assert words[0] == words[1]


def arm_of(tree, **options):
    return RobotArmNode("arm", 1e-3, tree, tree.frame_names[-1], **options)


CHAIN = [(-1, Z, O, "revolute"), (0, X, Z, "revolute"), (1, Y, X, "revolute")]


def test_joints_without_inertia_are_named_and_what_helps_is_taken(tmp_path):
    tree = robot(tmp_path, CHAIN, masses=[1, 1, 0], coms=[X, Y, O])
    words = "RobotArmNode 'arm': tree gives no inertia to 'j2': link 'l2' has no mass. Give a mass"
    for options in ({}, {"joint_friction_n_m_s": [1.0] * 3}, {"servo": Servo(1.0, 1.0)}):
        with pytest.raises(ParameterError) as refused:
            arm_of(tree, **options)
        assert str(refused.value).startswith(words)
        assert refused.value.problems[0].place == ("tree",)
    helping = (
        {"rotor_inertia_kg_m2": {"j2": 1e-3}},
        {"payload": Payload("l2", 0.1, (0.1, 0.0, 0.0))},
        {"lock": {"j2": 0.0}},
    )
    for options in helping:
        assert arm_of(tree, **options).tree.num_joints in (2, 3)
    with pytest.raises(ParameterError, match="no inertia to 'j2': what they move has neither"):
        arm_of(tree, payload=Payload("l2", 0.1, (0.0, 0.3, 0.0)))


def test_beside_a_spring_the_link_must_resist_by_itself(tmp_path):
    """At an instant its acceleration would be its spring's torque over nothing."""
    tree = robot(tmp_path, CHAIN, masses=[1, 1, 0], coms=[X, Y, O])
    given = {"rotor_inertia_kg_m2": [1e-3] * 3}
    assert arm_of(tree, **given).num_joints == 3
    springs = {"joint_stiffness_n_m_per_rad": {"j2": 10.0}}
    with pytest.raises(ParameterError, match="no inertia to 'j2'"):
        arm_of(tree, **given, **springs)
    ball = {"joint_model": "inserted_body", "inserted_inertia_kg_m2": {"j2": 1e-3}}
    assert arm_of(tree, **given, **springs, **ball).num_joints == 3
    assert arm_of(tree, **given, joint_stiffness_n_m_per_rad={"j1": 10.0}).num_joints == 3


def test_a_robot_without_any_mass_is_for_kinematics(tmp_path):
    tree = robot(tmp_path, CHAIN, masses=np.zeros(3))
    words = r"no mass in any link that moves \('l0', 'l1', 'l2'\): it is for kinematics\. Use "
    with pytest.raises(ParameterError, match=words + "frame_pose, frame_jacobian, inverse_kin"):
        arm_of(tree)
    assert np.all(np.isfinite(kin.frame_pose(tree, np.zeros(3), "l2")))
    # A controller does not know what gives its joints inertia, and does not judge its gains.
    pd = JointPDNode("pd", 1e-3, tree, kp=10.0, kd=1.0)
    assert not list(pd.value_warnings())


def test_without_a_joint_that_moves_it_floats_or_is_refused(tmp_path):
    tree = robot(tmp_path, CHAIN, coms=[X, Y, Z], root=(1.0, BROKEN))
    still = tree.lock(j0=0.1, j1=0.2, j2=0.3)
    for one in (still, tree.subtree("l2"), tree.subtree("l1", "l1")):
        assert one.num_joints == one.num_links == 0
        with pytest.raises(
            ParameterError, match="no joint that moves, and on a fixed base nothing"
        ):
            arm_of(one)
    assert float(still.root_body.mass) == 4.0
    none = np.zeros(0)
    expected = kin.frame_pose(tree, np.array([0.1, 0.2, 0.3]), "l2")
    np.testing.assert_allclose(kin.frame_pose(still, none, "l2"), expected, rtol=0, atol=1e-15)
    assert kin.mass_matrix(still, none).shape == (0, 0)
    assert kin.rnea(still, none, none, none, -Z).shape == (0,)
    assert kin.forward_dynamics(still, none, none, none, -Z).shape == (0,)
    assert kin.link_world_poses(still, none).shape == (0, 7)
    assert kin.kinetic_energy(still, none, none) == kin.potential_energy(still, none, -Z) == 0.0
    floating = arm_of(still.with_base("floating"))
    assert floating.base == "floating"


def test_a_floating_base_loads_with_what_the_file_says_and_the_node_asks_for_inertia(tmp_path):
    tree = robot(tmp_path, [(-1, Z, X, "revolute")], coms=[X], root=(0.0, 0 * PLANAR))
    floats = tree.with_base("floating")
    assert floats.root_body.mass == 0.0
    words = "no inertia to the base's turning about x, .* link 'base' has no mass"
    with pytest.raises(ParameterError, match=words):
        arm_of(floats)
    heavy = floats.with_payload("base", 1.0, O, BROKEN)
    assert arm_of(heavy).base == "floating"
    planar = tree.with_payload("base", 1.0, O, PLANAR).subtree("base", "base")
    with pytest.raises(ParameterError, match="turning about x, the base's turning about y: what"):
        arm_of(planar, base="floating")


def test_a_mass_or_a_moment_below_0_is_refused_and_a_broken_triangle_is_not(tmp_path):
    tree = robot(tmp_path, CHAIN, coms=[X, Y, Z])
    for inertia in (BROKEN, PLANAR, np.diag([1.0, 1.0, -1e-7])):
        loaded = tree.with_payload("l2", 1.0, Z, inertia)
        np.testing.assert_array_equal(loaded.inertias[2], inertia)
        assert not list(tree_problems(loaded))
        assert arm_of(tree, payload=Payload("l2", 1.0, Z, inertia)).num_joints == 3
    both = tree.attach(tree.with_payload("base", 1.0, X, BROKEN), "l2", prefix="b_")
    np.testing.assert_array_equal(both.inertias[2], both.inertias[2].T)
    wrong = np.diag([1.0, 1.0, -1e-5])
    for make in (tree.with_payload, Payload):
        with pytest.raises((InputError, ParameterError), match=r"no principal moment below 0; got"):
            make("l2", 1.0, (0, 0, 0), wrong)
        with pytest.raises((InputError, ParameterError), match="must be >= 0"):
            make("l2", -1.0, (0, 0, 0), PLANAR)
    with pytest.raises(ParameterError, match="no moment below 0 kg·m², got -1e-05 for link 'l1'"):
        arm_of(dataclasses.replace(tree, inertias=np.array([PLANAR, wrong, PLANAR])))
    floats = dataclasses.replace(tree.with_base("floating"))
    for mass, inertia, words in ((-1.0, PLANAR, "a mass >= 0 kg"), (1.0, wrong, "no moment below")):
        body = dataclasses.replace(tree.root_body, mass=np.array(mass), inertia=inertia)
        with pytest.raises(ParameterError, match=f"root_body must have {words}.* link 'base'"):
            arm_of(dataclasses.replace(floats, root_body=body))
