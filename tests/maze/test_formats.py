"""The four file formats: examples cell by cell, and round trips."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maze.samples import EMPTY_MZ, NUM, TEXT
from mime.maze import EAST, NORTH, Maze, maze_text, random_maze, read_maze, write_maze
from mime.maze.formats import (
    FORMATS,
    format_maz,
    format_mz,
    format_num,
    format_text,
    parse_maz,
    parse_mz,
    parse_num,
    parse_text,
)

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(3, 32)
few = settings(max_examples=25, deadline=None)


@given(seeds)
@few
def test_16_by_16_mazes_come_back_from_every_format(seed):
    maze = random_maze(seed)
    assert parse_text(format_text(maze)) == maze
    assert parse_maz(format_maz(maze)) == maze
    assert parse_num(format_num(maze)) == maze
    from_north_west = maze.rotated(1)
    assert parse_mz(format_mz(from_north_west)) == from_north_west


@given(seeds, sizes, sizes)
@few
def test_mazes_of_any_size_come_back_from_text_and_num(seed, rows, cols):
    maze = random_maze(seed, rows, cols)
    assert parse_text(format_text(maze)) == maze
    assert parse_num(format_num(maze)) == maze


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (2, 2), (32, 1)])
def test_a_start_amid_the_default_goals_comes_back(shape):
    maze = Maze.empty(*shape)
    assert parse_text(format_text(maze)) == maze
    assert parse_num(format_num(maze)) == maze


def test_mz_has_west_walls_and_south_walls_two_characters_a_cell():
    lines = list(EMPTY_MZ)
    lines[0] = "| |_" + lines[0][4:]  # cell (0, 1): walls to the west and the south
    lines[2] = "|___  | " + lines[2][8:]  # (2, 0) and (2, 1) to the south, (2, 3) to the west
    maze = parse_mz("\n".join(lines) + "\n")
    expected = Maze.empty(16, 16)
    horizontal, vertical = expected.horizontal.copy(), expected.vertical.copy()
    vertical[0, 1] = vertical[2, 3] = True
    horizontal[1, 1] = horizontal[3, 0] = horizontal[3, 1] = True
    assert np.array_equal(maze.horizontal, horizontal)
    assert np.array_equal(maze.vertical, vertical)
    assert (maze.start, maze.start_heading) == ((0, 0), EAST)
    assert maze.goals == ((7, 7), (7, 8), (8, 7), (8, 8))
    assert maze.walls_around((0, 1)) == (False, True, True, True)
    assert maze.walls_around((1, 1)) == (False, False, False, True)
    assert format_mz(maze).splitlines()[0] == lines[0]


@pytest.mark.parametrize("post", ["o", "+"])
def test_text_is_read_cell_by_cell(post):
    maze = parse_text(TEXT.replace("o", post))
    expected = {  # east, south, west, north
        (0, 0): (False, False, True, True),
        (0, 1): (True, True, False, True),
        (0, 2): (True, False, True, True),
        (1, 0): (True, True, True, False),
        (1, 1): (False, True, True, True),
        (1, 2): (True, True, False, False),
    }
    assert {cell: maze.walls_around(cell) for cell in expected} == expected
    assert (maze.start, maze.start_heading, maze.goals) == ((1, 0), NORTH, ((0, 1),))
    assert format_text(maze) == TEXT


def test_text_without_marks_has_the_centre_for_a_goal():
    maze = parse_text(maze_text(Maze.empty(3, 4)).replace("S", " ").replace("G", " "))
    assert (maze.start, maze.goals) == ((2, 0), ((1, 1), (1, 2)))


def test_blanks_behind_lines_and_empty_lines_at_the_end_do_not_matter():
    spaced = "\r\n".join(line + "  " for line in TEXT.splitlines()) + "\n\n \n"
    assert parse_text(spaced) == parse_text(TEXT)


def test_num_counts_x_from_the_west_and_y_from_the_south():
    shuffled = "\n".join(reversed(NUM.splitlines())) + "\n\n"
    for text in (NUM, shuffled):
        maze = parse_num(text, goals=[(0, 1)])
        assert maze == parse_text(TEXT)
    assert format_num(Maze.empty(1, 2)) == "0 0 1 0 1 1\n1 0 1 1 1 0\n"


def test_maz_counts_columns_from_the_west_and_cells_from_the_south():
    walls = Maze.empty(16, 16).cell_walls()[::-1].T.copy()  # [x, y]
    walls[0, 0] |= 2  # the wall east of the start
    walls[1, 0] |= 8
    walls[3, 5] |= 1  # the wall between y = 5 and y = 6
    walls[3, 6] |= 4
    data = bytes(walls.ravel().tolist())
    assert data[0] == 0x0E
    assert data[16 * 3 + 5] == 0x01
    maze = parse_maz(data)
    assert maze.walls_around((15, 0)) == (True, True, True, False)
    assert maze.walls_around((15, 1)) == (False, True, True, False)
    assert maze.walls_around((10, 3)) == (False, False, False, True)
    assert maze.walls_around((9, 3)) == (False, True, False, False)
    assert maze.horizontal.sum() + maze.vertical.sum() == 64 + 2
    assert format_maz(maze) == data


@pytest.mark.parametrize("kind", FORMATS)
def test_files_are_written_and_read_by_suffix_and_by_contents(kind, tmp_path):
    maze = random_maze(1).rotated(kind == "mz")
    for suffix in FORMATS[kind].suffixes:
        path = tmp_path / f"made{suffix.upper()}"
        write_maze(maze, path)
        assert read_maze(path) == maze
        assert read_maze(path).name == "made"
    other = tmp_path / "made.unknown"
    write_maze(maze, other, format=kind)
    assert read_maze(other) == maze
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_goals_and_dimensions_can_be_given(tmp_path):
    path = tmp_path / "half.txt"
    write_maze(random_maze(1, 32, 32), path)
    maze = read_maze(path, goals=[(0, 0)], cell_size_m=0.09, wall_thickness_m=0.006)
    assert (maze.goals, maze.cell_size_m, maze.wall_thickness_m) == (((0, 0),), 0.09, 0.006)
