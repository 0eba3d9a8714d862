"""How long a step of semi-implicit Euler may be.

    voltage     dt² kt ke < (2 L + R dt)(2 J + b dt),   for a small L and b: dt < 2 J R / (kt ke)
    velocity    dt² Ki + 2 dt (Kp - b) < 4 J,           for a small Ki: dt < 2 J / (Kp - b)

Both are where an eigenvalue of the step's 2x2 matrix reaches -1 (Jury's criterion): the back-EMF
and the PI are explicit. A step in torque mode is stable at any length.
"""

from collections.abc import Iterator, Sequence
from math import inf, pi, sqrt

from mime.core.parameters import known
from mime.core.problem import StabilityWarning
from mime.nodes.actuation.motor.events import PARTS
from mime.nodes.actuation.motor.parameters import MotorParameters
from mime.nodes.actuation.motor.rotor import inertia


def largest_stable_timestep(motor: MotorParameters, mode: str) -> float:
    """In seconds; `inf` where any step is stable. For the linear motor: no dry friction, limits."""
    J, b, R, L = map(float, (inertia(motor), motor.damping_n_m_s, motor.r_ohm, motor.l_henry))
    if motor.integrator == "exact" or motor.shaft == "driven" or mode == "torque":
        return inf
    if mode == "voltage":
        excess = float(motor.kt_n_m_per_a) * float(motor.ke_v_s_per_rad) - R * b
        half = J * R + L * b
        return inf if excess <= 0 else (half + sqrt(half**2 + 4 * excess * J * L)) / excess
    excess, Ki = float(motor.velocity_kp) - b, float(motor.velocity_ki)
    root = sqrt(excess**2 + 4 * J * Ki)
    if excess > 0:
        return 4 * J / (excess + root)
    return (root - excess) / Ki if Ki > 0 else inf


def stability_warnings(motor: MotorParameters) -> Iterator[StabilityWarning]:
    """One for each mode in which the motor's own step is too long; none where values are traced."""
    if not known(inertia(motor), *motor.params.values()):
        return
    auto = motor.command_mode == "auto"
    modes = ("voltage", "velocity") if auto else (motor.command_mode,)
    if motor.integrator == "exact":
        yield from _reversal_warnings(motor, modes)
        return
    for mode in modes:
        longest = largest_stable_timestep(motor, mode)
        if motor.timestep > longest:
            other = f", or another command_mode if no {mode} is commanded" if auto else ""
            yield StabilityWarning(
                f"{motor.label}: its timestep of {motor.timestep:g} s is longer than {longest:.3g} "
                f"s, the longest at which integrator='semi_implicit' is stable in {mode} mode: "
                f"the speed would grow without bound. Take a shorter one, or integrator='exact'"
                f"{other}."
            )


def _reversal_warnings(motor: MotorParameters, modes: Sequence[str]) -> Iterator[StabilityWarning]:
    """One for each mode in which dry friction may stop the rotor too often in one exact step."""
    if motor.friction is None or motor.shaft == "driven":
        return
    for mode in modes:
        half_period = _half_period(motor, mode)
        if motor.timestep > half_period:
            yield StabilityWarning(
                f"{motor.label}: its timestep of {motor.timestep:g} s is longer than "
                f"{half_period:.3g} s, half a period of its oscillation in {mode} mode: with dry "
                f"friction the rotor may turn back more than {PARTS - 1} times in one step, and "
                "stands still for what is left of it. Take a shorter one."
            )


def _half_period(motor: MotorParameters, mode: str) -> float:
    """pi over the imaginary part of the poles, `inf` where they are real."""
    J, b, R, L = map(float, (inertia(motor), motor.damping_n_m_s, motor.r_ohm, motor.l_henry))
    if mode == "torque" or (mode == "voltage" and L == 0):
        return inf
    if mode == "voltage":
        square = float(motor.kt_n_m_per_a) * float(motor.ke_v_s_per_rad) / (J * L)
        square -= 0.25 * (b / J - R / L) ** 2
    else:
        square = float(motor.velocity_ki) / J - (0.5 * (float(motor.velocity_kp) + b) / J) ** 2
    return pi / sqrt(square) if square > 0 else inf
