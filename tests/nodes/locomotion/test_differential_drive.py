"""The differential drive: rolling, chassis, slip, gradients, refusals."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compiling import QUICK
from mime.core.problem import InputError, ParameterError
from mime.nodes.locomotion import centre_of_curvature, radius_of_curvature
from mime.nodes.locomotion.differential_drive import DifferentialDriveNode
from mime.nodes.locomotion.rolling import BodyVelocity, PlanarPose, move_along_arc, sinc
from mime.running.graph import GraphManager

R, W, G = 0.0145, 0.053, 9.80665
M, IZ, JW = 0.1, 1.3e-4, 2e-6
WHEELS = {"wheel_radius_m": R, "track_width_m": W}
BODY = {"mass_kg": M, "yaw_inertia_kg_m2": IZ, "wheel_inertia_kg_m2": JW, "model": "dynamic"}


def kinematic(**changes):
    return DifferentialDriveNode("mouse", 1e-3, **(WHEELS | changes))


def dynamic(dt=1e-3, **changes):
    return DifferentialDriveNode("mouse", dt, **(WHEELS | BODY | changes))


@jax.jit
def scan(node, state, pairs):
    names = tuple(node.boundary_input_spec())[:2]

    def step(state, pair):
        inputs = dict(zip(names, pair))
        state = node.update(state, inputs, node.timestep)
        return state, (state, node.compute_boundary_fluxes(state, inputs, node.timestep))

    return jax.lax.scan(step, state, pairs)[1]


def run(node, pairs, **initial):
    """States and fluxes after each step; `pairs` is (steps, 2): left and right input."""
    state = node.initial_state() | {name: jnp.asarray(value) for name, value in initial.items()}
    return jax.tree.map(np.asarray, scan(node, state, jnp.asarray(pairs)))


def drive(speed, turn_rate=0.0):
    """State fields of a mouse that rolls at this speed and turn rate."""
    return {
        "forward_velocity": speed,
        "turn_rate": turn_rate,
        "left_wheel_velocity": (speed + 0.5 * W * turn_rate) / R,
        "right_wheel_velocity": (speed - 0.5 * W * turn_rate) / R,
    }


@pytest.mark.parametrize(
    "node",
    [
        kinematic(),
        kinematic(wheel_radius_ratio=[1.0, 1.01]),
        dynamic(),
        dynamic(rolling_resistance=0.02, friction_coefficient=1.0),
    ],
)
def test_metadata_is_whole(node):
    assert node.validate_mime_consistency() == []


def test_facing_south_increases_the_row_and_facing_east_the_column():
    for heading, change in [(0, (1, 0)), (np.pi / 2, (0, 1)), (-np.pi / 2, (0, -1))]:
        state = kinematic().state_at(2.0, 3.0, heading)
        inputs = {"left_wheel_velocity": 10.0, "right_wheel_velocity": 10.0}
        after = kinematic().update(state, inputs, 0.1)
        moved = (float(after["x"] - state["x"]), float(after["y"] - state["y"]))
        np.testing.assert_allclose(moved, np.multiply(change, R), atol=1e-16)


def test_a_faster_left_wheel_turns_clockwise_and_opposite_wheels_spin_on_the_spot():
    inputs = {"left_wheel_velocity": 10.0, "right_wheel_velocity": -10.0}
    state = kinematic().update(kinematic().state_at(1.0, 1.0), inputs, 0.1)
    assert float(state["heading"]) == pytest.approx(2 * R * 10 / W * 0.1, rel=1e-15)
    np.testing.assert_allclose([state["x"], state["y"]], 0.18, atol=1e-17)


def test_the_notes_equations_30_and_31_hold_away_from_straight():
    vl, vr, theta, dt = 0.9, 0.7, 0.4, 0.3
    inputs = {"left_wheel_velocity": vl / R, "right_wheel_velocity": vr / R}
    state = kinematic().update(kinematic().initial_state() | {"heading": theta}, inputs, dt)
    turned, radius = (vl - vr) / W * dt, W * (vr + vl) / (2 * (vl - vr))
    x = radius * (np.sin(turned + theta) - np.sin(theta))
    y = -radius * (np.cos(turned + theta) - np.cos(theta))
    np.testing.assert_allclose([state["x"], state["y"]], [x, y], rtol=1e-14)


def test_steps_compose_and_invert():
    node, rng = kinematic(), np.random.default_rng(0)
    for _ in range(20):
        wheels = rng.normal(size=2) * 100
        inputs = {"left_wheel_velocity": wheels[0], "right_wheel_velocity": wheels[1]}
        start = node.state_at(*rng.normal(size=3))
        a, b = rng.uniform(0.01, 0.3, 2)
        twice = node.update(node.update(start, inputs, a), inputs, b)
        once = node.update(start, inputs, a + b)
        back = node.update(once, inputs, -(a + b))
        for name in start:
            np.testing.assert_allclose(twice[name], once[name], atol=1e-13)
            np.testing.assert_allclose(back[name], start[name], atol=1e-13)


def precise_sinc(a, order):
    """The derivatives of sin(a)/a from their series in NumPy's long double."""
    a = np.longdouble(a)
    total, term = np.longdouble(0), np.longdouble(1)
    for n in range(0, 60, 2):
        if n > 0:
            term = -term / (n * (n + 1))
        factor = np.longdouble(np.prod([n - i for i in range(order)]))
        if n >= order:
            total += term * factor * a ** (n - order)
    return float(total)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_sinc_and_its_derivatives_are_right_everywhere(order, precision):
    function = sinc
    for _ in range(order):
        function = jax.grad(function)
    near = [0.0, 1e-30, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 0.49, 0.5, 0.51, 1.0, 3.0]
    points = np.array(near + [-p for p in near], dtype=precision)
    ours = np.asarray(jax.jit(jax.vmap(function))(points))
    theirs = [precise_sinc(p, order) for p in points]
    eps = np.finfo(precision).eps
    np.testing.assert_allclose(ours, theirs, rtol=8 * eps, atol=16 * eps)  # 1/a² above 0.5


