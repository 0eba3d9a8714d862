"""MIME-VER-150 to 155: range sensors against closed forms and against every box of the maze.

Each test records what it measured; docs/algorithm_guide/nodes/range_sensor.md tabulates it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.nodes.sensing.infrared import adc_from_distance, distance_from_adc
from mime.nodes.sensing.range_sensor import RangeSensorNode
from mime.nodes.sensing.ray_casting import cast_ray
from mime.nodes.sensing.wall_estimate import estimate_wall

CELL, WALL = 0.18, 0.012
IR = (1.214233, 0.023794, 284.688506)
cast = jax.jit(cast_ray, static_argnames=("cell", "thickness", "max_range"))


def random_maze(rng, rows, cols, density=0.5):
    shapes = ((rows + 1, cols), (rows, cols + 1))
    return tuple((rng.random(shape) < density).astype(float) for shape in shapes)


def boxes_of(horizontal, vertical, cell, thickness):
    """Every wall and every post as x_low, x_high, y_low, y_high."""
    h, boxes = thickness / 2, []
    for r, c in zip(*np.nonzero(horizontal)):
        boxes.append((c * cell, (c + 1) * cell, r * cell - h, r * cell + h))
    for r, c in zip(*np.nonzero(vertical)):
        boxes.append((c * cell - h, c * cell + h, r * cell, (r + 1) * cell))
    for r in range(horizontal.shape[0]):
        across = [(c * cell - h, c * cell + h) for c in range(vertical.shape[1])]
        boxes += [(*x, r * cell - h, r * cell + h) for x in across]
    return np.array(boxes)


def by_slabs(origin, angle, boxes, max_range):
    """Plain NumPy: each ray against each box by the slab method."""
    enter, leave = np.full((len(angle), len(boxes)), -np.inf), np.inf
    with np.errstate(divide="ignore"):
        for axis, direction in ((0, np.cos(angle)), (1, np.sin(angle))):
            low = (boxes[:, 2 * axis] - origin[:, axis, None]) / direction[:, None]
            high = (boxes[:, 2 * axis + 1] - origin[:, axis, None]) / direction[:, None]
            enter = np.maximum(enter, np.minimum(low, high))
            leave = np.minimum(leave, np.maximum(low, high))
    hit = (enter <= leave) & (leave >= 0)
    return np.minimum(np.min(np.where(hit, np.maximum(enter, 0), np.inf), axis=1), max_range)


def test_ver150_closed_form_of_a_long_wall(record_figure):
    """d = d_perp / cos(phi), to each of the four walls of an open square of 40 cells."""
    n = 40
    horizontal, vertical = np.zeros((n + 1, n)), np.zeros((n, n + 1))
    horizontal[[0, n]] = vertical[:, [0, n]] = 1.0
    phi = np.linspace(-1.4, 1.4, 201)
    # On a line of centres, near a wall: the ray meets no post, they are too far beside.
    worst = 0.0
    for normal, x, y in ((0, n - 0.5, 20.5), (np.pi / 2, 20.5, n - 0.5)):
        for back in (False, True):
            place = np.array([x, y]) if not back else np.array([n - x, n - y])
            d_perp = 0.5 * CELL - WALL / 2
            inside = np.abs(d_perp * np.tan(phi)) < 0.5 * CELL - WALL  # the post of this cell
            angle = phi[inside] + normal + (np.pi if back else 0.0)
            origin = np.broadcast_to(place * CELL, (len(angle), 2))
            d = cast(origin, angle, horizontal, vertical, cell=CELL, thickness=WALL, max_range=1.0)
            worst = max(worst, np.max(np.abs(d - d_perp / np.cos(phi[inside]))))
    record_figure("distance_m", worst)
    assert worst <= 1e-14  # a few roundings of 7.2 m


def test_ver150_at_the_centre_facing_the_south_wall_it_is_84_mm(record_figure):
    node = RangeSensorNode(
        "range", 1e-3, np.ones((4, 3)), np.ones((3, 4)), sensor_poses_body=[(0.0, 0.0, 0.0)]
    )
    pose = jnp.array([1.5 * CELL, 1.5 * CELL, np.pi / 2])
    reading = node.compute_boundary_fluxes(node.initial_state(), {"pose_world": pose}, 1e-3)
    record_figure("reading_m", reading["reading"][0])
    assert float(reading["reading"][0]) == pytest.approx(0.084, abs=1e-15)


def test_ver151_gradient_is_d_tan_phi(record_figure):
    horizontal, vertical = np.ones((4, 3)), np.ones((3, 4))
    phi = np.linspace(-0.75, 0.75, 101)
    origin = np.full(2, 1.5 * CELL)

    def distance(origin, angle):
        return cast_ray(origin, angle, horizontal, vertical, CELL, WALL, 0.3)

    d, (by_origin, by_angle) = jax.jit(jax.vmap(jax.value_and_grad(distance, (0, 1)), (None, 0)))(
        origin, phi
    )
    error = np.max(np.abs(by_angle - d * np.tan(phi)))
    by_x = np.max(np.abs(by_origin[:, 0] + 1 / np.cos(phi)))
    record_figure("by_angle_m_per_rad", error)
    record_figure("by_x", by_x)
    assert error <= 1e-15
    assert by_x <= 1e-14
    assert np.all(np.asarray(by_origin)[:, 1] == 0.0)  # along the wall nothing changes


def test_ver152_invariant_under_the_four_rotations(record_figure):
    rng = np.random.default_rng(2)
    horizontal, vertical = random_maze(rng, 5, 9)
    origin, angle = rng.random((2000, 2)) * [9 * CELL, 5 * CELL], rng.uniform(-9, 9, 2000)
    first = cast(origin, angle, horizontal, vertical, cell=CELL, thickness=WALL, max_range=0.7)
    worst = 0.0
    for _ in range(4):
        height = vertical.shape[0] * CELL  # a quarter turn clockwise: (x, y) -> (height - y, x)
        horizontal, vertical = np.rot90(vertical, -1), np.rot90(horizontal, -1)
        origin = np.stack([height - origin[:, 1], origin[:, 0]], axis=1)
        angle = angle + np.pi / 2
        turned = cast(origin, angle, horizontal, vertical, cell=CELL, thickness=WALL, max_range=0.7)
        worst = max(worst, np.max(np.abs(turned - first)))
    record_figure("distance_m", worst)
    assert worst <= 1e-12


@pytest.mark.parametrize("max_range", [0.15, 0.5, 2.0])
def test_ver153_equals_numpy_on_every_box(max_range, record_figure):
    rng = np.random.default_rng(int(100 * max_range))
    worst, hits, stuck = 0.0, 0, 0
    for rows, cols, density in [(1, 1, 1.0), (16, 16, 0.5), (4, 7, 0.2), (9, 3, 0.8)]:
        for thickness in (WALL, 0.05):
            maze = random_maze(rng, rows, cols, density)
            low, high = [-0.1, -0.1], [cols * CELL + 0.1, rows * CELL + 0.1]  # outside too
            origin, angle = rng.uniform(low, high, (1250, 2)), rng.uniform(-7, 7, 1250)
            ours = np.asarray(
                cast(origin, angle, *maze, cell=CELL, thickness=thickness, max_range=max_range)
            )
            boxes = boxes_of(*maze, CELL, thickness)
            theirs = by_slabs(origin, angle, boxes, max_range)
            worst = max(worst, np.max(np.abs(ours - theirs)))
            hits += np.sum((theirs > 0) & (theirs < max_range))
            stuck += np.sum(theirs == 0)
    record_figure("distance_m", worst)
    record_figure("hits_of_10000", hits)
    assert worst <= 1e-12
    assert hits > 2000
    assert stuck > 200  # origins inside walls are among them


def test_ver154_infrared_round_trip_within_one_count(record_figure):
    assert float(distance_from_adc(1000.0, *IR)) == pytest.approx(0.04494939885, abs=5e-12)
    counts = np.arange(300.0, 2800.0)
    back = np.asarray(adc_from_distance(distance_from_adc(counts, *IR), *IR))
    record_figure("counts", np.max(np.abs(back - counts)))
    assert np.max(np.abs(back - counts)) <= 1e-6

    node = RangeSensorNode(
        "range",
        1e-3,
        np.ones((4, 3)),
        np.ones((3, 4)),
        adc_bits=12,
        **dict(zip(("ir_a_m", "ir_b", "ir_c_counts"), IR)),
    )
    poses = np.random.default_rng(4).uniform([0.25, 0.25, -4], [0.29, 0.29, 4], (300, 3))
    fluxes = jax.vmap(lambda p: node.compute_boundary_fluxes({}, {"pose_world": p}, 1e-3))(poses)
    true_counts = np.asarray(adc_from_distance(fluxes["distance"], *IR))
    error = np.max(np.abs(np.asarray(adc_from_distance(fluxes["reading"], *IR)) - true_counts))
    record_figure("quantised_counts", error)
    assert error <= 1.0


@pytest.mark.parametrize(
    ("first", "second", "readings", "distance", "yaw"),
    [
        ((-1.0, 0.0, -np.pi / 2), (1.0, 0.0, -np.pi / 2), (1.0, 1.0), 1.0, 0.0),
        # The sensor at -sqrt 2 reads 3 and the one at +sqrt 2 reads 1, both look to -45 degrees.
        ((-(2**0.5), 0.0, -np.pi / 4), (2**0.5, 0.0, -np.pi / 4), (3.0, 1.0), 2.0, -np.pi / 4),
    ],
)
def test_ver155_wall_estimate(first, second, readings, distance, yaw, record_figure):
    wall = estimate_wall(first, second, *readings)
    record_figure("distance_m", wall.distance)
    assert float(wall.distance) == pytest.approx(distance, abs=1e-15)
    assert float(wall.yaw) == pytest.approx(yaw, abs=1e-15)


def test_ver155_wall_estimate_from_rays_in_a_corridor(record_figure):
    """The left sensors of the mouse find a straight wall from any pose that sees it alone."""
    n = 12
    horizontal, vertical = np.zeros((2, n)), np.zeros((1, n + 1))
    horizontal[:] = 1.0
    node = RangeSensorNode("range", 1e-3, horizontal, vertical)
    rng = np.random.default_rng(5)
    poses = rng.uniform([1.0, 0.07, -0.2], [1.1, 0.11, 0.2], (200, 3))
    readings = jax.vmap(lambda p: node.compute_boundary_fluxes({}, {"pose_world": p}, 1e-3))(poses)
    back, front = (node.sensor_poses_body[i] for i in (5, 1))
    d = np.asarray(readings["reading"])
    wall = jax.vmap(estimate_wall, (None, None, 0, 0))(back, front, d[:, 5], d[:, 1])
    error = np.max(np.abs(wall.distance - (poses[:, 1] - WALL / 2)))
    record_figure("distance_m", error)
    record_figure("yaw_rad", np.max(np.abs(wall.yaw - poses[:, 2])))
    assert error <= 1e-14
    assert np.max(np.abs(wall.yaw - poses[:, 2])) <= 1e-13
