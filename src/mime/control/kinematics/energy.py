"""Kinetic and potential energy, in joules."""

from typing import Any

from jaxtyping import Float

from mime.control.kinematics.fk import link_frames
from mime.control.kinematics.joints import joint_frames, joint_motions, mass_moments
from mime.control.kinematics.recursion import walk
from mime.control.kinematics.scalar import Array, Scalar, add, mul, neg, pack, unpack
from mime.control.kinematics.spatial import ZERO, Frame, MassMoments, Motion, Vector
from mime.control.kinematics.transmission import at_drives
from mime.control.kinematics.tree import KinematicTree
from mime.native.straight import kernel_function


@kernel_function()
def kinetic_energy(
    tree: KinematicTree, q: Float[Array, " joints"], qd: Float[Array, " joints"]
) -> Float[Array, ""]:
    """T = ½ Σ (P_i · v_i + L_i · w_i) + ½ Σ J_i u_i², which is ½ q̇ᵀ M(q) q̇.

    J_i is the inertia of the rotor of drive i after its gear, u_i the drive's velocity there.
    """

    def move(
        parent: Motion, X: Frame, S: Motion, mass: MassMoments, qd: Scalar
    ) -> tuple[Motion, Scalar]:
        v = X.motion_of_child(parent) + S * qd
        return v, mass.momentum(v).power(v)

    links = walk(tree, q, qd)
    X, S, rates = joint_frames(links, q), joint_motions(links), links.joint_table(qd)
    of_links = links.outward(
        move, Motion(ZERO, ZERO), X, S, mass_moments(links), links.to_links(rates)
    )
    inertia = links.joint_table(tree.drive_inertia)
    of_rotors = links.each(lambda J, u: mul(J, mul(u, u)), inertia, at_drives(links, rates))
    total = add(links.total(of_links), links.total(of_rotors))
    return pack(mul(0.5, total), links.dtype, q, qd)


@kernel_function()
def potential_energy(
    tree: KinematicTree, q: Float[Array, " joints"], gravity_world: Float[Array, "3"]
) -> Float[Array, ""]:
    """V = -Σ m_i gᵀ c_i, zero when every centre of mass lies at the height of the root's origin."""
    links = walk(tree, q, gravity_world)
    gravity = Vector(unpack(gravity_world, links.dtype))

    def weight(frame: Frame, mass: Scalar, com: Any) -> Scalar:
        return mul(mass, gravity.dot(frame.point(Vector(com))))

    masses, coms = links.link_table(tree.masses), links.link_table(tree.coms)
    total = links.total(
        links.each(weight, link_frames(links, joint_frames(links, q)), masses, coms)
    )
    return pack(neg(total), links.dtype, q)
