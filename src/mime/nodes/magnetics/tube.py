"""A straight tube about a swimmer: a soft wall with friction.

    g = r + s - R_tube                          how deep a ball of radius s is in the wall
    N = k g² / (2 w)     for 0 < g < w          force of the wall, towards the axis
    N = k (g - w / 2)    for g > w
    F = -mu N v / sqrt(|v|² + v_0²)             friction, v the sliding velocity of the surface

The tube is convex, so a body that is the hull of balls is inside of it when the balls are.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.core.node import Scalar
from mime.core.parameters import Effect, known
from mime.core.problem import Problem
from mime.core.spec import option, parameter


class Contacts(NamedTuple):
    """Where balls are nearest to the wall, at one pose; all of them, in touch or not."""

    normals: Float[Array, "n 3"]
    """From the axis to the wall, in the world."""
    depths_m: Float[Array, " n"]
    """g, negative where the ball is free."""
    arms_m: Float[Array, "n 3"]
    """From the body's origin to the ball's point at the wall, in the world."""


class Tube(Effect):
    """Straight tube without an end, with a soft wall, friction, and more drag than open fluid."""

    radius_m: Scalar = parameter("m", above=0.0, doc="R_tube, inner")
    axis: Float[Array, "3"] = parameter(
        "", shape=(3,), default=(1.0, 0.0, 0.0), doc="its direction in the world"
    )
    point_m: Float[Array, "3"] = parameter(
        "m", shape=(3,), default=(0.0, 0.0, 0.0), doc="a point of its axis; the middle, as drawn"
    )
    stiffness_n_per_m: Scalar = parameter("N/m", above=0.0, default=1.0, doc="k of the wall")
    soft_depth_m: Scalar = parameter(
        "m", above=0.0, default=1e-5, doc="w, how deep the force grows with the square of depth"
    )
    friction: Scalar = parameter("", at_least=0.0, default=0.0, doc="mu, Coulomb's coefficient")
    creep_speed_m_s: Scalar = parameter(
        "m/s", above=0.0, default=1e-5, doc="v_0: what sticks creeps at a part of it"
    )
    length_m: Scalar = parameter("m", above=0.0, default=0.1, doc="how much of it is drawn")
    wall_drag: str = option(default="fits", choices=("fits", "none"))
    """Whether the wall adds to the drag, by published fits, or not."""

    def value_problems(self) -> Iterator[Problem]:
        if known(self.axis) and not np.any(np.asarray(self.axis)):
            hint = "Give a vector like (1, 0, 0)"
            yield Problem(("axis",), "has length 0 and so no direction", hint)

    def contacts(
        self,
        position_world: Float[Array, "3"],
        offsets_world: Float[Array, "n 3"],
        radii_m: Float[Array, " n"],
    ) -> Contacts:
        """Balls at offsets from a body's origin, held against the wall."""
        along = self.axis / jnp.sqrt(self.axis @ self.axis)
        away = (position_world - self.point_m)[None] + offsets_world
        across = away - jnp.outer(away @ along, along)
        square = jnp.sum(across**2, axis=1)
        on_axis = square == 0.0  # no direction there, and no contact either: balls are smaller
        distance = jnp.sqrt(jnp.where(on_axis, 1.0, square))
        normals = across / distance[:, None]
        depths = jnp.where(on_axis, 0.0, distance) + radii_m - self.radius_m
        return Contacts(normals, depths, offsets_world + radii_m[:, None] * normals)

    def push(self, depths_m: Float[Array, " n"]) -> Float[Array, " n"]:
        """N in newtons."""
        w, deep = self.soft_depth_m, jnp.maximum(depths_m, 0.0)
        return self.stiffness_n_per_m * jnp.where(
            deep < w, 0.5 * deep**2 / w, jnp.maximum(deep, w) - 0.5 * w
        )

    def push_slope(self, depths_m: Float[Array, " n"]) -> Float[Array, " n"]:
        """dN/dg in N/m."""
        return self.stiffness_n_per_m * jnp.clip(depths_m / self.soft_depth_m, 0.0, 1.0)

    def energy(self, depths_m: Float[Array, " n"]) -> Float[Array, " n"]:
        """The integral of N dg, J."""
        w, deep = self.soft_depth_m, jnp.maximum(depths_m, 0.0)
        beyond = jnp.maximum(deep, w)
        return self.stiffness_n_per_m * jnp.where(
            deep < w, deep**3 / (6.0 * w), 0.5 * beyond * (beyond - w) + w**2 / 6.0
        )

    def force_world(
        self, contacts: Contacts, twist_world: Float[Array, "6"]
    ) -> Float[Array, "n 3"]:
        """Force of the wall on each ball, with friction, N."""
        push = self.push(contacts.depths_m)
        slide = sliding(contacts, twist_world)
        speed = jnp.sqrt(jnp.sum(slide**2, axis=1) + self.creep_speed_m_s**2)
        drag = self.friction * push / speed
        return -push[:, None] * contacts.normals - drag[:, None] * slide


def sliding(contacts: Contacts, twist_world: Float[Array, "6"]) -> Float[Array, "n 3"]:
    """Velocities of the points at the wall along it, m/s."""
    velocity = twist_world[None, :3] + jnp.cross(twist_world[None, 3:], contacts.arms_m)
    into = jnp.sum(velocity * contacts.normals, axis=1)
    return velocity - into[:, None] * contacts.normals
