"""MIME-VER-150, 154, 155: range sensors, their counts, and walls from their readings.

Rays by themselves are in `ray_casting`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.mouse.body import SENSOR_POSES
from mime.nodes.sensing.infrared import adc_from_distance, distance_from_adc
from mime.nodes.sensing.range_sensor import RangeSensorNode
from mime.nodes.sensing.wall_estimate import estimate_wall
from mime.verification.benchmark import Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.ray_casting import CELL, MAZE, WALL
from mime.verification.programs import quick_jit


@quick_jit
def _read(node: RangeSensorNode, poses: Any) -> Any:
    def one(pose: Any) -> Any:
        return node.compute_boundary_fluxes(node.initial_state(), {"pose_world": pose}, 1e-3)

    return jax.vmap(one)(poses)


def read(node: Any, poses: Any) -> dict[str, np.ndarray]:
    """The node's fluxes at each of the poses (count, 3)."""
    return jax.tree.map(np.asarray, _read(node, jnp.asarray(poses)))


@benchmark(150, "Distance to a long wall", RangeSensorNode, scaled("wall_thickness_m", 0.5))
def long_wall(Sensor, *, maze=MAZE, cells_per_side=40, max_range_m=1.0, angles_rad=(-1.4, 1.4)):
    """d = d_perp / cos φ

    Reference: d = d_perp / cos φ, d_perp = (cell - thickness)/2 from a cell's centre.
    Procedure:
    1. Stand at the centre of a cell beside each outer wall of an open square.
    2. Read the distance at up to 201 angles φ from the wall's normal, posts not in the way.
    3. At the centre of a closed cell, facing south, read 0.084 m.
    Covers: all four walls, flat rays; the node's pose and its sensor's
    Excludes: posts and corners (MIME-VER-153); noise, beams and delays (in the tests)
    """
    n = cells_per_side
    horizontal, vertical = np.zeros((n + 1, n)), np.zeros((n, n + 1))
    horizontal[[0, n]] = vertical[:, [0, n]] = 1.0
    ahead = maze | {"sensor_poses_body": [(0.0, 0.0, 0.0)]}
    node = Sensor("range", 1e-3, horizontal, vertical, max_range_m=max_range_m, **ahead)
    d_perp, phi = 0.5 * (CELL - WALL), np.linspace(angles_rad[0], angles_rad[1], 201)
    phi = phi[np.abs(d_perp * np.tan(phi)) < 0.5 * CELL - WALL]  # beyond stands the cell's post
    walls = {"east": (n - 0.5, 20.5), "south": (20.5, n - 0.5), "west": (0.5, 19.5)}
    walls["north"] = (19.5, 0.5)
    for quarter, (name, place) in enumerate(walls.items()):
        angle = phi + quarter * np.pi / 2
        poses = np.column_stack([np.tile(np.multiply(place, CELL), (len(phi), 1)), angle])
        yield Measurement(
            f"error of the distance, {name} wall",
            largest(read(node, poses)["distance"][:, 0] - d_perp / np.cos(phi)),
            limit=1e-14,
            unit="m",
            why="a few roundings of 7.2 m",
        )
    closed = Sensor("range", 1e-3, np.ones((4, 3)), np.ones((3, 4)), **ahead)
    south = read(closed, [[1.5 * CELL, 1.5 * CELL, np.pi / 2]])["reading"]
    yield Measurement(
        "reading in a closed cell, distance from 0.084 m",
        largest(south - 0.084),
        limit=1e-15,
        unit="m",
        why="a few roundings of 0.27 m",
    )


def _wrong_exponent(adc_from_distance):
    """the exponent larger by 1 %"""
    return lambda d, a, b, c: adc_from_distance(d, a, 1.01 * b, c)


