"""Seven rays of a mouse in a maze.

The range sensor's closed form in a loop over poses, beside
plain NumPy that tests every ray against every box of the maze (slab method).
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from harness import Case, Peer

from mime.mouse.body import SENSOR_POSES
from mime.native.folding import jit_folding
from mime.nodes.sensing.range_sensor import RangeSensorNode

ROWS = COLS = 16
CELL, WALL = 0.18, 0.012
MICE, STEPS = 100, 5_000


def cases(threads: int) -> Iterator[Case]:
    """Short and long rays."""
    for max_range in (0.15, 1.0):
        yield Case(
            f"7 rays of at most {max_range:g} m",
            lambda r=max_range: ours(r),
            (Peer("NumPy, every box", lambda r=max_range: by_numpy(r), 1e-12),),
            units=STEPS,
            unit="pose",
        )


def maze() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Walls at random, and poses among them."""
    rng = np.random.default_rng(0)
    horizontal = (rng.random((ROWS + 1, COLS)) < 0.5).astype(float)
    vertical = (rng.random((ROWS, COLS + 1)) < 0.5).astype(float)
    poses = rng.uniform([0, 0, -4], [COLS * CELL, ROWS * CELL, 4], (STEPS, 3))
    return horizontal, vertical, poses


def node_of(max_range: float) -> RangeSensorNode:
    horizontal, vertical, _ = maze()
    return RangeSensorNode("range", 1e-3, horizontal, vertical, SENSOR_POSES, max_range_m=max_range)


@jit_folding
def readings(node: RangeSensorNode, poses: Any) -> Any:
    """Compiled as a simulation is: the sensors' places are constants of the program."""
    state = node.initial_state()

    def step(_: None, pose: Any) -> Any:
        return None, node.compute_boundary_fluxes(state, {"pose_world": pose}, 1e-3)["distance"]

    return jax.lax.scan(step, None, poses)[1]


def ours(max_range: float) -> Any:
    node, poses = node_of(max_range), jnp.asarray(maze()[2])
    return lambda: readings(node, poses)


def by_numpy(max_range: float) -> Any:
    horizontal, vertical, poses = maze()
    sensors = np.asarray(node_of(max_range).sensor_poses_body)
    boxes = boxes_of(horizontal, vertical)
    return lambda: np.stack([distances(p, sensors, boxes, 0.01, max_range) for p in poses])


def boxes_of(horizontal, vertical):
    """Every wall and every post as x_low, x_high, y_low, y_high."""
    h = WALL / 2
    walls = [(c, c + 1, r, r, 0, h) for r, c in zip(*np.nonzero(horizontal))]
    walls += [(c, c, r, r + 1, h, 0) for r, c in zip(*np.nonzero(vertical))]
    walls += [(c, c, r, r, h, h) for r in range(ROWS + 1) for c in range(COLS + 1)]
    x0, x1, y0, y1, hx, hy = np.array(walls, dtype=float).T
    return CELL * x0 - hx, CELL * x1 + hx, CELL * y0 - hy, CELL * y1 + hy


def distances(pose, sensors, boxes, low, high):
    """Each ray against each box by the slab method."""
    c, s = np.cos(pose[2]), np.sin(pose[2])
    x = pose[0] + c * sensors[:, 0] - s * sensors[:, 1]
    y = pose[1] + s * sensors[:, 0] + c * sensors[:, 1]
    dx, dy = np.cos(pose[2] + sensors[:, 2]), np.sin(pose[2] + sensors[:, 2])
    with np.errstate(divide="ignore"):
        x0, x1 = ((edge - x[:, None]) / dx[:, None] for edge in boxes[:2])
        y0, y1 = ((edge - y[:, None]) / dy[:, None] for edge in boxes[2:])
    enter = np.maximum(np.minimum(x0, x1), np.minimum(y0, y1))
    leave = np.minimum(np.maximum(x0, x1), np.maximum(y0, y1))
    hit = (enter <= leave) & (leave >= 0)
    nearest = np.min(np.where(hit, np.maximum(enter, 0.0), np.inf), axis=1)
    return np.clip(nearest, low, high)
