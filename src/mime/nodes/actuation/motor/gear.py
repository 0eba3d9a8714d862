"""A gear between the rotor and the output shaft."""

from typing import Any

import jax.numpy as jnp

from mime.core.node import Effect, Scalar, parameter


class Gear(Effect):
    """w = N w_o,   tau_o = e N tau,   J + Jo/N² at the rotor,   N² J + Jo at the output shaft

    The losses are e = eta where the rotor drives the output and 1/eta where the output drives the
    rotor: neither way do they create energy. Without `efficiency` there are none.
    """

    ratio: float | Scalar = parameter(
        "", above=0.0, doc="N, turns of the rotor per turn of the output"
    )
    efficiency: float | Scalar | None = parameter(
        "", above=0.0, at_most=1.0, default=None, doc="eta, output power over input power"
    )
    output_inertia_kg_m2: Scalar | None = parameter(
        "kg·m²", at_least=0.0, default=None, doc="Jo, inertia on the output shaft"
    )

    def output_inertia_on_rotor(self) -> Any:
        """Jo / N²."""
        Jo = self.output_inertia_kg_m2
        return 0.0 if Jo is None else Jo / self.ratio**2

    def inertia_on_output(self, J: Any) -> Any:
        """N² J + Jo."""
        J, Jo = self.ratio**2 * J, self.output_inertia_kg_m2
        return J if Jo is None else J + Jo

    def torque_on_output(self, tau: Any, omega: Any) -> Any:
        """e N tau; the rotor turns at omega."""
        if self.efficiency is not None:
            eta = self.efficiency
            tau = tau * jnp.where(tau * omega < 0, 1.0 / eta, eta)
        return self.ratio * tau
