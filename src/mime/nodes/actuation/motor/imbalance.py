"""A rotor that is not balanced."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.parameters import Effect, known
from mime.core.problem import Problem
from mime.core.spec import parameter

_ROUNDING = 1e-9
"""Relative to the largest entry: what rounding may leave where there should be a zero."""


class Imbalance(Effect):
    """F = ẇ x s + w x (w x s),   M = D ẇ + w x D w + s x (a - g)

    s = m e is the rotor's mass times how far its centre is off the axis, and D what its inertia
    about the mount has beyond that of a body symmetric about the axis: products of inertia (a
    rotor that is tilted on its shaft) and unlike moments across. The mount's acceleration is a, w
    turns the rotor. At a steady speed on a mount at rest F is m e w², across the axis.
    """

    static_kg_m: Any = parameter(
        "kg·m", shape=(3,), default=(0.0, 0.0, 0.0), doc="s = m e, in the rotor's frame"
    )
    dynamic_kg_m2: Any = parameter(
        "kg·m²", shape=(3, 3), default=((0.0,) * 3,) * 3, doc="D, in the rotor's frame"
    )
    gravity_world: Any = parameter(
        "m/s²", shape=(3,), default=(0.0, 0.0, -9.80665), doc="g: the weight of s turns the rotor"
    )

    def value_problems(self) -> Iterator[Problem]:
        D = self.dynamic_kg_m2
        if known(D):
            D = np.asarray(D, float)
            if np.abs(D - D.T).max() > _ROUNDING * np.abs(D).max():
                yield Problem(("dynamic_kg_m2",), f"must be symmetric, got {D.tolist()}")

    def problems_about(self, axis: Any) -> Iterator[Problem]:
        """What of it belongs to the rotor's J or to what its parent carries."""
        s, D = self.static_kg_m, self.dynamic_kg_m2
        if not known(axis, s, D):
            return
        axis, s, D = (np.asarray(x, float) for x in (axis, s, D))
        axis = axis / np.linalg.norm(axis)
        if abs(axis @ s) > _ROUNDING * np.abs(s).max():
            words = f"must be at right angles to the axis, got {s.tolist()}, {axis @ s:g} along it"
            yield Problem(("static_kg_m",), words, "Mass along the axis belongs to the payload")
        along, across, scale = axis @ D @ axis, np.trace(D) - axis @ D @ axis, np.abs(D).max()
        if abs(along) > _ROUNDING * scale:
            words = f"must have no moment about the axis, got {along:g} kg·m²"
            yield Problem(("dynamic_kg_m2",), words, "That is part of inertia_kg_m2")
        if abs(across) > _ROUNDING * scale:
            words = f"must have no mean moment across the axis, got {across / 2:g} kg·m²"
            yield Problem(("dynamic_kg_m2",), words, "That belongs to the payload of the parent")

    def wrench(
        self,
        R_world_rotor: Float[Array, "3 3"],
        w: Float[Array, "3"],
        w_dot: Float[Array, "3"],
        a: Float[Array, "3"],
    ) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """F and M at the mount that this motion takes; all in world axes."""
        s, D = R_world_rotor @ self.static_kg_m, self.dynamic_kg_m2

        def times_D(x: Array) -> Array:
            return R_world_rotor @ (D @ (R_world_rotor.T @ x))

        force = jnp.cross(w_dot, s) + jnp.cross(w, jnp.cross(w, s))
        moment = times_D(w_dot) + jnp.cross(w, times_D(w))
        return force, moment + jnp.cross(s, a - jnp.asarray(self.gravity_world, a.dtype))
