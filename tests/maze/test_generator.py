"""Random mazes keep the rules of the contests."""

import numpy as np
import pytest

from mime.maze import NORTH, MazeError, random_maze
from mime.maze.generator import post_walls


def inner_openings(maze):
    return int((~maze.horizontal[1:-1]).sum() + (~maze.vertical[:, 1:-1]).sum())


def room_entrances(maze):
    room = set(maze.goals)
    return sum(
        maze.neighbour(cell, heading) not in room and not maze.has_wall(cell, heading)
        for cell in room
        for heading in range(4)
    )


def check_rules(maze):
    assert maze.walls_around(maze.start) == (True, True, True, False)
    assert maze.start_heading == NORTH
    assert room_entrances(maze) == 1
    for cell in maze.goals:
        for heading in range(4):
            if maze.neighbour(cell, heading) in maze.goals:
                assert not maze.has_wall(cell, heading)
    inner = post_walls(maze.horizontal, maze.vertical)[1:-1, 1:-1]
    bare = [(row + 1, col + 1) for row, col in np.argwhere(inner == 0).tolist()]
    centre = [(maze.rows // 2, maze.cols // 2)] if len(maze.goals) == 4 else []
    assert bare == centre


def test_two_hundred_seeds_give_contest_mazes_with_loops():
    seen = set()
    for seed in range(200):
        maze = random_maze(seed)
        check_rules(maze)
        tree_and_room = maze.rows * maze.cols - 1 + 1
        assert inner_openings(maze) > tree_and_room
        seen.add(hash(maze))
    assert len(seen) == 200


@pytest.mark.parametrize("shape", [(3, 3), (3, 4), (4, 4), (5, 12), (32, 32), (9, 31)])
def test_other_sizes_keep_the_rules(shape):
    for seed in range(5):
        maze = random_maze(seed, *shape)
        assert (maze.rows, maze.cols) == shape
        check_rules(maze)


def test_the_same_seed_gives_the_same_maze():
    assert random_maze(11) == random_maze(11)
    assert random_maze(11) != random_maze(12)


def test_without_loops_there_is_one_way_to_everywhere():
    maze = random_maze(1, 9, 9, loops=0.0)
    assert inner_openings(maze) == 9 * 9 - 1


def test_more_loops_open_more_walls():
    openings = [inner_openings(random_maze(2, loops=share)) for share in (0.0, 0.05, 0.2)]
    assert openings == sorted(set(openings))
    check_rules(random_maze(2, loops=1.0))


def test_winding_makes_fewer_dead_ends():
    def dead_ends(winding):
        mazes = [random_maze(seed, loops=0.0, winding=winding) for seed in range(5)]
        walls = np.array([maze.cell_walls() for maze in mazes])
        return sum(np.isin(walls, (7, 11, 13, 14)).ravel())

    assert dead_ends(1.0) < dead_ends(0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 2}, "3 to 32 rows and columns.*got 2 x 16"),
        ({"cols": 33}, "3 to 32 rows and columns.*got 16 x 33"),
        ({"loops": 1.5}, "loops must be from 0 to 1, got 1.5"),
        ({"winding": -0.1}, "winding must be from 0 to 1, got -0.1"),
    ],
)
def test_what_cannot_be_made_is_refused(arguments, message):
    with pytest.raises(MazeError, match=message):
        random_maze(0, **arguments)