@benchmark(
    154,
    "Infrared counts there and back",
    adc_from_distance,
    _wrong_exponent,
    node_id="MIME-NODE-121",
)
def infrared(adc_from_distance, *, a_m=1.214233, b=0.023794, c_counts=284.688506, adc_bits=12):
    """adc = c + (a - d)^{1/b},   d = a - (adc - c)^b

    Reference: d = a - (adc - c)^b, worked out for 1000 counts: 0.04494939885 m; and its inverse.
    Procedure:
    1. Convert 1000 counts to a distance, and 300 to 2800 counts to distances and back.
    2. Read 300 poses in a closed cell by an ADC; compare counts of reading and distance.
    Covers: `adc_from_distance`, `distance_from_adc`, and quantisation by the node
    Excludes: noise and ambient light (in the tests)
    """
    abc = a_m, b, c_counts
    yield Measurement(
        "distance of 1000 counts, error",
        abs(float(distance_from_adc(1000.0, *abc)) - 0.04494939885),
        limit=5e-12,
        unit="m",
        why="the figure's last digit",
    )
    counts = np.arange(300.0, 2800.0)
    yield Measurement(
        "counts there and back, error",
        largest(np.asarray(adc_from_distance(distance_from_adc(counts, *abc), *abc)) - counts),
        limit=1e-9,
        unit="counts",
        why="1/b = 42 times a rounding, of 2800 counts, with (a - d) near 1",
    )
    walls = jnp.ones((4, 3)), jnp.ones((3, 4))
    curve: dict[str, Any] = dict(zip(("ir_a_m", "ir_b", "ir_c_counts"), abc))
    node = RangeSensorNode("range", 1e-3, *walls, SENSOR_POSES, adc_bits=adc_bits, **curve)
    poses = np.random.default_rng(4).uniform([0.25, 0.25, -4], [0.29, 0.29, 4], (300, 3))
    fluxes = read(node, poses)
    exact = np.asarray(adc_from_distance(fluxes["distance"], *abc))
    yield Measurement(
        "counts of a 12-bit reading less those of the distance",
        largest(fluxes["adc"] - exact),
        limit=0.5 + 1e-9,
        unit="counts",
        why="rounding to a count",
    )
    back = np.asarray(adc_from_distance(fluxes["reading"], *abc))
    yield Measurement(
        "the same, from the reading in metres",
        largest(back - exact),
        limit=0.5 + 1e-9,
        unit="counts",
        why="rounding to a count",
    )


def _exchanged(estimate_wall):
    """the two sensors exchanged"""
    return lambda rear, front, d_rear, d_front: estimate_wall(front, rear, d_front, d_rear)


@benchmark(155, "A wall from two readings", estimate_wall, _exchanged, node_id="MIME-NODE-121")
def wall_estimate(
    estimate_wall,
    *,
    maze=MAZE,
    poses=200,
    y_m=(0.07, 0.11),
    heading_rad=(-0.2, 0.2),
    sensors=(5, 1),
):
    """yaw = -atan2(p2y - p1y, p2x - p1x),   distance = |p2x p1y - p2y p1x| / |p2 - p1|

    Reference: Two triangles by hand; and a corridor, whose wall is the line y = thickness/2.
    Procedure:
    1. Parallel: both sensors look left and read 1 m, so distance 1 m, yaw 0.
    2. Turned: at ∓√2 m, both looking to -45°, reading 3 and 1 m, so distance 2 m, yaw -45°.
    3. Read both left sensors of the mouse at random poses in a corridor (seed 5).
    Covers: distance and heading against a wall, with signs
    Excludes: readings with noise; walls with gaps
    """
    left, half, r = -np.pi / 2, -np.pi / 4, 2**0.5
    node = RangeSensorNode("range", 1e-3, jnp.ones((2, 12)), jnp.zeros((1, 13)), SENSOR_POSES)
    low, high = zip((1.0, 1.1), y_m, heading_rad)
    drawn = np.random.default_rng(5).uniform(low, high, (poses, 3))
    d_rear, d_front = (read(node, drawn)["reading"][:, i] for i in sensors)
    rear, front = (np.tile(np.asarray(node.sensor_poses_body[i]), (poses, 1)) for i in sensors)
    wall = jax.jit(jax.vmap(estimate_wall))(
        np.concatenate([[(-1.0, 0.0, left), (-r, 0.0, half)], rear]),
        np.concatenate([[(1.0, 0.0, left), (r, 0.0, half)], front]),
        np.concatenate([[1.0, 3.0], d_rear]),
        np.concatenate([[1.0, 1.0], d_front]),
    )
    distance, yaw = np.asarray(wall.distance), np.asarray(wall.yaw)
    for i, (name, truth) in enumerate({"parallel": (1.0, 0.0), "turned": (2.0, half)}.items()):
        yield Measurement(
            f"error of distance (m) and yaw (rad), {name}",
            largest([distance[i] - truth[0], yaw[i] - truth[1]]),
            limit=1e-15,
            why="a few roundings of 1",
        )
    yield Measurement(
        "error of the distance in a corridor",
        largest(distance[2:] - (drawn[:, 1] - WALL / 2)),
        limit=1e-14,
        unit="m",
        why="a few roundings of 1 m",
    )
    yield Measurement(
        "error of the yaw in a corridor",
        largest(yaw[2:] - drawn[:, 2]),
        limit=1e-13,
        unit="rad",
        why="roundings of 1 m over the 0.06 m between the points",
    )
