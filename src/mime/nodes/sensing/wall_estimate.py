"""Where the walls are, from range readings.

    p_i = (x_i + d_i cos t_i, y_i + d_i sin t_i)
    yaw = -atan2(p2y - p1y, p2x - p1x),   distance = |p2x p1y - p2y p1x| / |p2 - p1|

A sensor is (forward x_i, right y_i, angle t_i clockwise) on the body; d_i is what it reads.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Number = float | Float[Any, ""]
SensorPose = Float[Any, "3"] | tuple[Number, Number, Number]


class WallEstimate(NamedTuple):
    """A straight wall seen from the body."""

    yaw: Float[Array, ""]
    """rad, the body's heading against the wall's direction, clockwise; 0 is parallel."""
    distance: Float[Array, ""]
    """m, from the body's origin to the wall's line."""


class FrontWall(NamedTuple):
    """What a wall ahead tells about the place along a cell."""

    axle_to_face: Float[Array, ""]
    """m, from the body's origin (the axle) to the face, along the face's normal."""
    offset: Float[Array, ""]
    """m, from the cell's centre to the axle, towards the wall; within half a cell."""
    valid: Bool[Array, ""]
    """The reading lies strictly inside the sensor's range."""


def estimate_wall(
    first_pose: SensorPose,
    second_pose: SensorPose,
    first_reading_m: Number,
    second_reading_m: Number,
) -> WallEstimate:
    """The line through what two sensors on the same side see, the rear one first.

    With the two exchanged the yaw turns by pi. Two equal points make no line: yaw 0, the distance
    is theirs, gradients are 0.
    """
    p1x, p1y = _point(first_pose, first_reading_m)
    p2x, p2y = _point(second_pose, second_reading_m)
    along_x, along_y = p2x - p1x, p2y - p1y
    squared = along_x**2 + along_y**2
    line = squared > 0
    length = jnp.sqrt(jnp.where(line, squared, 1.0))
    yaw = -jnp.arctan2(jnp.where(line, along_y, 0.0), jnp.where(line, along_x, 1.0))
    apart = p1x**2 + p1y**2
    to_point = jnp.sqrt(jnp.where(line | (apart == 0), 1.0, apart)) * (apart > 0)
    distance = jnp.abs(p2x * p1y - p2y * p1x) / length
    return WallEstimate(yaw, jnp.where(line, distance, to_point))


def front_wall(
    pose: SensorPose,
    reading_m: Number,
    cell_size_m: Number,
    wall_thickness_m: Number,
    min_range_m: Number,
    max_range_m: Number,
    heading_error_rad: Number = 0.0,
) -> FrontWall:
    """D = p_x cos e - p_y sin e,   p the point that is seen: the place along the cell by the wall.

    e is the heading against the wall's normal, clockwise. The face stands half a cell less half a
    thickness from the centre of the cell before it, so the axle is (cell - thickness) / 2 - D ahead
    of that centre: whole cells are taken off, since the wall may be that of a cell further on.
    """
    x, y = _point(pose, reading_m)
    e = jnp.asarray(heading_error_rad)
    D = x * jnp.cos(e) - y * jnp.sin(e)
    ahead = 0.5 * (cell_size_m - wall_thickness_m) - D
    valid = jnp.asarray((reading_m > min_range_m) & (reading_m < max_range_m))
    return FrontWall(D, ahead - cell_size_m * jnp.round(ahead / cell_size_m), valid)


def _point(pose: Any, reading: Any) -> tuple[Any, Any]:
    x, y, t = pose
    return x + reading * jnp.cos(t), y + reading * jnp.sin(t)
