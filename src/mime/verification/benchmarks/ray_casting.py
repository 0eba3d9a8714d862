"""MIME-VER-151 to 153: rays in a maze against closed forms and against every box."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.sensing.ray_casting import cast_ray, crossings_within
from mime.verification.benchmark import Fault, Finding, Measurement, Subject, benchmark, largest
from mime.verification.programs import quick_jit

CELL, WALL = 0.18, 0.012
MAZE = {"cell_m": CELL, "wall_thickness_m": WALL}
cast = quick_jit(cast_ray, static_argnames="crossings_per_axis")


def random_maze(
    rng: np.random.Generator, rows: int, cols: int, density: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Horizontal and vertical walls, each with the probability `density`."""
    shapes = ((rows + 1, cols), (rows, cols + 1))
    horizontal, vertical = ((rng.random(shape) < density).astype(float) for shape in shapes)
    return horizontal, vertical


def _angle_is_constant(cast: Subject) -> Subject:
    return lambda origin, angle, *maze: cast(origin, jax.lax.stop_gradient(angle), *maze)


@benchmark(
    151,
    "Gradients of a distance",
    cast_ray,
    Fault("no gradient through the angle", _angle_is_constant),
    node_id="MIME-NODE-121",
)
def gradients(cast, *, maze=MAZE, max_range_m=0.3, angles_rad="101 from -0.75 to 0.75"):
    """∂d/∂φ = d tan φ,   ∂d/∂x = -1/cos φ,   ∂d/∂y = 0

    Reference: d = D / cos φ to a face at the distance D, φ from its normal, differentiated.
    Procedure:
    1. Cast 101 rays from a cell's centre at its east wall; take gradients by `jax.grad`.
    2. Compare with the closed form by angle, across and along the wall.
    Covers: gradients by pose of a ray on one face
    Excludes: edges, where a distance jumps; finiteness at axes and in walls (in the tests)
    """
    horizontal, vertical = np.ones((4, 3)), np.ones((3, 4))
    phi, origin = np.linspace(-0.75, 0.75, 101), np.full(2, 1.5 * CELL)

    def distance(origin: Any, angle: Any) -> Any:
        return cast(origin, angle, horizontal, vertical, CELL, WALL, 0.3, 2)

    slopes = quick_jit(jax.vmap(jax.value_and_grad(distance, (0, 1)), (None, 0)))
    d, (by_origin, by_angle) = jax.tree.map(np.asarray, slopes(jnp.asarray(origin), phi))
    yield Measurement(
        "error of ∂d/∂φ",
        largest(by_angle - d * np.tan(phi)),
        limit=1e-15,
        unit="m/rad",
        why="a few roundings of 0.1 m",
    )
    yield Measurement(
        "error of ∂d/∂x, across the wall",
        largest(by_origin[:, 0] + 1 / np.cos(phi)),
        limit=1e-14,
        why="a few roundings of 1",
    )
    yield Measurement(
        "∂d/∂y, along the wall", largest(by_origin[:, 1]), limit=0.0, why="nothing changes"
    )


def _rows_upside_down(cast: Subject) -> Subject:
    return lambda origin, angle, horizontal, *rest: cast(origin, angle, horizontal[::-1], *rest)


