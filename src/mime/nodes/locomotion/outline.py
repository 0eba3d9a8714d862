"""Which outlines and walls can be tested against each other."""

import math
from collections.abc import Iterator

import numpy as np

from mime.core.problem import Problem


def outline_problems(
    outline_m: np.ndarray, cell_size_m: float, wall_thickness_m: float
) -> Iterator[Problem]:
    """What is wrong with an outline.

    A body within cell/2 - thickness/sqrt(2) of its axle can reach no post but the nearest.
    """
    place = ("outline_m",)
    if outline_m.ndim != 2 or outline_m.shape[1] != 2 or len(outline_m) < 3:
        yield Problem(place, f"must be (P, 2), P >= 3, got {outline_m.shape}")
        return
    step = np.roll(outline_m, -1, axis=0) - outline_m
    following = np.roll(step, -1, axis=0)
    turns = step[:, 0] * following[:, 1] - step[:, 1] * following[:, 0]
    sides = outline_m[:, 0] * step[:, 1] - outline_m[:, 1] * step[:, 0]
    signs = np.sign(np.concatenate([turns, sides]))
    if signs[0] == 0 or np.any(signs != signs[0]):
        expected = "a convex polygon, vertices in order, the axle's midpoint (0, 0) inside"
        yield Problem(place, f"must be {expected}, got {outline_m.tolist()}")
    radius = float(np.max(np.hypot(outline_m[:, 0], outline_m[:, 1])))
    allowed = 0.5 * cell_size_m - wall_thickness_m / math.sqrt(2.0)
    if radius > allowed:
        message = f"reaches {radius:.4g} m from the axle's midpoint; at most cell_size_m / 2 - "
        message += f"wall_thickness_m / sqrt(2) = {allowed:.4g} m lets it touch one post at a time"
        yield Problem(place, message, "Make it smaller, or the cells larger")


def wall_problems(horizontal: tuple[int, ...], vertical: tuple[int, ...]) -> Iterator[Problem]:
    """What is wrong with the shapes of the walls."""
    rows, columns = (*vertical, 0)[0], (*horizontal, 0, 0)[1]
    fit = (horizontal, vertical) == ((rows + 1, columns), (rows, columns + 1))
    if not (fit and rows > 0 and columns > 0):
        yield Problem(
            ("horizontal_walls",),
            f"must be (rows + 1, cols) and vertical_walls (rows, cols + 1), got {horizontal} and "
            f"{vertical}",
        )
