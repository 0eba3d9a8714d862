"""Walls: nothing goes through, nothing blows up, a row of walls is one face, a mouse can rest."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compiling import QUICK
from mime.core.problem import ParameterError
from mime.mouse.body import OUTLINE_M, TRACK_WIDTH_M, WHEEL_RADIUS_M
from mime.nodes.locomotion.differential_drive import DifferentialDriveNode
from mime.nodes.locomotion.rolling import PlanarPose
from mime.nodes.locomotion.wall_contact import Walls, find_contacts, place_outline
from mime.running.graph import GraphManager
from sizes import sized

CELL, THICKNESS = 0.18, 0.012
MOUSE = {
    "wheel_radius_m": WHEEL_RADIUS_M,
    "track_width_m": TRACK_WIDTH_M,
    "outline_m": OUTLINE_M,
    "mass_kg": 0.1,
    "yaw_inertia_kg_m2": 1.3e-4,
    "wheel_inertia_kg_m2": 2e-6,
    "friction_coefficient": 1.0,
    "model": "dynamic",
}


def box(rows, cols):
    """Only the outer walls."""
    horizontal, vertical = np.zeros((rows + 1, cols)), np.zeros((rows, cols + 1))
    horizontal[[0, -1]] = 1.0
    vertical[:, [0, -1]] = 1.0
    return horizontal, vertical


def mouse(walls=None, **changes):
    horizontal, vertical = box(3, 8) if walls is None else walls
    values = MOUSE | {"horizontal_walls": horizontal, "vertical_walls": vertical} | changes
    return DifferentialDriveNode("mouse", 1e-3, **values)


@jax.jit
def run(node, state, torque=0.0, wrench=(0.0, 0.0, 0.0), dt=1e-3):
    """The states after each of 1500 steps: one length, so that tests share a compilation."""
    inputs = {"left_wheel_torque": torque, "right_wheel_torque": torque}
    inputs["external_wrench_body"] = jnp.array(wrench)

    def step(state, _):
        state = node.update(state, inputs, dt)
        return state, state

    return jax.lax.scan(step, state, None, length=1500)[1]


def moving(node, column, row, heading, **velocities):
    state = node.state_at(column, row, heading)
    return state | {name: jnp.asarray(value) for name, value in velocities.items()}


def boxes(horizontal, vertical):
    """Every wall and post as (x0, x1, y0, y1): the test's own list, wall by wall."""
    h, out = THICKNESS / 2, []
    rows, cols = vertical.shape[0], horizontal.shape[1]
    for j in range(rows + 1):
        for i in range(cols + 1):
            out.append((i * CELL - h, i * CELL + h, j * CELL - h, j * CELL + h))
            if i < cols and horizontal[j, i]:
                out.append((i * CELL - h, (i + 1) * CELL + h, j * CELL - h, j * CELL + h))
            if j < rows and vertical[j, i]:
                out.append((i * CELL - h, i * CELL + h, j * CELL - h, (j + 1) * CELL + h))
    return np.array(out)


def sampled_depth(horizontal, vertical, x, y, heading):
    """Largest depth over outline points 1 mm apart, by brute force over all boxes."""
    outline = np.array(OUTLINE_M)
    following = np.roll(outline, -1, axis=0)
    points = np.concatenate(
        [
            a + (b - a) * np.linspace(0, 1, int(np.linalg.norm(b - a) / 1e-3) + 2)[:, None]
            for a, b in zip(outline, following)
        ]
    )
    c, s = np.cos(heading)[..., None], np.sin(heading)[..., None]
    px = x[..., None] + points[:, 0] * c - points[:, 1] * s
    py = y[..., None] + points[:, 0] * s + points[:, 1] * c
    deepest = np.zeros(px.shape)
    for x0, x1, y0, y1 in boxes(horizontal, vertical):
        inside = np.minimum.reduce([px - x0, x1 - px, py - y0, y1 - py])
        deepest = np.maximum(deepest, inside)
    return deepest.max(axis=-1)


