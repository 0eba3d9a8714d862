"""`.num`: one line of six integers per cell."""

import numpy as np

from mime.maze.formats.shared import Goals, build, refuse_goals, refuse_start, stem
from mime.maze.grid import NORTH, Cell, MazeError
from mime.maze.maze import Maze


def parse_num(text: str, goals: Goals = None, source: str = "<num>") -> Maze:
    """`X Y N E S W` per line: x from the west, y from the south, then 1 for a wall and 0 for none.

    Any size, in any order. The start is the south-west corner, facing north.
    """
    found: dict[Cell, tuple[int, int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            at, walls = _parse_num_line(line, f"{source}: line {number}")
            if at in found:
                raise MazeError(
                    f"{source}: line {number}: the cell x = {at[0]}, y = {at[1]} is in line "
                    f"{found[at][1]} already. Remove one of them"
                )
            found[at] = (walls, number)
    if not found:
        raise MazeError(f"{source}: has no cells, expected lines of 'X Y N E S W'")
    cols, rows = (1 + max(at[axis] for at in found) for axis in (0, 1))
    for x in range(cols):
        for y in range(rows):
            if (x, y) not in found:
                raise MazeError(
                    f"{source}: no line for the cell x = {x}, y = {y}, {(rows - 1 - y, x)} by row "
                    f"and column, in a maze of {rows} x {cols}. Add '{x} {y} N E S W'"
                )
    cells = np.array([[found[x, y][0] for x in range(cols)] for y in reversed(range(rows))])
    return build(
        source,
        lambda cell: f"line {found[cell[1], rows - 1 - cell[0]][1]}",
        lambda: Maze.from_cells(cells, goals=goals, name=stem(source)),
    )


def _parse_num_line(line: str, where: str) -> tuple[Cell, int]:
    try:
        values = [int(word) for word in line.split()]
    except ValueError:
        values = []
    if len(values) != 6:
        raise MazeError(f"{where}: is {line.strip()!r}, expected six integers, 'X Y N E S W'")
    x, y, *walls = values
    if not (0 <= x < 32 and 0 <= y < 32):
        raise MazeError(f"{where}: the cell is x = {x}, y = {y}, expected 0 to 31")
    if not set(walls) <= {0, 1}:
        raise MazeError(
            f"{where}: the walls of the cell x = {x}, y = {y} are {walls}, expected 0 or 1 each"
        )
    return (x, y), sum(wall << bit for bit, wall in enumerate(walls))


def format_num(maze: Maze) -> str:
    """The contents of a `.num` file."""
    refuse_start(maze, ".num", (maze.rows - 1, 0), NORTH)
    refuse_goals(maze, ".num")
    from_south = maze.cell_walls()[::-1]
    lines = []
    for x in range(maze.cols):
        for y in range(maze.rows):
            bits = [int(from_south[y, x]) >> bit & 1 for bit in range(4)]
            lines.append(" ".join(map(str, [x, y, *bits])) + "\n")
    return "".join(lines)
