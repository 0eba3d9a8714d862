"""What the drive and its supply can give."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from mime.core.node import Effect, Problem, Scalar, parameter


class Limits(Effect):
    """|V| <= V_s,   |i| <= i_max,   |tau| <= tau_max,   |R tau / kt + ke w| <= V_s

    The last is what a supply of V_s can drive in torque and velocity mode. Give at least one.
    """

    supply_voltage_v: float | Scalar | None = parameter(
        "V", above=0.0, default=None, doc="V_s, largest terminal voltage"
    )
    current_a: float | Scalar | None = parameter(
        "A", above=0.0, default=None, doc="i_max, largest current the drive lets through"
    )
    torque_n_m: float | Scalar | None = parameter(
        "N·m", above=0.0, default=None, doc="tau_max, largest electromagnetic torque"
    )

    def value_problems(self) -> Iterator[Problem]:
        if all(limit is None for limit in self.params.values()):
            yield Problem((), f"needs at least one of {', '.join(self.params)}")

    def voltage(self, V: Any) -> Any:
        """V, within what the supply can give."""
        V_s = self.supply_voltage_v
        return V if V_s is None else jnp.clip(V, -V_s, V_s)

    def current(self, i: Any, kt: Any) -> Any:
        """i, within the limit of current and that of torque over kt."""
        if self.current_a is not None:
            i = jnp.clip(i, -self.current_a, self.current_a)
        if self.torque_n_m is not None:
            i_max = self.torque_n_m / kt
            i = jnp.clip(i, -i_max, i_max)
        return i

    def torque(self, tau: Any, omega: Any, kt: Any, ke: Any, R: Any) -> tuple[Any, Any]:
        """tau within all limits, and the slope kt ke / R of the supply's line where that limits."""
        if self.torque_n_m is not None:
            tau = jnp.clip(tau, -self.torque_n_m, self.torque_n_m)
        if self.current_a is not None:
            tau_max = kt * self.current_a
            tau = jnp.clip(tau, -tau_max, tau_max)
        V_s = self.supply_voltage_v
        if V_s is None:
            return tau, None
        low, high = (kt * (V - ke * omega) / R for V in (-V_s, V_s))
        slope = jnp.where((tau > high) | (tau < low), kt * ke / R, 0.0)
        return jnp.clip(tau, low, high), slope