@pytest.mark.small("float64")
def test_value_and_gradient_are_continuous_through_straight(precision):
    """Displacement and its gradients by the wheels' speeds, near v_l = v_r, to rounding."""

    def moved(wheels):
        v, w = 0.5 * R * (wheels[0] + wheels[1]), R * (wheels[0] - wheels[1]) / W
        zero = jnp.zeros_like(v)
        pose = move_along_arc(PlanarPose(zero, zero, zero + 0.3), BodyVelocity(v, zero, w), 0.1)
        return jnp.stack([pose.x, pose.y])

    value, slope = jax.jit(moved), jax.jit(jax.jacfwd(moved))
    eps = np.finfo(precision).eps
    for difference in [0.0, 1e-30, 1e-6, 1e-4, 1e-2, 1.0, -1e-6, -1e-2]:
        wheels = np.array([50.0 + difference, 50.0], dtype=precision)
        ours = np.asarray(value(wheels)), np.asarray(slope(wheels))
        with jax.enable_x64(True):  # of the same inputs; sinc was compared with long double above
            exact = np.asarray(moved(jnp.asarray(wheels, dtype="float64")))
            a = 0.5 * R * (float(wheels[0]) - float(wheels[1])) / W * 0.1
            v = 0.5 * R * (float(wheels[0]) + float(wheels[1]))
            chord, turn = 0.1 * precise_sinc(a, 0), 0.1 * precise_sinc(a, 1)
        along = np.array([np.cos(0.3 + a), np.sin(0.3 + a)])
        across = np.array([-along[1], along[0]])
        by_v, by_a = chord * along, v * (turn * along + chord * across)
        theirs = np.stack([0.5 * R * by_v + s * 0.05 * R / W * by_a for s in (1.0, -1.0)], axis=1)
        np.testing.assert_allclose(ours[0], exact, rtol=20 * eps)
        np.testing.assert_allclose(ours[1], theirs, rtol=40 * eps, atol=40 * eps * 0.01)


