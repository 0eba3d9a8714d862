"""A motor whose rotor is part of the mechanism that it drives (`shaft="driven"`).

    L di/dt = V - R i - ke N w_s,   dtheta/dt = N w_s,   tau_s = e N (tau_motor - b N w_s + tau_cog)

The mechanism integrates the rotor's inertia, N² J + Jo at its own shaft, and gives the shaft's
speed w_s; the motor solves its electrical side and gives the torque tau_s on the shaft. The gear's
losses are e = eta where the motor drives the shaft and 1/eta where the shaft drives the motor:
neither way do they create energy.
"""

from typing import Any

import jax.numpy as jnp

from mime.control.linear_flow import phi_1
from mime.nodes.actuation.motor import magnetics, thermal
from mime.nodes.actuation.motor.drive import (
    Mode,
    command,
    limited_current,
    select,
    terminal_voltage,
)
from mime.nodes.actuation.motor.parameters import MotorParameters


def step(
    motor: MotorParameters, state: dict[str, Any], u: dict[str, Any], mode: Mode, dt: Any
) -> dict[str, Any]:
    """The state after dt at the shaft's speed: the current by `integrator`, the angle exactly."""
    N = motor.gear_ratio
    w = u["shaft_velocity"] if N is None else N * u["shaft_velocity"]
    R = thermal.resistance(motor, state)
    i_next: Any = 0.0
    if mode.voltage is not False:
        i_next = limited_current(motor, _current(motor, state["current"], R, w, u, dt))
        i_next = select(mode.voltage, i_next, 0.0)
    drive = command(motor, u, mode, w, state["velocity_integral_error"], R, dt)
    return {
        "angle": state["angle"] + w * dt,
        "angular_velocity": w,
        "current": i_next,
        "velocity_integral_error": drive.integral,
    }


def shaft_torque(motor: MotorParameters, theta: Any, w: Any, tau_motor: Any) -> Any:
    """tau_s; theta and w are the rotor's."""
    tau = tau_motor - motor.damping_n_m_s * w
    if motor.cogging_torque_n_m is not None:
        tau = tau + magnetics.cogging_torque(motor, theta)
    if motor.gear_ratio is None:
        return tau
    if motor.gear_efficiency is not None:
        eta = motor.gear_efficiency
        tau = tau * jnp.where(tau * w < 0, 1.0 / eta, eta)
    return motor.gear_ratio * tau


def reflected_inertia(motor: MotorParameters) -> Any:
    """N² J + Jo."""
    if motor.gear_ratio is None:
        return motor.inertia_kg_m2
    J = motor.gear_ratio**2 * motor.inertia_kg_m2
    return J if motor.output_inertia_kg_m2 is None else J + motor.output_inertia_kg_m2


def _current(motor: MotorParameters, i: Any, R: Any, w: Any, u: dict[str, Any], dt: Any) -> Any:
    """`i` after dt: R i implicit, or the exponential of -R dt / L."""
    _, ke = magnetics.constants(motor, i)
    V, L = terminal_voltage(motor, u), motor.l_henry
    if motor.integrator == "exact":
        return i + dt / L * phi_1(-dt * R / L) * (V - R * i - ke * w)
    return (i + dt / L * (V - ke * w)) / (1.0 + dt * R / L)
