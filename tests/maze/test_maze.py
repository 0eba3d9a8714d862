"""The maze: which walls stand where, what is refused, and its turned copies."""

import numpy as np
import pytest

from mime.maze import (
    EAST,
    NORTH,
    SOUTH,
    WEST,
    Maze,
    MazeError,
    default_goals,
    maze_text,
    random_maze,
)

# 2 x 3 cells: walls by row, from the drawing
#   o---o---o---o
#   |       | G |
#   o   o---o   o
#   | S |       |
#   o---o---o---o
HORIZONTAL = [[1, 1, 1], [0, 1, 0], [1, 1, 1]]
VERTICAL = [[1, 0, 1, 1], [1, 1, 0, 1]]


def small_maze(**changes):
    fields = {"horizontal": HORIZONTAL, "vertical": VERTICAL, "goals": [(0, 0)]} | changes
    return Maze(**fields)


def changed(walls, row, col, value):
    walls = np.array(walls)
    walls[row, col] = value
    return walls


def test_walls_stand_on_the_sides_that_the_arrays_name():
    maze = small_maze()
    expected = {  # east, south, west, north
        (0, 0): (False, False, True, True),
        (0, 1): (True, True, False, True),
        (0, 2): (True, False, True, True),
        (1, 0): (True, True, True, False),
        (1, 1): (False, True, True, True),
        (1, 2): (True, True, False, False),
    }
    for cell, walls in expected.items():
        assert maze.walls_around(cell) == walls
    assert maze.cell_walls().tolist() == [[9, 7, 11], [14, 13, 6]]


def test_neighbours_follow_clockwise_headings_and_end_at_the_boundary():
    maze = small_maze()
    assert [maze.neighbour((0, 1), h) for h in (EAST, SOUTH, WEST, NORTH)] == [
        (0, 2),
        (1, 1),
        (0, 0),
        None,
    ]
    with pytest.raises(MazeError, match=r"cell \(2, 0\) is not in a maze of 2 x 3"):
        maze.has_wall((2, 0), EAST)


def test_x_runs_along_columns_and_y_down_the_rows():
    assert small_maze().cell_centre_m((1, 2)) == pytest.approx((0.45, 0.27))
    assert small_maze(cell_size_m=0.09).cell_centre_m((0, 0)) == pytest.approx((0.045, 0.045))


def test_defaults_are_the_south_west_corner_facing_north_and_the_centre():
    maze = Maze.empty(4, 5)
    assert (maze.start, maze.start_heading) == ((3, 0), NORTH)
    assert maze.goals == ((1, 2), (2, 2))
    assert default_goals(16, 16) == ((7, 7), (7, 8), (8, 7), (8, 8))
    assert default_goals(3, 3) == ((1, 1),)


def test_arrays_are_read_only_and_copied():
    source = np.array(HORIZONTAL, bool)
    maze = small_maze(horizontal=source)
    source[1, 1] = False
    assert maze.horizontal[1, 1]
    with pytest.raises(ValueError, match="read-only"):
        maze.horizontal[0, 0] = False
    with pytest.raises(AttributeError):
        maze.start = (0, 0)


def test_wall_parameters_are_zeros_and_ones():
    parameters = small_maze().wall_parameters()
    assert parameters["horizontal_walls"].tolist() == HORIZONTAL
    assert parameters["vertical_walls"].tolist() == VERTICAL
    assert parameters["vertical_walls"].dtype == float


def test_equal_mazes_are_equal_and_hash_alike():
    assert small_maze() == small_maze(name="other")
    assert hash(small_maze()) == hash(small_maze())
    assert small_maze() != small_maze(start_heading=EAST)
    assert small_maze() != small_maze(cell_size_m=0.2)
    assert small_maze().same_walls(small_maze(start_heading=EAST))
    assert not small_maze().same_walls(Maze.empty(2, 3))
    assert small_maze() != "maze"


@pytest.mark.parametrize("rows", [1, 2, 16, 32])
@pytest.mark.parametrize("cols", [1, 3, 32])
def test_any_size_to_32_is_a_maze(rows, cols):
    maze = Maze.empty(rows, cols)
    assert (maze.rows, maze.cols) == (rows, cols)
    assert maze.horizontal.sum() + maze.vertical.sum() == 2 * (rows + cols)


