"""How the motion of a link follows from that of its parent."""

from typing import NamedTuple

from mime.control.kinematics.scalar import Scalar
from mime.control.kinematics.spatial import Frame, Matrix, Motion, Vector, acceleration_gradient


class LinkMotion(NamedTuple):
    """How a link moves: angular velocity, angular acceleration, acceleration of its origin."""

    w: Vector
    w_dot: Vector
    a: Vector
    A: Matrix
    """A point p of the link accelerates by a + A p."""


def moving(w: Vector, w_dot: Vector, a: Vector) -> LinkMotion:
    """With its A."""
    return LinkMotion(w, w_dot, a, acceleration_gradient(w, w_dot))


def move_link(parent: LinkMotion, X: Frame, S: Motion, qd: Scalar, qdd: Scalar) -> LinkMotion:
    """A link's motion from its parent's:

        w_i  = Rᵀ w_p + u q̇
        ẇ_i  = Rᵀ ẇ_p + u q̈ + w_i × u q̇
        a_i  = Rᵀ (a_p + A_p r)                       with A = [ẇ]× + [w]×[w]×

    for a revolute joint; a prismatic one leaves w and ẇ alone and adds u q̈ + 2 w_i × u q̇ to a_i
    (Coriolis).
    """
    R, r = X
    w, w_dot, a = R.T @ parent.w, R.T @ parent.w_dot, R.T @ (parent.a + parent.A @ r)
    velocity, acceleration = S * qd, S * qdd
    w_dot = w_dot + acceleration.angular + w.cross(velocity.angular)
    w = w + velocity.angular
    a = a + acceleration.linear + w.cross(velocity.linear) * 2.0
    return moving(w, w_dot, a)