def crosses_a_wall(horizontal, vertical, x, y):
    """True when successive positions of the axle's midpoint lie on two sides of a wall."""
    column, row = np.floor(x / CELL).astype(int), np.floor(y / CELL).astype(int)
    rows, cols = vertical.shape[0], horizontal.shape[1]
    if column.min() < 0 or row.min() < 0 or column.max() >= cols or row.max() >= rows:
        return True
    for k in range(1, len(x)):
        if column[k] != column[k - 1] and vertical[row[k - 1], max(column[k], column[k - 1])]:
            return True
        if row[k] != row[k - 1] and horizontal[max(row[k], row[k - 1]), column[k - 1]]:
            return True
    return False


def random_mazes(rng, count):
    horizontal = (rng.uniform(size=(count, 4, 3)) < 0.4).astype(float)
    vertical = (rng.uniform(size=(count, 3, 4)) < 0.4).astype(float)
    horizontal[:, [0, -1]] = 1.0
    vertical[:, :, [0, -1]] = 1.0
    return horizontal, vertical


def approaches(count, seed=0, **changes):
    """Mice at 3 m/s from anywhere in any direction, sliding and spinning, each in its own maze."""
    rng = np.random.default_rng(seed)
    horizontal, vertical = random_mazes(rng, count)
    node = mouse((horizontal[0], vertical[0]), **changes)
    cells = rng.integers(0, 3, (2, count)) + 0.5 + rng.uniform(-0.12, 0.12, (2, count))
    heading, direction = rng.uniform(-np.pi, np.pi, (2, count))
    direction = np.where(np.arange(count) % 2, 0.0, direction)  # half of them roll
    velocities = {
        "forward_velocity": 3 * np.cos(direction),
        "lateral_velocity": 3 * np.sin(direction),
        "turn_rate": rng.uniform(-20, 20, count),
    }
    for wheel in ("left", "right"):
        velocities[f"{wheel}_wheel_velocity"] = 3 * np.cos(direction) / 0.0145

    def one(horizontal, vertical, column, row, heading, velocities):
        member = node.with_params(horizontal_walls=horizontal, vertical_walls=vertical)
        start = moving(member, column, row, heading, **velocities)
        torques = {"left_wheel_torque": 5e-3, "right_wheel_torque": 5e-3}
        states = jax.lax.scan(
            lambda s, _: (member.update(s, torques, 1e-3),) * 2, start, None, length=200
        )[1]
        return {k: states[k] for k in ("x", "y", "heading", "penetration", "contact_force")}

    states = jax.jit(jax.vmap(one))(horizontal, vertical, *cells, heading, velocities)
    return horizontal, vertical, jax.tree.map(np.asarray, states)


def test_nothing_tunnels_with_wall_friction_and_heavy_wheels():
    mice = sized(256, small=48)
    horizontal, vertical, states = approaches(mice, wall_friction=0.4, wheel_inertia_kg_m2=6e-4)
    for k in range(mice):
        assert not crosses_a_wall(horizontal[k], vertical[k], states["x"][k], states["y"][k])
    depth = np.array(
        [
            sampled_depth(*args)
            for args in zip(horizontal, vertical, states["x"], states["y"], states["heading"])
        ]
    )
    assert np.all(np.max(states["contact_force"], axis=1) > 0)  # each one met a wall
    assert np.max(depth) < THICKNESS / 4
    # To first order in the turn of a step: 0.5 * 60 mm * (0.1 rad)².
    assert np.all(states["penetration"] > depth - 3e-4)
    assert np.max(states["penetration"]) == pytest.approx(np.max(depth), abs=3e-4)


def test_the_contacts_are_those_of_a_dense_sampling():
    """Depth of random poses, to 3 mm, against brute force: no gap between points, no ghost."""
    rng = np.random.default_rng(1)
    horizontal, vertical = (w[0] for w in random_mazes(rng, 1))
    poses = sized(8_000, small=2_000)
    x, y = rng.uniform(0, 3 * CELL, (2, poses))
    heading = rng.uniform(-np.pi, np.pi, poses)
    walls = Walls(jnp.asarray(horizontal), jnp.asarray(vertical), CELL, THICKNESS / 2)
    outline = np.array(OUTLINE_M)

    @jax.jit
    @jax.vmap
    def ours(x, y, heading):
        return jnp.max(
            find_contacts(walls, outline, place_outline(outline, PlanarPose(x, y, heading))).depth
        )

    theirs = sampled_depth(horizontal, vertical, x, y, heading)
    depth = np.asarray(ours(x, y, heading))
    in_the_open = np.min(np.abs(x[:, None] / CELL - np.arange(4)), axis=1) > 0.1
    in_the_open |= np.min(np.abs(y[:, None] / CELL - np.arange(4)), axis=1) > 0.1
    shallow = (theirs < 3e-3) & in_the_open
    assert np.sum(shallow & (theirs > 0)) > poses / 40
    ours, theirs = depth[shallow], theirs[shallow]
    # Ours is normal to the edge that a corner is under, theirs along x or y, 1 mm apart.
    assert np.all(ours >= 0.7 * theirs)
    assert np.all(ours < np.sqrt(2) * theirs + 1e-3)


