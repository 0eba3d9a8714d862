"""The step of `integrator="exact"`: each mode's linear system, solved by the matrix exponential.

    torque    J dw/dt = tau - b w
    voltage   J dw/dt = kt i - b w + tau_load,   L di/dt = V - R i - ke w
    velocity  J dw/dt = Kp (w_des - w) + y - b w + tau_load,   dy/dt = Ki (w_des - w),   y = Ki I

Inputs, R(T), kt(i) and the cogging torque are held over the step. The velocity loop is the
continuous one, so there is no question of order within a step as there is in semi-implicit Euler.
"""

from typing import Any

from mime.control.linear_flow import Matrix2, flow, phi_1, phi_2
from mime.nodes.actuation.motor import magnetics, thermal
from mime.nodes.actuation.motor.drive import Mode, limited_current, select, terminal_voltage
from mime.nodes.actuation.motor.friction import inertia
from mime.nodes.actuation.motor.parameters import MotorParameters


def step(
    motor: MotorParameters,
    state: dict[str, Any],
    u: dict[str, Any],
    tau_load: Any,
    mode: Mode,
    dt: Any,
) -> dict[str, Any]:
    """The state after dt; `tau_load` is all torque on the rotor that is not the motor's."""
    theta, omega = state["angle"], state["angular_velocity"]
    i, integral = state["current"], state["velocity_integral_error"]
    J, b = inertia(motor), motor.damping_n_m_s

    rate = (u["commanded_torque"] + tau_load - b * omega) / J
    s = -b / J * dt
    d_omega, d_theta = dt * phi_1(s) * rate, dt * (omega + dt * phi_2(s) * rate)
    i_next, integral_next = 0.0, integral

    if not (mode.voltage is False and mode.velocity is False):
        A, (w_ss, x_ss), x = _linear_system(motor, state, u, tau_load, mode, J)
        change = flow(A, omega - w_ss, x - x_ss, dt)
        turned = w_ss * dt + change.integral_0
        is_linear_pair = mode.voltage | mode.velocity
        d_omega = select(is_linear_pair, change.change_0, d_omega)
        d_theta = select(is_linear_pair, turned, d_theta)
        i_next = select(mode.voltage, limited_current(motor, i + change.change_1), 0.0)
        error = u["commanded_velocity"] * dt - turned
        integral_next = select(mode.velocity, integral + error, integral)
    return {
        "angle": theta + d_theta,
        "angular_velocity": omega + d_omega,
        "current": i_next,
        "velocity_integral_error": integral_next,
    }


def _linear_system(
    motor: MotorParameters,
    state: dict[str, Any],
    u: dict[str, Any],
    tau_load: Any,
    mode: Mode,
    J: Any,
) -> tuple[Matrix2, tuple[Any, Any], Any]:
    """A, the steady state and the second state of d(w, x)/dt = A ((w, x) - steady state)."""
    b, L, R = motor.damping_n_m_s, motor.l_henry, thermal.resistance(motor, state)
    kt, ke = magnetics.constants(motor, state["current"])
    Kp, Ki = motor.velocity_kp, motor.velocity_ki
    V, w_des = terminal_voltage(motor, u), u["commanded_velocity"]

    if mode.voltage is not False:
        D = R * b + kt * ke
        armature = Matrix2(-b / J, kt / J, -ke / L, -R / L)
        rest = ((kt * V + R * tau_load) / D, (b * V - ke * tau_load) / D)
        if mode.velocity is False:
            return armature, rest, state["current"]
    loop = Matrix2(-(Kp + b) / J, 1.0 / J, -Ki, 0.0)
    goal = (w_des, b * w_des - tau_load)
    y = Ki * state["velocity_integral_error"]
    if mode.voltage is False:
        return loop, goal, y
    A = Matrix2(*(select(mode.voltage, a, c) for a, c in zip(armature, loop, strict=True)))
    steady = tuple(select(mode.voltage, a, c) for a, c in zip(rest, goal, strict=True))
    return A, steady, select(mode.voltage, state["current"], y)
