"""A robot as one body: its mass, its centre, and its momentum."""

from operator import itemgetter
from typing import Any, NamedTuple

from jaxtyping import Float

from mime.control.kinematics.fk import link_frames
from mime.control.kinematics.joints import joint_frames, joint_motions, mass_moments
from mime.control.kinematics.recursion import walk
from mime.control.kinematics.scalar import Array, Scalar, is_constant, pack, reciprocal
from mime.control.kinematics.spatial import ZERO, Frame, MassMoments, Matrix, Motion, Vector
from mime.control.kinematics.tree import KinematicTree


class WholeBody(NamedTuple):
    """All links as one body, in the axes of the root."""

    mass: Float[Array, ""]
    """kg"""
    com: Float[Array, "3"]
    """m, centre of mass."""
    inertia: Float[Array, "3 3"]
    """kg·m², about the centre of mass, as if all joints were locked."""
    momentum: Float[Array, "3"]
    """kg·m/s"""
    spin: Float[Array, "3"]
    """kg·m²/s, angular momentum about the centre of mass."""


def whole_body(
    tree: KinematicTree, q: Float[Array, " joints"], qd: Float[Array, " joints"]
) -> WholeBody:
    """m = Σ m_i,    c = Σ m_i c_i / m,    P = Σ P_i,    L = Σ L_i - c × P

    What is fixed to the root is not among the links; rotors behind gears count as part of theirs.
    Without any mass c is the root's origin.
    """

    def move(parent: Motion, X: Frame, S: Motion, qd: Scalar) -> tuple[Motion, Motion]:
        v = X.motion_of_child(parent) + S * qd
        return v, v

    def seen_from_root(frame: Frame, body: MassMoments, v: Motion) -> list[Scalar]:
        (m, h, (xx, yy, zz)), (P, L) = frame.mass(body), frame.wrench(body.momentum(v))
        return [m, *h, *xx, *yy[1:], zz[2], *P, *L]

    links = walk(tree, q, qd)
    X, rates = joint_frames(links, q), links.to_links(links.joint_table(qd))
    motions = links.outward(move, Motion(ZERO, ZERO), X, joint_motions(links), rates)
    rows = links.each(seen_from_root, link_frames(links, X), mass_moments(links), motions)
    m, hx, hy, hz, *rest = (links.total(links.each(itemgetter(k), rows)) for k in range(16))
    xx, xy, xz, yy, yz, zz, *momenta = rest
    h, P, L = Vector((hx, hy, hz)), Vector(momenta[:3]), Vector(momenta[3:])
    S = Matrix(map(Vector, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))))
    c = ZERO if is_constant(m) and m == 0.0 else h * reciprocal(m)
    about_c = MassMoments(m, ZERO, Matrix(row - c * a for row, a in zip(S, h, strict=True)))

    def array(scalars: Any) -> Array:
        return pack(scalars, links.dtype, q, qd)

    inertia = about_c.inertia()
    return WholeBody(array(m), array(c), array(inertia), array(P), array(L - c.cross(P)))
