"""The community's text: posts, walls, `S` and `G`."""

import numpy as np

from mime.maze.formats.shared import Goals, build, refuse_character, split_lines, stem
from mime.maze.grid import HEADING_NAMES, NORTH, Cell, MazeError, default_goals, walls_as_text
from mime.maze.maze import Maze


def parse_text(text: str, goals: Goals = None, source: str = "<text>") -> Maze:
    """The community's drawing: posts `o` or `+`, walls `---` and `|`, `S` start, `G` goals.

    A line of posts above and below each line of cells, four characters from post to post. The mouse
    faces north; without an `S` it starts in the south-west corner. `goals` overrules the `G`s.
    """
    lines = split_lines(text)
    width = len(lines[0].rstrip()) if lines else 0
    rows, cols = len(lines) // 2, width // 4
    if len(lines) < 3 or len(lines) % 2 == 0:
        raise MazeError(
            f"{source}: has {len(lines)} lines, expected 2 rows + 1: a line of posts above and "
            "below each line of cells"
        )
    if width < 5 or width % 4 != 1:
        raise MazeError(
            f"{source}: line 1 has {width} characters, expected 4 columns + 1, like 'o---o---o'"
        )
    horizontal, vertical = np.zeros((rows + 1, cols), bool), np.zeros((rows, cols + 1), bool)
    starts: list[Cell] = []
    marked: list[Cell] = []
    for number, line in enumerate(lines, 1):
        row, is_cells = divmod(number - 1, 2)
        line = line[:width] if not line[width:].strip() else line
        if len(line) != width:
            raise MazeError(
                f"{source}: line {number} (row {min(row, rows - 1)}) has {len(line)} characters, "
                f"expected {width} as in line 1. Fill it up with blanks, or cut it"
            )
        for k, character in enumerate(line):
            known = (("| ", " ", "SG ", " ") if is_cells else ("o+", "- ", "- ", "- "))[k % 4]
            if character not in known:
                cell = (min(row, rows - 1), min(k // 4, cols - 1))
                refuse_character(source, number, k + 1, cell, character, known)
        if is_cells:
            vertical[row] = [character == "|" for character in line[::4]]
            starts += [(row, col) for col in range(cols) if line[4 * col + 2] == "S"]
            marked += [(row, col) for col in range(cols) if line[4 * col + 2] == "G"]
            continue
        for col in range(cols):
            wall = line[4 * col + 1 : 4 * col + 4]
            if wall not in ("---", "   "):
                raise MazeError(
                    f"{source}: line {number}, cell {(min(row, rows - 1), col)}: the wall is "
                    f"{wall!r}, expected '---' or three blanks"
                )
            horizontal[row, col] = wall == "---"
    if len(starts) > 1:
        numbers = ", ".join(str(2 * row + 2) for row, _ in starts)
        raise MazeError(f"{source}: lines {numbers}: S marks the cells {starts}, expected one")
    goals = (marked or None) if goals is None else goals
    start = starts[0] if starts else None
    return build(
        source,
        lambda cell: f"line {2 * cell[0] + 2}",
        lambda: Maze(horizontal, vertical, start, NORTH, goals, name=stem(source)),
    )


def format_text(maze: Maze) -> str:
    """The contents of a text file."""
    if maze.start_heading != NORTH:
        facing = HEADING_NAMES[maze.start_heading]
        raise MazeError(f"text cannot hold a start that faces {facing}: there it faces north")
    marks = dict.fromkeys(maze.goals, "G")
    if maze.start in maze.goals:
        if maze.goals != default_goals(maze.rows, maze.cols):
            raise MazeError(f"text cannot hold a start that is a goal too, cell {maze.start}")
        marks = {}  # without a G the goals are the centre
    marks[maze.start] = "S"
    horizontal = np.where(maze.horizontal, "---", "   ")
    return walls_as_text(horizontal, np.where(maze.vertical, "|", " "), marks)
