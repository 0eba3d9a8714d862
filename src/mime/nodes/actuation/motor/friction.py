"""Dry friction that stops a motor:   J dw/dt = tau - b w - tau_f(w) sign(w).

Solved implicitly and in closed form: try to slide forward, try to slide backward, and where neither
keeps its direction the rotor sticks, at a speed of exactly zero. No chatter, no regularisation.
The losses of a gear are friction in proportion to the torque it transmits, and go the same way.
"""

from typing import Any

import jax.numpy as jnp

from mime.nodes.actuation.motor.parameters import MotorParameters


def is_dry(motor: MotorParameters) -> bool:
    """Whether anything can make this motor stick."""
    return motor.coulomb_torque_n_m is not None or motor.gear_efficiency is not None


def dry_torque(motor: MotorParameters, omega: Any) -> Any:
    """tau_f = tau_c + (tau_s - tau_c) exp(-(w / w_s)^2), or tau_c alone without tau_s."""
    tau_c, tau_s = motor.coulomb_torque_n_m, motor.static_torque_n_m
    if tau_c is None:
        return 0.0
    if tau_s is None:
        return tau_c
    return tau_c + (tau_s - tau_c) * jnp.exp(-((omega / motor.stribeck_velocity_rad_s) ** 2))


def next_speed(
    motor: MotorParameters, omega: Any, tau: Any, load: Any, held_inertia: Any, dt: Any
) -> Any:
    """w_{n+1} = (J w_n + dt (tau + load)) / (J + dt b), with dry friction and gear losses if any.

    `held_inertia` is the drive's (see `drive.Command`), None without one.
    """
    if not is_dry(motor):
        J, b = inertia(motor), motor.damping_n_m_s
        J = J if held_inertia is None else J + held_inertia
        return (J * omega + dt * (tau + load_on_rotor(motor, load))) / (J + dt * b)
    forward = omega + dt * _slide(motor, 1.0, omega, tau, load, held_inertia, dt)
    backward = omega + dt * _slide(motor, -1.0, omega, tau, load, held_inertia, dt)
    return jnp.where(forward > 0, forward, jnp.where(backward < 0, backward, 0.0))


def acceleration(motor: MotorParameters, omega: Any, tau: Any, load: Any) -> Any:
    """dw/dt at this instant; 0 where the rotor sticks."""
    if not is_dry(motor):
        net = tau + load_on_rotor(motor, load) - motor.damping_n_m_s * omega
        return net / inertia(motor)
    forward = _slide(motor, 1.0, omega, tau, load, None, 0.0)
    backward = _slide(motor, -1.0, omega, tau, load, None, 0.0)
    at_rest = jnp.where(forward > 0, forward, jnp.where(backward < 0, backward, 0.0))
    return jnp.where(omega > 0, forward, jnp.where(omega < 0, backward, at_rest))


def inertia(motor: MotorParameters) -> Any:
    """J + Jo / N^2, what the rotor turns."""
    return motor.inertia_kg_m2 + _output_inertia_on_rotor(motor)


def load_on_rotor(motor: MotorParameters, load: Any) -> Any:
    """The load torque on the output shaft, as the rotor feels it through a gear without losses."""
    return load if motor.gear_ratio is None else load / motor.gear_ratio


def _output_inertia_on_rotor(motor: MotorParameters) -> Any:
    if motor.output_inertia_kg_m2 is None:
        return 0.0
    return motor.output_inertia_kg_m2 / motor.gear_ratio**2


def _slide(
    motor: MotorParameters, way: float, omega: Any, tau: Any, load: Any, held_inertia: Any, dt: Any
) -> Any:
    """The acceleration that a rotor sliding forward (way 1) or backward (-1) has over a step dt.

    Through a gear the rotor feels e times what the output shaft does without losses: e = 1/eta
    where the rotor drives the output, eta where the output drives the rotor.
    """
    J, b = motor.inertia_kg_m2, motor.damping_n_m_s
    J = J if held_inertia is None else J + held_inertia
    Jo, load = _output_inertia_on_rotor(motor), load_on_rotor(motor, load)
    net = tau - way * dry_torque(motor, omega) - b * omega
    if motor.gear_efficiency is None:
        return (net + load) / (J + Jo + dt * b)
    transmitted = Jo * net - load * (J + dt * b)  # to the output; its sign is that of any e
    eta = motor.gear_efficiency
    e = jnp.where(way * transmitted > 0, 1.0 / eta, eta)
    return (net + e * load) / (J + e * Jo + dt * b)
