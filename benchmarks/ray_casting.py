"""Seven rays of a mouse in a maze: MIME's closed form against plain NumPy on every box of the maze.

Checks first that both agree, then prints times. Interleaved, best of several: see `best_of`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from timing import best_of

from mime.core.folding import jit_folding
from mime.nodes.sensing.range_sensor import RangeSensorNode

jax.config.update("jax_enable_x64", True)
ROWS = COLS = 16
CELL, WALL = 0.18, 0.012
MICE, STEPS, NUMPY_STEPS = 100, 5_000, 50


def boxes_of(horizontal, vertical):
    """Every wall and every post as x_low, x_high, y_low, y_high."""
    h = WALL / 2
    walls = [(c, c + 1, r, r, 0, h) for r, c in zip(*np.nonzero(horizontal))]
    walls += [(c, c, r, r + 1, h, 0) for r, c in zip(*np.nonzero(vertical))]
    walls += [(c, c, r, r, h, h) for r in range(ROWS + 1) for c in range(COLS + 1)]
    x0, x1, y0, y1, hx, hy = np.array(walls, dtype=float).T
    return CELL * x0 - hx, CELL * x1 + hx, CELL * y0 - hy, CELL * y1 + hy


def numpy_distances(pose, sensors, boxes, low, high):
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


def distances(node, pose):
    state = node.initial_state()
    return node.compute_boundary_fluxes(state, {"pose_world": pose}, 1e-3)["distance"]


@jit_folding
def wander(node, pose):
    """The next pose depends on all that was read, so that no ray and no step can be skipped.

    Compiled as a simulation is: the sensors' places are constants of the program.
    """

    def step(carry, _):
        state, d = carry
        inputs = {"pose_world": jnp.array([1.1, 1.1, 0.0]) + 9.0 * (d[:3] + d[3:6]) + d[6]}
        state = node.update(state, inputs, 1e-3)
        return (state, node.compute_boundary_fluxes(state, inputs, 1e-3)["reading"]), None

    start = (node.initial_state(), distances(node, pose))
    return jax.lax.scan(step, start, length=STEPS)[0][1]


def compare(horizontal, vertical, poses, max_range) -> None:
    node = RangeSensorNode("range", 1e-3, horizontal[0], vertical[0], max_range_m=max_range)
    boxes, sensors = boxes_of(horizontal[0], vertical[0]), np.asarray(node.sensor_poses_body)

    def plain(count):
        return [numpy_distances(p, sensors, boxes, 0.01, max_range) for p in poses[:count]]

    def of_each(horizontal, vertical, pose):
        walls = {"horizontal_walls": horizontal, "vertical_walls": vertical}
        return wander(node.with_params(**walls), pose)

    ours = jax.jit(jax.vmap(distances, (None, 0)))(node, jnp.asarray(poses))
    difference = np.max(np.abs(ours - np.stack(plain(MICE))))
    if difference > 1e-12:
        raise SystemExit(f"MIME and NumPy differ by {difference:.1e} m")

    batch = jax.jit(jax.vmap(of_each))
    arguments = tuple(jnp.asarray(x) for x in (horizontal, vertical, poses))
    with_options = [
        RangeSensorNode("r", 1e-3, horizontal[0], vertical[0], max_range_m=max_range, **options)
        for options in ({"noise_m": 1e-3}, {"beam_half_angle_rad": 0.1})
    ]
    by_numpy, by_scan, by_batch, noisy, beam = best_of(
        7,
        lambda: plain(NUMPY_STEPS),
        lambda: wander(node, arguments[2][0]),
        lambda: batch(*arguments),
        *(partial(wander, other, arguments[2][0]) for other in with_options),
    )
    by_numpy = by_numpy / NUMPY_STEPS
    for name, seconds in (
        ("NumPy, every box", by_numpy),
        ("MIME, one mouse in a scan", by_scan / STEPS),
        (f"MIME, {MICE} mice in {MICE} mazes", by_batch / STEPS / MICE),
        ("MIME, one mouse, with noise", noisy / STEPS),
        ("MIME, one mouse, beams of 5 rays", beam / STEPS),
    ):
        print(
            f"{name:34}{max_range:8.2f} m{seconds * 1e6:17.2f} µs{by_numpy / seconds:10.0f}"
            f"{difference:12.1e} m"
        )


def main() -> None:
    rng = np.random.default_rng(0)
    horizontal = (rng.random((MICE, ROWS + 1, COLS)) < 0.5).astype(float)
    vertical = (rng.random((MICE, ROWS, COLS + 1)) < 0.5).astype(float)
    poses = rng.uniform([0, 0, -4], [COLS * CELL, ROWS * CELL, 4], (MICE, 3))
    print(f"{'':34}{'max_range':>10}{'a mouse (7 rays)':>20}{'ratio':>10}{'difference':>14}")
    for max_range in (0.15, 1.0):
        compare(horizontal, vertical, poses, max_range)


if __name__ == "__main__":
    main()
