"""Cells, headings and sides: what all modules of a maze share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import Travels, shortened

Cell = tuple[int, int]
"""(row, column), from the north-west corner."""

EAST = 0
"""The heading along x; headings count clockwise."""
SOUTH = 1
"""The heading along y."""
WEST = 2
"""The heading against x."""
NORTH = 3
"""The heading against y."""
HEADING_NAMES = ("east", "south", "west", "north")
STEPS: tuple[Cell, ...] = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""(rows, columns) from a cell to its neighbour, by heading."""

MAX_SIZE = 32
NORTH_BIT, EAST_BIT, SOUTH_BIT, WEST_BIT = 1, 2, 4, 8


class MazeError(Travels, ValueError):
    """A maze that no mouse could run in, or a file that holds none."""

    def __init__(self, message: str, cell: Cell | None = None):
        super().__init__(shortened(message))
        self.cell = cell
        """The cell at fault, if it is one."""


def default_goals(rows: int, cols: int) -> tuple[Cell, ...]:
    """The centre: four cells where both sizes are even, one where both are odd, else two."""
    middle_rows, middle_cols = (sorted({(n - 1) // 2, n // 2}) for n in (rows, cols))
    return tuple((row, col) for row in middle_rows for col in middle_cols)


def walls_as_text(horizontal: Any, vertical: Any, marks: Mapping[Cell, str]) -> str:
    """Lines of posts and walls; a wall is the text in the arrays, a mark is centred in its cell."""
    rows, cols = np.shape(horizontal)[0] - 1, np.shape(horizontal)[1]
    lines = []
    for row in range(rows + 1):
        lines.append("o" + "".join(f"{wall}o" for wall in horizontal[row]))
        if row < rows:
            cells = [f"{marks.get((row, col), ''):^3.3}" for col in range(cols)]
            walls = vertical[row]
            lines.append(walls[0] + "".join(f"{c}{w}" for c, w in zip(cells, walls[1:])))
    return "\n".join(lines) + "\n"
