"""Legs, the pieces of a mouse's way: straights, curves from edge to edge, turns on the spot.

A leg is driven along its length s(t), an S-curve in time. A curve through a cell turns by a quarter
with the curvature kappa(s) = (pi²/4L) sin(pi s/L), so that the turn rate has no jump:

    theta(s) = (pi/4)(1 - cos(pi s/L)),   L = cell / (sqrt(2) J0(pi/4))

leads exactly from the middle of one side of the cell to the middle of the next.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mime.control.s_curve import SCurve, s_curve

STRAIGHT, CURVE, PIVOT, REST = range(4)

_J0_QUARTER_PI = 0.8516319137048080
CURVE_LENGTH = 1.0 / (math.sqrt(2.0) * _J0_QUARTER_PI)
"""L of a curve, in cells: 0.830. A quarter circle would have 0.785."""
SHARPEST = math.pi**2 / (4.0 * CURVE_LENGTH)
"""The largest curvature of a curve, times the cell."""


class Leg(NamedTuple):
    """One piece of the mouse's way, with its timing."""

    kind: Int[Array, ""]
    turn: Float[Array, ""]
    """+1 to the right (clockwise), -1 to the left, in curves and pivots."""
    length: Float[Array, ""]
    """m, or rad in a pivot."""
    segment_times: Float[Array, "7"]
    jerk: Float[Array, ""]
    v0: Float[Array, ""]
    time: Float[Array, ""]
    """s since its start."""


class Reference(NamedTuple):
    """The pose, speeds and accelerations that the mouse should have now."""

    pose: Float[Array, "3"]
    v: Any
    a: Any
    w: Any
    """Turn rate, rad/s."""
    alpha: Any


def plan(
    kind: Any, turn: Any, length: Any, v0: Any, vf: Any, v_max: Any, a_max: Any, j_max: Any
) -> Leg:
    """A leg from speed v0 to vf; a pivot has angles and turn rates instead, in all arguments."""
    curve = s_curve(length, v_max, a_max, j_max, v0, vf)
    dtype = curve.v0.dtype
    zero = jnp.zeros((), dtype)
    return Leg(
        jnp.asarray(kind, jnp.int32),
        jnp.asarray(turn, dtype),
        jnp.asarray(length, dtype),
        curve.segment_times,
        jnp.asarray(j_max, dtype),
        curve.v0,
        zero,
    )


def is_over(leg: Leg) -> Any:
    """True when its time has passed; a rest never ends."""
    return (leg.time >= jnp.sum(leg.segment_times)) & (leg.kind != REST)


def follow(leg: Leg, pose: Float[Array, "3"], dt: Any, cell_size_m: float) -> tuple[Leg, Reference]:
    """The leg dt later, and the reference then; `pose` is that of the reference before."""
    leg = leg._replace(time=leg.time + dt)
    signs = jnp.array([1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0], leg.jerk.dtype)
    timing = SCurve(
        jnp.ones_like(leg.v0), leg.v0, leg.segment_times, leg.jerk * signs, jnp.bool_(True)
    )
    s, v, a = timing(leg.time)
    s_before = timing(leg.time - dt)[0]
    straight, curve, pivot = (leg.kind == kind for kind in (STRAIGHT, CURVE, PIVOT))
    L = CURVE_LENGTH * cell_size_m
    phase = jnp.pi * s / L
    kappa = leg.turn * (jnp.pi**2 / (4.0 * L)) * jnp.sin(phase)
    kappa_slope = leg.turn * (jnp.pi**3 / (4.0 * L * L)) * jnp.cos(phase)
    turned = leg.turn * (jnp.pi / 4.0) * (jnp.cos(jnp.pi * s_before / L) - jnp.cos(phase))
    ds = s - s_before
    moves = straight | curve
    dtheta = jnp.where(curve, turned, jnp.where(pivot, leg.turn * ds, 0.0))
    middle = pose[2] + 0.5 * dtheta
    step = jnp.where(moves, ds, 0.0)
    pose = pose + jnp.stack([step * jnp.cos(middle), step * jnp.sin(middle), dtheta])
    return leg, Reference(
        pose,
        jnp.where(moves, v, 0.0),
        jnp.where(moves, a, 0.0),
        jnp.where(curve, v * kappa, jnp.where(pivot, leg.turn * v, 0.0)),
        jnp.where(curve, a * kappa + v * v * kappa_slope, jnp.where(pivot, leg.turn * a, 0.0)),
    )
