"""A motor as a linear system:   dx/dt = A x + B u,   y = C x + D u,   G(s) = C (s - A)^-1 B + D.

    torque    x = (w),     u = tau     G = 1 / (J s + b)
    voltage   x = (w, i),  u = V       G = kt / ((J s + b)(L s + R) + kt ke)
    velocity  x = (w, I),  u = w_des   G = (Kp s + Ki) / (J s^2 + (Kp + b) s + Ki)

y is the rotor's speed. Effects that are not linear (friction, cogging, saturation, limits, gear
losses) are left out; a gear's output inertia is in J. A driven shaft is taken as free: this is the
motor alone. `exact_step` is the step of `integrator="exact"` without dry friction (`events`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Complex, Float

from mime.control.linear_flow import Matrix2, flow, phi_1, phi_2
from mime.core.problem import ParameterError
from mime.nodes.actuation.motor.drive import (
    Fields,
    Mode,
    circuit_resistance,
    limited_current,
    select,
    terminal_voltage,
)
from mime.nodes.actuation.motor.parameters import MotorParameters
from mime.nodes.actuation.motor.rotor import inertia


class StateSpace(NamedTuple):
    """dx/dt = A x + B u, y = C x + D u."""

    A: Float[Array, "n n"]
    B: Float[Array, "n m"]
    C: Float[Array, "1 n"]
    D: Float[Array, "1 m"]


class TransferFunction(NamedTuple):
    """Coefficients of powers of s, the highest first."""

    numerator: Float[Array, " p"]
    denominator: Float[Array, " q"]


def state_space(
    motor: MotorParameters, mode: str | None = None, load_input: bool = False
) -> StateSpace:
    """The matrices of `mode` (the motor's own, voltage if that is "auto").

    `load_input=True` adds the load torque on the rotor as a second input.
    """
    mode = _checked(motor, mode)
    J, b, R, L, kt, ke, Kp, Ki = _constants(motor)
    one, zero = jnp.ones_like(J), jnp.zeros_like(J)
    if mode == "torque":
        A, B = [[-b / J]], [[1 / J]]
    elif mode == "voltage":
        A, B = [[-b / J, kt / J], [-ke / L, -R / L]], [[zero], [1 / L]]
    else:
        A, B = [[-(Kp + b) / J, Ki / J], [-one, zero]], [[Kp / J], [one]]
    if load_input:
        B = [[*row, entry] for row, entry in zip(B, (1 / J, zero), strict=False)]
    C, D = [[one, zero][: len(A)]], [[zero] * len(B[0])]
    return StateSpace(*(_matrix(rows) for rows in (A, B, C, D)))


def transfer_function(motor: MotorParameters, mode: str | None = None) -> TransferFunction:
    """Numerator and denominator of rotor speed over command."""
    J, b, R, L, kt, ke, Kp, Ki = _constants(motor)
    mode = _checked(motor, mode)
    if mode == "torque":
        numerator, denominator = [jnp.ones_like(J)], [J, b]
    elif mode == "voltage":
        numerator, denominator = [kt], [J * L, J * R + L * b, R * b + kt * ke]
    else:
        numerator, denominator = [Kp, Ki], [J, Kp + b, Ki]
    return TransferFunction(jnp.stack(numerator), jnp.stack(denominator))


def lumped_constants(motor: MotorParameters) -> dict[str, tuple[Any, str]]:
    """Coefficients of G and of current over voltage, (J s + b) / ((J s + b)(L s + R) + kt ke)."""
    if _checked(motor, None) != "voltage":
        return {}
    J, b, R, L, kt, ke, _, _ = _constants(motor)
    both = "kt²" if motor.ke_follows_kt else "kt ke"
    return {
        "b/J": (b / J, "1/s"),
        "R/L": (R / L, "1/s"),
        f"{both}/J": (kt * ke / J, "Ω/s"),
        "kt/(J L)": (kt / (J * L), "rad/(V·s³)"),
        "b/(J L)": (b / (J * L), "1/(H·s)"),
        "(R J + L b)/(J L)": ((R * J + L * b) / (J * L), "1/s"),
        f"(R b + {both})/(J L)": ((R * b + kt * ke) / (J * L), "1/s²"),
        f"kt/(R b + {both})": (kt / (R * b + kt * ke), "rad/(V·s)"),
        f"(R J + L b)/(R b + {both})": ((R * J + L * b) / (R * b + kt * ke), "s"),
    }


def poles(motor: MotorParameters, mode: str | None = None) -> Complex[Array, " n"]:
    """The denominator's roots in 1/s, slow one first. Not differentiable where they are equal."""
    a, *rest = transfer_function(motor, mode).denominator
    if len(rest) == 1:
        return jnp.stack([-rest[0] / a]) + 0j
    half, product = 0.5 * rest[0] / a, rest[1] / a
    root = jnp.sqrt(half**2 - product + 0j)
    fast = -half - root
    return jnp.stack([product / fast, fast])


def step_response(
    motor: MotorParameters,
    times: Float[ArrayLike, " t"],
    mode: str | None = None,
    amplitude: float = 1.0,
) -> Float[Array, " t"]:
    """The rotor's speed after a step of the command from rest, exact at each time."""
    return _step_response(motor, times, amplitude, mode=_checked(motor, mode))


@partial(jax.jit, static_argnames="mode")  # else each of its operations is a program of XLA's
def _step_response(motor: MotorParameters, times: Any, amplitude: Any, *, mode: str) -> Array:
    dtype = motor.inertia_kg_m2.dtype
    zero = jnp.zeros((), dtype)
    fields = ("angle", "angular_velocity", "current", "velocity_integral_error")
    rest = dict.fromkeys(fields, zero)
    if motor.winding is not None:
        rest["winding_temperature"] = jnp.asarray(motor.winding.reference_temperature_c)
    u = dict.fromkeys(("commanded_torque", "commanded_voltage", "commanded_velocity"), zero)
    u[f"commanded_{mode}"] = jnp.asarray(amplitude, dtype)
    flags = Mode(mode == "voltage", mode == "velocity")

    def speed(t: Float[Array, ""]) -> Float[Array, ""]:
        return exact_step(motor, rest, u, zero, flags, t)["angular_velocity"]

    return jax.vmap(speed)(jnp.asarray(times, dtype))


def frequency_response(
    motor: MotorParameters, omega: Float[ArrayLike, " f"], mode: str | None = None
) -> Complex[Array, " f"]:
    """G(j omega), omega in rad/s."""
    return _frequency_response(motor, omega, mode=_checked(motor, mode))


@partial(jax.jit, static_argnames="mode")
def _frequency_response(motor: MotorParameters, omega: Any, *, mode: str) -> Array:
    numerator, denominator = transfer_function(motor, mode)
    s = 1j * jnp.asarray(omega, numerator.dtype)
    return jnp.polyval(numerator, s) / jnp.polyval(denominator, s)


def bode(
    motor: MotorParameters, omega: Float[ArrayLike, " f"], mode: str | None = None
) -> tuple[Float[Array, " f"], Float[Array, " f"]]:
    """Magnitude (not in dB) and phase in rad, unwrapped, at each omega in rad/s."""
    G = frequency_response(motor, omega, mode)
    return jnp.abs(G), jnp.unwrap(jnp.angle(G))


def exact_step(
    motor: MotorParameters, state: Fields, u: Fields, tau_load: Any, mode: Mode, dt: Any
) -> Fields:
    """The state after dt by the matrix exponential of the mode's linear system.

        torque    J dw/dt = tau - b w
        voltage   J dw/dt = kt i - b w + tau_load,   L di/dt = V - R i - ke w
        velocity  J dw/dt = Kp (w_des - w) + y - b w + tau_load,   y' = Ki (w_des - w),   y = Ki I

    `tau_load` is all torque on the rotor that is not the motor's. Inputs, R(T), kt(i) and the
    cogging torque are held over the step. The velocity loop is the continuous one.
    """
    theta, omega = state["angle"], state["angular_velocity"]
    i, integral = state["current"], state["velocity_integral_error"]
    J, b = inertia(motor), motor.damping_n_m_s

    rate = (u["commanded_torque"] + tau_load - b * omega) / J
    s = -b / J * dt
    d_omega, d_theta = dt * phi_1(s) * rate, dt * (omega + dt * phi_2(s) * rate)
    i_next, integral_next = 0.0, integral

    if not (mode.voltage is False and mode.velocity is False):
        A, (w_ss, x_ss), x = linear_system(motor, state, u, tau_load, mode, J)
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


def _constants(motor: MotorParameters) -> tuple[Array, ...]:
    """J, b, R, L, kt, ke, Kp, Ki."""
    electrical = (motor.r_ohm, motor.l_henry, motor.kt_n_m_per_a, motor.ke_v_s_per_rad)
    return inertia(motor), motor.damping_n_m_s, *electrical, motor.velocity_kp, motor.velocity_ki


def _matrix(rows: list[list[Array]]) -> Array:
    return jnp.stack([jnp.stack(row) for row in rows])


def _checked(motor: MotorParameters, mode: str | None) -> str:
    if mode is None:
        mode = "voltage" if motor.command_mode == "auto" else motor.command_mode
    if mode not in ("torque", "voltage", "velocity"):
        raise ParameterError(f"mode must be one of torque, voltage, velocity, got {mode!r}")
    return mode


def linear_system(
    motor: MotorParameters, state: Fields, u: Fields, tau_load: Any, mode: Mode, J: Any
) -> tuple[Matrix2, tuple[Any, Any], Any]:
    """A, the steady state and the second state of d(w, x)/dt = A ((w, x) - steady state)."""
    b, L, R = motor.damping_n_m_s, motor.l_henry, circuit_resistance(motor, state, u)
    kt, ke = motor.constants(state["current"])
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
