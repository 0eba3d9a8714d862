"""The mouse against real time.

One mouse, and a hundred in mazes of their own as one batch: motors in volts, tyres, walls, seven
range sensors and the brain; physics at 1 kHz, 30 s each. Before anything is timed, the first mouse
of the batch has to end where it ends alone.
"""

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from harness import Figure

from mime.maze import random_maze
from mime.mouse import build_mouse, starting_state

MICE, SECONDS, REPEATS = 100, 30.0, 3
TOLERANCE_M = 1e-6
"""Two programs of the same numbers: rounding, amplified by 30 s of tyres that slip."""
RECORD = {"record": {"body": ["pose_world"]}, "every": 20, "progress": False}


def cases(threads: int) -> Iterator[Figure]:
    """Simulated seconds, summed over the mice, a second of wall time."""
    yield Figure("one mouse: first run, compilation included", first_run_s, "s")
    yield Figure("mouse 0, alone and in the batch", lambda: apart(threads), "m", TOLERANCE_M)
    real_time = {"unit": "× real time", "target": 100.0, "at_least": True}
    yield Figure("one mouse", lambda: SECONDS / best(one, threads), **real_time)
    total = lambda: MICE * SECONDS / best(lambda: many(threads), threads)  # noqa: E731
    yield Figure(f"{MICE} mice, in total", total, **real_time)


@cache
def prepared() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The simulation, its start, and the walls of every maze."""
    mazes = [random_maze(seed) for seed in range(MICE)]
    walls = {
        name: np.stack([maze.wall_parameters()[name] for maze in mazes])
        for name in ("horizontal_walls", "vertical_walls")
    }
    return build_mouse(mazes[0]).compile(), starting_state(mazes[0]), walls


def one() -> np.ndarray:
    simulation, start, _ = prepared()
    return simulation.run(SECONDS, initial_state=start, **RECORD)["body"]["pose_world"][-1]


def many(threads: int) -> np.ndarray:
    simulation, start, walls = prepared()
    run = simulation.run_batch(
        duration=SECONDS,
        parameters={"body": dict(walls), "ranges": dict(walls)},
        initial_state=start,
        threads=threads,
        **RECORD,
    )
    return run["body"]["pose_world"][:, -1]


@cache
def first_run_s() -> float:
    prepared()
    began = time.perf_counter()
    one()
    return time.perf_counter() - began


@cache
def apart(threads: int) -> float:
    return float(np.abs(many(threads)[0] - one()).max())


def best(work: Any, threads: int) -> float:
    """Seconds of the best of several; nothing is timed unless both ways agree."""
    if not apart(threads) <= TOLERANCE_M:
        raise ValueError(f"alone and in the batch end {apart(threads):.1e} m apart: not timed")
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