REFUSALS = {
    "open north": (
        {"horizontal": changed(HORIZONTAL, 0, 1, 0)},
        r"the boundary is open on the north side of cell \(0, 1\)",
    ),
    "open south": (
        {"horizontal": changed(HORIZONTAL, 2, 2, 0)},
        r"the boundary is open on the south side of cell \(1, 2\)",
    ),
    "open west": (
        {"vertical": changed(VERTICAL, 1, 0, 0)},
        r"the boundary is open on the west side of cell \(1, 0\)",
    ),
    "open east": (
        {"vertical": changed(VERTICAL, 0, 3, 0)},
        r"the boundary is open on the east side of cell \(0, 2\)",
    ),
    "start outside": ({"start": (2, 0)}, r"the start \(2, 0\) is outside the maze of 2 x 3"),
    "start not a cell": ({"start": 3}, r"start must be \(row, column\), two integers, got 3"),
    "heading": ({"start_heading": 4}, r"start_heading must be 0 east, .*, got 4"),
    "goal outside": ({"goals": [(0, -1)]}, r"the goal \(0, -1\) is outside the maze of 2 x 3"),
    "no goals": ({"goals": []}, "at least one goal, got none"),
    "start closed in": (
        {"horizontal": changed(HORIZONTAL, 1, 0, 1)},
        r"the start, cell \(1, 0\), has walls on all four sides",
    ),
    "goal unreachable": (
        {"goals": [(0, 1), (0, 2)]},
        r"the goal \(0, 2\) cannot be reached from the start \(1, 0\): of 6 cells 3 can",
    ),
    "shapes": (
        {"vertical": np.ones((2, 3))},
        r"shape \(rows \+ 1, cols\) and vertical \(rows, cols \+ 1\), got \(3, 3\) and \(2, 3\)",
    ),
    "dimensions": ({"vertical": [1, 1]}, r"two dimensions, got shapes \(\(3, 3\), \(2,\)\)"),
    "too large": (
        {"horizontal": np.ones((3, 33)), "vertical": np.ones((2, 34))},
        "1 to 32 rows and columns of cells, got 2 x 33",
    ),
    "thickness": ({"wall_thickness_m": 0.2}, "0 < wall_thickness_m < cell_size_m, got"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_maze_that_no_mouse_can_run_is_refused(changes, message):
    with pytest.raises(MazeError, match=message):
        small_maze(**changes)


def test_walls_from_cells_are_those_around_each_cell():
    maze = random_maze(5, 9, 7)
    assert Maze.from_cells(maze.cell_walls()) == maze


@pytest.mark.parametrize(
    ("cell", "bit", "message"),
    [
        (
            (1, 1),
            2,
            r"cell \(1, 1\) has a wall on its east side, but cell \(1, 2\) has none on its west",
        ),
        (
            (2, 1),
            1,
            r"cell \(2, 1\) has a wall on its north side, but cell \(1, 1\) has none on its south",
        ),
        ((0, 0), 16, r"cell \(0, 0\) has the walls 25; expected 0 to 15"),
    ],
)
def test_walls_that_disagree_are_refused(cell, bit, message):
    walls = Maze.empty(3, 3).cell_walls()
    walls[cell] += bit
    with pytest.raises(MazeError, match=message):
        Maze.from_cells(walls)
    with pytest.raises(MazeError, match="array of integers of shape"):
        Maze.from_cells(walls * 1.0)


def test_a_quarter_turn_takes_the_west_to_the_north():
    maze = small_maze()
    turned = maze.rotated(1)
    assert (turned.rows, turned.cols) == (3, 2)
    assert turned.start == (0, 0)
    assert turned.start_heading == EAST
    for row in range(maze.rows):
        for col in range(maze.cols):
            for heading in range(4):
                wall = maze.has_wall((row, col), heading)
                assert turned.has_wall((col, 1 - row), (heading + 1) % 4) == wall


@pytest.mark.parametrize("shape", [(5, 5), (4, 9)])
def test_four_quarter_turns_change_nothing(shape):
    maze = random_maze(3, *shape)
    assert maze.rotated(4) == maze
    assert maze.rotated(1).rotated(1) == maze.rotated(2)
    assert maze.rotated(-1) == maze.rotated(3)
    assert maze.rotated(1) != maze


def test_text_draws_posts_walls_start_and_goal():
    assert maze_text(small_maze()) == (
        "o---o---o---o\n| G     |   |\no   o---o   o\n| S |       |\no---o---o---o\n"
    )
    assert repr(small_maze(name="x")) == (
        "Maze('x', 2 x 3 cells, start (1, 0) facing north, goals ((0, 0),))"
    )
