"""Which command is obeyed, and what the drive makes of it: mode, PI, limits.

tau_cmd = Kp (w_des - w) + Ki I,   dI/dt = w_des - w   (velocity mode only, I frozen elsewhere)
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mime.nodes.actuation.motor.parameters import MotorParameters


class Mode(NamedTuple):
    """Which command is obeyed. Torque is what is left when neither of these is true."""

    voltage: Any
    velocity: Any


def mode_of(motor: MotorParameters, u: dict[str, Any]) -> Mode:
    """Torque > voltage > velocity, the first non-zero command wins; or the mode that is fixed."""
    if motor.command_mode != "auto":
        return Mode(motor.command_mode == "voltage", motor.command_mode == "velocity")
    no_torque = u["commanded_torque"] == 0
    no_voltage = u["commanded_voltage"] == 0
    voltage = no_torque & ~no_voltage
    velocity = no_torque & no_voltage & (u["commanded_velocity"] != 0)
    # Inputs that are absent are NumPy constants, and so is what follows from them alone.
    return Mode(*(bool(m) if isinstance(m, np.bool_) else m for m in (voltage, velocity)))


def select(condition: Any, yes: Any, no: Any) -> Any:
    """`jnp.where`, or a plain choice when the condition is known as the program is traced."""
    if isinstance(condition, bool):
        return yes if condition else no
    return jnp.where(condition, yes, no)


class Command(NamedTuple):
    """The torque that a drive applies in torque and velocity mode."""

    torque: Any
    integral: Any
    """The PI's integral after the step."""
    held_inertia: Any = None
    """Makes the supply's speed-torque line implicit: its slope times dt where it limits, else 0."""


def command(
    motor: MotorParameters,
    u: dict[str, Any],
    mode: Mode,
    omega: Any,
    integral: Any,
    R: Any,
    dt: Any,
) -> Command:
    """tau_cmd and I after the step; dt = 0 gives the torque at this instant."""
    error = u["commanded_velocity"] - omega
    integral_next = select(mode.velocity, integral + error * dt, integral)
    demand = _demand(motor, u, mode, error, integral_next)
    if not has_limits(motor):
        return Command(demand, integral_next)
    torque, _ = _limited(motor, demand, omega, R)
    # Anti-windup: the integral stands still while it would push further into the limit.
    winds_up = (demand - torque) * error > 0
    integral_next = jnp.where(winds_up, integral, integral_next)
    demand = _demand(motor, u, mode, error, integral_next)
    torque, line = _limited(motor, demand, omega, R)
    held_inertia = None if line is None else select(mode.voltage, 0.0, line * dt)
    return Command(select(mode.voltage, 0.0, torque), integral_next, held_inertia)


def has_limits(motor: MotorParameters) -> bool:
    """Whether anything bounds the torque of torque and velocity mode."""
    limits = (motor.supply_voltage_v, motor.current_limit_a, motor.torque_limit_n_m)
    return any(limit is not None for limit in limits)


def terminal_voltage(motor: MotorParameters, u: dict[str, Any]) -> Any:
    """V, within what the supply can give."""
    V, supply = u["commanded_voltage"], motor.supply_voltage_v
    return V if supply is None else jnp.clip(V, -supply, supply)


def limited_current(motor: MotorParameters, i: Any) -> Any:
    """i, within what the drive lets through: the current limit, and the torque limit over kt."""
    if motor.current_limit_a is not None:
        i = jnp.clip(i, -motor.current_limit_a, motor.current_limit_a)
    if motor.torque_limit_n_m is not None:
        i_max = motor.torque_limit_n_m / motor.kt_n_m_per_a
        i = jnp.clip(i, -i_max, i_max)
    return i


def _demand(
    motor: MotorParameters, u: dict[str, Any], mode: Mode, error: Any, integral: Any
) -> Any:
    tau_pi = motor.velocity_kp * error + motor.velocity_ki * integral
    return select(mode.voltage, 0.0, select(mode.velocity, tau_pi, u["commanded_torque"]))


def _limited(motor: MotorParameters, torque: Any, omega: Any, R: Any) -> tuple[Any, Any]:
    """The torque within all limits, and the slope of the speed-torque line where that line limits.

    The supply drives at most kt (V_supply - ke w) / R, and at least kt (-V_supply - ke w) / R.
    """
    kt, ke = motor.kt_n_m_per_a, motor.ke_v_s_per_rad
    if motor.torque_limit_n_m is not None:
        torque = jnp.clip(torque, -motor.torque_limit_n_m, motor.torque_limit_n_m)
    if motor.current_limit_a is not None:
        tau_max = kt * motor.current_limit_a
        torque = jnp.clip(torque, -tau_max, tau_max)
    if motor.supply_voltage_v is None:
        return torque, None
    low, high = (
        kt * (V - ke * omega) / R for V in (-motor.supply_voltage_v, motor.supply_voltage_v)
    )
    slope = jnp.where((torque > high) | (torque < low), kt * ke / R, 0.0)
    return jnp.clip(torque, low, high), slope
