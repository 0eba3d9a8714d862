"""Runs of whole mice that several tests look at: computed once a process, a program each."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from mime.maze import optimistic_walls, random_maze
from mime.mouse import Strategy, build_mouse, starting_state

MAZES = tuple(random_maze(seed, 6, 6) for seed in (1, 2, 3))
MEMBERS = range(5)
NOISY = {3: np.array([1.02, 0.98]), 4: np.array([1.02, 1.02])}
"""Members with noise, in the second maze, and the radii of their wheels over what they believe."""
DURATION_S = 25.0
STEP_S = 1e-3
RECORD = {
    "brain": ["estimated_pose", "phase", "time_to_goal", "time_home", "race_time"],
    "body": ["pose_world", "touching"],
}
NOISE = {
    "ranges": {"noise_m": 2e-3},
    "gyro": {"noise_rad_per_s": 0.01, "bias_rad_per_s": 0.02},
}


def maze_of(member):
    return MAZES[1] if member in NOISY else MAZES[member]


@cache
def simulation():
    """One program for all: noise is there, and 0 for most."""
    return build_mouse(
        MAZES[0], range_noise_m=0.0, gyro_noise_rad_s=0.0, gyro_bias_rad_s=0.0
    ).compile()


@cache
def batch():
    """Three mice in three mazes, and the noisy ones, from start to rest; every step recorded."""
    walls = [maze_of(member).wall_parameters() for member in MEMBERS]
    parameters = {
        node: {name: np.stack([w[name] for w in walls]) for name in walls[0]}
        for node in ("body", "ranges")
    }
    radii = np.stack([NOISY.get(member, np.ones(2)) for member in MEMBERS])
    parameters["body"]["wheel_radius_ratio"] = radii
    is_noisy = np.array([member in NOISY for member in MEMBERS])
    for node, values in NOISE.items():
        noise = {name: np.where(is_noisy, value, 0.0) for name, value in values.items()}
        parameters[node] = parameters.get(node, {}) | noise
    return simulation().run_batch(
        DURATION_S,
        parameters=parameters,
        initial_state=starting_state(MAZES[0]),
        record=RECORD,
        progress=False,
    )


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


def cells_visited(poses, cell_m=0.18):
    """The cells of a path, without repetition of neighbours."""
    cells = np.floor(np.asarray(poses, float)[:, 1::-1] / cell_m).astype(int)
    changed = np.concatenate([[True], np.any(np.diff(cells, axis=0) != 0, axis=1)])
    return [tuple(cell) for cell in cells[changed].tolist()]
