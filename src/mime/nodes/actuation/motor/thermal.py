"""Temperature of the winding, and what it does to the resistance."""

from typing import Any

from mime.control.linear_flow import phi_1
from mime.core.node import Effect, Scalar, parameter


class Winding(Effect):
    """Cth dT/dt = R(T) i² - (T - T_ambient) / Rth,   R(T) = R (1 + alpha (T - T_ref))"""

    thermal_resistance_k_per_w: float | Scalar = parameter(
        "K/W", above=0.0, doc="Rth, from the winding to the ambient air"
    )
    thermal_capacitance_j_per_k: float | Scalar = parameter("J/K", above=0.0, doc="Cth")
    ambient_temperature_c: float | Scalar = parameter(
        "°C", default=25.0, doc="T_ambient, also at the start"
    )
    reference_temperature_c: float | Scalar = parameter(
        "°C", default=25.0, doc="T_ref, at which the motor's r_ohm holds"
    )
    copper_coefficient_per_k: float | Scalar = parameter(
        "1/K", at_least=0.0, default=0.00393, doc="alpha, by default copper's"
    )
    max_temperature_c: float | Scalar | None = parameter(
        "°C", default=None, doc="above it the flux `overload` is 1"
    )

    def resistance(self, R: Any, T: Any) -> Any:
        """R(T)."""
        alpha, T_ref = self.copper_coefficient_per_k, self.reference_temperature_c
        return R * (1.0 + alpha * (T - T_ref))

    def next_temperature(self, R: Any, T: Any, i: Any, dt: Any) -> Any:
        """T after dt at a constant current, exact: the equation is linear in T.

        dT/dt = -s T + ...  with s = (1/Rth - R alpha i²) / Cth. Where s < 0 the winding runs away.
        """
        conductance = 1.0 / self.thermal_resistance_k_per_w
        capacitance = self.thermal_capacitance_j_per_k
        heating = self.resistance(R, T) * i**2 - conductance * (T - self.ambient_temperature_c)
        s = (conductance - R * self.copper_coefficient_per_k * i**2) / capacitance
        return T + dt * phi_1(-s * dt) * heating / capacitance
