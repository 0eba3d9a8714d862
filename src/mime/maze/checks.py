"""The checks that every maze has to pass."""

import operator
from typing import Any

import numpy as np
from jaxtyping import Bool

from mime.maze.grid import EAST, HEADING_NAMES, MAX_SIZE, NORTH, SOUTH, STEPS, WEST, Cell, MazeError


def as_cell(value: Any, what: str) -> Cell:
    """Two integers, or a refusal that says what they should be."""
    try:
        row, col = (operator.index(x) for x in value)
    except (TypeError, ValueError):
        raise MazeError(f"{what} must be (row, column), two integers, got {value!r}") from None
    return row, col


def as_heading(value: Any) -> int:
    """A heading from 0 to 3, or a refusal."""
    try:
        heading = operator.index(value)
    except TypeError:
        heading = -1
    if not 0 <= heading < 4:
        raise MazeError(f"start_heading must be 0 east, 1 south, 2 west or 3 north, got {value!r}")
    return heading


def check_shapes(horizontal: np.ndarray, vertical: np.ndarray) -> None:
    """Refuse arrays that do not belong to one grid."""
    shapes = horizontal.shape, vertical.shape
    if horizontal.ndim != 2 or vertical.ndim != 2:
        raise MazeError(f"walls must be arrays of two dimensions, got shapes {shapes}")
    rows, cols = vertical.shape[0], horizontal.shape[1]
    if shapes != ((rows + 1, cols), (rows, cols + 1)):
        raise MazeError(
            "horizontal must have the shape (rows + 1, cols) and vertical (rows, cols + 1), got "
            f"{shapes[0]} and {shapes[1]}"
        )
    if not (1 <= rows <= MAX_SIZE and 1 <= cols <= MAX_SIZE):
        raise MazeError(
            f"a maze has 1 to {MAX_SIZE} rows and columns of cells, got {rows} x {cols}"
        )


def check_maze(maze: Any) -> None:
    """Refuse a maze that no mouse could run in, and name the cell and the side."""
    if not 0 < maze.wall_thickness_m < maze.cell_size_m:
        raise MazeError(
            "expected 0 < wall_thickness_m < cell_size_m, got a thickness of "
            f"{maze.wall_thickness_m:g} m and cells of {maze.cell_size_m:g} m"
        )
    _check_boundary(maze)
    size = f"the maze of {maze.rows} x {maze.cols}"
    if not maze.contains(maze.start):
        raise MazeError(f"the start {maze.start} is outside {size}")
    if not maze.goals:
        raise MazeError("a maze needs at least one goal, got none")
    for goal in maze.goals:
        if not maze.contains(goal):
            raise MazeError(f"the goal {goal} is outside {size}")
    if maze.rows * maze.cols > 1 and all(maze.walls_around(maze.start)):
        raise MazeError(
            f"the start, cell {maze.start}, has walls on all four sides: the mouse cannot leave "
            "it. Open one of them",
            maze.start,
        )
    reached = _reachable(maze)
    for goal in maze.goals:
        if not reached[goal]:
            raise MazeError(
                f"the goal {goal} cannot be reached from the start {maze.start}: of "
                f"{maze.rows * maze.cols} cells {reached.sum()} can. Open a wall on the way, or "
                "choose other goals",
                goal,
            )


def _reachable(maze: Any) -> Bool[np.ndarray, "rows cols"]:
    down, right = ~maze.horizontal[1:-1], ~maze.vertical[:, 1:-1]
    reached = np.zeros((maze.rows, maze.cols), bool)
    reached[maze.start] = True
    before = 0
    while before < (before := reached.sum()):
        reached[1:] |= reached[:-1] & down
        reached[:-1] |= reached[1:] & down
        reached[:, 1:] |= reached[:, :-1] & right
        reached[:, :-1] |= reached[:, 1:] & right
    return reached


def _check_boundary(maze: Any) -> None:
    last_row, last_col = maze.rows - 1, maze.cols - 1
    for heading, walls in (
        (NORTH, maze.horizontal[0]),
        (WEST, maze.vertical[:, 0]),
        (EAST, maze.vertical[:, -1]),
        (SOUTH, maze.horizontal[-1]),
    ):
        for k in np.flatnonzero(~walls).tolist():
            row = {NORTH: 0, SOUTH: last_row}.get(heading, k)
            col = {WEST: 0, EAST: last_col}.get(heading, k)
            raise MazeError(
                f"the boundary is open on the {HEADING_NAMES[heading]} side of cell {(row, col)}. "
                "Close it: a maze has a wall all round",
                (row, col),
            )


def check_agreement(ours: np.ndarray, theirs: np.ndarray, heading: int) -> None:
    """Refuse walls that one cell sees on its `heading` side and the next one does not."""
    for row, col in np.argwhere(ours != theirs).tolist():
        cell, other = (row, col), (row + STEPS[heading][0], col + STEPS[heading][1])
        side, back = HEADING_NAMES[heading], HEADING_NAMES[(heading + 2) % 4]
        has, has_not = (cell, other) if ours[row, col] else (other, cell)
        its, not_its = (side, back) if ours[row, col] else (back, side)
        raise MazeError(
            f"cell {has} has a wall on its {its} side, but cell {has_not} has none on its "
            f"{not_its} side: it is the same wall. Set both or none",
            cell,
        )
