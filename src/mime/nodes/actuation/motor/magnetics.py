"""The magnetic circuit: a torque constant that saturates, and cogging."""

from typing import Any

import jax.numpy as jnp

from mime.core.node import Effect, Scalar, parameter


class Saturation(Effect):
    """kt(i) = kt tanh(x) / x,   x = i / i_s;   ke(i) likewise, so that no energy is created"""

    current_a: float | Scalar = parameter("A", above=0.0, doc="i_s")

    def factor(self, i: Any) -> Any:
        """tanh(x) / x, and 1 at x = 0."""
        x = i / self.current_a
        small = jnp.abs(x) < 1e-2  # the series' first dropped term, 17 x^6 / 315, is below 1e-13
        safe = jnp.where(small, 1.0, x)
        return jnp.where(small, 1.0 + x**2 * (-1 / 3 + x**2 * (2 / 15)), jnp.tanh(safe) / safe)


class Cogging(Effect):
    """tau_cog = A sin(n theta + phase)"""

    torque_n_m: float | Scalar = parameter("N·m", at_least=0.0, doc="A, amplitude")
    periods_per_turn: float | Scalar = parameter(
        "1/turn", above=0.0, doc="n, periods per rotor turn"
    )
    phase_rad: float | Scalar = parameter("rad", default=0.0, doc="phase at rotor angle 0")

    def torque(self, theta: Any) -> Any:
        """tau_cog at the rotor's angle."""
        return self.torque_n_m * jnp.sin(self.periods_per_turn * theta + self.phase_rad)
