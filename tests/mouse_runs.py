"""Runs of whole mice that several tests look at: computed once a process, a program each.

The batch is that of MIME-VER-170.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from mime.maze import optimistic_walls
from mime.mouse import Strategy, build_mouse, starting_state
from mime.verification.benchmarks.mouse import MAZES, RECORD

STEP_S = 1e-3


class LeftHand(Strategy):
    """Keeps its left hand on the wall."""

    def explore(self, belief, cell, heading, targets):
        horizontal, vertical = optimistic_walls(belief)
        row, col = cell
        east, west = vertical[row, col + 1], vertical[row, col]
        walls = jnp.stack([east, horizontal[row + 1, col], west, horizontal[row, col]])
        ways = (heading + jnp.array([3, 0, 1, 2])) % 4
        return ways[jnp.argmin(walls[ways])]  # the first that is open


@cache
def left_handed():
    """In single precision, for 8 s in the first maze."""
    with jax.enable_x64(False):
        mouse = build_mouse(MAZES[0], strategy=LeftHand()).compile()
        return mouse.run(
            8.0, initial_state=starting_state(MAZES[0]), record=RECORD, every=20, progress=False
        )


def cells_visited(poses, cell_size_m=0.18):
    """The cells of a path, without repetition of neighbours."""
    cells = np.floor(np.asarray(poses, float)[:, 1::-1] / cell_size_m).astype(int)
    changed = np.concatenate([[True], np.any(np.diff(cells, axis=0) != 0, axis=1)])
    return [tuple(cell) for cell in cells[changed].tolist()]
