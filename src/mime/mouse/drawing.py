"""What there is to see of a mouse's mind: walls, where it thinks it is, its route."""

from typing import Any

import numpy as np

from mime.core.drawing import Boxes, Drawing, Frame, Prism, Shape, Value, Walk
from mime.maze.belief import UNKNOWN, WALL
from mime.maze.grid import STEPS
from mime.mouse.body import OUTLINE_M
from mime.nodes.locomotion.drawing import FLOOR, FLOOR_POSE, PLANAR, WALL_HEIGHT_M, wall_boxes

_KNOWN_RGBA, _UNKNOWN_RGBA = (0.95, 0.75, 0.1, 1.0), (0.5, 0.5, 0.55, 0.35)
_GHOST_RGBA, _ROUTE_RGBA = (0.2, 0.8, 0.4, 0.35), (0.1, 0.7, 0.3, 1.0)
_GOAL_RGBA, _START_RGBA = (0.2, 0.7, 0.3, 0.4), (0.2, 0.4, 0.8, 0.4)


def brain_drawing(brain: Any) -> Drawing:
    """Of a `MouseBrainNode`: believed walls as rails on the walls, unknown ones on the floor."""
    rows, cols = brain.goals.shape
    size, thickness = float(brain.cell_size_m), float(brain.wall_thickness_m)
    frames = (
        Frame(FLOOR, pose=FLOOR_POSE),
        Frame("belief", FLOOR, (0.0, 0.0, -WALL_HEIGHT_M, 1.0, 0.0, 0.0, 0.0)),
        Frame("estimate", FLOOR, follow=Value("estimated_pose"), planar=True),
    )
    shapes: list[Shape] = [*_cells(brain, size)]
    for field, horizontal, shape in (
        ("horizontal", True, (rows + 1, cols)),
        ("vertical", False, (rows, cols + 1)),
    ):
        rails = wall_boxes(np.ones(shape, bool), horizontal, size, thickness, 0.008)
        strips = wall_boxes(np.ones(shape, bool), horizontal, size, 0.5 * thickness, 0.002)
        belief: dict[str, Any] = {"layer": "belief", "field": field}
        shapes.append(Boxes("belief", rgba=_KNOWN_RGBA, boxes=rails, at=float(WALL), **belief))
        shapes.append(Boxes(FLOOR, rgba=_UNKNOWN_RGBA, boxes=strips, at=float(UNKNOWN), **belief))
    up = (0.0, 0.0, -0.045, 1.0, 0.0, 0.0, 0.0)
    outline = tuple(tuple(map(float, point)) for point in OUTLINE_M)
    ghost: dict[str, Any] = {"layer": "where it thinks it is", "outline": outline, "height": 0.005}
    shapes.append(Prism("estimate", up, _GHOST_RGBA, **ghost))
    row, col = (int(x) for x in np.asarray(brain.start)[:2])
    start = ((col + 0.5) * size, (row + 0.5) * size, -0.004)
    steps = tuple((right * size, down * size, 0.0) for down, right in STEPS)
    route: dict[str, Any] = {
        "steps": steps,
        "field": "route",
        "count": Value("moves"),
        "what": "route of the race",
    }
    route |= {"start": start, "most": rows * cols}
    shapes.append(Walk(FLOOR, rgba=_ROUTE_RGBA, layer="route", **route))
    names = dict.fromkeys(["estimated_pose", "reference_pose"], PLANAR)
    return Drawing(frames, tuple(shapes), (), names, max(rows, cols) * size)


def _cells(brain: Any, size: float) -> list[Shape]:
    """The goal's cells and the start as plates on the floor."""

    def plate(row: int, col: int) -> tuple[float, ...]:
        return ((col + 0.5) * size, (row + 0.5) * size, -0.0005, 0.9 * size, 0.9 * size, 0.001)

    goals = tuple(plate(row, col) for row, col in np.argwhere(np.asarray(brain.goals) > 0.5))
    start = np.asarray(brain.start)[:2]
    home = (plate(int(start[0]), int(start[1])),)
    return [
        Boxes(FLOOR, rgba=_GOAL_RGBA, layer="goal and start", boxes=goals),
        Boxes(FLOOR, rgba=_START_RGBA, layer="goal and start", boxes=home),
    ]
