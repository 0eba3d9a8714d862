"""Smartmouse's `.mz`: walls drawn with two characters per cell."""

import numpy as np

from mime.maze.formats.shared import (
    SIZE,
    Goals,
    build,
    refuse_character,
    refuse_goals,
    refuse_start,
    refuse_unless_sixteen,
    split_lines,
    stem,
)
from mime.maze.grid import EAST, MazeError
from mime.maze.maze import Maze


def parse_mz(text: str, goals: Goals = None, source: str = "<mz>") -> Maze:
    """Smartmouse: 16 lines of 33 characters, row 0 on top; start (0, 0), facing east.

    A cell is two characters, `|` for a wall to its west and `_` for one to its south; a last `|`
    closes the line. The north boundary is not in the file. Where no wall stands to the west, `_` or
    a blank does: the first continues the line of the walls beside it.
    """
    lines = split_lines(text)
    if len(lines) != SIZE:
        raise MazeError(f"{source}: has {len(lines)} lines, expected {SIZE}, one for each row")
    horizontal, vertical = np.ones((SIZE + 1, SIZE), bool), np.ones((SIZE, SIZE + 1), bool)
    for row, line in enumerate(lines):
        if len(line) != 2 * SIZE + 1:
            raise MazeError(
                f"{source}: line {row + 1} (row {row}) has {len(line)} characters, expected "
                f"{2 * SIZE + 1}: two for each of {SIZE} cells, and a last '|'"
            )
        for k, character in enumerate(line):
            known = "| _" if k % 2 == 0 else "_ "
            if character not in known:
                refuse_character(source, row + 1, k + 1, (row, k // 2), character, known)
        vertical[row] = [character == "|" for character in line[::2]]
        horizontal[row + 1] = [character == "_" for character in line[1::2]]
    return build(
        source,
        lambda cell: f"line {cell[0] + 1}",
        lambda: Maze(horizontal, vertical, (0, 0), EAST, goals, name=stem(source)),
    )


def format_mz(maze: Maze) -> str:
    """The contents of a `.mz` file."""
    refuse_unless_sixteen(maze, ".mz")
    refuse_start(maze, ".mz", (0, 0), EAST)
    refuse_goals(maze, ".mz")
    lines = []
    for row in range(SIZE):
        pairs = zip(maze.vertical[row], maze.horizontal[row + 1])
        cells = [("|" if west else "_") + ("_" if south else " ") for west, south in pairs]
        lines.append("".join(cells) + "|\n")
    return "".join(lines)
