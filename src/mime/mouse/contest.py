"""Many mice, each in a maze of its own, as one batch: who gets through, and how fast."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from mime.core.node import ParameterError
from mime.maze.maze import Maze
from mime.maze.routes import SpeedProfile, fastest_route
from mime.mouse.assembly import RACE, build_mouse, starting_state
from mime.mouse.navigator import DONE


class MouseResult(NamedTuple):
    """How one mouse did; times are 0 where it did not get that far."""

    maze: str
    finished: bool
    """True when it reached the goal, came back and finished the speed run."""
    time_to_goal_s: float
    time_home_s: float
    race_time_s: float
    ideal_time_s: float
    """Time of the fastest route through the maze, all of which the mouse has not seen."""
    hardest_contact_n: float
    """The largest force of a wall on the body; 0 when it touched none."""
    deepest_contact_m: float
    """The deepest that the body was pressed into a wall."""
    pose_error_m: float
    """The largest distance between where the mouse was and where it thought it was."""


class Handicap(NamedTuple):
    """The errors of the mice: noise, bias and wheels of the wrong size."""

    range_noise_m: float = 0.003
    gyro_noise_rad_per_s: float = 0.01
    gyro_bias_rad_per_s: float = 0.02
    wheel_radius_error: float = 0.02
    """The part by which each wheel is too large or too small."""


def run_contest(
    mazes: Sequence[Maze],
    duration_s: float = 150.0,
    handicap: Handicap | None = None,
    race: SpeedProfile = RACE,
    seed: int = 0,
    progress: bool = True,
) -> list[MouseResult]:
    """Let a mouse loose in each of `mazes`, all of one size with one start and one goal."""
    first = mazes[0]
    for maze in mazes:
        if (maze.rows, maze.cols, maze.start, maze.goals) != (
            first.rows,
            first.cols,
            first.start,
            first.goals,
        ):
            raise ParameterError(
                f"contest: maze {maze.name!r} must have the size, start and goal of {first.name!r}"
            )
    walls = {
        name: np.stack([maze.wall_parameters()[name] for maze in mazes])
        for name in ("horizontal_walls", "vertical_walls")
    }
    body: dict[str, Any] = dict(walls)
    start: dict[str, Any] = starting_state(first)
    noise: dict[str, Any] = {}
    if handicap is not None:
        rng = np.random.default_rng(seed)
        *noises, radius = handicap
        noise = dict(zip(handicap._fields, noises, strict=False))
        body["wheel_radius_ratio"] = 1.0 + radius * rng.choice([-1.0, 1.0], (len(mazes), 2))
        for sensor in ("ranges", "gyro"):
            start[sensor] = {"key": rng.integers(0, 2**32, (len(mazes), 2), dtype=np.uint32)}
    run = (
        build_mouse(first, race=race, **noise)
        .compile()
        .run_batch(
            duration=duration_s,
            parameters={"body": body, "ranges": dict(walls)},
            initial_state=start,
            record={
                "brain": ["phase", "estimated_pose", "time_to_goal", "time_home", "race_time"],
                "body": ["pose_world", "deepest_penetration", "hardest_contact"],
            },
            every=100,
            progress=progress,
        )
    )
    brain, path = run["brain"], run["body"]["pose_world"]
    away: Float[np.ndarray, "b t"] = np.hypot(
        *np.moveaxis((path - brain["estimated_pose"])[..., :2], -1, 0)
    )
    return [
        MouseResult(
            maze.name,
            bool(brain["phase"][i, -1] == DONE),
            float(brain["time_to_goal"][i, -1]),
            float(brain["time_home"][i, -1]),
            float(brain["race_time"][i, -1]),
            fastest_route(maze, race).time_s,
            float(run["body"]["hardest_contact"][i, -1]),
            float(run["body"]["deepest_penetration"][i, -1]),
            float(np.max(away[i])),
        )
        for i, maze in enumerate(mazes)
    ]
