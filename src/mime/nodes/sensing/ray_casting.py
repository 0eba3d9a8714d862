"""Rays in a maze: the distance to the nearest wall face, in closed form.

    d = min over faces ahead of D / |cos(phi)|,   dd/dphi = d tan(phi)

D is the distance from the origin to the line of the face, phi the angle from the face's normal.

Frame: x to the right (columns), y down (rows), angles clockwise. A maze is two arrays of 0 and 1:
`horizontal_walls[r, c]` stands on the line y = r cell beside column c, (rows + 1, cols), and
`vertical_walls[r, c]` on the line x = c cell beside row r, (rows, cols + 1). Walls are `thickness`
thick, centred on their lines; a square post of that size stands on every corner, always.

A ray to +x can enter a wall through the near faces x = c cell - thickness / 2 only, where it meets
either a post or the wall beside one row; the other three directions are alike. So a distance is a
minimum over a fixed number of crossings: no marching, no branches, one gather per crossing.

An origin in a wall or a post, surface included, has distance 0. Outside the maze is free space: a
ray from there sees the maze's outer faces, a ray that leaves through a gap sees nothing more.
Where two faces are equally near the gradient is the mean of both; beyond `max_range_m` it is 0.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mime.core.node import ParameterError

Length = float | Float[Any, ""]
WallArray = Float[Any, "_ _"]


class Crossings(NamedTuple):
    """Where rays cross wall lines; candidates on the last axis, those of vertical walls first.

    A mapping controller that read d on a ray knows: crossings with `distance` < d are open, the
    one at d is a wall, unless `post` says that the ray met a post, which stands there anyway.
    """

    distance: Float[Array, "*rays candidates"]
    """m from the origin to the wall's face; `max_range_m` when the crossing is not `reached`."""
    vertical: Bool[np.ndarray, " candidates"]
    """True: (row, col) is an index of `vertical_walls`; False: of `horizontal_walls`."""
    row: Int[Array, "*rays candidates"]
    col: Int[Array, "*rays candidates"]
    post: Bool[Array, "*rays candidates"]
    """The crossing lies on a post, whether the wall beside it stands or not."""
    reached: Bool[Array, "*rays candidates"]
    """The crossing is in range and in the maze, so (row, col) is an index, or `post` is true."""


def cast_ray(
    origin_xy_m: Float[Any, "*rays 2"],
    angle_rad: float | Float[Any, "*rays"],
    horizontal_walls: WallArray,
    vertical_walls: WallArray,
    cell_size_m: Length,
    wall_thickness_m: Length,
    max_range_m: Length,
    crossings_per_axis: int | None = None,
) -> Float[Array, "*rays"]:
    """Distance [m] from each origin, along its angle, to the nearest face; `max_range_m` if none.

    `crossings_per_axis` is worked out from the lengths; where they are traced, give
    `crossings_within` of their extremes.
    """
    x, y = jnp.unstack(jnp.asarray(origin_xy_m), axis=-1)
    angle = jnp.asarray(angle_rad)
    return cast_direction(
        x,
        y,
        jnp.cos(angle),
        jnp.sin(angle),
        horizontal_walls,
        vertical_walls,
        cell_size_m,
        wall_thickness_m,
        max_range_m,
        crossings_per_axis,
    )


def cast_direction(
    x: Float[Array, "*rays"],
    y: Float[Array, "*rays"],
    dx: Float[Array, "*rays"],
    dy: Float[Array, "*rays"],
    horizontal_walls: WallArray,
    vertical_walls: WallArray,
    cell_size_m: Length,
    wall_thickness_m: Length,
    max_range_m: Length,
    crossings_per_axis: int | None = None,
) -> Float[Array, "*rays"]:
    """`cast_ray` along the unit vectors (dx, dy), for callers that have them already."""
    grid = _grid(cell_size_m, wall_thickness_m, max_range_m, crossings_per_axis, x.dtype)
    rows, cols = _size(horizontal_walls, vertical_walls)
    across_x, across_y = _both_axes(x, y, dx, dy, rows, cols, grid)
    distances = [
        jnp.where(
            crossing.reached & (crossing.post | _stands(walls, crossing.row, crossing.col)),
            crossing.distance,
            grid.max_range,
        )
        for walls, crossing in ((vertical_walls, across_x), (horizontal_walls, across_y))
    ]
    return jnp.min(jnp.minimum(*distances), axis=0)


