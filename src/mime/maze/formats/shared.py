"""What the formats have in common: places in a file, and refusals."""

from collections.abc import Callable, Iterable
from pathlib import Path

from mime.maze.grid import HEADING_NAMES, Cell, MazeError, default_goals
from mime.maze.maze import Maze

Goals = Iterable[Cell] | None
SIZE = 16
"""Rows and columns in formats that have one size only."""


def split_lines(text: str) -> list[str]:
    """The lines of a text, without blank ones at its end."""
    lines = text.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def build(source: str, locate: Callable[[Cell], str], make: Callable[[], Maze]) -> Maze:
    """The maze, or its refusal with the place in the file."""
    try:
        return make()
    except MazeError as error:
        place = "" if error.cell is None else f"{locate(error.cell)}: "
        raise MazeError(f"{source}: {place}{error}", error.cell) from None


def refuse_character(
    source: str, line: int, column: int, cell: Cell, character: str, known: str
) -> None:
    """Refuse a character: say where it is, and what may stand there."""
    raise MazeError(
        f"{source}: line {line}, character {column}, cell {cell}: got {character!r}, expected "
        + " or ".join(repr(c) for c in known)
    )


def refuse_unless_sixteen(maze: Maze, name: str) -> None:
    """Refuse other mazes than 16 x 16, for formats that have that size only."""
    if (maze.rows, maze.cols) != (SIZE, SIZE):
        raise MazeError(
            f"{name} holds mazes of 16 x 16 cells, this one has {maze.rows} x {maze.cols}. Write "
            "text or .num"
        )


def refuse_start(maze: Maze, name: str, start: Cell, heading: int) -> None:
    """Refuse another start, for formats that have one only."""
    if (maze.start, maze.start_heading) != (start, heading):
        raise MazeError(
            f"{name} holds mazes that start at {start} facing {HEADING_NAMES[heading]}, this one "
            f"starts at {maze.start} facing {HEADING_NAMES[maze.start_heading]}"
        )


def refuse_goals(maze: Maze, name: str) -> None:
    """Refuse goals other than the centre, for formats that do not hold them."""
    if maze.goals != (centre := default_goals(maze.rows, maze.cols)):
        raise MazeError(
            f"{name} holds no goals: they are the centre, {centre}; this maze has {maze.goals}. "
            "Write text"
        )


def stem(source: str) -> str:
    """A name for a maze from the name of its file."""
    return "" if source.startswith("<") else Path(source).stem
