"""MIME-VER-140 to 145: the differential drive against closed forms, SciPy and brute force.

Each test records what it measured; docs/algorithm_guide/nodes/differential_drive.md tabulates it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import fresnel

from mime.nodes.locomotion.differential_drive import DifferentialDriveNode

R, W, G = 0.0145, 0.053, 9.80665
M, IZ, JW = 0.1, 1.3e-4, 2e-6


def kinematic(dt=1e-3):
    return DifferentialDriveNode("mouse", dt)


def dynamic(dt=1e-3, **changes):
    return DifferentialDriveNode(
        "mouse",
        dt,
        mass_kg=M,
        yaw_inertia_kg_m2=IZ,
        wheel_inertia_kg_m2=JW,
        model="dynamic",
        **changes,
    )


@jax.jit
def scan(node, state, pairs, dt):
    names = tuple(node.boundary_input_spec())[:2]

    def step(state, pair):
        state = node.update(state, dict(zip(names, pair)), dt)
        return state, state

    return jax.lax.scan(step, state, pairs)[1]


def run(node, pairs, dt, **initial):
    state = node.initial_state() | {name: jnp.asarray(value) for name, value in initial.items()}
    return jax.tree.map(np.asarray, scan(node, state, jnp.asarray(pairs), dt))


def wheels(v, w):
    """Left and right wheel speed of a body speed and turn rate."""
    return np.stack([v + 0.5 * W * w, v - 0.5 * W * w], axis=-1) / R


@pytest.mark.parametrize(("v", "w"), [(0.7, 3.0), (-0.4, 11.0), (0.0, -6.0), (1.2, 0.0)])
def test_ver140_arc_spin_and_straight(v, w, record_figure):
    """After any time on a circle of radius v/w about the point left or right of the axle."""
    steps, dt, theta = 400, 5e-3, 0.3
    ours = run(kinematic(), np.tile(wheels(v, w), (steps, 1)), dt, heading=theta)
    t = dt * np.arange(1, steps + 1)
    if w == 0:
        x, y = v * t * np.cos(theta), v * t * np.sin(theta)
    else:
        x = v / w * (np.sin(theta + w * t) - np.sin(theta))
        y = v / w * (np.cos(theta) - np.cos(theta + w * t))
    error = max(np.max(np.abs(ours["x"] - x)), np.max(np.abs(ours["y"] - y)))
    record_figure("position_m", error)
    record_figure("heading_rad", np.max(np.abs(ours["heading"] - theta - w * t)))
    assert error <= 1e-12
    assert np.max(np.abs(ours["heading"] - theta - w * t)) <= 1e-12


@pytest.mark.parametrize("steps", [1, 3, 1000])
def test_ver141_the_circle_closes(steps, record_figure):
    v, w = 0.8, -7.0
    period = 2 * np.pi / abs(w)
    ours = run(kinematic(), np.tile(wheels(v, w), (steps, 1)), period / steps, x=0.1, y=0.2)
    gap = np.hypot(ours["x"][-1] - 0.1, ours["y"][-1] - 0.2)
    record_figure("gap_m", gap)
    assert gap <= 1e-13
    assert ours["heading"][-1] == pytest.approx(-2 * np.pi, abs=1e-12)


def test_ver142_a_clothoid_is_approached_with_second_order(record_figure):
    """Constant speed, turn rate growing with time: SciPy's Fresnel integrals."""
    v, growth, T = 0.5, 12.0, 1.5
    scale = np.sqrt(np.pi / growth)
    S, C = fresnel(T / scale)
    end = v * scale * np.array([C, S])
    counts, errors = np.array([50, 100, 200, 400]), []
    for n in counts:
        middle = T / n * (np.arange(n) + 0.5)
        ours = run(kinematic(), wheels(np.full(n, v), growth * middle), T / n)
        errors.append(np.hypot(ours["x"][-1] - end[0], ours["y"][-1] - end[1]))
    slopes = -np.diff(np.log(errors)) / np.diff(np.log(counts))
    record_figure("errors_m", np.array(errors))
    record_figure("slopes", slopes)
    np.testing.assert_allclose(slopes, 2.0, atol=0.02)


