"""Two driven wheels on the ground: rolling, rolling resistance, slip.

Wheels are described at the rim: s_i = r_i w_i is a wheel's rim speed, J_i = J_w / r_i² its inertia
as a mass there, f_i = tau_i / r_i its torque as a force. The ground moves past a wheel at
g_i = v ± w W/2 (left plus), and a wheel that does not slip has s_i = g_i.

A division by a parameter is written as a product with its reciprocal, which a loop computes once.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from mime.nodes.locomotion.rolling import BodyVelocity

_SWEEPS = 3
"""Sweeps of projected Gauss-Seidel, from the solution without limits: where one component is at its
limit the first sweep is exact."""


class Chassis(NamedTuple):
    """m, Iz, J_l, J_r, W; and the largest impulses of a step [N·s]: of rolling resistance at one
    wheel (None: there is none), and of both tyres together (None: they never slip).
    """

    m: Any
    Iz: Any
    Jl: Any
    Jr: Any
    W: Any
    rolling: Any
    grip: Any


class Pair(NamedTuple):
    """A quantity of the left and of the right wheel."""

    left: Any
    right: Any


class Grip(NamedTuple):
    """What the tyres did in a step."""

    velocity: BodyVelocity
    rims: Pair
    impulses: Pair
    lateral_impulse: Any
    slipping: Any


def ground_speeds(velocity: BodyVelocity, W: Any) -> Pair:
    """g = v ± w W / 2"""
    v, _, w = velocity
    return Pair(v + 0.5 * W * w, v - 0.5 * W * w)


def roll(
    chassis: Chassis, velocity: BodyVelocity, rims: Pair, rim_forces: Pair, dt: float | Any
) -> Grip:
    """m (v' - u w) = F_l + F_r,   m (u' + v w) = F_y,   Iz w' = (F_l - F_r) W / 2,
    J_i s_i' = f_i - F_i - R_i

    The impulses of tyres (F) and rolling resistance (R) end the step without slip where their
    limits allow. The lateral force comes first; what it leaves of the friction circle is for the
    longitudinal ones. `velocity` already holds what other forces did in this step.
    """
    v, u, w, lateral, slides = _hold_sideways(chassis, velocity, dt)
    ground = ground_speeds(BodyVelocity(v, u, w), chassis.W)
    pushed = Pair(  # rim speeds if the tyres did not touch the ground
        rims.left + (dt / chassis.Jl) * rim_forces.left,
        rims.right + (dt / chassis.Jr) * rim_forces.right,
    )
    stuck, resistance = _stick(chassis, ground, pushed)
    needed = Pair(
        chassis.Jl * (pushed.left - stuck.left) - resistance.left,
        chassis.Jr * (pushed.right - stuck.right) - resistance.right,
    )
    v_stuck = 0.5 * (stuck.left + stuck.right)
    w_stuck = (stuck.left - stuck.right) * (1.0 / chassis.W)
    if chassis.grip is None:
        body = BodyVelocity(v_stuck, u, w_stuck)
        return Grip(body, stuck, needed, lateral, jnp.zeros_like(v_stuck))

    left_over = chassis.grip**2 - lateral**2
    some = left_over > 0.0
    limit = 0.5 * jnp.where(some, jnp.sqrt(jnp.where(some, left_over, 1.0)), 0.0)
    sticks = (jnp.abs(needed.left) <= limit) & (jnp.abs(needed.right) <= limit)

    by_v, by_w = 1.0 / chassis.m, 0.25 * chassis.W**2 / chassis.Iz
    by_l, by_r = 1.0 / chassis.Jl, 1.0 / chassis.Jr
    pushed = Pair(pushed.left - by_l * resistance.left, pushed.right - by_r * resistance.right)
    (p_left, p_right), (holds_left, holds_right) = _solve_within(
        (by_v + by_w + by_l, by_v - by_w, by_v + by_w + by_r),
        Pair(pushed.left - ground.left, pushed.right - ground.right),
        limit,
    )
    v_slip = v + by_v * (p_left + p_right)
    w_slip = w + (0.5 * chassis.W / chassis.Iz) * (p_left - p_right)
    ground = ground_speeds(BodyVelocity(v_slip, u, w_slip), chassis.W)
    left = jnp.where(holds_left, ground.left, pushed.left - by_l * p_left)
    right = jnp.where(holds_right, ground.right, pushed.right - by_r * p_right)

    def choose(stick: Any, slip: Any) -> Any:
        return jnp.where(sticks, stick, slip)

    return Grip(
        BodyVelocity(choose(v_stuck, v_slip), u, choose(w_stuck, w_slip)),
        Pair(choose(stuck.left, left), choose(stuck.right, right)),
        Pair(choose(needed.left, p_left), choose(needed.right, p_right)),
        lateral,
        jnp.where(sticks & ~slides, jnp.zeros_like(v), 1.0),
    )


def _hold_sideways(chassis: Chassis, velocity: BodyVelocity, dt: Any) -> tuple[Any, ...]:
    """v, u, w after the body's rotation and the tyres' lateral impulse; that impulse; if it slides.

    u turns first and v with the new u: while the tyres hold, u = 0 and v keeps its value exactly;
    while they slide, that order keeps the energy of the rotation bounded.
    """
    v, u, w = velocity
    u = u - dt * v * w
    needed = -chassis.m * u
    if chassis.grip is None:
        return v, jnp.zeros_like(u), w, needed, False
    slides = jnp.abs(needed) > chassis.grip
    impulse = jnp.clip(needed, -chassis.grip, chassis.grip)
    u = jnp.where(slides, u + impulse * (1.0 / chassis.m), 0.0)
    return v + dt * u * w, u, w, impulse, slides


def _stick(chassis: Chassis, ground: Pair, pushed: Pair) -> tuple[Pair, Pair]:
    """Rim speeds if no tyre slips, and the impulses of rolling resistance.

    In rim speeds the mass matrix is [[a_l, b], [b, a_r]], a_i = m/4 + Iz/W² + J_i,
    b = m/4 - Iz/W²: with equal wheels m + 2 J_w/r² along and Iz + J_w W²/(2 r²) about.
    """
    by_m, by_I = 0.25 * chassis.m, chassis.Iz / chassis.W**2
    al, ar, b = by_m + by_I + chassis.Jl, by_m + by_I + chassis.Jr, by_m - by_I
    by_det = 1.0 / (al * ar - b * b)
    inverse = (ar * by_det, -b * by_det, al * by_det)
    el = chassis.Jl * (pushed.left - ground.left)
    er = chassis.Jr * (pushed.right - ground.right)
    left = ground.left + inverse[0] * el + inverse[1] * er
    right = ground.right + inverse[1] * el + inverse[2] * er
    if chassis.rolling is None:
        return Pair(left, right), Pair(0.0, 0.0)
    (R_left, R_right), (rests_left, rests_right) = _solve_within(
        inverse, Pair(left, right), chassis.rolling
    )
    stuck = Pair(
        jnp.where(rests_left, 0.0, left - inverse[0] * R_left - inverse[1] * R_right),
        jnp.where(rests_right, 0.0, right - inverse[1] * R_left - inverse[2] * R_right),
    )
    return stuck, Pair(R_left, R_right)


def _solve_within(matrix: tuple[Any, Any, Any], b: Pair, limit: Any) -> tuple[Pair, Pair]:
    """x with A x = b where |x_i| <= limit allows it; second, which components it does allow.

    A is given as (a11, a12, a22), symmetric and positive definite.
    """
    a11, a12, a22 = matrix
    by_det, by_a11, by_a22 = 1.0 / (a11 * a22 - a12 * a12), 1.0 / a11, 1.0 / a22
    y1 = (a22 * b.left - a12 * b.right) * by_det
    y2 = (a11 * b.right - a12 * b.left) * by_det
    x1, x2 = jnp.clip(y1, -limit, limit), jnp.clip(y2, -limit, limit)
    for _ in range(_SWEEPS):
        y1 = (b.left - a12 * x2) * by_a11
        x1 = jnp.clip(y1, -limit, limit)
        y2 = (b.right - a12 * x1) * by_a22
        x2 = jnp.clip(y2, -limit, limit)
    return Pair(x1, x2), Pair(jnp.abs(y1) <= limit, jnp.abs(y2) <= limit)
