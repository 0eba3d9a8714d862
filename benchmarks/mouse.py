"""The mouse against real time: one, and a hundred in mazes of their own as one batch.

Motors in volts, tyres, walls, seven range sensors and the brain; physics at 1 kHz. Times are of
runs after the first, which compiles.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np
from timing import best_of

from mime.core.cache import enable_compilation_cache
from mime.maze import random_maze
from mime.mouse import build_mouse, starting_state

RESULTS = Path(__file__).parent / "results" / "mouse.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mice", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0, help="simulated, each")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    enable_compilation_cache()
    mazes = [random_maze(seed) for seed in range(options.mice)]
    walls = {
        name: np.stack([maze.wall_parameters()[name] for maze in mazes])
        for name in ("horizontal_walls", "vertical_walls")
    }
    simulation = build_mouse(mazes[0]).compile()
    common = {
        "initial_state": starting_state(mazes[0]),
        "record": {"brain": ["phase"], "body": ["pose_world"]},
        "every": 20,
        "progress": False,
    }

    def one() -> np.ndarray:
        return simulation.run(options.seconds, **common)["body"]["pose_world"][-1]

    def batch() -> np.ndarray:
        parameters = {"body": dict(walls), "ranges": dict(walls)}
        run = simulation.run_batch(duration=options.seconds, parameters=parameters, **common)
        return run["body"]["pose_world"][:, -1]

    began = time.perf_counter()
    alone = one()
    compiled = time.perf_counter() - began
    apart = np.abs(batch()[0] - alone).max()
    print(f"first run, with compilation or the cache: {compiled:.1f} s")
    print(f"mouse 0 alone and in the batch end {apart:.1e} m apart")
    t_one, t_batch = best_of(options.repeats, one, batch)
    results = {
        "one mouse, simulated over wall time": options.seconds / t_one,
        f"{options.mice} mice, mouse-seconds a second": options.mice * options.seconds / t_batch,
    }
    for name, value in results.items():
        print(f"{name}: {value:.0f}")
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
