"""One hundred mice in one hundred mazes that nobody saw while the mouse was tuned.

Prints the table and writes it to docs/mouse_contest.md. About five minutes on two cores.
"""

import argparse
import time
from pathlib import Path

import jax
import numpy as np

from mime.maze import random_maze
from mime.mouse.contest import Handicap, MouseResult, run_contest
from mime.xla.cache import enable_compilation_cache

FIRST_SEED = 1000
"""The mouse was tuned on seeds 0 to 39."""
PAGE = Path(__file__).parent.parent / "docs" / "mouse_contest.md"


def summary(results: list[MouseResult]) -> list[str]:
    done = [r for r in results if r.finished]
    ratio = [r.race_time_s / r.ideal_time_s for r in done]
    touched = [r for r in results if r.hardest_contact_n > 0]

    def spread(values: list[float], form: str) -> str:
        low, middle, high = np.percentile(values, [0, 50, 100])
        return f"{low:{form}} / {middle:{form}} / {high:{form}}"

    return [
        f"| finished | {len(done)} of {len(results)} |",
        f"| touched a wall | {len(touched)}, at most "
        f"{1e3 * max((r.deepest_contact_m for r in results), default=0):.2f} mm deep |",
        f"| time to the goal [s], least / median / most | "
        f"{spread([r.time_to_goal_s for r in done], '.1f')} |",
        f"| back at the start [s] | {spread([r.time_home_s for r in done], '.1f')} |",
        f"| speed run [s] | {spread([r.race_time_s for r in done], '.2f')} |",
        f"| speed run over the ideal time | {spread(ratio, '.2f')} |",
        f"| error of the pose [mm] | {spread([1e3 * r.pose_error_m for r in done], '.1f')} |",
    ]


def table(results: list[MouseResult]) -> list[str]:
    lines = [
        "| seed | to the goal [s] | back [s] | speed run [s] | ideal [s] | ratio | touch [mm] | "
        "pose error [mm] |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for i, r in enumerate(results):
        raced = f"{r.race_time_s:.2f}" if r.finished else "did not finish"
        ratio = f"{r.race_time_s / r.ideal_time_s:.2f}" if r.finished else ""
        lines.append(
            f"| {FIRST_SEED + i} | {r.time_to_goal_s:.1f} | {r.time_home_s:.1f} | {raced} | "
            f"{r.ideal_time_s:.2f} | {ratio} | {1e3 * r.deepest_contact_m:.2f} | "
            f"{1e3 * r.pose_error_m:.1f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mazes", type=int, default=100)
    parser.add_argument("--duration", type=float, default=150.0, help="s, for each mouse")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    enable_compilation_cache()
    mazes = [random_maze(FIRST_SEED + i) for i in range(options.mazes)]
    page = [
        "# One hundred mice in one hundred mazes",
        "",
        f"Random 16x16 mazes with loops, seeds {FIRST_SEED} to {FIRST_SEED + len(mazes) - 1}, none "
        "of which was seen while the mouse was tuned. Motors in volts, physics at 1 kHz, sensors",
        "and brain at 500 Hz, all mice as one batch. Written by `python "
        "benchmarks/mouse_contest.py`; see [the mouse](mouse.md).",
        "",
        "The ideal time is that of the fastest route through the *whole* maze with the same limits "
        "of speed, acceleration and jerk; the mouse races along the best way it has seen.",
    ]
    for title, handicap in (
        ("Without noise", None),
        (
            "With noise: range 3 mm, gyro 0.01 rad/s and a bias of 0.02 rad/s, wheels 2 % "
            "too large or too small",
            Handicap(),
        ),
    ):
        start = time.perf_counter()
        results = run_contest(mazes, options.duration, handicap)
        wall = time.perf_counter() - start
        part = ["", f"## {title}", "", "| | |", "| --- | --- |", *summary(results), ""]
        print("\n".join([*part, *table(results)]))
        rate = len(mazes) * options.duration / wall
        print(f"\n{rate:.0f} mouse-seconds a second, compilation included")
        page += [
            *part,
            "<details><summary>all mazes</summary>",
            "",
            *table(results),
            "",
            "</details>",
        ]
    if options.mazes == 100:
        PAGE.write_text("\n".join(page) + "\n")
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
