"""MIME-VER-170: whole mice in random mazes, from the start to the goal, home, and the race."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mime.maze import Maze, fastest_route, random_maze
from mime.mouse import RACE, build_mouse, starting_state
from mime.mouse.navigator import DONE
from mime.running.graph import GraphManager
from mime.running.trajectory import Trajectory
from mime.verification.benchmark import Measurement, benchmark, largest, replaced

Build = Callable[..., GraphManager]

SEEDS, CELLS = (1, 2, 3), (6, 6)
MAZES = tuple(random_maze(seed, *CELLS) for seed in SEEDS)
MEMBERS = range(5)
RADII = (1.02, 0.98), (1.02, 1.02)
"""Radii of the wheels of two members with noise, over what these believe."""
NOISY = dict(zip((3, 4), RADII))
"""The members with noise, which run in the second maze."""
NOISE = {"ranges": {"noise_m": 2e-3}, "gyro": {"noise_rad_per_s": 0.01, "bias_rad_per_s": 0.02}}
DURATION_S = 25.0
RECORD = {
    "brain": ["estimated_pose", "phase", "time_to_goal", "time_home", "race_time"],
    "body": ["pose_world", "touching"],
}


def maze_of(member: int) -> Maze:
    """The maze that a member of the batch runs in."""
    return MAZES[1] if member in NOISY else MAZES[member]


@cache
def batch(build: Build) -> Trajectory:
    """Three mice in three mazes, and the noisy ones, from start to rest; every step recorded.

    It runs once per process, since the tests of the mouse look at it too. One program serves all:
    noise is there, and 0 for most.
    """
    silent = {"range_noise_m": 0.0, "gyro_noise_rad_per_s": 0.0, "gyro_bias_rad_per_s": 0.0}
    simulation = build(MAZES[0], **silent).compile()
    walls = [maze_of(member).wall_parameters() for member in MEMBERS]
    parameters: dict[str, dict[str, Any]] = {
        node: {name: np.stack([w[name] for w in walls]) for name in walls[0]}
        for node in ("body", "ranges")
    }
    radii = np.array([NOISY.get(member, (1.0, 1.0)) for member in MEMBERS])
    parameters["body"]["wheel_radius_ratio"] = radii
    is_noisy = np.array([member in NOISY for member in MEMBERS])
    for node, values in NOISE.items():
        noise = {name: np.where(is_noisy, value, 0.0) for name, value in values.items()}
        parameters[node] = parameters.get(node, {}) | noise
    return simulation.run_batch(
        DURATION_S,
        parameters=parameters,
        initial_state=starting_state(MAZES[0]),
        record=RECORD,
        progress=False,
    )


@benchmark(
    170,
    "Mice find the goal, return and race",
    build_mouse,
    replaced("tyres on ice, friction 0.05", friction_coefficient=0.05),
    node_id="MIME-NODE-130",
    kind="requirement",
)
def mice(
    build,
    *,
    seeds_of_the_mazes=SEEDS,
    cells=CELLS,
    duration_s=DURATION_S,
    timestep_s=1e-3,
    noise_of_ranges_m=NOISE["ranges"]["noise_m"],
    noise_of_gyro_rad_per_s=NOISE["gyro"]["noise_rad_per_s"],
    bias_of_gyro_rad_per_s=NOISE["gyro"]["bias_rad_per_s"],
    wheel_radius_ratio=RADII,
):
    """0 < t_goal < t_home < T,   t_race < 1.5 t_ideal,   no contact,   |p - p_estimated| < 20 mm

    Reference: The maze and the body's true pose, which the brain does not know; the ideal time of a
    race from flood fill and speed profile, on quarter circles.
    Procedure:
    1. Run a mouse in each of three unseen mazes, in volts.
    2. Run two more in the second maze, with noise and wheels larger or smaller than believed.
    3. Look at phases, times, contacts with walls and errors of the estimated pose.
    Covers: brain, motors, wheels, walls and sensors as one graph; noise, wrong wheels
    Excludes: larger mazes (the contest: 100 mazes of 16 x 16 cells); diagonals
    """
    trajectory = batch(build)
    brain, body = trajectory["brain"], trajectory["body"]
    done = brain["phase"][:, -1] == DONE
    goal, home, race = (brain[name][:, -1] for name in ("time_to_goal", "time_home", "race_time"))
    ideal = np.array([fastest_route(maze_of(member), RACE).time_s for member in MEMBERS])
    off = np.linalg.norm((brain["estimated_pose"] - body["pose_world"])[..., :2], axis=2)
    in_order = (goal > 0) & (goal < home) & (home < duration_s)
    for what, which in (
        ("mice that have raced", done),
        ("mice whose times are in order: goal, home, end", in_order),
    ):
        count = float(np.sum(which))
        yield Measurement(what, count, limit=5.0, at_least=True, why="all")
    yield Measurement(
        "steps in touch with a wall", float(np.sum(body["touching"] > 0)), limit=0.0, why="none"
    )
    yield Measurement(
        "slowest race over its ideal time",
        largest(race / ideal),
        limit=1.5,
        why="the maze may hold a faster way than was seen",
    )
    yield Measurement(
        "fastest race over its ideal time",
        float(np.min(race / ideal)),
        limit=1.0,
        at_least=True,
        why="curves are 6 % longer than quarter circles: nobody is faster than the ideal",
    )
    yield Measurement(
        "largest error of the estimated position",
        largest(off),
        limit=0.02,
        unit="m",
        why="2 % of the first straight, 0.8 m, until a post tells how large the wheels are",
    )
