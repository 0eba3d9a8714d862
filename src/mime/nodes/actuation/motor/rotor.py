"""How the rotor turns: freely, by the torques on it, or driven by the mechanism it is part of.

free      J dw/dt = tau + tau_load - b w - tau_f(w, tau, tau_load) sign(w)
driven    L di/dt = V - R i - ke N w_s,   dtheta/dt = N w_s,   tau_s = e N (tau - b N w_s + tau_cog)

Dry friction and the losses of a gear are solved implicitly and in closed form: try to slide
forward, try to slide backward, and where neither keeps its direction the rotor sticks, at a speed
of exactly zero. No chatter, no regularisation. Friction by load has the torques of the step, which
are known before it is solved; only of a drive at its supply's speed-torque line (`held_inertia`) it
has the torque at the speed before the step. Then a step multiplies the speed by
(J ± k_m dt slope) / (J + dt slope), which no step makes larger than 1 as k_m < 1.

A driven rotor's inertia, N² J + Jo at the shaft, is integrated by the mechanism, which gives the
shaft's speed w_s; the motor solves its electrical side and gives the torque tau_s on the shaft.
"""

from typing import Any

import jax.numpy as jnp

from mime.control.linear_flow import phi_1
from mime.nodes.actuation.friction import Load
from mime.nodes.actuation.motor.drive import (
    Fields,
    Mode,
    circuit_resistance,
    command,
    limited_current,
    select,
    terminal_voltage,
)
from mime.nodes.actuation.motor.parameters import MotorParameters


def next_speed(
    motor: MotorParameters, omega: Any, tau: Any, load: Any, held_inertia: Any, dt: Any
) -> Any:
    """w_{n+1} = (J w_n + dt (tau + load)) / (J + dt b), with dry friction and gear losses if any.

    `held_inertia` is the drive's (see `drive.Command`), None without one.
    """
    if not _can_stick(motor):
        J, b = inertia(motor), motor.damping_n_m_s
        J = J if held_inertia is None else J + held_inertia
        return (J * omega + dt * (tau + load_on_rotor(motor, load))) / (J + dt * b)
    forward = omega + dt * _slide(motor, 1.0, omega, tau, load, held_inertia, dt)
    backward = omega + dt * _slide(motor, -1.0, omega, tau, load, held_inertia, dt)
    return jnp.where(forward > 0, forward, jnp.where(backward < 0, backward, 0.0))


def acceleration(motor: MotorParameters, omega: Any, tau: Any, load: Any) -> Any:
    """dw/dt at this instant; 0 where the rotor sticks."""
    if not _can_stick(motor):
        net = tau + load_on_rotor(motor, load) - motor.damping_n_m_s * omega
        return net / inertia(motor)
    forward = _slide(motor, 1.0, omega, tau, load, None, 0.0)
    backward = _slide(motor, -1.0, omega, tau, load, None, 0.0)
    at_rest = jnp.where(forward > 0, forward, jnp.where(backward < 0, backward, 0.0))
    return jnp.where(omega > 0, forward, jnp.where(omega < 0, backward, at_rest))


def inertia(motor: MotorParameters) -> Any:
    """J + Jo / N², what the rotor turns."""
    return motor.inertia_kg_m2 + _output_inertia(motor)


def load_on_rotor(motor: MotorParameters, load: Any) -> Any:
    """The load torque on the output shaft, as the rotor feels it through a gear without losses."""
    return load if motor.gear is None else load / motor.gear.ratio


def driven_step(motor: MotorParameters, state: Fields, u: Fields, mode: Mode, dt: Any) -> Fields:
    """The state after dt at the shaft's speed: the current by `integrator`, the angle exactly."""
    w = u["shaft_velocity"] if motor.gear is None else motor.gear.ratio * u["shaft_velocity"]
    R = motor.resistance(state)
    i_next: Any = 0.0
    if mode.voltage is not False:
        of_circuit = circuit_resistance(motor, state, u)
        i = _driven_current(motor, state["current"], of_circuit, w, u, dt)
        i_next = limited_current(motor, i)
        i_next = select(mode.voltage, i_next, 0.0)
    drive = command(motor, u, mode, w, state["velocity_integral_error"], R, dt)
    return {
        "angle": state["angle"] + w * dt,
        "angular_velocity": w,
        "current": i_next,
        "velocity_integral_error": drive.integral,
    }


def shaft_torque(motor: MotorParameters, theta: Any, omega: Any, tau_motor: Any) -> Any:
    """tau_s of a driven shaft; theta and omega are the rotor's."""
    tau = tau_motor - motor.damping_n_m_s * omega
    if motor.cogging is not None:
        tau = tau + motor.cogging.torque(theta)
    return tau if motor.gear is None else motor.gear.torque_on_output(tau, omega)


def _can_stick(motor: MotorParameters) -> bool:
    losses = motor.gear is not None and motor.gear.efficiency is not None
    return motor.friction is not None or losses


def _output_inertia(motor: MotorParameters) -> Any:
    return 0.0 if motor.gear is None else motor.gear.output_inertia_on_rotor()


def _slide(
    motor: MotorParameters, way: float, omega: Any, tau: Any, load: Any, held_inertia: Any, dt: Any
) -> Any:
    """The acceleration that a rotor sliding forward (way 1) or backward (-1) has over a step dt.

    Through a gear the rotor feels e times what the output shaft does without losses: e = 1/eta
    where the rotor drives the output, eta where the output drives the rotor.
    """
    J, b = motor.inertia_kg_m2, motor.damping_n_m_s
    J = J if held_inertia is None else J + held_inertia
    Jo, load = _output_inertia(motor), load_on_rotor(motor, load)
    tau_f: Any = 0.0
    if motor.friction is not None:
        tau_f = motor.friction.largest(omega, way, Load(tau, load))
    net = tau - way * tau_f - b * omega
    if motor.gear is None or motor.gear.efficiency is None:
        return (net + load) / (J + Jo + dt * b)
    transmitted = Jo * net - load * (J + dt * b)  # to the output; its sign is that of any e
    eta = motor.gear.efficiency
    e = jnp.where(way * transmitted > 0, 1.0 / eta, eta)
    return (net + e * load) / (J + e * Jo + dt * b)


def _driven_current(motor: MotorParameters, i: Any, R: Any, omega: Any, u: Fields, dt: Any) -> Any:
    """`i` after dt: R i implicit, or the exponential of -R dt / L."""
    _, ke = motor.constants(i)
    V, L = terminal_voltage(motor, u), motor.l_henry
    if motor.integrator == "exact":
        return i + dt / L * phi_1(-dt * R / L) * (V - R * i - ke * omega)
    return (i + dt / L * (V - ke * omega)) / (1.0 + dt * R / L)
