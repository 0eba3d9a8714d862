"""What a mouse knows of the walls: open, wall, or not seen yet."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Int8

from mime.maze.maze import Maze

UNKNOWN, OPEN, WALL = range(3)

WallArrays = tuple[Bool[Array, "edges cols"], Bool[Array, "rows lines"]]


class Belief(NamedTuple):
    """0 unknown, 1 open, 2 wall, for the edges that `Maze.horizontal` and `Maze.vertical` name.

    A pytree of arrays: a part of a controller's state.
    """

    horizontal: Int8[Array, "edges cols"]
    vertical: Int8[Array, "rows lines"]


def unknown_belief(rows: int, cols: int) -> Belief:
    """What is known before the first look: the boundary, nothing else."""
    horizontal, vertical = np.zeros((rows + 1, cols), np.int8), np.zeros((rows, cols + 1), np.int8)
    horizontal[[0, rows]] = vertical[:, [0, cols]] = WALL
    return Belief(*jax.device_put((horizontal, vertical)))


def full_belief(maze: Maze) -> Belief:
    """What is known when everything has been seen."""
    seen = (
        np.where(walls, WALL, OPEN).astype(np.int8) for walls in (maze.horizontal, maze.vertical)
    )
    return Belief(*jax.device_put(tuple(seen)))


def optimistic_walls(belief: Belief) -> WallArrays:
    """Horizontal and vertical walls if what is unknown is open: where to explore."""
    return belief.horizontal == WALL, belief.vertical == WALL


def pessimistic_walls(belief: Belief) -> WallArrays:
    """Horizontal and vertical walls if what is unknown is a wall: where it is safe to race."""
    return belief.horizontal != OPEN, belief.vertical != OPEN