def test_unequal_wheels_bend_a_straight_command():
    node = kinematic(wheel_radius_ratio=[1.01, 0.99])
    inputs = {"left_wheel_velocity": 50.0, "right_wheel_velocity": 50.0}
    fluxes = node.compute_boundary_fluxes(
        node.update(node.initial_state(), inputs, 0.1), inputs, 0.1
    )
    assert float(fluxes["turn_rate"]) == pytest.approx(0.02 * R * 50 / W, rel=1e-12)
    assert float(fluxes["body_velocity"]) == pytest.approx(R * 50, rel=1e-12)
    np.testing.assert_allclose(fluxes["pose_cells"][:2] * 0.18, fluxes["pose_world"][:2])


@pytest.mark.small("None-None", "0.05-2.0")
@pytest.mark.parametrize("friction", [None, 2.0])
@pytest.mark.parametrize("resistance", [None, 0.05])
def test_energy_balance_is_exact(friction, resistance):
    """Work of the torques = kinetic energy + rolling loss, at the mean speeds of each step."""
    node = dynamic(friction_coefficient=friction, rolling_resistance=resistance)
    torques = np.random.default_rng(1).uniform(1e-3, 3e-3, (400, 2))
    torques[:, 1] = torques[:, 0] * 0.9
    states, fluxes = run(node, torques)
    energy = np.asarray(jax.vmap(node.energy)(jax.tree.map(jnp.asarray, states)))
    assert np.all(fluxes["slipping"] == 0)
    assert np.all(states["lateral_velocity"] == 0)
    wheels = np.stack([states["left_wheel_velocity"], states["right_wheel_velocity"]], axis=1)
    mean = 0.5 * (wheels + np.concatenate([np.zeros((1, 2)), wheels[:-1]]))
    work = 1e-3 * np.sum(torques * mean)
    lost = 0.0 if resistance is None else 1e-3 * np.sum(0.5 * resistance * M * G * R * np.abs(mean))
    assert energy[-1] == pytest.approx(work - lost, rel=1e-12)


def test_rolling_resistance_holds_at_rest_and_stops_a_roll_at_the_right_time():
    node = dynamic(rolling_resistance=0.05)
    limit = 0.5 * 0.05 * M * G * R
    held, _ = run(node, np.tile([0.99 * limit, -0.99 * limit], (100, 1)))
    assert np.all(held["left_wheel_angle"] == 0)
    assert np.all(held["x"] == 0)
    moved, _ = run(node, np.tile([1.01 * limit] * 2, (100, 1)))
    assert moved["x"][-1] > 0
    coast, _ = run(node, np.zeros((2000, 2)), **drive(0.5))
    stop = 0.5 * (M + 2 * JW / R**2) / (0.05 * M * G)
    assert 1e-3 * np.argmax(coast["forward_velocity"] == 0) == pytest.approx(stop, abs=1.5e-3)
    assert np.all(coast["forward_velocity"][1500:] == 0)


def test_one_wheel_slips_while_the_other_holds():
    node = dynamic(friction_coefficient=0.5)
    states, fluxes = run(node, np.tile([6e-3, 1e-3], (5, 1)))
    limit = 0.5 * 0.5 * M * G
    np.testing.assert_allclose(fluxes["left_tyre_force"][0], limit, rtol=1e-12)
    assert abs(fluxes["right_tyre_force"][0]) < limit
    v, w = states["forward_velocity"], states["turn_rate"]
    np.testing.assert_array_equal(
        R * states["right_wheel_velocity"] - (v - 0.5 * W * w) < 1e-15, True
    )
    assert np.all(R * states["left_wheel_velocity"] > v + 0.5 * W * w)
    # the two equations of motion of that mode, in closed form for the first step
    a = np.array(
        [[M + JW / R**2, -JW / R**2 * W / 2], [-JW / R**2 * W / 2, IZ + JW / R**2 * W**2 / 4]]
    )
    force = np.array([limit + 1e-3 / R, 0.5 * W * (limit - 1e-3 / R)])
    np.testing.assert_allclose(1e-3 * np.linalg.solve(a, force), [v[0], w[0]], rtol=1e-12)


