"""Drawings show every wall once, in metres and with row 0 on top."""

import matplotlib as mpl
import numpy as np
import pytest

from mime.maze import Maze, draw, fastest_route, full_belief, maze_text, random_maze, unknown_belief

mpl.use("Agg")


@pytest.fixture
def axes():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def collection(axes, label):
    return next(c for c in axes.collections if c.get_label() == label)


def num_walls(maze):
    return int(maze.horizontal.sum() + maze.vertical.sum())


def test_every_wall_post_and_goal_is_drawn_to_scale(axes):
    maze = random_maze(0, 5, 8)
    assert draw(maze, axes) is axes
    walls = collection(axes, "walls").get_paths()
    assert len(walls) == num_walls(maze)
    for path in walls:
        assert sorted(np.ptp(path.vertices, axis=0)) == pytest.approx([0.012, 0.192])
    assert len(collection(axes, "posts").get_paths()) == 6 * 9
    assert len(collection(axes, "goal").get_paths()) == len(maze.goals)
    low, high = np.array([p.vertices for p in collection(axes, "start").get_paths()])[0][[0, 2]]
    assert (low + high) / 2 == pytest.approx(maze.cell_centre_m(maze.start))


def test_axes_are_in_metres_with_row_0_on_top(axes):
    maze = random_maze(0, 5, 8)
    draw(maze, axes)
    bottom, top = axes.get_ylim()
    assert bottom > 5 * 0.18 > 0 > top
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x / m", "y / m")
    assert axes.get_title() == "random 0"
    assert axes.get_aspect() == 1


def test_a_new_figure_is_made_where_no_axes_are_given():
    import matplotlib.pyplot as plt

    axes = draw(Maze.empty(3, 3))
    assert len(collection(axes, "walls").get_paths()) == 12
    plt.close(axes.figure)


def test_unknown_walls_are_dotted(axes):
    maze = random_maze(0, 5, 8)
    draw(maze, axes, belief=unknown_belief(5, 8))
    assert len(collection(axes, "walls").get_paths()) == 2 * (5 + 8)
    assert len(collection(axes, "unknown").get_segments()) == 4 * 8 + 5 * 7


def test_a_belief_that_knows_all_is_drawn_as_the_maze(axes):
    maze = random_maze(0, 5, 8)
    draw(maze, axes, belief=full_belief(maze))
    assert len(collection(axes, "walls").get_paths()) == num_walls(maze)
    assert "unknown" not in [c.get_label() for c in axes.collections]
    with pytest.raises(ValueError, match="the belief has 5 x 5 cells and the maze 5 x 8"):
        draw(maze, axes, belief=unknown_belief(5, 5))


def test_a_route_runs_through_the_centres_of_its_cells(axes):
    maze = random_maze(0, 5, 8)
    cells = fastest_route(maze).cells
    draw(maze, axes, route=cells, distances=np.arange(40).reshape(5, 8))
    line = next(line for line in axes.lines if line.get_label() == "route")
    assert line.get_xydata() == pytest.approx(np.array([maze.cell_centre_m(c) for c in cells]))
    assert [text.get_text() for text in axes.texts] == [str(k) for k in range(40)]


def test_text_shows_marks_in_their_cells():
    maze = Maze.empty(2, 2, goals=[(0, 1)])
    marks = {(1, 0): 0, (0, 0): 1, (0, 1): 2}
    lines = maze_text(maze, marks).splitlines()
    assert lines[1] == "| 1   2 |"
    assert lines[3] == "| 0     |"


def test_text_shows_what_is_not_known():
    maze = Maze.empty(2, 2, goals=[(0, 1)])
    assert maze_text(maze, belief=unknown_belief(2, 2)).splitlines() == [
        "o---o---o",
        "|   : G |",
        "o. .o. .o",
        "| S :   |",
        "o---o---o",
    ]