def test_a_post_that_hits_between_two_vertices_stops_the_mouse():
    """Sideways at 3 m/s onto the bare post at the crossing (1, 1), which meets the long flank."""
    node = mouse()
    for offset in np.linspace(-0.03, 0.02, 6):  # along the flank, far from its vertices
        start = moving(node, 1 - offset / CELL, 0.62, 0.0, lateral_velocity=3.0)
        states = jax.tree.map(lambda v: v[:100], run(node, start))
        assert np.max(states["contact_force"]) > 50
        walls = np.asarray(node.horizontal_walls), np.asarray(node.vertical_walls)
        path = [np.asarray(states[name]) for name in ("x", "y", "heading")]
        assert np.max(sampled_depth(*walls, *path)) < THICKNESS / 4


@pytest.mark.parametrize("offset", [0.0, 0.021])
def test_a_row_of_walls_has_no_corners_to_catch_on(offset):
    """Sliding along a row of walls, pressed on it: speed is kept, no post stops the mouse."""
    node = mouse(friction_coefficient=1e-6)
    flank = (THICKNESS / 2 + 0.0375 - 1e-4) / CELL
    start = moving(node, 0.6 + offset, flank, 0.0, forward_velocity=1.0)
    states = jax.tree.map(lambda v: v[:1000], run(node, start, wrench=(0.0, -1.0, 0.0)))
    assert states["x"][-1] > 6 * CELL
    np.testing.assert_allclose(states["forward_velocity"], 1.0, atol=1e-3)
    np.testing.assert_allclose(states["contact_force"][-100:], 1.0, rtol=1e-3)


def test_it_rests_against_a_wall_under_torque():
    node = mouse()
    states = run(node, node.state_at(7.5, 1.5, 0.0), 2e-3)
    torque_force = 2 * 2e-3 / 0.0145
    assert float(states["contact_force"][-1]) == pytest.approx(torque_force, rel=1e-6)
    assert np.ptp(states["x"][-500:]) < 1e-9
    assert np.max(np.abs(states["forward_velocity"][-500:])) < 1e-7
    static = torque_force / (2 * 5e4)  # two vertices carry
    assert float(states["penetration"][-1]) == pytest.approx(
        static * (1 + 2e-3 * 150 / 0.1), rel=0.01
    )
    spinning = run(node, node.state_at(7.5, 1.5, 0.0), 2e-2)  # beyond the tyres' limit
    assert float(spinning["contact_force"][-1]) == pytest.approx(0.1 * 9.80665, rel=1e-6)
    assert float(spinning["slipping"][-1]) == 1.0


@pytest.mark.parametrize("stiffness", [1e3, 5e4, 1e6])
@pytest.mark.parametrize("dt", [1e-4, 1e-3])
def test_no_stiffness_adds_energy(stiffness, dt):
    node = mouse(wall_stiffness_n_per_m=stiffness, wall_damping_n_s_per_m=20.0)
    start = moving(node, 7.4, 1.5, 0.3, forward_velocity=1.0)
    start |= {f"{side}_wheel_velocity": jnp.asarray(1.0 / 0.0145) for side in ("left", "right")}

    energy = np.asarray(jax.vmap(node.energy)(run(node, start, dt=dt)))
    assert np.all(np.isfinite(energy))
    assert np.max(energy) < 1.001 * float(node.energy(start))


