"""The outline of a mouse, and which outlines and walls can be tested against each other."""

import math

import numpy as np

DEFAULT_OUTLINE_M = (
    *((-0.04, 0.0375), (-0.04, -0.0375), (0.03, -0.0375), (0.05, -0.022)),
    *((0.06, -0.008), (0.06, 0.008), (0.05, 0.022), (0.03, 0.0375)),
)
"""Vertices [forward, right] about the axle's midpoint: 0.1 m long, 0.075 m wide, 0.061 m around."""


def largest_radius(cell_m: float, wall_thickness_m: float) -> float:
    """A body within cell/2 - thickness/sqrt(2) of its axle can reach no post but the nearest."""
    return 0.5 * cell_m - wall_thickness_m / math.sqrt(2.0)


def problem(outline: np.ndarray, cell_m: float, wall_thickness_m: float) -> str | None:
    """What is wrong with an outline, or None."""
    if outline.ndim != 2 or outline.shape[1] != 2 or len(outline) < 3:
        return f"outline_m must be (P, 2), P >= 3, got {outline.shape}"
    step = np.roll(outline, -1, axis=0) - outline
    following = np.roll(step, -1, axis=0)
    turns = step[:, 0] * following[:, 1] - step[:, 1] * following[:, 0]
    sides = outline[:, 0] * step[:, 1] - outline[:, 1] * step[:, 0]
    signs = np.sign(np.concatenate([turns, sides]))
    if signs[0] == 0 or np.any(signs != signs[0]):
        return (
            f"outline_m must be a convex polygon, its vertices in order and the axle's midpoint "
            f"(0, 0) inside, got {outline.tolist()}"
        )
    radius = float(np.max(np.hypot(outline[:, 0], outline[:, 1])))
    allowed = largest_radius(cell_m, wall_thickness_m)
    if radius > allowed:
        return (
            f"outline_m reaches {radius:.4g} m from the axle's midpoint, at most "
            f"cell_size_m / 2 - wall_thickness_m / sqrt(2) = {allowed:.4g} m is possible, so that "
            f"it touches one post at a time. Make it smaller or the cells larger"
        )
    return None


def walls_problem(horizontal: tuple[int, ...], vertical: tuple[int, ...]) -> str | None:
    """What is wrong with the shapes of the walls, or None."""
    rows, columns = (*vertical, 0)[0], (*horizontal, 0, 0)[1]
    fit = (horizontal, vertical) == ((rows + 1, columns), (rows, columns + 1))
    if fit and rows > 0 and columns > 0:
        return None
    return (
        f"horizontal_walls must be (rows + 1, cols) and vertical_walls (rows, cols + 1), "
        f"got {horizontal} and {vertical}"
    )