def crossings(
    origin_xy_m: Float[Any, "*rays 2"],
    angle_rad: float | Float[Any, "*rays"],
    rows: int,
    cols: int,
    cell_size_m: Length,
    wall_thickness_m: Length,
    max_range_m: Length,
    crossings_per_axis: int | None = None,
) -> Crossings:
    """Every wall line that a ray can cross within `max_range_m`, in a maze of rows x cols cells."""
    x, y = jnp.unstack(jnp.asarray(origin_xy_m), axis=-1)
    dx, dy = jnp.cos(jnp.asarray(angle_rad)), jnp.sin(jnp.asarray(angle_rad))
    grid = _grid(cell_size_m, wall_thickness_m, max_range_m, crossings_per_axis, x.dtype)
    both = _both_axes(x, y, dx, dy, rows, cols, grid)
    distance, row, col, post, reached = (
        jnp.moveaxis(jnp.concatenate(parts), 0, -1) for parts in zip(*both)
    )
    distance = jnp.where(reached, distance, grid.max_range)
    vertical = np.repeat([True, False], grid.crossings)
    return Crossings(distance, vertical, row, col, post, reached)


def crossings_within(cell_size_m: Any, wall_thickness_m: Any, max_range_m: Any) -> int:
    """Wall lines of one direction, thickness included, that a ray can meet within `max_range_m`."""
    return math.floor((float(max_range_m) + float(wall_thickness_m)) / float(cell_size_m)) + 1


class _Grid(NamedTuple):
    cell: Any
    thickness: Any
    max_range: Any
    crossings: int


class _Crossing(NamedTuple):
    distance: Any
    row: Any
    col: Any
    post: Any
    reached: Any


def _grid(cell: Any, thickness: Any, max_range: Any, count: int | None, dtype: Any) -> _Grid:
    lengths = (cell, thickness, max_range)
    if count is None:
        if any(isinstance(length, jax.core.Tracer) for length in lengths):
            raise ParameterError(
                "ray casting: cell_size_m, wall_thickness_m or max_range_m is traced, so the "
                "number of crossings cannot be worked out. Give crossings_per_axis = "
                "crossings_within(smallest cell, largest thickness, largest range)"
            )
        count = crossings_within(*lengths)
    cell, thickness, max_range = (jnp.asarray(length, dtype) for length in lengths)
    return _Grid(cell, thickness, max_range, count)


def _size(horizontal_walls: Any, vertical_walls: Any) -> tuple[int, int]:
    (lines, cols), (rows, more) = jnp.shape(horizontal_walls), jnp.shape(vertical_walls)
    if (lines, more) != (rows + 1, cols + 1):
        raise ParameterError(
            f"a maze of R x C cells has horizontal_walls (R + 1, C) and vertical_walls (R, C + 1); "
            f"got {(lines, cols)} and {(rows, more)}"
        )
    return rows, cols


def _both_axes(
    x: Any, y: Any, dx: Any, dy: Any, rows: int, cols: int, grid: _Grid
) -> tuple[_Crossing, _Crossing]:
    """Crossings of vertical and of horizontal lines, on a new first axis of `grid.crossings`."""
    x, y, dx, dy = (jnp.expand_dims(value, 0) for value in (x, y, dx, dy))
    across_x = _crossing(x, y, dx, dy, cols, rows, grid)
    across_y = _crossing(y, x, dy, dx, rows, cols, grid)
    return across_x, across_y._replace(row=across_y.col, col=across_y.row)


def _crossing(p: Any, q: Any, dp: Any, dq: Any, lines: int, cells: int, grid: _Grid) -> _Crossing:
    """The lines across p that are not behind, 0 to `lines`; q runs along them, past `cells` cells.

    With s = sign(dp) the k-th is s m, m = ceil(s p / cell - thickness / 2 cell) + k, from the first
    whose far face is not passed, so that an origin within a wall gives D = 0.
    """
    k = jnp.arange(grid.crossings, dtype=p.dtype).reshape(-1, *(1,) * (p.ndim - 1))
    half = 0.5 * grid.thickness
    forward = dp >= 0
    ahead, slope = jnp.where(forward, p, -p), jnp.abs(dp)
    m = jnp.ceil((ahead - half) / grid.cell) + k
    line = jnp.where(forward, m, -m)
    D = m * grid.cell - half - ahead
    D = jnp.where(D > 0, D, 0.0)
    before_range = grid.max_range * slope > D
    distance = D / jnp.where(before_range & (D > 0), slope, 1.0)

    along = (q + distance * dq) / grid.cell
    cell = jnp.floor(along)
    part, margin = along - cell, half / grid.cell
    low, high = part <= margin, part >= 1.0 - margin
    post = (low & (cell >= 0) & (cell <= cells)) | (high & (cell >= -1) & (cell < cells))
    inside = (line >= 0) & (line <= lines) & (post | ((cell >= 0) & (cell < cells)))
    reached = inside & (before_range | (D == 0))
    return _Crossing(distance, cell.astype(jnp.int32), line.astype(jnp.int32), post, reached)


def _stands(walls: Any, row: Any, col: Any) -> Any:
    """True where the wall stands. Indices beyond the array are clipped; callers mask them."""
    walls = jnp.asarray(walls)
    return walls.at[row, col].get(mode="clip", wrap_negative_indices=False) > 0.5
