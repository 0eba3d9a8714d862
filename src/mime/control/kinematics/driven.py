"""The motors of a tree: theta = T q of their turns, tau = Tᵀ tau_motor of their torques."""

from typing import Any

from jaxtyping import Float

from mime.control.kinematics.editing.arrays import number, numpy_or_jax
from mime.control.kinematics.scalar import Array


class Driven:
    """The motors of a `KinematicTree`, and what of them is seen at the joints.

    Motions and torques are (..., N): one instant or many rows.
    """

    @property
    def transmission(self: Any) -> Float[Array, "motors joints"]:
        """T of theta = T q, turns of each motor for one of each joint."""
        g, C = self.gear_ratio, self.drive_coupling
        return numpy_or_jax(g, C).diag(g) if C is None else g[:, None] * C

    @property
    def drive_inertia(self: Any) -> Float[Array, " drives"]:
        """gear² · rotor inertia, kg·m² or kg: each rotor after its own gear."""
        return self.gear_ratio**2 * self.rotor_inertia

    @property
    def reflected_inertia(self: Any) -> Float[Array, "joints joints"]:
        """Tᵀ J T: what spinning rotors add to M."""
        J, C = self.drive_inertia, self.drive_coupling
        return numpy_or_jax(J, C).diag(J) if C is None else C.T @ (J[:, None] * C)

    @property
    def armature(self: Any) -> Float[Array, " joints"]:
        """gear² · rotor inertia; where joints share drives, the diagonal of `reflected_inertia`."""
        J, C = self.drive_inertia, self.drive_coupling
        return J if C is None else J @ C**2

    def motor_angles(self: Any, q: Float[Any, "*rows joints"]) -> Float[Array, "*rows motors"]:
        """theta = T q, before the gears; velocities and accelerations likewise."""
        return _times(q, self.transmission.T)

    def joint_angles(self: Any, theta: Float[Any, "*rows motors"]) -> Float[Array, "*rows joints"]:
        """q = T⁻¹ theta; velocities and accelerations likewise."""
        return _times(theta, inverse(self.transmission).T)

    def joint_torques(self: Any, tau: Float[Any, "*rows motors"]) -> Float[Array, "*rows joints"]:
        """Tᵀ tau of torques at the motors: what they do at the joints."""
        return _times(tau, self.transmission)

    def motor_torques(self: Any, tau: Float[Any, "*rows joints"]) -> Float[Array, "*rows motors"]:
        """T⁻ᵀ tau of torques at the joints: what motors give for them."""
        return _times(tau, inverse(self.transmission))


def inverse(T: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """T⁻¹"""
    return numpy_or_jax(T).linalg.inv(T)


def _times(rows: Any, matrix: Array) -> Array:
    rows = number(rows)
    return rows @ numpy_or_jax(rows, matrix).asarray(matrix, rows.dtype)
