"""Winding temperature:   Cth dT/dt = R(T) i^2 - (T - T_ambient) / Rth.

R(T) = R (1 + alpha (T - T_ref)), alpha that of copper.
"""

from typing import Any

from mime.control.linear_flow import phi_1
from mime.nodes.actuation.motor.parameters import MotorParameters


def is_thermal(motor: MotorParameters) -> bool:
    """Whether the motor has a winding temperature."""
    return motor.thermal_resistance_k_per_w is not None


def resistance(motor: MotorParameters, state: dict[str, Any]) -> Any:
    """R(T) of a winding at the state's temperature; R of one that has none."""
    if not is_thermal(motor):
        return motor.r_ohm
    return _resistance_at(motor, state["winding_temperature"])


def next_temperature(motor: MotorParameters, T: Any, i: Any, dt: Any) -> Any:
    """T after dt at a constant current: the equation is linear in T, so this is its exact solution.

    dT/dt = -s T + ...  with s = (1/Rth - R alpha i^2) / Cth. Where s < 0 the winding runs away.
    """
    conductance, capacitance = (
        1.0 / motor.thermal_resistance_k_per_w,
        motor.thermal_capacitance_j_per_k,
    )
    heating = _resistance_at(motor, T) * i**2 - conductance * (T - motor.ambient_temperature_c)
    s = (conductance - motor.r_ohm * motor.copper_coefficient_per_k * i**2) / capacitance
    return T + dt * phi_1(-s * dt) * heating / capacitance


def _resistance_at(motor: MotorParameters, T: Any) -> Any:
    alpha, T_ref = motor.copper_coefficient_per_k, motor.reference_temperature_c
    return motor.r_ohm * (1.0 + alpha * (T - T_ref))
