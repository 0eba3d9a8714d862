"""The articulated-body algorithm: accelerations of given torques (Featherstone, chapter 7).

Its cost grows with the number of links, where that of a mass matrix grows with its square. Gravity
and the products of velocities enter as the wrenches that the links need when q̈ = 0; q̈ is then what
the torques add to that motion.

Each link is treated in its own axes: there S is constant, and for a joint about a coordinate axis
U is a column of the inertia.
"""

# mypy: disable-error-code="override"
# (a sum of inertias is not the concatenation of tuples that it takes the place of)

from collections.abc import Callable
from typing import Any, NamedTuple, no_type_check

from mime.control.kinematics.recursion import Walk
from mime.control.kinematics.scalar import Scalar, add, mul, reciprocal, sub
from mime.control.kinematics.spatial import (
    NO_WRENCH,
    ZERO,
    Frame,
    MassMoments,
    Matrix,
    Motion,
    Wrench,
    cross_matrix,
    symmetric,
    symmetric_sum,
    turned,
)


@no_type_check
class ArticulatedInertia(NamedTuple):
    """[F; N] = [[A, B], [Bᵀ, C]] [a; ẇ] of a body with joints in it: A and C are symmetric."""

    A: Matrix
    B: Matrix
    C: Matrix

    def __add__(self, other: "ArticulatedInertia") -> "ArticulatedInertia":
        (A, B, C), (A_o, B_o, C_o) = self, other
        return ArticulatedInertia(symmetric_sum(A, A_o), B + B_o, symmetric_sum(C, C_o))

    def with_mass(self, mass: MassMoments) -> "ArticulatedInertia":
        """The inertia plus that of a rigid body, [[m 1, [h]×ᵀ], [[h]×, I]]."""
        (A, B, C), m = self, mass.mass
        return ArticulatedInertia(
            symmetric(lambda i, j: add(A[i][j], m if i == j else 0.0)),
            B + cross_matrix(mass.first).T,
            symmetric_sum(C, mass.inertia()),
        )

    def wrench(self, motion: Motion) -> Wrench:
        a, w_dot = motion
        return Wrench(self.A @ a + self.B @ w_dot, self.B.T @ a + self.C @ w_dot)

    def released(self, U: Wrench, inverse_D: Scalar) -> "ArticulatedInertia":
        """I - U D⁻¹ Uᵀ"""
        (A, B, C), (F, N) = self, U
        F_D, N_D = U * inverse_D
        return ArticulatedInertia(
            symmetric(lambda i, j: sub(A[i][j], mul(F[i], F_D[j]))),
            Matrix(row - N_D * F_i for row, F_i in zip(B, F, strict=True)),
            symmetric(lambda i, j: sub(C[i][j], mul(N[i], N_D[j]))),
        )

    def seen_from_parent(self, X: Frame) -> "ArticulatedInertia":
        """Turned by R, and then about the origin of the parent, in which this one's lies at r."""
        R, rx = X.R, cross_matrix(X.r)
        A, B, C = turned(R, self.A), R @ self.B @ R.T, turned(R, self.C)
        B_p = B - A @ rx
        (BT, B_pT), rxT = (B.T, B_p.T), rx.T  # C_p = C + rx B_p - Bᵀ rx
        C_p = symmetric(lambda i, j: add(C[i][j], sub(rx[i].dot(B_pT[j]), BT[i].dot(rxT[j]))))
        return ArticulatedInertia(A, B_p, C_p)


@no_type_check
class Beyond(NamedTuple):
    """All that hangs on a link, with its joints free: its inertia, and the wrench that holds it."""

    inertia: ArticulatedInertia
    wrench: Wrench

    def __add__(self, other: "Beyond") -> "Beyond":
        return Beyond(self.inertia + other.inertia, self.wrench + other.wrench)


NOTHING_BEYOND = Beyond(ArticulatedInertia(*[Matrix([ZERO] * 3)] * 3), NO_WRENCH)


def solve_articulated(
    walk: Walk, X: Any, S: Any, masses: Any, resistance: Any, tau: Any, p: Any
) -> Any:
    """M q̈ = tau - (what the wrenches p on the links take): from the tips to the root,

        U_i = I_i S_i                                 wrench that moves joint i alone
        D_i = S_i · U_i + resistance_i                what M has besides the links, on its diagonal
        u_i = tau_i - S_i · p_i
        I_p += X_i (I_i - U_i D_i⁻¹ U_iᵀ)             the body from link i on, its joint free
        p_p += X_i (p_i + U_i D_i⁻¹ u_i)

    and from the root to the tips,

        a_i = X_i⁻¹ a_p
        q̈_i = D_i⁻¹ (u_i - U_i · a_i)
        a_i += S_i q̈_i

    Each joint must move one link: those that mimic others couple distant bodies.
    """

    def release(
        beyond: Beyond,
        X: Frame,
        S: Motion,
        mass: MassMoments,
        resistance: Scalar,
        tau: Scalar,
        p: Wrench,
    ) -> tuple[Callable, Any]:
        I, p = beyond.inertia.with_mass(mass), p + beyond.wrench
        U = I.wrench(S)
        inverse_D = reciprocal(add(U.power(S), resistance))
        u = sub(tau, p.power(S))

        def share() -> Beyond:
            inertia = I.released(U, inverse_D).seen_from_parent(X)
            return Beyond(inertia, X.wrench(p + U * mul(inverse_D, u)))

        return share, (U, inverse_D, u)

    def accelerate(parent: Motion, X: Frame, S: Motion, free: Any) -> tuple[Motion, Scalar]:
        U, inverse_D, u = free
        a = X.motion_of_child(parent)
        qdd = mul(inverse_D, sub(u, U.power(a)))
        return a + S * qdd, qdd

    free = walk.inward(release, NOTHING_BEYOND, X, S, masses, resistance, tau, p)
    return walk.outward(accelerate, Motion(ZERO, ZERO), X, S, free)
