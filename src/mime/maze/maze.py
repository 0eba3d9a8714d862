"""The maze itself: which walls stand, where the mouse starts, where it has to go."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from mime.core.arguments import instance, numbers, real, several
from mime.maze.checks import as_cell, as_heading, check_agreement, check_maze, check_shapes
from mime.maze.grid import (
    EAST,
    EAST_BIT,
    HEADING_NAMES,
    NORTH,
    NORTH_BIT,
    SOUTH,
    SOUTH_BIT,
    STEPS,
    WEST_BIT,
    Cell,
    MazeError,
    default_goals,
)


@dataclass(frozen=True, eq=False, init=False)
class Maze:
    """Walls on a grid of square cells.   x = (column + 1/2) cell,  y = (row + 1/2) cell

    Rows count down from the north, columns to the right from the west; headings are quarter turns
    clockwise: 0 east, 1 south, 2 west, 3 north. The origin is the centre of the north-west post,
    so walls stand astride the lines x, y = k cell_size_m.
    """

    horizontal: Bool[np.ndarray, "rows+1 cols"]
    """[r, c]: a wall on the north edge of cell (r, c); [rows, c]: on the south boundary."""
    vertical: Bool[np.ndarray, "rows cols+1"]
    """[r, c]: a wall on the west edge of cell (r, c); [r, cols]: on the east boundary."""
    start: Cell
    start_heading: int
    goals: tuple[Cell, ...]
    cell_size_m: float
    wall_thickness_m: float
    name: str

    def __init__(
        self,
        horizontal: Any,
        vertical: Any,
        start: Any = None,
        start_heading: Any = NORTH,
        goals: Iterable[Any] | None = None,
        cell_size_m: float = 0.18,
        wall_thickness_m: float = 0.012,
        name: str = "",
    ):
        """Without `start` the south-west corner, without `goals` the centre (`default_goals`)."""
        set_field = object.__setattr__.__get__(self)
        for field, walls in (("horizontal", horizontal), ("vertical", vertical)):
            array = np.array(numbers(field, walls), dtype=bool)
            array.setflags(write=False)
            set_field(field, array)
        check_shapes(self.horizontal, self.vertical)
        start = (self.rows - 1, 0) if start is None else start
        goals = default_goals(self.rows, self.cols) if goals is None else goals
        set_field("start", as_cell(start, "start"))
        set_field("start_heading", as_heading(start_heading))
        set_field(
            "goals", tuple(sorted({as_cell(goal, "a goal") for goal in several("goals", goals)}))
        )
        set_field("cell_size_m", real("cell_size_m", cell_size_m, "m"))
        set_field("wall_thickness_m", real("wall_thickness_m", wall_thickness_m, "m"))
        set_field("name", instance("name", name, str))
        check_maze(self)

    @classmethod
    def empty(cls, rows: int, cols: int, **fields: Any) -> "Maze":
        """A maze that has no wall but the boundary."""
        horizontal = np.zeros((rows + 1, cols), bool)
        vertical = np.zeros((rows, cols + 1), bool)
        if rows and cols:
            horizontal[[0, -1]] = vertical[:, [0, -1]] = True
        return cls(horizontal, vertical, **fields)

    @classmethod
    def from_cells(cls, cell_walls: Any, **fields: Any) -> "Maze":
        """The maze of cells with these walls: bits N = 1, E = 2, S = 4, W = 8, shape (rows, cols).

        Each inner wall is given twice, from both sides, and both have to agree.
        """
        walls = np.asarray(cell_walls)
        if walls.ndim != 2 or not np.issubdtype(walls.dtype, np.integer):
            raise MazeError(
                f"cell_walls must be an array of integers of shape (rows, cols), got {walls.dtype} "
                f"of shape {walls.shape}"
            )
        for row, col in np.argwhere((walls < 0) | (walls > 15)).tolist():
            raise MazeError(
                f"cell {(row, col)} has the walls {walls[row, col]}; expected 0 to 15, the sum of "
                "N = 1, E = 2, S = 4, W = 8",
                (row, col),
            )
        north, east, south, west = ((walls & bit) > 0 for bit in (1, 2, 4, 8))
        check_agreement(south[:-1], north[1:], SOUTH)
        check_agreement(east[:, :-1], west[:, 1:], EAST)
        return cls(np.vstack([north, south[-1:]]), np.hstack([west, east[:, -1:]]), **fields)

    @property
    def rows(self) -> int:
        """Number of rows of cells."""
        return self.vertical.shape[0]

    @property
    def cols(self) -> int:
        """Number of columns of cells."""
        return self.horizontal.shape[1]

    def has_wall(self, cell: Cell, heading: int) -> bool:
        """True when a wall stands on the side of `cell` that `heading` points to."""
        (row, col), (down, right) = cell, STEPS[heading % 4]
        self._check_inside(cell)
        if right:
            return bool(self.vertical[row, col + (right > 0)])
        return bool(self.horizontal[row + (down > 0), col])

    def walls_around(self, cell: Cell) -> tuple[bool, bool, bool, bool]:
        """The walls to the east, south, west and north, by heading."""
        east, south, west, north = (self.has_wall(cell, heading) for heading in range(4))
        return east, south, west, north

    def neighbour(self, cell: Cell, heading: int) -> Cell | None:
        """The next cell that way, with or without a wall between; None beyond the boundary."""
        self._check_inside(cell)
        row, col = (a + b for a, b in zip(cell, STEPS[heading % 4]))
        return (row, col) if self.contains((row, col)) else None

    def contains(self, cell: Cell) -> bool:
        """True when there is such a cell."""
        return 0 <= cell[0] < self.rows and 0 <= cell[1] < self.cols

    def cell_centre_m(self, cell: Cell) -> tuple[float, float]:
        """(x, y) of the centre of a cell, in m from the centre of the north-west post."""
        self._check_inside(cell)
        return (cell[1] + 0.5) * self.cell_size_m, (cell[0] + 0.5) * self.cell_size_m

    def cell_walls(self) -> Int[np.ndarray, "rows cols"]:
        """The walls around each cell as bits N = 1, E = 2, S = 4, W = 8; see `from_cells`."""
        h, v = self.horizontal.astype(int), self.vertical.astype(int)
        return h[:-1] * NORTH_BIT + v[:, 1:] * EAST_BIT + h[1:] * SOUTH_BIT + v[:, :-1] * WEST_BIT

    def goal_mask(self) -> Bool[np.ndarray, "rows cols"]:
        """True at the goals: targets for `flood_fill`."""
        mask = np.zeros((self.rows, self.cols), bool)
        mask[tuple(zip(*self.goals))] = True
        return mask

    def wall_parameters(self) -> dict[str, Float[np.ndarray, "_ _"]]:
        """The walls as 0.0 and 1.0: parameters of the nodes that meet them."""
        return {
            "horizontal_walls": self.horizontal.astype(float),
            "vertical_walls": self.vertical.astype(float),
        }

    def rotated(self, quarter_turns: int) -> "Maze":
        """The maze turned clockwise, with its start, heading and goals."""
        k = quarter_turns % 4
        horizontal, vertical, start, goals = self.horizontal, self.vertical, self.start, self.goals
        for _ in range(k):
            rows = vertical.shape[0]
            start, *turned = ((col, rows - 1 - row) for row, col in (start, *goals))
            goals = tuple(turned)
            horizontal, vertical = np.rot90(vertical, -1), np.rot90(horizontal, -1)
        heading = (self.start_heading + k) % 4
        sizes = self.cell_size_m, self.wall_thickness_m
        return Maze(horizontal, vertical, start, heading, goals, *sizes, self.name)

    def same_walls(self, other: "Maze") -> bool:
        """True when the same walls stand, wherever start and goals are."""
        return np.array_equal(self.horizontal, other.horizontal) and np.array_equal(
            self.vertical, other.vertical
        )

    def __eq__(self, other: object) -> bool:
        """Same walls, start, heading, goals and dimensions; the name does not matter."""
        if not isinstance(other, Maze):
            return NotImplemented
        return self.same_walls(other) and self._rest() == other._rest()

    def __hash__(self) -> int:
        return hash((self.horizontal.tobytes(), self.vertical.tobytes(), self._rest()))

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return (
            f"Maze({name}{self.rows} x {self.cols} cells, start {self.start} facing "
            f"{HEADING_NAMES[self.start_heading]}, goals {self.goals})"
        )

    def _rest(self) -> tuple[Any, ...]:
        dimensions = self.cell_size_m, self.wall_thickness_m
        return self.start, self.start_heading, self.goals, dimensions

    def _check_inside(self, cell: Cell) -> None:
        if not self.contains(cell):
            raise MazeError(f"cell {tuple(cell)} is not in a maze of {self.rows} x {self.cols}")
