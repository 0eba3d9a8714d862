"""A motor as a linear system:   dx/dt = A x + B u,   y = C x + D u,   G(s) = C (s - A)^-1 B + D.

    torque    x = (w),     u = tau     G = 1 / (J s + b)
    voltage   x = (w, i),  u = V       G = kt / ((J s + b)(L s + R) + kt ke)
    velocity  x = (w, I),  u = w_des   G = (Kp s + Ki) / (J s^2 + (Kp + b) s + Ki)

y is the rotor's speed. Extensions that are not linear (friction, cogging, saturation, limits, gear
losses) are left out; a gear's output inertia is in J. A driven shaft is taken as free: this is the
motor alone.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Complex, Float

from mime.core.node import ParameterError
from mime.nodes.actuation.motor import exact
from mime.nodes.actuation.motor.drive import Mode
from mime.nodes.actuation.motor.friction import inertia
from mime.nodes.actuation.motor.parameters import MotorParameters


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
    """Speed over command."""
    J, b, R, L, kt, ke, Kp, Ki = _constants(motor)
    mode = _checked(motor, mode)
    if mode == "torque":
        numerator, denominator = [jnp.ones_like(J)], [J, b]
    elif mode == "voltage":
        numerator, denominator = [kt], [J * L, J * R + L * b, R * b + kt * ke]
    else:
        numerator, denominator = [Kp, Ki], [J, Kp + b, Ki]
    return TransferFunction(jnp.stack(numerator), jnp.stack(denominator))


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
    mode = _checked(motor, mode)
    dtype = motor.inertia_kg_m2.dtype
    zero = jnp.zeros((), dtype)
    fields = ("angle", "angular_velocity", "current", "velocity_integral_error")
    rest = dict.fromkeys(fields, zero)
    if motor.thermal_resistance_k_per_w is not None:
        rest["winding_temperature"] = motor.reference_temperature_c
    u = dict.fromkeys(("commanded_torque", "commanded_voltage", "commanded_velocity"), zero)
    u[f"commanded_{mode}"] = jnp.asarray(amplitude, dtype)
    flags = Mode(mode == "voltage", mode == "velocity")

    def speed(t: Float[Array, ""]) -> Float[Array, ""]:
        return exact.step(motor, rest, u, zero, flags, t)["angular_velocity"]

    return jax.vmap(speed)(jnp.asarray(times, dtype))


def frequency_response(
    motor: MotorParameters, omega: Float[ArrayLike, " f"], mode: str | None = None
) -> Complex[Array, " f"]:
    """G(j omega), omega in rad/s."""
    numerator, denominator = transfer_function(motor, mode)
    s = 1j * jnp.asarray(omega, numerator.dtype)
    return jnp.polyval(numerator, s) / jnp.polyval(denominator, s)


def bode(
    motor: MotorParameters, omega: Float[ArrayLike, " f"], mode: str | None = None
) -> tuple[Float[Array, " f"], Float[Array, " f"]]:
    """Magnitude (not in dB) and phase in rad, unwrapped, at each omega in rad/s."""
    G = frequency_response(motor, omega, mode)
    return jnp.abs(G), jnp.unwrap(jnp.angle(G))


def _constants(motor: MotorParameters) -> tuple[Array, ...]:
    return (
        inertia(motor),
        motor.damping_n_m_s,
        motor.r_ohm,
        motor.l_henry,
        motor.kt_n_m_per_a,
        motor.ke_v_s_per_rad,
        motor.velocity_kp,
        motor.velocity_ki,
    )


def _matrix(rows: list[list[Array]]) -> Array:
    return jnp.stack([jnp.stack(row) for row in rows])


def _checked(motor: MotorParameters, mode: str | None) -> str:
    if mode is None:
        mode = "voltage" if motor.command_mode == "auto" else motor.command_mode
    if mode not in ("torque", "voltage", "velocity"):
        raise ParameterError(f"mode must be one of torque, voltage, velocity, got {mode!r}")
    return mode
