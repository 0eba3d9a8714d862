"""Masses that are fixed to each other.

m = m₁ + m₂,   c = c₁ + (m₂/m) d,   I = I₁ + I₂ + (m₁ m₂/m) (d² 1 - d dᵀ),   d = c₂ - c₁
"""

from typing import Any

import equinox as eqx
import numpy as np

from mime.control.kinematics.editing.arrays import numpy_or_jax

ROOT = -1
"""The index of the root among the links."""


class RigidBody(eqx.Module):
    """A body in some frame."""

    mass: Any
    """kg"""
    com: Any
    """m, centre of mass, (3,)"""
    inertia: Any
    """kg·m², about the centre of mass, (3, 3)"""

    def seen_from(self, T: Any) -> "RigidBody":
        """The same body in the frame in which its own is at T."""
        R = T[:3, :3]
        return RigidBody(self.mass, R @ self.com + T[:3, 3], R @ self.inertia @ R.T)

    def joined(self, other: "RigidBody") -> "RigidBody":
        """Both as one body; where neither has mass, its centre stays this one's."""
        xp = numpy_or_jax(*vars(self).values(), *vars(other).values())
        mass = self.mass + other.mass
        share = other.mass / xp.where(mass > 0, mass, 1.0)
        d = other.com - self.com
        spread = xp.dot(d, d) * np.eye(3) - xp.outer(d, d)
        inertia = self.inertia + other.inertia + self.mass * share * spread
        return RigidBody(xp.asarray(mass), self.com + share * d, (inertia + inertia.T) / 2)


NO_BODY = RigidBody(np.zeros(()), np.zeros(3), np.zeros((3, 3)))


class FirstMoments(eqx.Module):
    """m = Σ m_k,   h = Σ m_k r_k: all that uniform gravity feels of masses in some frame.

    A mass may be negative, and m may be 0 where h is not.
    """

    mass: Any
    """kg"""
    moment: Any
    """kg·m, (3,)"""

    def seen_from(self, T: Any) -> "FirstMoments":
        """The same in the frame in which its own is at T."""
        return FirstMoments(self.mass, T[:3, :3] @ self.moment + self.mass * T[:3, 3])

    def joined(self, other: "FirstMoments") -> "FirstMoments":
        """Both together."""
        xp = numpy_or_jax(*vars(self).values(), *vars(other).values())
        return FirstMoments(xp.asarray(self.mass + other.mass), self.moment + other.moment)


NO_MOMENTS = FirstMoments(np.zeros(()), np.zeros(3))
