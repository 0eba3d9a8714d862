"""Which command is obeyed, and what the drive makes of it: mode and PI.

tau_cmd = Kp (w_des - w) + Ki I,   dI/dt = w_des - w   (velocity mode only, I frozen elsewhere)
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mime.nodes.actuation.motor.parameters import MotorParameters

Fields = dict[str, Any]
"""Inputs or state by name; those that are absent from a program are NumPy constants."""


class Mode(NamedTuple):
    """Which command is obeyed. Torque is what is left when neither of these is true."""

    voltage: Any
    velocity: Any


def mode_of(motor: MotorParameters, u: Fields) -> Mode:
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
    motor: MotorParameters, u: Fields, mode: Mode, omega: Any, integral: Any, R: Any, dt: Any
) -> Command:
    """tau_cmd and I after the step; dt = 0 gives the torque at this instant."""
    error = u["commanded_velocity"] - omega
    integral_next = select(mode.velocity, integral + error * dt, integral)
    demand = _demand(motor, u, mode, error, integral_next)
    if motor.limits is None:
        return Command(demand, integral_next)
    kt, ke = motor.kt_n_m_per_a, motor.ke_v_s_per_rad
    torque, _ = motor.limits.torque(demand, omega, kt, ke, R)
    # Anti-windup: the integral stands still while it would push further into the limit.
    winds_up = (demand - torque) * error > 0
    integral_next = jnp.where(winds_up, integral, integral_next)
    demand = _demand(motor, u, mode, error, integral_next)
    torque, line = motor.limits.torque(demand, omega, kt, ke, R)
    held_inertia = None if line is None else select(mode.voltage, 0.0, line * dt)
    return Command(select(mode.voltage, 0.0, torque), integral_next, held_inertia)


def terminal_voltage(motor: MotorParameters, u: Fields) -> Any:
    """V, within what the supply can give."""
    V = u["commanded_voltage"]
    return V if motor.limits is None else motor.limits.voltage(V)


def circuit_resistance(motor: MotorParameters, state: Fields, u: Fields) -> Any:
    """R(T) of the winding, and what is in series with it."""
    R, outside = motor.resistance(state), u.get("series_resistance")
    absent = isinstance(outside, np.ndarray | np.generic) and not np.any(outside)
    return R if outside is None or absent else R + outside


def limited_current(motor: MotorParameters, i: Any) -> Any:
    """i, within what the drive lets through."""
    return i if motor.limits is None else motor.limits.current(i, motor.kt_n_m_per_a)


def largest_current(motor: MotorParameters, mode: Mode) -> Any:
    """i_max of voltage mode, None where nothing limits the current."""
    limits = motor.limits
    if mode.voltage is False or limits is None:
        return None
    if limits.current_a is None and limits.torque_n_m is None:
        return None
    return limits.current(jnp.full_like(motor.kt_n_m_per_a, jnp.inf), motor.kt_n_m_per_a)


def _demand(motor: MotorParameters, u: Fields, mode: Mode, error: Any, integral: Any) -> Any:
    tau_pi = motor.velocity_kp * error + motor.velocity_ki * integral
    return select(mode.voltage, 0.0, select(mode.velocity, tau_pi, u["commanded_torque"]))
