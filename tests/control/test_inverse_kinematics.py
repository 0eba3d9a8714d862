"""Inverse kinematics on real arms: its answers are put through Pinocchio's forward kinematics."""

import dataclasses
import pickle
from functools import partial
from importlib import metadata

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import mime.control.kinematics as kin
from compiling import QUICK
from mime.control.inverse_kinematics import STALLED_ITERATIONS, solve_ik
from mime.core.pose import (
    IDENTITY_POSE,
    compose,
    pose_from_matrix,
    pose_to_matrix,
    quat_from_rotation_vector,
)
from mime.models import model_path
from sizes import FULL, sized

pytestmark = pytest.mark.slow

FRAMES = {"desktop": "link_6", "ur5": "tool0", "panda": "panda_hand_tcp"}
FILES = {"ur5": "ur5_robot.urdf", "panda": "panda.urdf"}
OFFSET = np.array([0.02, -0.03, 0.1, np.cos(0.4), 0.0, np.sin(0.4), 0.0])
TARGETS = sized(200, small=100)
to_matrix = jax.jit(pose_to_matrix)


def load(name):
    if name == "desktop":
        return kin.parse_urdf(model_path("desktop_arm_6axis"))
    file = next(f for f in metadata.files("example-robot-data") if f.name == FILES[name])
    return kin.parse_urdf(file.locate())


@pytest.fixture(scope="module")
def desktop():
    return load("desktop")


@pytest.fixture(scope="module")
def planar():
    return kin.parse_urdf(model_path("planar_arm_3link"))


@pytest.fixture(scope="module")
def narrow(planar):
    """The planar arm with a first joint that is soon at its limit."""
    limits = np.array([[-3.0, 0.35], [-3.0, 3.0], [-3.0, 3.0]])
    return dataclasses.replace(planar, joint_limits=limits)


@pytest.fixture(scope="module", params=FRAMES)
def case(request):
    """An arm, reachable targets (of random angles within the limits), and a batch solver."""
    tree, frame = load(request.param), FRAMES[request.param]
    rng = np.random.default_rng(7)
    low, high = tree.joint_limits.T
    q = rng.uniform(low, high, (TARGETS, tree.num_joints))
    near = np.clip(q + rng.uniform(-0.5, 0.5, q.shape), low, high)
    where = jax.vmap(lambda q: compose(kin.frame_pose(tree, q, frame), OFFSET))
    poses = jax.jit(where, compiler_options=QUICK)(q)

    @partial(jax.jit, compiler_options=QUICK)
    @jax.vmap
    def solve(pose, q0, seed):
        key = jax.random.key(seed)
        return solve_ik(tree, frame, pose, q0, offset=OFFSET, restarts=20, key=key)

    return tree, frame, poses, near, solve


def pose_at(tree, q, frame):
    """Where a frame is: in NumPy, for nothing compiles."""
    return pose_from_matrix(kin.frame_transform(tree, np.asarray(q), frame))


def pinocchio_error(model, tree, frame, q, pose):
    """m and rad between the target and where Pinocchio says the tool is."""
    data = model.createData()
    full = pin.neutral(model)
    for i, name in enumerate(tree.link_joint_names):
        x = tree.mimic_multiplier[i] * q[tree.coordinate_idxs[i]] + tree.mimic_offset[i]
        full[model.joints[model.getJointId(name)].idx_q] = x
    pin.framesForwardKinematics(model, data, full)
    placed = data.oMf[model.getFrameId(frame)].homogeneous @ np.asarray(to_matrix(OFFSET))
    target = np.asarray(to_matrix(pose))
    turn = pin.log3(target[:3, :3] @ placed[:3, :3].T)
    return np.linalg.norm(target[:3, 3] - placed[:3, 3]), np.linalg.norm(turn)