def test_wall_friction_slows_by_its_coefficient():
    """Sliding on ice along a wall under 1 N: m v' = -0.3 N, I w' turns it away."""
    node = mouse(friction_coefficient=1e-9, wall_friction=0.3, yaw_inertia_kg_m2=10.0)
    flank = (THICKNESS / 2 + 0.0375 - 1e-5) / CELL
    start = moving(node, 0.6, flank, 0.0, forward_velocity=1.0)
    speed = run(node, start, wrench=(0.0, -1.0, 0.0))["forward_velocity"]
    assert float(speed[200] - speed[100]) / 0.1 == pytest.approx(-3.0, rel=0.02)


def test_a_mouse_turns_on_the_spot_in_a_cell_and_holds_its_sensors():
    outline = np.array(OUTLINE_M)
    assert np.max(np.hypot(*outline.T)) < 0.168 / 2
    sensors = [(0.055, 0), (0.035, 0.026), (0.04, 0.022), (-0.0256, 0.03)]
    step = np.roll(outline, -1, axis=0) - outline
    for forward, right in [(f, sign * r) for f, r in sensors for sign in (1, -1)]:
        side = step[:, 0] * (right - outline[:, 1]) - step[:, 1] * (forward - outline[:, 0])
        assert np.all(side > 0) or np.all(side < 0)


def test_gradients_are_finite_at_rest_in_contact_and_in_free_space():
    node = mouse(wall_friction=0.2, rolling_resistance=0.02)

    @functools.partial(jax.jit, compiler_options=QUICK)
    @functools.partial(jax.grad, argnums=(0, 1, 2))
    def gradients(torque, speed, column):
        state = moving(node, column, 1.5, 0.0, forward_velocity=speed)
        state = node.update(state, {"left_wheel_torque": torque}, 1e-3)
        return sum(state.values())

    touches = 8 - (0.06 + THICKNESS / 2) / CELL
    for torque in (0.0, 2e-3):
        for speed in (0.0, 3.0):
            for column in (1.5, touches, touches + 1e-3):
                assert all(np.isfinite(g) for g in gradients(torque, speed, column))


def test_single_precision_stays_single_and_close():
    with jax.enable_x64(False):
        single = mouse()
        start = moving(single, 1.5, 1.5, 0.7, forward_velocity=2.0)
        states = run(single, start, 1e-3)
        assert {v.dtype for v in states.values()} == {jnp.dtype("float32")}
        x, depth = np.asarray(states["x"]), np.asarray(states["penetration"])
    assert np.all(np.isfinite(x))
    assert np.max(depth) < 3e-3


def test_fluxes_tell_of_touching_and_a_graph_wires_the_pose():
    node = mouse()
    assert node.validate_mime_consistency() == []
    states = run(node, moving(node, 7.4, 1.5, 0.0, forward_velocity=3.0))
    fluxes = jax.vmap(lambda state: node.compute_boundary_fluxes(state, {}, 1e-3))(states)
    touching = [float(fluxes["touching"][k]) for k in (0, np.argmax(states["contact_force"]))]
    assert touching == [0.0, 1.0]
    graph = GraphManager()
    graph.add_node(node)
    graph.add_external_input("mouse", "left_wheel_torque")
    trajectory = graph.compile().run(duration=0.01, inputs={"mouse": {"left_wheel_torque": 1e-3}})
    assert "contact_force" in trajectory["mouse"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"friction_coefficient": None}, "friction_coefficient is missing"),
        ({"vertical_walls": None}, "vertical_walls is missing"),
        ({"vertical_walls": np.ones((3, 3))}, r"got \(4, 8\) and \(3, 3\)"),
        ({"horizontal_walls": 2 * np.ones((4, 8))}, "horizontal_walls must be >= 0 and <= 1"),
        ({"outline_m": None}, "outline_m is missing"),
        ({"outline_m": np.ones((4, 3))}, r"outline_m must be \(P, 2\)"),
        ({"outline_m": 0.05 * np.array([(1, 0), (0, 1), (-1, 0), (0, 0.5)])}, "convex"),
        ({"outline_m": 0.09 * np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])}, "reaches 0.09 m"),
        ({"wall_thickness_m": 0.0}, "wall_thickness_m must be > 0 m"),
        ({"wall_stiffness_n_per_m": 0.0}, "wall_stiffness_n_per_m must be > 0"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        mouse(**changes)
