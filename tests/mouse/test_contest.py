"""A contest takes mazes of one kind only."""

import pytest

from mime import ParameterError
from mime.maze import Maze, random_maze
from mime.mouse.contest import run_contest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "other",
    [
        random_maze(2, 6, 8),
        Maze.empty(6, 6, start=(0, 0), start_heading=0),
        Maze.empty(6, 6, goals=[(0, 5)]),
    ],
    ids=["size", "start", "goal"],
)
def test_a_maze_that_differs_from_the_first_is_refused_by_name(other):
    with pytest.raises(
        ParameterError, match=r"contest: maze .* size, start and goal of 'random 1'"
    ):
        run_contest([random_maze(1, 6, 6), other])
