"""Motion of a planar body along an arc, exact and without a branch on "straight".

x points right (columns), y down (rows), headings turn clockwise: with y down, the ordinary formulas
of cosine and sine hold as they stand.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

_SERIES = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(1, 9))
"""sin(a)/a = 1 + a² (_SERIES[0] + a² (_SERIES[1] + ...))"""
_SERIES_BELOW = 0.5
"""There the first term left out, a^18 / 19!, is below double precision, as is its curvature."""


class PlanarPose(NamedTuple):
    """Position in the maze's frame [m] and heading [rad, clockwise from x]."""

    x: Any
    y: Any
    heading: Any


class BodyVelocity(NamedTuple):
    """Velocity of the axle's midpoint in the body's frame.

    v forward, u to the right [m/s], w clockwise [rad/s].
    """

    v: Any
    u: Any
    w: Any


def sinc(a: Any) -> Any:
    """sin(a) / a

    By its series near zero, so that value and all derivatives are right there, in single precision
    too: `jnp.sinc` cancels in its derivative near zero.
    """
    near = jnp.abs(a) < _SERIES_BELOW
    a2 = jnp.where(near, a, 0.0) ** 2
    series: Any = 0.0
    for coefficient in reversed(_SERIES):
        series = a2 * (coefficient + series)
    far = jnp.where(near, 1.0, a)
    return jnp.where(near, 1.0 + series, jnp.sin(far) / far)


def move_along_arc(pose: PlanarPose, velocity: BodyVelocity, dt: Any) -> PlanarPose:
    """x += dt sinc(a) (v cos(theta + a) - u sin(theta + a)),   a = w dt / 2
    y += dt sinc(a) (v sin(theta + a) + u cos(theta + a)),   theta += 2 a

    Exact for a velocity that is constant in the body's frame: an arc, a spin or a straight.
    """
    v, u, w = velocity
    a = 0.5 * w * dt
    chord = dt * sinc(a)
    cos, sin = jnp.cos(pose.heading + a), jnp.sin(pose.heading + a)
    return PlanarPose(
        pose.x + chord * (v * cos - u * sin),
        pose.y + chord * (v * sin + u * cos),
        pose.heading + w * dt,
    )


def radius_of_curvature(left_speed: Any, right_speed: Any, track_width: Any) -> Any:
    """R = W (v_r + v_l) / (2 (v_l - v_r)): from the axle's midpoint to the centre it turns about.

    Positive when the centre lies to the right, infinite on a straight, 0 in a spin, NaN at rest.
    Nothing in MIME moves by it: `move_along_arc` needs no such division.
    """
    return track_width * (right_speed + left_speed) / (2.0 * jnp.subtract(left_speed, right_speed))


def centre_of_curvature(pose: PlanarPose, radius: Any) -> tuple[Any, Any]:
    """(x - R sin(theta), y + R cos(theta)): the point about which a body of that pose turns."""
    x, y, heading = pose
    return x - radius * jnp.sin(heading), y + radius * jnp.cos(heading)
