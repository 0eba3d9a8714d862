"""Kinetic and potential energy, in joules."""

from jaxtyping import Float

from .fk import com_frames
from .rnea import inverse_dynamics
from .scalar import Array, Scalar, add, mul, pack, sub, unpack
from .spatial import ZERO, Vector
from .tree import KinematicTree, joint_transforms, link_mass_moments


def kinetic_energy(
    tree: KinematicTree, q: Float[Array, " joints"], qd: Float[Array, " joints"]
) -> Float[Array, ""]:
    """T = ½ q̇ᵀ M(q) q̇, rotors included. M q̇ is what the Newton-Euler algorithm gives for q̈ =
    q̇ at rest.
    """
    rates = unpack(qd)
    at_rest: list[Scalar] = [0.0] * tree.num_joints
    momenta = inverse_dynamics(
        tree, joint_transforms(tree, q), link_mass_moments(tree), at_rest, rates, ZERO, None
    )
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