def test_a_circle_too_fast_slides_outwards_and_the_friction_circle_holds():
    node = dynamic(friction_coefficient=0.8)
    for speed, slides in [(0.99, False), (1.05, True)]:
        v, w = speed * np.sqrt(0.8 * G * 0.1), speed * np.sqrt(0.8 * G * 0.1) / 0.1
        states, fluxes = run(node, np.zeros((20, 2)), **drive(v, w))
        assert (np.min(states["lateral_velocity"]) < 0) == slides  # right turn: slides to the left
        if not slides:
            assert np.all(states["lateral_velocity"] == 0)
            np.testing.assert_allclose(states["forward_velocity"], v, rtol=1e-12)
            np.testing.assert_allclose(fluxes["lateral_tyre_force"], M * v * w, rtol=1e-12)
    states, fluxes = run(node, np.tile([5e-3, 5e-3], (50, 1)), **drive(0.6, 8.0))
    each = np.maximum(np.abs(fluxes["left_tyre_force"]), np.abs(fluxes["right_tyre_force"]))
    total = np.hypot(each, 0.5 * fluxes["lateral_tyre_force"])
    assert np.max(total) <= 0.5 * 0.8 * M * G * (1 + 1e-12)
    assert np.max(total) > 0.99 * 0.5 * 0.8 * M * G


def test_on_ice_the_body_goes_straight_on_while_it_spins():
    node = dynamic(1e-4, friction_coefficient=1e-9)
    states, _ = run(node, np.zeros((2000, 2)), forward_velocity=1.0, turn_rate=10.0)
    np.testing.assert_allclose(states["x"][-1], 0.2, rtol=2e-3)
    np.testing.assert_allclose(states["y"], 0.0, atol=2e-4)


def test_an_external_wrench_pushes_like_the_torques():
    node = dynamic()
    push = jnp.array([2 * 1e-3 / R, 5.0, 0.0])
    pushed = node.update(node.initial_state(), {"external_wrench_body": push}, 1e-3)
    torque = {"left_wheel_torque": 1e-3, "right_wheel_torque": 1e-3}
    driven = node.update(node.initial_state(), torque, 1e-3)
    assert float(pushed["forward_velocity"]) == pytest.approx(float(driven["forward_velocity"]))
    assert float(pushed["lateral_velocity"]) == 0.0


def test_gradients_agree_with_central_differences():
    """While both tyres hold, while the left one slips, while both do."""
    base = dynamic(friction_coefficient=0.7, rolling_resistance=0.02)
    names = ("mass_kg", "yaw_inertia_kg_m2", "wheel_inertia_kg_m2", "wheel_radius_m")
    names = (*names, "track_width_m", "rolling_resistance", "friction_coefficient")
    values = jnp.array([float(base.params[name]) for name in names])

    @partial(jax.jit, compiler_options=QUICK)
    @jax.value_and_grad
    def end(scale, torques):
        node = base.with_params(**dict(zip(names, values * scale)))
        states, _ = scan(node, node.initial_state(), jnp.tile(torques, (50, 1)))
        return states["x"][-1] + 0.3 * states["y"][-1] + 0.01 * states["left_wheel_angle"][-1]

    for torques in ([1.5e-3, 1e-3], [8e-3, 1e-3], [9e-3, 8e-3]):
        torques = np.array(torques)
        ours = end(np.ones(len(names)), torques)[1]
        for k in range(len(names)):
            step = 1e-5 * np.eye(len(names))[k]
            central = (end(1.0 + step, torques)[0] - end(1.0 - step, torques)[0]) / 2e-5
            assert float(ours[k]) == pytest.approx(float(central), rel=1e-4, abs=1e-9)


def test_single_precision_stays_single_and_close():
    pairs = np.random.default_rng(2).uniform(-2e-3, 4e-3, (500, 2))
    double, _ = run(dynamic(friction_coefficient=1.0, rolling_resistance=0.01), pairs)
    with jax.enable_x64(False):
        node = dynamic(friction_coefficient=1.0, rolling_resistance=0.01)
        single, fluxes = run(node, pairs.astype(np.float32))
    assert {v.dtype for v in (*single.values(), *fluxes.values())} == {np.dtype("float32")}
    np.testing.assert_allclose(single["x"], double["x"], atol=1e-3 * np.ptp(double["x"]))


