"""Jerk-limited timing of moves: a speed that rises and falls in the shape of an S.

Units are the caller's: metres, radians or any other, one per move.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Real

from mime.core.arguments import numbers
from mime.core.node import Scalar
from mime.core.parameters import known
from mime.core.problem import ParameterError, Problem

Number = Real[ArrayLike, ""]

_SHAPE = np.array([1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0])
"""Sign of the jerk: up in three segments, the cruise, down in three."""


class SCurve(eqx.Module):
    """x(t) with x''' = ±j or 0 in seven segments, any of which may last no time. See `s_curve`.

    Before 0 and after `duration` it goes on at v0 and at vf: at rest, when they are zero.
    """

    direction: Float[Array, ""]
    """+1 or -1; 0 when there is nowhere to go."""
    v0: Float[Array, ""]
    segment_times: Float[Array, "7"]
    segment_jerks: Float[Array, "7"]
    feasible: Bool[Array, ""]
    """False when the distance is too short to get from v0 to vf; the move then ends beyond it."""

    def __call__(self, t: Number) -> tuple[Scalar, Scalar, Scalar]:
        """Position, velocity and acceleration after t seconds.

        Each segment is followed for the time that t has spent in it: no branch, so nothing jumps.
        """
        return _follow(self, t)

    def position(self, t: Number) -> Scalar:
        return self(t)[0]

    def velocity(self, t: Number) -> Scalar:
        return self(t)[1]

    def acceleration(self, t: Number) -> Scalar:
        return self(t)[2]

    @property
    def duration(self) -> Scalar:
        return jnp.sum(self.segment_times)


@jax.jit
def _follow(curve: SCurve, t: Number) -> tuple[Scalar, Scalar, Scalar]:
    zero = jnp.zeros_like(curve.v0)
    t = jnp.asarray(t, zero.dtype)
    x, v, a = curve.v0 * jnp.minimum(t, zero), curve.v0, zero
    left = jnp.maximum(t, zero)
    for T, j in zip(jnp.unstack(curve.segment_times), jnp.unstack(curve.segment_jerks)):
        s = jnp.minimum(left, T)
        x = x + s * (v + s * (a / 2 + s * (j / 6)))
        v = v + s * (a + s * (j / 2))
        a = a + s * j
        left = left - s
    return curve.direction * (x + v * left), curve.direction * v, curve.direction * a


def s_curve(
    distance: Number,
    v_max: Number,
    a_max: Number,
    j_max: Number,
    v0: Number = 0.0,
    vf: Number = 0.0,
) -> SCurve:
    """The fastest move over `distance` with |x'| <= v_max, |x''| <= a_max, |x'''| <= j_max:

        d = (v0 + vm)/2 T(vm - v0) + (vm + vf)/2 T(vm - vf)         up to vm and down again
        T(D) = D/a + a/j    where the acceleration limit is reached, D >= a²/j
        T(D) = 2 sqrt(D/j)  where it is not

    vm is v_max, cruised at, when the distance allows it; else it solves the first line. Where a is
    reached on both ramps that is d = [a²(v0 + vf + 2vm) - j(v0² + vf² - 2vm²)]/(2aj).

    `v0` and `vf` are speeds in the direction of travel, from 0 to v_max. Scalars: `jax.vmap` for
    more. Gradients are finite everywhere, also where a segment vanishes (the true one may not be:
    a duration grows as the cube root of the distance; there the infinite part is left out).
    """
    at_rest = not any(isinstance(v, jax.Array) or np.any(v) for v in (v0, vf))
    check_limits(v_max=v_max, a_max=a_max, j_max=j_max)
    for name, speed in (("v0", v0), ("vf", vf)):
        if known(speed, v_max) and not 0 <= np.asarray(speed) <= np.asarray(v_max):
            raise ParameterError(f"s_curve: {name} must be from 0 to v_max = {v_max}, got {speed}")
    dtype = jnp.result_type(float, distance, v_max, a_max, j_max, v0, vf)
    values = [jnp.asarray(x, dtype) for x in (distance, v_max, a_max, j_max, v0, vf)]
    curve = _plan(*values, at_rest=at_rest)
    if known(curve.feasible) and not curve.feasible:
        raise ParameterError(
            f"s_curve: getting from v0 = {v0} to vf = {vf} takes a distance of "
            f"{curve.position(curve.duration):g}, got {distance}. Allow a longer distance, or more "
            "acceleration and jerk"
        )
    return curve


@partial(jax.jit, static_argnames="at_rest")
def _plan(
    d: Scalar, v_max: Scalar, a: Scalar, j: Scalar, v0: Scalar, vf: Scalar, *, at_rest: bool
) -> SCurve:
    direction, d = jnp.sign(d), jnp.abs(d)
    v_high = jnp.maximum(v0, vf)

    def ramps(rise: Scalar) -> Scalar:
        """The first equation, for vm = v_high + rise."""
        up, down = rise + (v_high - v0), rise + (v_high - vf)
        T_up, T_down = _ramp_time(up, a, j), _ramp_time(down, a, j)
        return 0.5 * ((2 * v0 + up) * T_up + (2 * vf + down) * T_down)

    feasible = ramps(jnp.zeros_like(d)) <= d * (1 + 8 * jnp.finfo(d.dtype).eps)
    room = v_max - v_high
    cruises = ramps(room) <= d
    rise = _rise_from_rest(d, a, j) if at_rest else _solve_rise(ramps, d, room)
    rise = jnp.where(cruises, room, rise)
    cruise = jnp.where(cruises, (d - ramps(room)) / v_max, 0.0)
    up_j, up_a = _ramp_segments(rise + (v_high - v0), a, j)
    down_j, down_a = _ramp_segments(rise + (v_high - vf), a, j)
    times = jnp.stack([up_j, up_a, up_j, cruise, down_j, down_a, down_j])
    return SCurve(direction, v0, times, j * _SHAPE.astype(d.dtype), feasible)


def _ramp_segments(rise: Scalar, a: Scalar, j: Scalar) -> tuple[Scalar, Scalar]:
    """Seconds that each jerk of a ramp lasts, and the constant acceleration between them."""
    reached = rise * j >= a * a
    rises = rise > 0
    short = jnp.where(rises, jnp.sqrt(jnp.where(rises, rise, 1.0) / j), 0.0)
    return jnp.where(reached, a / j, short), jnp.where(reached, rise / a - a / j, 0.0)


def _ramp_time(rise: Scalar, a: Scalar, j: Scalar) -> Scalar:
    jerk_time, constant_time = _ramp_segments(rise, a, j)
    return 2 * jerk_time + constant_time


def _rise_from_rest(d: Scalar, a: Scalar, j: Scalar) -> Scalar:
    """Peak speed when v0 = vf = 0:  d = vm²/a + a vm/j,  or  d = 2 vm sqrt(vm/j)."""
    moves = d > 0
    short = jnp.where(moves, jnp.cbrt(0.25 * j * jnp.where(moves, d, 1.0) ** 2), 0.0)
    v_j = a * a / j
    long = 0.5 * (jnp.sqrt(v_j * v_j + 4 * a * d) - v_j)
    return jnp.where(d * j * j >= 2 * a**3, long, short)


def _solve_rise(ramps: Any, d: Scalar, room: Scalar) -> Scalar:
    """u² with ramps(u²) = d, by bisection in u: in u the distance has no infinite slope.

    One step of Newton's method afterwards gives the last digits, and the derivatives: those of the
    implicit function.
    """
    top = jnp.sqrt(jax.lax.stop_gradient(room))
    steps = jnp.finfo(d.dtype).nmant + 8

    def halve(_: Any, u: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = u
        middle = 0.5 * (low + high)
        short = jax.lax.stop_gradient(ramps(middle**2)) < jax.lax.stop_gradient(d)
        return jnp.where(short, middle, low), jnp.where(short, high, middle)

    _, u = jax.lax.fori_loop(0, steps, halve, (jnp.zeros_like(top), top))
    u = jax.lax.stop_gradient(u)
    slope = jax.lax.stop_gradient(jax.grad(lambda u: ramps(u**2))(u))
    rises = slope > 0
    newton = u - jnp.where(rises, (ramps(u**2) - d) / jnp.where(rises, slope, 1.0), 0.0)
    return jnp.clip(newton, 0.0, top) ** 2


def check_limits(**limits: Any) -> None:
    """Refuse limits that are not finite and positive, each by its name."""
    problems = [
        Problem((name,), f"must be finite and > 0, got {limit}")
        for name, limit in limits.items()
        if known(limit)
        and not np.all((np.asarray(numbers(name, limit)) > 0) & np.isfinite(np.asarray(limit)))
    ]
    if problems:
        raise ParameterError("", problems)
