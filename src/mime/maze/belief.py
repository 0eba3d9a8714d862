"""What a mouse knows of the walls: open, wall, or not seen yet."""

from typing import NamedTuple

import jax.numpy as jnp
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
    horizontal = jnp.zeros((rows + 1, cols), jnp.int8).at[jnp.array([0, rows])].set(WALL)
    vertical = jnp.zeros((rows, cols + 1), jnp.int8).at[:, jnp.array([0, cols])].set(WALL)
    return Belief(horizontal, vertical)


def full_belief(maze: Maze) -> Belief:
    """What is known when everything has been seen."""
    horizontal, vertical = (
        jnp.where(jnp.asarray(walls), WALL, OPEN).astype(jnp.int8)
        for walls in (maze.horizontal, maze.vertical)
    )
    return Belief(horizontal, vertical)


def optimistic_walls(belief: Belief) -> WallArrays:
    """Horizontal and vertical walls if what is unknown is open: where to explore."""
    return belief.horizontal == WALL, belief.vertical == WALL


def pessimistic_walls(belief: Belief) -> WallArrays:
    """Horizontal and vertical walls if what is unknown is a wall: where it is safe to race."""
    return belief.horizontal != OPEN, belief.vertical != OPEN
