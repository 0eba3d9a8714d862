"""Mazes for people: on paper to scale, and in the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mime.maze.belief import UNKNOWN, WALL, Belief
from mime.maze.grid import STEPS, Cell, walls_as_text
from mime.maze.maze import Maze

Point = tuple[float, float]


def maze_text(
    maze: Maze, marks: Mapping[Cell, object] | None = None, belief: Belief | None = None
) -> str:
    """The maze in lines of text: posts `o`, walls `---` and `|`, start `S`, goals `G`.

    `marks` go into their cells instead, three characters at most: distances, say. With a `belief`
    what it knows is shown, and `. .` and `:` where it does not.
    """
    shown = dict.fromkeys(maze.goals, "G") | {maze.start: "S"}
    shown |= {cell: str(mark) for cell, mark in (marks or {}).items()}
    horizontal, vertical = _edges(maze, belief)
    across, along = np.array(["   ", ". .", "---"]), np.array([" ", ":", "|"])
    return walls_as_text(across[horizontal], along[vertical], shown)


def draw(
    maze: Maze,
    axes: Any = None,
    *,
    belief: Belief | None = None,
    route: Sequence[Cell] | None = None,
    distances: Any = None,
    wall_colour: str = "tab:red",
) -> Any:
    """Draw a maze with matplotlib, to scale and with row 0 on top; returns the axes.

    With a `belief` only walls that it knows are solid, and dotted lines stand where it does not
    know. `route`: cells to join by a line. `distances`: (rows, cols), written into the cells.
    """
    import matplotlib.pyplot as plt  # takes a second to import, and few need it
    from matplotlib.collections import LineCollection, PatchCollection

    axes = plt.subplots(figsize=(6, 6))[1] if axes is None else axes
    size, thickness = maze.cell_size_m, maze.wall_thickness_m
    horizontal, vertical = _edges(maze, belief)
    for cells, colour, label in (
        (maze.goals, "tab:green", "goal"),
        ([maze.start], "tab:blue", "start"),
    ):
        shaded = [_box(maze.cell_centre_m(cell), size, size) for cell in cells]
        axes.add_collection(PatchCollection(shaded, color=colour, alpha=0.25, label=label))
    unknown = list(_lines(horizontal == _DOUBT, vertical == _DOUBT, size))
    if unknown:
        axes.add_collection(
            LineCollection(unknown, colors="0.6", linestyles="dotted", label="unknown")
        )
    walls = [
        _box(((x0 + x1) / 2, (y0 + y1) / 2), x1 - x0 + thickness, y1 - y0 + thickness)
        for (x0, y0), (x1, y1) in _lines(horizontal == _STANDS, vertical == _STANDS, size)
    ]
    axes.add_collection(PatchCollection(walls, color=wall_colour, linewidth=0, label="walls"))
    posts = [
        _box((col * size, row * size), thickness, thickness)
        for row in range(maze.rows + 1)
        for col in range(maze.cols + 1)
    ]
    axes.add_collection(PatchCollection(posts, color="0.2", linewidth=0, label="posts"))
    x, y = maze.cell_centre_m(maze.start)
    down, right = STEPS[maze.start_heading]
    arrow = {"head_width": size / 5, "length_includes_head": True, "color": "tab:blue"}
    axes.arrow(x, y, 0.35 * size * right, 0.35 * size * down, **arrow)
    if route is not None:
        points = [maze.cell_centre_m(cell) for cell in route]
        axes.plot(*zip(*points), color="tab:orange", linewidth=2, label="route")
    if distances is not None:
        for (row, col), distance in np.ndenumerate(np.asarray(distances)):
            at = maze.cell_centre_m((row, col))
            axes.text(*at, f"{distance:g}", ha="center", va="center", fontsize=7)
    margin = 0.25 * size
    axes.set(
        xlim=(-margin, maze.cols * size + margin),
        ylim=(maze.rows * size + margin, -margin),
        aspect="equal",
        xlabel="x / m",
        ylabel="y / m",
        title=maze.name,
    )
    return axes


_FREE, _DOUBT, _STANDS = range(3)


def _edges(maze: Maze, belief: Belief | None) -> tuple[np.ndarray, np.ndarray]:
    """Tell of each edge whether it is `_FREE`, in `_DOUBT` or `_STANDS` (a wall)."""
    if belief is None:
        return _STANDS * maze.horizontal.astype(int), _STANDS * maze.vertical.astype(int)
    horizontal, vertical = (np.asarray(edges) for edges in belief)
    if (horizontal.shape, vertical.shape) != (maze.horizontal.shape, maze.vertical.shape):
        raise ValueError(
            f"the belief has {vertical.shape[0]} x {horizontal.shape[1]} cells and the maze "
            f"{maze.rows} x {maze.cols}; expected the same"
        )
    horizontal, vertical = (
        np.select([edges == UNKNOWN, edges == WALL], [_DOUBT, _STANDS], _FREE)
        for edges in (horizontal, vertical)
    )
    return horizontal, vertical


def _lines(
    horizontal: np.ndarray, vertical: np.ndarray, size: float
) -> Iterator[tuple[Point, Point]]:
    """The lines from post to post where an edge is true."""
    for row, col in np.argwhere(horizontal).tolist():
        yield (col * size, row * size), ((col + 1) * size, row * size)
    for row, col in np.argwhere(vertical).tolist():
        yield (col * size, row * size), (col * size, (row + 1) * size)


def _box(centre: Point, width: float, height: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((centre[0] - width / 2, centre[1] - height / 2), width, height)
