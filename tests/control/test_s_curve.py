"""S-curves and joint trajectories: limits, closed forms, and the fastest move that a linear program
finds.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog

from compiling import QUICK
from mime import GraphManager, ParameterError
from mime.control.s_curve import s_curve
from mime.control.trajectories import joint_trajectory, waypoint_trajectory
from mime.nodes.control.joint_trajectory import JointTrajectoryNode

# distance, v_max, a_max, j_max, v0, vf: which segments vanish
CASES = {
    "all seven segments": (10.0, 2.0, 1.5, 3.0, 0.0, 0.0),
    "no cruise": (2.5, 5.0, 1.5, 3.0, 0.0, 0.0),
    "no constant acceleration": (0.1, 5.0, 1.5, 3.0, 0.0, 0.0),
    "no cruise, speeds at both ends": (3.0, 5.0, 1.5, 3.0, 1.2, 0.4),
    "acceleration limit on one ramp only": (2.4, 2.0, 1.0, 1.5, 0.2, 1.5),
    "cruise, speeds at both ends": (10.0, 2.0, 1.5, 3.0, 0.5, 1.9),
    "backwards": (-10.0, 2.0, 1.5, 3.0, 0.3, 0.0),
}

sample = jax.jit(jax.vmap(lambda curve, t: curve(t), in_axes=(None, 0)))
plan = jax.jit(jax.vmap(s_curve))
at = jax.jit(lambda curve, t: curve(t))


@jax.jit
def duration(x):
    return s_curve(*jnp.unstack(x)).duration


@partial(jax.jit, compiler_options=QUICK)
@jax.grad
def end_gradient(x, t):
    curve = s_curve(*jnp.unstack(x))
    return curve.duration + sum(curve(t))


duration_gradient = jax.jit(jax.grad(duration), compiler_options=QUICK)
rest_gradient = jax.jit(
    jax.grad(lambda x: s_curve(*jnp.unstack(x)).duration), compiler_options=QUICK
)


def random_cases(n):
    rng = np.random.default_rng(0)
    v, a, j = 10 ** rng.uniform(-1, 1, (3, n))
    v0, vf = v * rng.uniform(0, 1, (2, n)) * (rng.random((2, n)) > 0.3)
    return 10 ** rng.uniform(-3, 2, n), v, a, j, v0, vf


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_move_keeps_its_limits_and_arrives(case):
    d, v, a, j, v0, vf = case
    curve = s_curve(*case)
    T = float(curve.duration)
    t = np.linspace(0.0, T, 2001)
    x, speed, acceleration = map(np.asarray, sample(curve, t))
    # Sums of seven products: a few roundings of 1e-16.
    one = 1 + 1e-12
    assert np.max(np.abs(speed)) <= v * one
    assert np.max(np.abs(acceleration)) <= a * one
    assert np.max(np.abs(np.diff(acceleration) / np.diff(t))) <= j * (1 + 1e-9)  # differences
    np.testing.assert_allclose([x[0], speed[0], acceleration[0]], [0, np.sign(d) * v0, 0])
    np.testing.assert_allclose([x[-1], speed[-1]], [d, np.sign(d) * vf], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(acceleration[-1], 0, atol=1e-12)


@pytest.mark.small("all seven segments", "no cruise, speeds at both ends", "backwards")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_position_is_the_integral_of_velocity_and_velocity_of_acceleration(case):
    curve = s_curve(*case)
    knots = np.cumsum(curve.segment_times)
    direction = float(curve.direction)
    for t in knots[-1] * np.array([0.2, 0.55, 0.9]):
        points = knots[knots < t]
        for order, start in ((0, 0.0), (1, direction * case[4])):
            rate = partial(lambda order, s: float(at(curve, s)[order + 1]), order)
            area = quad(rate, 0, t, points=points, limit=50)[0]
            # Between its knots a rate is a polynomial, which quad integrates to rounding.
            assert float(at(curve, t)[order]) == pytest.approx(start + area, rel=1e-10, abs=1e-12)


def jerk_program(T, case, n=160):
    """Whether n constant jerks in time T can do the move: a linear program, nothing of ours."""
    d, v, a, j, v0, vf = case
    h = T / n
    age = np.arange(n)[:, None] - np.arange(n)[None, :]  # steps from the jerk's end to the knot
    done = age >= 0
    to_a = np.where(done, h, 0.0)
    to_v = np.where(done, h * h * (age + 0.5), 0.0)
    to_x = np.where(done, h**3 * (age**2 / 2 + age / 2 + 1 / 6), 0.0)
    result = linprog(
        np.zeros(n),
        A_ub=np.vstack([to_a, -to_a, to_v, -to_v]),
        b_ub=np.concatenate([np.full(2 * n, a), np.full(n, v - v0), np.full(n, v + v0)]),
        A_eq=np.vstack([to_a[-1], to_v[-1], to_x[-1]]),
        b_eq=[0.0, vf - v0, d - v0 * T],
        bounds=(-j, j),
    )
    return result.status == 0


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c[0] > 0], ids=[k for k, c in CASES.items() if c[0] > 0]
)
def test_no_program_of_jerks_is_faster(case):
    # 160 equal steps cannot switch at the best instants: they need up to 1 % more time.
    T = float(s_curve(*case).duration)
    assert jerk_program(1.02 * T, case)
    assert not jerk_program(0.99 * T, case)


def test_the_distance_up_to_a_peak_and_down_is_the_published_formula():
    v0, vf, vm, a, j = 0.5, 0.8, 4.0, 1.5, 3.0
    d = (a**2 * (v0 + vf + 2 * vm) - j * (v0**2 + vf**2 - 2 * vm**2)) / (2 * a * j)
    curve = s_curve(d, 10.0, a, j, v0, vf)
    peak = max(float(curve.velocity(t)) for t in np.cumsum(curve.segment_times))
    assert peak == pytest.approx(vm, rel=1e-13)  # Newton's method, to rounding
    assert curve.segment_times[3] == 0


def test_thousands_of_random_moves_arrive_or_are_flagged():
    cases = random_cases(2000)
    d, v, a, _, _, vf = cases
    curves = plan(*cases)
    durations = np.asarray(curves.segment_times).sum(-1)
    ends = jax.jit(jax.vmap(lambda curve, t: curve(t)))(curves, durations)
    x, speed, acceleration = map(np.asarray, ends)
    ok = np.asarray(curves.feasible)
    assert 0.3 < ok.mean() < 0.9
    np.testing.assert_allclose(x[ok], d[ok], rtol=1e-13)
    np.testing.assert_allclose(speed[ok], vf[ok], atol=1e-13 * v.max())
    # The clock's rounding (up to 1e3 s of 1e-16) times the jerk.
    np.testing.assert_allclose(acceleration / a, 0, atol=1e-10)
    assert np.all(x[~ok] > d[~ok])


def test_the_solver_agrees_with_the_closed_form_from_rest_to_rest():
    d, v, a, j, *_ = random_cases(500)
    zero = np.zeros(500)
    solved = plan(d, v, a, j, zero, zero)
    closed = plan(d, v, a, j)
    durations = (np.asarray(curve.segment_times).sum(-1) for curve in (closed, solved))
    np.testing.assert_allclose(*durations, rtol=1e-13)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_of_the_duration_match_central_differences(case):
    # At a speed of 0 the closed form has a corner (speeds are >= 0): stay inside.
    x = np.array(case) + np.array([0, 0, 0, 0, 0.01, 0.01])
    gradient = duration_gradient(x)
    h = 1e-6
    central = [(duration(x + h * e) - duration(x - h * e)) / (2 * h) for e in np.eye(6)]
    # Differences of 1e-6 err by 1e-16/1e-6 and by 1e-12 times the third derivative.
    np.testing.assert_allclose(gradient, central, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "case",
    [
        (0.0, 1.0, 1.0, 1.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 1.0, 0.5, 0.5),
        (1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
        (2.0, 9.0, 1.0, 1.0, 0.0, 0.0),  # exactly where the acceleration limit is reached
        (0.1, 1.0, 1.0, 1.0, 0.0, 1.0),  # not feasible
    ],
)
def test_gradients_are_finite_where_segments_vanish(case):
    assert np.all(np.isfinite(end_gradient(jnp.array(case), 0.3)))
    assert np.all(np.isfinite(rest_gradient(jnp.array(case[:4]))))


def test_a_move_too_short_for_its_speeds_is_refused_or_flagged():
    with pytest.raises(ParameterError, match=r"takes a distance of 1, got 0\.5"):
        s_curve(0.5, 2.0, 1.0, 1.0, 0.0, 1.0)
    curve = jax.jit(s_curve)(0.5, 2.0, 1.0, 1.0, 0.0, 1.0)
    assert not curve.feasible
    assert curve.position(curve.duration) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 0.0, 1.0, 1.0), "v_max must be finite and > 0, got 0"),
        ((1.0, 1.0, -2, 1.0), "a_max must be finite and > 0, got -2"),
        ((1.0, 1.0, 1.0, np.inf), "j_max must be finite and > 0, got inf"),
        ((1.0, 1.0, 1.0, 1.0, 1.5), "v0 must be from 0 to v_max = 1"),
        ((1.0, 1.0, 1.0, 1.0, 0.0, -0.1), "vf must be from 0"),
    ],
)
def test_impossible_limits_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        s_curve(*arguments)


def test_outside_its_duration_a_move_goes_on_at_its_end_speeds():
    curve = s_curve(10, 2, 1, 3, 0.5, 1.5)
    T = curve.duration
    assert curve.position(-2.0) == pytest.approx(-1.0)
    assert curve.position(T + 2.0) == pytest.approx(10.0 + 3.0)
    assert curve.velocity(T + 2.0) == pytest.approx(1.5)


def test_single_precision_stays_single(precision):
    eps = float(jnp.finfo(precision).eps)
    curve = s_curve(*(jnp.asarray(x, precision) for x in CASES["no cruise, speeds at both ends"]))
    assert curve.duration.dtype == precision
    # Some ten roundings.
    assert curve.position(curve.duration) == pytest.approx(3.0, rel=20 * eps)


Q = np.array([[0.0, 0.0, 0.0], [1.0, -0.2, 0.0], [0.5, -2.0, 0.0]])
V, A, J = np.array([1.0, 2.0, 1.0]), 3.0, [20.0, 30.0, 20.0]


def test_all_joints_stop_together_and_the_slowest_meets_its_limit():
    trajectory = joint_trajectory(Q[0], Q[1], V, A, J)
    T = float(trajectory.duration)
    assert pytest.approx(float(s_curve(1.0, 1.0, 3.0, 20.0).duration), rel=1e-14) == T
    q, qd, qdd = jax.jit(jax.vmap(trajectory))(jnp.linspace(0, T, 1001))
    np.testing.assert_allclose(q[-1], Q[1], atol=1e-14)
    moving = np.abs(qd[1:-1, :2]) > 0
    assert np.all(moving)
    assert np.all(q[:, 2] == 0)
    assert np.max(np.abs(qd[:, 0])) == pytest.approx(1.0, rel=1e-12)
    assert np.all(np.max(np.abs(qd), 0) <= V * (1 + 1e-12))
    assert np.max(np.abs(qdd)) <= A * (1 + 1e-12)


def test_velocities_and_accelerations_are_the_derivatives_of_the_angles():
    trajectory = waypoint_trajectory(Q, V, A, J)
    both = jax.jit(lambda t: (trajectory(t), jax.jacfwd(trajectory)(t)), compiler_options=QUICK)
    for t in np.array([0.1, 0.37, 0.6, 0.81]) * float(trajectory.duration):
        (_, qd, qdd), (dq, dqd, _) = both(t)
        np.testing.assert_allclose(dq, qd, atol=1e-13)
        np.testing.assert_allclose(dqd, qdd, atol=1e-12)


def test_a_trajectory_rests_in_each_waypoint_and_holds_the_last():
    trajectory = waypoint_trajectory(Q.tolist(), V, A, J)
    middle = float(trajectory.move_durations[0])
    at = jax.jit(lambda t: trajectory(t), compiler_options=QUICK)
    for t, q in ((-1.0, Q[0]), (middle, Q[1]), (99.0, Q[2])):
        targets = at(t)
        np.testing.assert_allclose(targets.q, q, atol=1e-14)
        np.testing.assert_allclose(targets.qd, 0, atol=1e-13)
    assert np.all(np.isfinite(jnp.stack(joint_trajectory([1, 2], [1, 2], 1, 1, 1)(0.5))))


@pytest.mark.parametrize(
    ("arguments", "place", "of_node", "message"),
    [
        (
            ([[0.0, 1.0]], 1.0, 1.0, 1.0),
            "waypoints",
            "waypoints_rad",
            r"at least 2, joints\), got \(1, 2\)",
        ),
        (
            (Q, [1.0, 1.0], 1.0, 1.0),
            "v_max",
            "velocity_limits_rad_per_s",
            "must be one number or one for each of 3 joints",
        ),
        ((Q, V, A, [1.0, 0.0, 1.0]), "j_max", "jerk_limits_rad_per_s3", "must be finite and > 0"),
    ],
)
def test_impossible_trajectories_are_refused_by_name(arguments, place, of_node, message):
    with pytest.raises(ParameterError, match=message) as caught:
        waypoint_trajectory(*arguments)
    assert [problem.place for problem in caught.value.problems] == [(place,)]
    with pytest.raises(ParameterError, match=message) as caught:
        JointTrajectoryNode("plan", 1e-3, *arguments)
    assert [problem.place for problem in caught.value.problems] == [(of_node,)]


def test_the_node_plays_the_trajectory_by_its_own_clock():
    node = JointTrajectoryNode("plan", 1e-2, Q, V, A, J)
    assert node.validate_mime_consistency() == []
    graph = GraphManager()
    graph.add_node(node)
    simulation = graph.compile()
    state, _ = simulation.rollout(simulation.init_state(), {}, 70)
    fluxes = node.compute_boundary_fluxes({"elapsed_time": 0.7, "clock_remainder": 0.0}, {}, 1e-2)
    expected = waypoint_trajectory(Q, V, A, J)(0.7)
    names = ("angles", "velocities", "accelerations")
    for name, value in zip(names, expected, strict=True):
        np.testing.assert_allclose(fluxes[f"desired_joint_{name}"], value, atol=1e-14)
    assert jax.tree.leaves(state)


def test_the_clock_of_single_precision_does_not_drift():
    with jax.enable_x64(False):
        node = JointTrajectoryNode("plan", 1e-3, Q, V, A, J)

        def step(state, _):
            return node.update(state, {}, 1e-3), None

        state, _ = jax.lax.scan(step, node.initial_state(), None, length=100_000)
    # One unit in the last place of 100 s; plainly summed it would be off by 0.9 s.
    assert float(state["elapsed_time"]) == pytest.approx(100.0, abs=1e-5)