@pytest.mark.parametrize("ratio", [None, (1.05, 0.97)])
def test_ver143_chassis(ratio, record_figure):
    """Velocities in closed form; with varying torques the path against SciPy's solve_ivp."""
    node = dynamic() if ratio is None else dynamic(wheel_radius_ratio=ratio)
    rl, rr = R * np.array(ratio or (1.0, 1.0))
    Jl, Jr = JW / rl**2, JW / rr**2
    mass = np.array(
        [[M + Jl + Jr, W / 2 * (Jl - Jr)], [W / 2 * (Jl - Jr), IZ + W**2 / 4 * (Jl + Jr)]]
    )
    torques = np.tile([2e-3, 1.2e-3], (300, 1))
    force = np.array([2e-3 / rl + 1.2e-3 / rr, W / 2 * (2e-3 / rl - 1.2e-3 / rr)])
    v, w = np.linalg.solve(mass, force)
    if ratio is None:
        assert v == pytest.approx(3.2e-3 / R / (M + 2 * JW / R**2), rel=1e-12)
        assert w == pytest.approx(W * 0.8e-3 / (2 * R) / (IZ + JW * W**2 / (2 * R**2)), rel=1e-12)
    ours, t = run(node, torques, 1e-3), 1e-3 * np.arange(1, 301)
    relative = max(
        np.max(np.abs(ours["forward_velocity"] / (v * t) - 1)),
        np.max(np.abs(ours["turn_rate"] / (w * t) - 1)),
    )
    record_figure("velocity_relative", relative)
    assert relative <= 1e-12

    def torque(t):
        return np.array([2e-3 * np.sin(9 * t), 1.5e-3 * np.sin(7 * t)])

    def slope(t, s):
        left, right = torque(t)
        f = np.array([left / rl + right / rr, W / 2 * (left / rl - right / rr)])
        return [s[3] * np.cos(s[2]), s[3] * np.sin(s[2]), s[4], *np.linalg.solve(mass, f)]

    theirs = solve_ivp(slope, (0, 1.0), np.zeros(5), rtol=1e-11, atol=1e-13).y[:2, -1]
    errors = []
    for n in (1000, 2000):
        dt = 1.0 / n
        held = torque(dt * (np.arange(n) + 0.5)).T
        path = run(node, held, dt)
        errors.append(np.hypot(path["x"][-1] - theirs[0], path["y"][-1] - theirs[1]))
    record_figure("position_at_1_ms_m", errors[0])
    record_figure("order", np.log2(errors[0] / errors[1]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.1)  # semi-implicit Euler


@pytest.mark.parametrize("mu", [0.1, 1.0, 2.0])
def test_ver144_slip_limit(mu, record_figure):
    """v' = mu g and w_i' = (tau - mu m g r / 2) / J_w beyond the limit; no slip below it."""
    node = dynamic(friction_coefficient=mu)
    stuck = mu * M * G / 2 * R * (1 + 2 * JW / R**2 / M)  # the torque at which tyres let go
    t = 1e-3 * np.arange(1, 101)
    slipping = run(node, np.full((100, 2), 3 * stuck), 1e-3)
    spin = (3 * stuck - mu * M * G / 2 * R) / JW
    errors = [
        np.max(np.abs(slipping["forward_velocity"] / (mu * G * t) - 1)),
        np.max(np.abs(slipping["left_wheel_velocity"] / (spin * t) - 1)),
    ]
    record_figure("relative", max(errors))
    assert max(errors) <= 1e-12
    assert np.all(slipping["slipping"] == 1.0)
    for scale, slips in [(0.999, 0.0), (1.001, 1.0)]:
        states = run(node, np.full((10, 2), scale * stuck), 1e-3)
        assert np.all(states["slipping"] == slips)
    exact = R * states["left_wheel_velocity"] - states["forward_velocity"]
    held = run(node, np.full((10, 2), 0.999 * stuck), 1e-3)
    slip = np.max(np.abs(R * held["left_wheel_velocity"] - held["forward_velocity"]))
    record_figure("slip_while_holding_m_per_s", slip)
    assert slip <= 1e-15 < np.min(exact)


CELL, HALF = 0.18, 0.006


def solid(horizontal, vertical, x, y):
    """True for points in a wall or post: by brute force over all of them."""
    inside = np.zeros(np.shape(x), bool)
    rows, cols = vertical.shape[0], horizontal.shape[1]
    for j in range(rows + 1):
        for i in range(cols + 1):
            ends = [(i, j)]
            if i < cols and horizontal[j, i]:
                ends.append((i + 1, j))
            if j < rows and vertical[j, i]:
                ends.append((i, j + 1))
            for i1, j1 in ends:
                inside |= (
                    (x > i * CELL - HALF)
                    & (x < i1 * CELL + HALF)
                    & (y > j * CELL - HALF)
                    & (y < j1 * CELL + HALF)
                )
    return inside


def test_ver145_nothing_tunnels(record_figure):
    """3 m/s at 1 ms: 512 mice in 512 mazes, from anywhere, in any direction, spinning.

    The body shrunk by 3 mm, sampled every 2 mm, never overlaps a wall; the axle's midpoint, at
    most 3 mm further each step, would have to pass through a wall of 12 mm.
    """
    count, rng = 512, np.random.default_rng(7)
    horizontal = (rng.uniform(size=(count, 4, 3)) < 0.4).astype(float)
    vertical = (rng.uniform(size=(count, 3, 4)) < 0.4).astype(float)
    horizontal[:, [0, -1]], vertical[:, :, [0, -1]] = 1.0, 1.0
    node = dynamic(
        friction_coefficient=1.0, horizontal_walls=horizontal[0], vertical_walls=vertical[0]
    )
    place = rng.integers(0, 3, (2, count)) + 0.5 + rng.uniform(-0.12, 0.12, (2, count))
    heading, direction = rng.uniform(-np.pi, np.pi, (2, count))
    turn_rate = rng.uniform(-20, 20, count)

    def one(horizontal, vertical, column, row, heading, direction, turn_rate):
        mouse = node.with_params(horizontal_walls=horizontal, vertical_walls=vertical)
        state = mouse.state_at(column, row, heading) | {
            "forward_velocity": 3 * jnp.cos(direction),
            "lateral_velocity": 3 * jnp.sin(direction),
            "turn_rate": turn_rate,
        }
        torque = {"left_wheel_torque": 3e-3, "right_wheel_torque": 3e-3}

        def step(state, _):
            state = mouse.update(state, torque, 1e-3)
            return state, {
                k: state[k] for k in ("x", "y", "heading", "penetration", "contact_force")
            }

        return jax.lax.scan(step, state, None, length=150)[1]

    states = jax.jit(jax.vmap(one))(horizontal, vertical, *place, heading, direction, turn_rate)
    states = jax.tree.map(np.asarray, states)
    outline = np.asarray(node.outline_m)
    edges = np.linspace(outline, np.roll(outline, -1, axis=0), 40).reshape(-1, 2)
    edges *= (1 - 3e-3 / np.array([0.04, 0.0375]))[None, :]
    for k in range(count):
        c, s = np.cos(states["heading"][k])[:, None], np.sin(states["heading"][k])[:, None]
        x = states["x"][k][:, None] + edges[:, 0] * c - edges[:, 1] * s
        y = states["y"][k][:, None] + edges[:, 0] * s + edges[:, 1] * c
        assert not np.any(solid(horizontal[k], vertical[k], x, y))
    met = np.max(states["contact_force"], axis=1) > 0
    record_figure("mice_that_met_a_wall", np.sum(met))
    record_figure("largest_depth_m", np.max(states["penetration"]))
    assert np.mean(met) > 0.95
    assert np.max(states["penetration"]) < 3e-3
