"""MIME-VER-151 to 153: rays in a maze against closed forms and against every box."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.sensing.ray_casting import cast_ray, crossings_within
from mime.verification.benchmark import Measurement, benchmark, largest
from mime.verification.programs import quick_jit

MAZE = {"cell_size_m": 0.18, "wall_thickness_m": 0.012}
CELL, WALL = MAZE.values()
cast = quick_jit(cast_ray, static_argnames="crossings_per_axis")


def random_maze(
    rng: np.random.Generator, rows: int, cols: int, density: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Horizontal and vertical walls, each with the probability `density`."""
    shapes = ((rows + 1, cols), (rows, cols + 1))
    horizontal, vertical = ((rng.random(shape) < density).astype(float) for shape in shapes)
    return horizontal, vertical


def _angle_is_constant(cast):
    """no gradient through the angle"""
    return lambda origin, angle, *maze: cast(origin, jax.lax.stop_gradient(angle), *maze)


@benchmark(151, "Gradients of a distance", cast_ray, _angle_is_constant, node_id="MIME-NODE-121")
def gradients(cast, *, maze=MAZE, max_range_m=0.3, angles_rad=(-0.75, 0.75), rays=101):
    """∂d/∂φ = d tan φ,   ∂d/∂x = -1/cos φ,   ∂d/∂y = 0

    Reference: d = D / cos φ to a face at the distance D, φ from its normal, differentiated.
    Procedure:
    1. Cast rays from a cell's centre at its east wall; take gradients by `jax.grad`.
    2. Compare with the closed form by angle, across and along the wall.
    Covers: gradients by pose of a ray on one face
    Excludes: edges, where a distance jumps; finiteness at axes and in walls (in the tests)
    """
    horizontal, vertical = np.ones((4, 3)), np.ones((3, 4))
    phi, origin = np.linspace(angles_rad[0], angles_rad[1], rays), np.full(2, 1.5 * CELL)

    def distance(origin: Any, angle: Any) -> Any:
        return cast(origin, angle, horizontal, vertical, CELL, WALL, max_range_m, 2)

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


def _rows_upside_down(cast):
    """horizontal walls counted from the wrong side"""
    return lambda origin, angle, horizontal, *rest: cast(origin, angle, horizontal[::-1], *rest)


@benchmark(
    152, "Rays in a turned maze", cast, _rows_upside_down, node_id="MIME-NODE-121", kind="symmetry"
)
def turned(cast, *, maze=MAZE, cells=(5, 9), rays=2000, max_range_m=0.7):
    """d(turned ray, turned maze) = d(ray, maze)

    Reference: The same rays before the turn: a quarter turn clockwise is (x, y) -> (h - y, x).
    Procedure:
    1. Cast rays in a random maze (seed 2).
    2. Turn maze and rays by a quarter, four times; compare the distances.
    Covers: rows against columns, all four directions
    Excludes: mirrored mazes; what the distances are (MIME-VER-153)
    """
    rng, (rows, cols) = np.random.default_rng(2), cells
    horizontal, vertical = random_maze(rng, rows, cols)
    origin, angle = rng.random((rays, 2)) * [cols * CELL, rows * CELL], rng.uniform(-9, 9, rays)
    end = CELL, WALL, max_range_m, crossings_within(CELL, WALL, max_range_m)
    first = np.asarray(cast(origin, angle, horizontal, vertical, *end))
    for quarter in range(1, 5):
        height = vertical.shape[0] * CELL
        horizontal, vertical = np.rot90(vertical, -1), np.rot90(horizontal, -1)
        origin = np.stack([height - origin[:, 1], origin[:, 0]], axis=1)
        angle = angle + np.pi / 2
        again = np.asarray(cast(origin, angle, horizontal, vertical, *end))
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


def _counter_clockwise(cast):
    """angles counted counter-clockwise"""
    return lambda origin, angle, *maze: cast(origin, -angle, *maze)


@benchmark(
    153,
    "Rays against every box of the maze",
    cast,
    _counter_clockwise,
    node_id="MIME-NODE-121",
    kind="independent code",
)
def boxes(
    cast,
    *,
    cell_size_m=CELL,
    wall_thickness_m=(WALL, 0.05),
    max_range_m=(0.15, 0.5, 2.0),
    cells=((1, 1), (16, 16), (4, 7), (9, 3)),
    share_of_walls=(1.0, 0.5, 0.2, 0.8),
    rays_per_maze=1250,
):
    """d = min over boxes of max(entries into their slabs)

    Reference: NumPy's slab method on every wall and post as a box: a ray enters a box at the last
    of its entries into the slabs, if that is before the first exit.
    Procedure:
    1. Draw a maze of each size with each thickness for each range (seeds 15, 50, 200).
    2. Cast rays in each, from within walls and from outside the maze too.
    3. Compare the distances; count hits and origins in walls, that all was tried.
    Covers: walls, posts, ranges, origins anywhere
    Excludes: gradients (MIME-VER-151); beams of several rays (in the tests)
    """
    n = rays_per_maze
    for max_range in max_range_m:
        rng = np.random.default_rng(int(100 * max_range))
        count = crossings_within(cell_size_m, max(wall_thickness_m), max_range)
        errors, hits, stuck = [], 0, 0
        for (rows, cols), share in zip(cells, share_of_walls):
            for thickness in wall_thickness_m:
                maze = random_maze(rng, rows, cols, share)
                high = [cols * cell_size_m + 0.1, rows * cell_size_m + 0.1]  # outside too
                origin, angle = rng.uniform([-0.1, -0.1], high, (n, 2)), rng.uniform(-7, 7, n)
                ours = cast(origin, angle, *maze, cell_size_m, thickness, max_range, count)
                truth = by_slabs(origin, angle, boxes_of(*maze, cell_size_m, thickness), max_range)
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
