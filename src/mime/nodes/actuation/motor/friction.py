"""Dry friction of the rotor: tau_f opposes the motion, and holds a rotor at rest up to tau_f(0)."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from mime.core.node import Scalar
from mime.core.parameters import Effect, known
from mime.core.problem import Problem
from mime.core.spec import parameter


class Coulomb(Effect):
    """tau_f = tau_c"""

    torque_n_m: float | Scalar = parameter("N·m", at_least=0.0, doc="tau_c")

    def torque(self, omega: Any) -> Any:
        """tau_f at the rotor's speed."""
        return self.torque_n_m


class Stribeck(Effect):
    """tau_f = tau_c + (tau_s - tau_c) exp(-(w / w_s)²)"""

    coulomb_torque_n_m: float | Scalar = parameter("N·m", at_least=0.0, doc="tau_c, at high speed")
    static_torque_n_m: float | Scalar = parameter(
        "N·m", at_least=0.0, doc="tau_s, breakaway torque, at least tau_c"
    )
    velocity_rad_per_s: float | Scalar = parameter(
        "rad/s", above=0.0, doc="w_s, speed at which tau_s falls to tau_c"
    )

    def torque(self, omega: Any) -> Any:
        """tau_f at the rotor's speed."""
        tau_c, tau_s = self.coulomb_torque_n_m, self.static_torque_n_m
        return tau_c + (tau_s - tau_c) * jnp.exp(-((omega / self.velocity_rad_per_s) ** 2))

    def value_problems(self) -> Iterator[Problem]:
        tau_c, tau_s = self.coulomb_torque_n_m, self.static_torque_n_m
        if known(tau_c, tau_s) and float(tau_s) < float(tau_c):
            message = f"must be >= coulomb_torque_n_m = {float(tau_c):g} N·m, got {float(tau_s):g}"
            yield Problem(("static_torque_n_m",), message)