@benchmark(
    152,
    "Rays in a turned maze",
    cast,
    Fault("horizontal walls counted from the wrong side", _rows_upside_down),
    node_id="MIME-NODE-121",
    kind="symmetry",
)
def turned(cast, *, maze=MAZE, cells=(5, 9), rays=2000, max_range_m=0.7):
    """d(turned ray, turned maze) = d(ray, maze)

    Reference: The same rays before the turn: a quarter turn clockwise is (x, y) -> (h - y, x).
    Procedure:
    1. Cast 2000 rays in a random maze of 5 x 9 cells (seed 2).
    2. Turn maze and rays by a quarter, four times; compare the distances.
    Covers: rows against columns, all four directions
    Excludes: mirrored mazes; what the distances are (MIME-VER-153)
    """
    rng = np.random.default_rng(2)
    horizontal, vertical = random_maze(rng, 5, 9)
    origin, angle = rng.random((2000, 2)) * [9 * CELL, 5 * CELL], rng.uniform(-9, 9, 2000)
    count = crossings_within(CELL, WALL, 0.7)
    first = np.asarray(cast(origin, angle, horizontal, vertical, CELL, WALL, 0.7, count))
    for quarter in range(1, 5):
        height = vertical.shape[0] * CELL
        horizontal, vertical = np.rot90(vertical, -1), np.rot90(horizontal, -1)
        origin = np.stack([height - origin[:, 1], origin[:, 0]], axis=1)
        angle = angle + np.pi / 2
        again = np.asarray(cast(origin, angle, horizontal, vertical, CELL, WALL, 0.7, count))
        yield Measurement(
            f"difference of distances, quarter turns: {quarter}",
            largest(again - first),
            limit=1e-12,
            unit="m",
            why="roundings of the turned origins, over the cosine of flat rays",
        )


def boxes_of(
    horizontal: np.ndarray, vertical: np.ndarray, cell: float, thickness: float
) -> np.ndarray:
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


def by_slabs(
    origin: np.ndarray, angle: np.ndarray, boxes: np.ndarray, max_range: float
) -> np.ndarray:
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


def _counter_clockwise(cast: Subject) -> Subject:
    return lambda origin, angle, *maze: cast(origin, -angle, *maze)


SIZES = [(1, 1, 1.0), (16, 16, 0.5), (4, 7, 0.2), (9, 3, 0.8)]
THICKNESSES = (WALL, 0.05)


@benchmark(
    153,
    "Rays against every box of the maze",
    cast,
    Fault("angles counted counter-clockwise", _counter_clockwise),
    node_id="MIME-NODE-121",
    kind="independent code",
)
def boxes(
    cast,
    *,
    cell_m=CELL,
    wall_thickness_m=THICKNESSES,
    max_range_m=(0.15, 0.5, 2.0),
    cells=[size[:2] for size in SIZES],
    share_of_walls=[size[2] for size in SIZES],
    rays="10,000 for each range",
):
    """d = min over boxes of max(entries into their slabs)

    Reference: NumPy's slab method on every wall and post as a box: a ray enters a box at the last
    of its entries into the slabs, if that is before the first exit.
    Procedure:
    1. Draw four mazes and two thicknesses for each range (seeds 15, 50, 200).
    2. Cast 1250 rays in each, from within walls and from outside the maze too.
    3. Compare the distances; count hits and origins in walls, that all was tried.
    Covers: walls, posts, ranges, origins anywhere
    Excludes: gradients (MIME-VER-151); beams of several rays (in the tests)
    """
    for max_range in (0.15, 0.5, 2.0):
        rng = np.random.default_rng(int(100 * max_range))
        count = crossings_within(CELL, max(THICKNESSES), max_range)
        errors, hits, stuck = [], 0, 0
        for rows, cols, density in SIZES:
            for thickness in THICKNESSES:
                maze = random_maze(rng, rows, cols, density)
                low, high = [-0.1, -0.1], [cols * CELL + 0.1, rows * CELL + 0.1]  # outside too
                origin, angle = rng.uniform(low, high, (1250, 2)), rng.uniform(-7, 7, 1250)
                ours = cast(origin, angle, *maze, CELL, thickness, max_range, count)
                truth = by_slabs(origin, angle, boxes_of(*maze, CELL, thickness), max_range)
                errors.append(np.asarray(ours) - truth)
                hits += int(np.sum((truth > 0) & (truth < max_range)))
                stuck += int(np.sum(truth == 0))
        yield Measurement(
            f"error of the distance, range {max_range:g} m",
            largest(errors),
            limit=1e-12,
            unit="m",
            why="roundings of 3 m, over the cosine of flat rays",
        )
        for what, found, least in (("hits", hits, 2e3), ("origins in walls", stuck, 2e2)):
            yield Measurement(
                f"{what} among 10,000 rays, range {max_range:g} m",
                float(found),
                limit=least,
                at_least=True,
                why="else little was tried",
            )
