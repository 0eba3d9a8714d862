"""Mass and moments of inertia of a swimmer, where they count."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.core.node import Scalar
from mime.core.parameters import Effect
from mime.core.spec import parameter


class SwimmerInertia(Effect):
    """M dV/dt + (0, Omega x J Omega) = wrench - drag,    M = diag(m, m, m, J_x, J_y, J_z)

    Its centre of mass is the helix' centre and its principal axes are the body's. The mass is the
    body's own, with the fluid's that it carries along if that counts: added mass is not computed.
    """

    mass_kg: Scalar = parameter("kg", above=0.0, doc="m")
    inertia_kg_m2: Float[Array, "3"] = parameter(
        "kg·m²", shape=(3,), above=0.0, doc="J about the body's x, y and z"
    )

    def implicit(
        self, R: Float[Array, "6 6"], wrench: Float[Array, "6"], twist: Float[Array, "6"], dt: Any
    ) -> tuple[Float[Array, "6 6"], Float[Array, "6"]]:
        """What resists and drives the velocities at the end of a step; all in the body's axes.

        (R + M / dt) V' = wrench + M V / dt - (0, Omega x J Omega)
        """
        m, J = self.mass_kg, self.inertia_kg_m2
        mass = jnp.concatenate([jnp.stack([m, m, m]), J])
        gyroscopic = jnp.cross(twist[3:], J * twist[3:])
        push = jnp.concatenate([jnp.zeros_like(gyroscopic), gyroscopic])
        return R + jnp.diag(mass / dt), wrench + mass * twist / dt - push