@pytest.mark.small("panda")
def test_reachable_targets_are_found_from_nearby_and_pinocchio_agrees(case):
    tree, frame, poses, near, solve = case
    # A start up to half a radian away on every joint: 99.5 to 100 % in a single attempt, of 1,000.
    found = solve(poses, near, np.arange(TARGETS))
    first = np.asarray(found.converged & (found.iterations < STALLED_ITERATIONS))  # no restart yet
    assert first.mean() >= 0.95
    assert np.count_nonzero(found.converged) >= 0.99 * TARGETS
    assert np.median(found.iterations) <= 6
    q = np.asarray(found.q)
    assert np.all(q >= tree.joint_limits[:, 0])
    assert np.all(q <= tree.joint_limits[:, 1])
    model = pin.buildModelFromUrdf(tree.source)
    for i in np.flatnonzero(first)[:20]:
        position, angle = pinocchio_error(model, tree, frame, q[i], poses[i])
        # The tolerance of the solver, and 1e-10 of difference between two kinematics.
        assert position <= 1e-6 + 1e-10
        assert angle <= 1e-6 + 1e-10


@pytest.mark.small("panda")
def test_reachable_targets_are_found_from_anywhere_with_random_restarts(case):
    tree, _, poses, _, solve = case
    middle = np.tile(tree.joint_limits.mean(1) + 0.1, (TARGETS, 1))
    found = solve(poses, middle, np.arange(TARGETS))
    # 8 restarts find 99.3 to 99.8 % of 1,000 targets, 20 find all.
    assert np.count_nonzero(found.converged) >= 0.99 * TARGETS
    q = np.asarray(found.q)
    assert np.all(np.isfinite(q))
    if tree.name == "panda":  # the fingers do not move the tool's frame: they stay as given
        np.testing.assert_array_equal(q[:, 7:], middle[:, 7:])
        assert q.shape[1] > 7


HOME = np.array([-0.02763, 0.49873, -0.51875, 1.04673, 1.05147, 0.3])


def test_a_single_call_gives_errors_iterations_and_convergence(desktop):
    target = pose_at(desktop, HOME, "link_6")
    result = solve_ik(desktop, "link_6", target, HOME + 0.2)
    assert result.converged
    assert result.checked() is result
    assert result.position_error_m <= 1e-6
    assert result.angle_error_rad <= 1e-6
    assert 2 <= result.iterations <= 10
    np.testing.assert_allclose(result.q, HOME, atol=1e-4)  # tolerance over the least stiffness
    again = solve_ik(desktop, "link_6", target, HOME)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.q, HOME)


def test_an_unreachable_target_is_reported_with_the_nearest_pose(narrow):
    # The arm is 0.9 m long and stretches towards it.
    result = solve_ik(narrow, "tool", [2, 0, 0, 1, 0, 0, 0], [0.3, 0.4, 0.2], position_only=True)
    assert not result.converged
    assert result.position_error_m == pytest.approx(1.1, abs=1e-3)  # a search ends at gains of 1e-3
    with pytest.raises(ValueError, match=r"nearest miss it by 1.1 m and .* Is it within reach\?"):
        result.checked()


def test_a_position_that_is_reachable_with_another_orientation_is_told(narrow, desktop):
    sideways = [0.5, 0.0, 0.3, 0.0, 1.0, 0.0, 0.0]  # a planar arm cannot turn about x
    result = solve_ik(narrow, "tool", sideways, [0.3, 0.4, 0.2])
    assert not result.converged
    with pytest.raises(ValueError, match="position alone is within reach: pass position_only=True"):
        result.checked()
    assert solve_ik(narrow, "tool", sideways, [0.3, 0.4, 0.2], position_only=True).converged
    far = solve_ik(narrow, "tool", [2, 0, 0, 1, 0, 0, 0], [0.3, 0.4, 0.2])
    with pytest.raises(ValueError, match=r"Is it within reach\?") as refusal:
        far.checked()
    assert "position_only" not in str(refusal.value)
    # Results stay plain pytrees: of one structure, sent to other processes, mapped and traced.
    assert jax.tree.structure(result) == jax.tree.structure(far)
    sent = pickle.loads(pickle.dumps(result))
    both = jax.vmap(lambda pose: solve_ik(narrow, "tool", pose, jnp.array([0.3, 0.4, 0.2])))(
        jnp.array([sideways, sideways])
    )
    second = jax.tree.map(lambda x: x[1], both)
    wrong = jax.jit(lambda _: result)(0.0), eqx.tree_at(lambda r: r.q, result, far.q)
    for other in (sent, second, wrong[1]):
        with pytest.raises(ValueError, match=r"Is it within reach\?"):
            other.checked()


