"""Turns where the mouse is and where it should be into the volts of its two motors.

    v = v_r cos(e_t) + k_x e_x,   w = w_r + e_y v_r/lambda² + 2 (v_r/lambda + k_t) e_t
    V = k_v w_wheel + k_a w_wheel' + k_p (w_wheel - measured) + k_i integral

Errors are in the mouse's frame (e_x ahead, e_y to the right); lambda is the distance in which a
sideways error dies out, critically damped (Kanayama et al. 1990).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.mouse.legs import Reference


class Gains(NamedTuple):
    """Gains of the controller. Those of the feed-forward come from motor and chassis."""

    back_emf_v_s_per_rad: Any
    """k_v at the wheel: the back-EMF."""
    driving_v_s2_per_rad: Any
    """k_a of both wheels together, when the mouse accelerates."""
    turning_v_s2_per_rad: Any
    """k_a of the difference, when it turns."""
    speed_v_s_per_rad: Any = 0.15
    """k_p"""
    integral_v_per_rad: Any = 1.0
    """k_i"""
    ahead_per_s: Any = 8.0
    """k_x"""
    heading_per_s: Any = 6.0
    """k_t"""
    recovery_m: Any = 0.06
    """lambda"""
    supply_v: Any = 7.4


class WheelCommand(NamedTuple):
    """Volts and the integrals behind them; left, right."""

    volts: Float[Array, "2"]
    integral: Float[Array, "2"]


def track(
    reference: Reference,
    pose: Float[Array, "3"],
    measured: Float[Array, "2"],
    integral: Float[Array, "2"],
    resting: Any,
    wheel_radius_m: Any,
    track_width_m: Any,
    gains: Gains,
    dt: Any,
) -> WheelCommand:
    """The volts for this tick, 0 when `resting`; `measured` are the wheels' speeds [rad/s]."""
    dx, dy, _ = jnp.unstack(reference.pose - pose)
    cos, sin = jnp.cos(pose[2]), jnp.sin(pose[2])
    ahead, right = cos * dx + sin * dy, cos * dy - sin * dx
    off = reference.pose[2] - pose[2]
    e_t = jnp.arctan2(jnp.sin(off), jnp.cos(off))
    v_r, lam = reference.v, gains.recovery_m
    v = v_r * jnp.cos(e_t) + gains.ahead_per_s * ahead
    w = reference.w + right * v_r / lam**2 + 2.0 * (v_r / lam + gains.heading_per_s) * e_t
    side = jnp.array([1.0, -1.0], v.dtype)
    wheels = (v + side * w * (0.5 * track_width_m)) / wheel_radius_m
    linear, angular = reference.a, side * reference.alpha * (0.5 * track_width_m)
    forward = gains.driving_v_s2_per_rad * linear + gains.turning_v_s2_per_rad * angular
    error = wheels - measured
    volts = gains.back_emf_v_s_per_rad * wheels + forward / wheel_radius_m
    volts = volts + gains.speed_v_s_per_rad * error + gains.integral_v_per_rad * integral
    limited = jnp.clip(volts, -gains.supply_v, gains.supply_v)
    saturated = limited != volts
    integral = jnp.where(saturated | resting, integral, integral + dt * error)
    return WheelCommand(
        jnp.where(resting, jnp.zeros_like(limited), limited),
        jnp.where(resting, jnp.zeros_like(integral), integral),
    )
