"""What the recursions know of each link: how its joint moves it, and what mass it has."""

from collections.abc import Callable
from typing import Any, NamedTuple, no_type_check

import jax
import numpy as np

from mime.control.kinematics.recursion import Loops, Walk
from mime.control.kinematics.scalar import Array, Scalar, add, is_constant, mul, sub
from mime.control.kinematics.spatial import (
    NO_MASS,
    ZERO,
    Frame,
    MassMoments,
    Matrix,
    Motion,
    Vector,
    frame_from_matrix,
    moments_about_origin,
    symmetric,
    turned_about,
)
from mime.control.kinematics.tree import JOINT_TYPE_PRISMATIC


@no_type_check
class Joint(NamedTuple):
    """A joint, apart from where it stands."""

    frame: Frame
    """The link in its parent, at q = 0."""
    axis: Vector
    slides: Scalar
    """1 if it slides along its axis, 0 if it turns about it."""

    def at(self, q: Scalar) -> Frame:
        """X(q): the link in its parent."""
        (R, r), u = self.frame, self.axis
        angle, distance = mul(sub(1.0, self.slides), q), mul(self.slides, q)
        return Frame(turned_about(R, u, angle), r + (R @ u) * distance)

    def motion(self) -> Motion:
        """S: how the link moves, in its own axes, per unit of the joint's velocity."""
        return Motion(self.axis * self.slides, self.axis * sub(1.0, self.slides))


def joints(walk: Walk) -> Any:
    """The joint above each link."""
    slides = np.equal(walk.tree.joint_kinds, JOINT_TYPE_PRISMATIC).astype(float)
    return walk.each(
        lambda T, u, slides: Joint(frame_from_matrix(T), Vector(u), slides),
        walk.link_table(walk.tree.joint_frames),
        walk.link_table(walk.tree.joint_axes_local),
        walk.link_table(slides),
    )


def joint_frames(walk: Walk, q: Array) -> Any:
    """X_i(q): the frame of each link in its parent link."""
    offset = walk.link_table(walk.tree.mimic_offset)
    position = walk.each(add, walk.to_links(walk.joint_table(q)), offset)
    return walk.each(Joint.at, joints(walk), position)


def joint_motions(walk: Walk) -> Any:
    """S_i of each link."""
    return walk.each(Joint.motion, joints(walk))


def mass_moments(walk: Walk) -> Any:
    """Mass and its moments about each link's origin, in the link's axes."""
    masses, coms, inertias = walk.tree.masses, walk.tree.coms, walk.tree.inertias
    return walk.each(_moments, *map(walk.link_table, (masses, coms, inertias)))


def _moments(mass: Scalar, com: list, inertia: list) -> MassMoments:
    return moments_about_origin(mass, Vector(com), Matrix(map(Vector, inertia)))


def felt_moments(walk: Walk, masses: Any = None) -> Any:
    """The moments of each link that a joint can feel (base parameters: Khalil and Dombre 2002).

    `masses` is a table of `MassMoments`; those of the tree by default.

    What lies on the axis of a joint that turns, (m, (h·u) u, (uᵀSu) u uᵀ), moves as if it were
    fixed to the parent: it is counted there, and in the end at the root, where no joint feels it.
    That leaves no mass and more zeros; torques and the mass matrix are the same. A slider turns as
    its parent does, and gives away S.

    Only for constants, which cost nothing, and not in loops: there it would save nothing, and each
    link of a long chain would stand for the masses of hundreds.
    """
    masses, known = mass_moments(walk) if masses is None else masses, joints(walk)
    varies = not all(is_constant(x) for x in jax.tree.leaves((masses, known)))
    if varies or isinstance(walk, Loops):
        return masses

    def divide(
        beyond: MassMoments, joint: Joint, mass: MassMoments
    ) -> tuple[Callable, MassMoments]:
        whole, u = mass + beyond, joint.axis
        (m, h, S), uu = whole, symmetric(lambda i, j: mul(u[i], u[j]))
        given = MassMoments(m, u * u.dot(h), uu * u.dot(S @ u))
        if joint.slides == 1.0:
            given = MassMoments(0.0, ZERO, S)
        return lambda: joint.frame.mass(given), whole - given

    return walk.inward(divide, NO_MASS, known, masses)