def test_motors_drive_the_mouse_in_a_graph():
    graph = GraphManager()
    graph.add_node(dynamic(friction_coefficient=1.0))
    for side in ("left", "right"):
        graph.add_external_input("mouse", f"{side}_wheel_torque")
    simulation = graph.compile()
    torque = {"left_wheel_torque": 1e-3, "right_wheel_torque": 1e-3}
    _, recorded = simulation.rollout(simulation.init_state(), {"mouse": torque}, steps=100)
    expected = 2e-3 / R / (M + 2 * JW / R**2) * 0.1
    assert float(recorded["mouse"]["body_velocity"][-1]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "magic"}, "model must be one of 'kinematic', 'dynamic', got 'magic'"),
        (
            {"model": "dynamic"},
            r"(?s)mass_kg is missing.*yaw_inertia_kg_m2 is.*wheel_inertia_kg_m2 is",
        ),
        ({"mass_kg": 0.1}, "mass_kg belongs to model='dynamic'"),
        ({"friction_coefficient": 1.0}, "friction_coefficient belongs to model='dynamic'"),
        ({"wheel_radius_m": 0.0}, "wheel_radius_m must be > 0 m, got 0"),
        ({"track_width_m": -1.0}, "track_width_m must be > 0 m, got -1"),
        ({"wheel_radius_ratio": [1.0]}, "wheel_radius_ratio must have shape"),
        ({**BODY, "rolling_resistance": -0.1}, "rolling_resistance must be >= 0"),
        ({**BODY, "mass_kg": 0.0}, "mass_kg must be > 0 kg, got 0"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        kinematic(**changes)


def test_an_input_of_the_other_model_is_refused():
    with pytest.raises(InputError, match="has no input 'left_wheel_torque'"):
        kinematic().update(kinematic().initial_state(), {"left_wheel_torque": 1.0}, 1e-3)


@pytest.mark.parametrize(
    ("pose", "radius", "centre"),
    [
        # Smartmouse's notes round the first to (1, 1).
        ((4.8, 2.0, np.radians(105.0)), 4.0, (0.9362966949, 0.9647238196)),
        ((0.0, 1.0, 0.0), -1.0, (0.0, 0.0)),
    ],
)
def test_the_centre_of_curvature_is_that_of_both_worked_examples(pose, radius, centre):
    found = centre_of_curvature(PlanarPose(*pose), radius)
    np.testing.assert_allclose(found, centre, atol=1e-9)


def test_the_radius_of_curvature_is_infinite_on_a_straight_and_zero_in_a_spin():
    assert radius_of_curvature(1.0, 1.0, W) == np.inf
    assert radius_of_curvature(0.3, -0.3, W) == 0.0
    assert radius_of_curvature(0.2, 0.1, W) == pytest.approx(1.5 * W)  # clockwise: to the right
    assert radius_of_curvature(0.1, 0.2, W) == pytest.approx(-1.5 * W)


def test_an_arc_is_a_rotation_about_the_centre_of_curvature():
    rng = np.random.default_rng(5)
    for x, y, heading, v_l, v_r, dt in rng.uniform(-2.0, 2.0, (20, 6)):
        pose = PlanarPose(x, y, heading)
        c = np.array(centre_of_curvature(pose, radius_of_curvature(v_l, v_r, W)))
        turn = (v_l - v_r) / W * dt
        cos, sin = np.cos(turn), np.sin(turn)
        expected = c + np.array([[cos, -sin], [sin, cos]]) @ (np.array([x, y]) - c)
        velocity = BodyVelocity((v_l + v_r) / 2, 0.0, (v_l - v_r) / W)
        found = move_along_arc(pose, velocity, dt)
        # The centre may be metres away, where a rounding of 1e-16 becomes 1e-15.
        np.testing.assert_allclose(found[:2], expected, atol=1e-12)
        assert found.heading == pytest.approx(heading + turn)
