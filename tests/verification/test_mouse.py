"""MIME-VER-170: whole mice reach the goal, return and race, and touch no wall.

The test records what it measured, a value a mouse. The runs are those of tests/mouse/runs.py: three
random mazes, and one of them twice again with noisy sensors and wheels that are 2 % off.
"""

import numpy as np

from mime.maze import fastest_route
from mime.mouse import RACE
from mime.mouse.navigator import DONE
from mouse import runs


def test_ver170_mice_find_the_goal_return_and_race_without_touching(record_figure):
    brain, body = runs.batch()["brain"], runs.batch()["body"]
    to_goal, home, race = (
        brain[name][:, -1] for name in ("time_to_goal", "time_home", "race_time")
    )
    mazes = [runs.maze_of(member) for member in runs.MEMBERS]
    ideal = np.array([fastest_route(maze, RACE).time_s for maze in mazes])
    off = np.linalg.norm((brain["estimated_pose"] - body["pose_world"])[..., :2], axis=2)
    steps_in_touch = np.sum(body["touching"] > 0, axis=1)
    record_figure("time_to_goal_s", to_goal)
    record_figure("time_home_s", home)
    record_figure("race_time_s", race)
    record_figure("ideal_race_time_s", ideal)
    record_figure("pose_error_m", np.max(off, axis=1))
    record_figure("steps_in_touch", steps_in_touch)
    assert np.all(brain["phase"][:, -1] == DONE)
    assert np.all((to_goal > 0) & (to_goal < home) & (home < runs.DURATION_S))
    # Curves are 6 % longer than quarter circles; the maze may hold a faster way than was seen.
    assert np.all((race > ideal) & (race < 1.5 * ideal))
    assert np.all(steps_in_touch == 0)
    # 2 % of the first straight, 0.8 m, until a post tells how large the wheels are.
    assert np.max(off) < 0.02
