"""Torques of the magnetic circuit: kt that saturates, and cogging."""

import math
from typing import Any

import jax.numpy as jnp

from mime.nodes.actuation.motor.parameters import MotorParameters


def constants(motor: MotorParameters, i: Any) -> tuple[Any, Any]:
    """kt(i) = kt tanh(i / i_s) / (i / i_s), and ke(i) likewise, so that no energy is created."""
    if motor.saturation_current_a is None:
        return motor.kt_n_m_per_a, motor.ke_v_s_per_rad
    x = i / motor.saturation_current_a
    small = jnp.abs(x) < 1e-2  # the series' first dropped term, 17 x^6 / 315, is below 1e-13
    safe = jnp.where(small, 1.0, x)
    factor = jnp.where(small, 1.0 + x**2 * (-1 / 3 + x**2 * (2 / 15)), jnp.tanh(safe) / safe)
    return motor.kt_n_m_per_a * factor, motor.ke_v_s_per_rad * factor


def cogging_torque(motor: MotorParameters, theta: Any) -> Any:
    """tau_cog = A sin(n theta + phase): n periods in a turn of the rotor."""
    periods = motor.cogging_periods_per_turn
    return motor.cogging_torque_n_m * jnp.sin(periods * theta + motor.cogging_phase_rad)


RPM = 2.0 * math.pi / 60.0
"""One revolution per minute in rad/s."""