def test_position_only_leaves_the_orientation_free(planar, narrow):
    target = [0.5, 0.0, 0.3, 0.0, 1.0, 0.0, 0.0]
    result = solve_ik(narrow, "tool", target, [0.3, 0.4, 0.2], position_only=True)
    assert result.converged
    assert result.angle_error_rad > 1
    if FULL:  # the same with the orientation is out of reach
        assert not solve_ik(planar, "tool", target, [0.3, 0.4, 0.2]).converged
    tip = kin.frame_transform(planar, np.asarray(result.q), "tool")[:3, 3]
    np.testing.assert_allclose(tip, target[:3], atol=1e-6)


def test_a_joint_at_its_limit_is_held_and_the_others_reach_the_target(planar, narrow):
    start = np.array([0.3, 0.4, 0.2])
    target = pose_at(planar, [0.5, 1.2, 1.2], "tool")
    result = solve_ik(narrow, "tool", target, start, position_only=True)
    assert result.converged
    assert -3 <= result.q[0] <= 0.35
    # Outside the limits it starts from the nearest angles within.
    outside = solve_ik(narrow, "tool", target, [1.0, 0.4, 0.2], position_only=True)
    assert outside.converged
    assert outside.q[0] <= 0.35


def test_a_target_half_a_turn_away_has_finite_steps(desktop):
    pose = pose_at(desktop, HOME, "link_6")
    turned = compose(pose, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    result = solve_ik(desktop, "link_6", turned, HOME)
    assert np.all(np.isfinite(result.q))
    assert np.isfinite(result.angle_error_rad)


def test_the_derivative_by_the_target_is_that_of_the_solution(desktop):
    pose = pose_at(desktop, HOME, "link_6")

    def angles(shift):
        target = jnp.concatenate([pose[:3] + shift[:3], pose[3:]])
        turn = jnp.concatenate([jnp.zeros(3), quat_from_rotation_vector(shift[3:])])
        exact = {"position_tolerance_m": 1e-12, "angle_tolerance_rad": 1e-12}
        return solve_ik(desktop, "link_6", compose(target, turn), HOME, **exact).q

    jacobian = jax.jit(jax.jacrev(angles), compiler_options=QUICK)(jnp.zeros(6))
    J = kin.frame_jacobian_at(desktop, HOME, "link_6")
    R = kin.frame_transform(desktop, HOME, "link_6")[:3, :3]
    turned = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), R]])
    # The damping of the last step, 1e-12, over the square of J's least singular value, 0.1.
    np.testing.assert_allclose(jacobian, np.linalg.inv(J) @ turned, atol=1e-8)


@pytest.mark.soak("a tool path is followed in single precision")
def test_single_precision_converges_to_its_own_tolerance(planar):
    with jax.enable_x64(False):
        target = pose_at(planar, np.float32([0.5, 0.6, 0.3]), "tool")
        result = solve_ik(planar, "tool", target, jnp.array([0.3, 0.4, 0.2]))
        assert result.q.dtype == jnp.float32
        assert result.converged


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q0": [0.0, 0.0]}, r"q0 must have shape \(3,\), got \(2,\)"),
        ({"target_pose": [0, 0, 0, 2, 0, 0, 0]}, "target_pose must hold a unit quaternion"),
        ({"target_pose": [np.nan, 0, 0, 1, 0, 0, 0]}, "target_pose must be finite"),
        ({"offset": np.zeros(7)}, "offset must hold a unit quaternion"),
        (
            {"frame_name": "elbow"},
            "frame_name names no link 'elbow'. It has 5 links: 'base_link', ",
        ),
        ({"frame_name": "base_link"}, "no joint moves 'base_link'"),
        ({"damping": 0.0}, "damping must be > 0"),
        ({"position_tolerance_m": -1.0}, "position_tolerance_m must be > 0"),
        ({"weights": [1, 1, 1, 1, 1, -1]}, "weights must be >= 0"),
        ({"restarts": 3}, "random restarts need a key"),
        ({"max_iterations": 0}, "max_iterations must be a whole number from 1"),
    ],
)
def test_impossible_problems_are_refused(planar, changes, message):
    problem = {"frame_name": "tool", "target_pose": IDENTITY_POSE, "q0": [0, 0, 0], **changes}
    with pytest.raises((ValueError, KeyError), match=message):
        solve_ik(planar, **problem)
