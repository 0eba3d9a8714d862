"""Kinetic and potential energy, in joules."""

import numpy as np
from jaxtyping import Float

from mime.control.kinematics.fk import com_frames
from mime.control.kinematics.rnea import rnea
from mime.control.kinematics.scalar import Array, Scalar, add, mul, pack, sub, unpack
from mime.control.kinematics.spatial import Vector
from mime.control.kinematics.tree import KinematicTree


def kinetic_energy(
    tree: KinematicTree, q: Float[Array, " joints"], qd: Float[Array, " joints"]
) -> Float[Array, ""]:
    """T = ½ q̇ᵀ M(q) q̇, rotors included.

    M q̇ is what the Newton-Euler algorithm gives at rest for an acceleration q̈ = q̇.
    """
    rates = unpack(qd)
    momenta = unpack(rnea(tree, q, None, qd, np.zeros(3)))
    total: Scalar = 0.0
    for rate, momentum in zip(rates, momenta, strict=True):
        total = add(total, mul(rate, momentum))
    return pack(mul(0.5, total), q, qd)


def potential_energy(
    tree: KinematicTree, q: Float[Array, " joints"], gravity_world: Float[Array, "3"]
) -> Float[Array, ""]:
    """V = -Σ m_i gᵀ c_i, zero when every centre of mass lies at the height of the root's origin."""
    gravity = Vector(unpack(gravity_world))
    total: Scalar = 0.0
    for mass, frame in zip(unpack(tree.masses), com_frames(tree, q), strict=True):
        total = sub(total, mul(mass, gravity.dot(frame.r)))
    return pack(total, q)
