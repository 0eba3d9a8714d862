"""Drives that move several joints: differentials, wrists whose motors sit behind each other.

    theta = T q,    T = diag(g) C            turns of the motors; g: gear ratios, C: after the gears
    M += Tᵀ J T = Cᵀ diag(g² J) C            J: rotor inertias at the motors
    tau = Tᵀ tau_motor

C is the identity (None) where each drive moves its own joint. T is square and invertible.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Bool, Float

from mime.control.kinematics.editing.arrays import number, numpy_or_jax
from mime.control.kinematics.scalar import Array, Scalar, add, is_constant, mul, unpack


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


def moved_by_drives(tree: Any) -> Bool[np.ndarray, "drives joints"]:
    """False where a drive does not move a joint; a coupling that is traced moves all."""
    C = tree.drive_coupling
    if C is None:
        return np.eye(tree.num_joints, dtype=bool)
    return C != 0 if isinstance(C, np.ndarray) else np.ones(C.shape, dtype=bool)


def coupled_names(tree: Any) -> tuple[str, ...]:
    """The joints that share a drive with others."""
    moved = moved_by_drives(tree)
    shared = (moved & (moved.sum(axis=1, keepdims=True) > 1)).any(axis=0)
    shared |= moved.sum(axis=0) > 1
    return tuple(
        name for name, is_shared in zip(tree.joint_names, shared, strict=True) if is_shared
    )


def reflected(tree: Any, dtype: DTypeLike | None) -> Iterator[tuple[int, int, Scalar]]:
    """(row, column, inertia) that each rotor adds to the lower triangle of M."""
    for i, J in enumerate(unpack(tree.drive_inertia, dtype)):
        parts = _row(tree, i, dtype)
        for row, c_row in parts:
            for column, c_column in parts:
                if column <= row:
                    yield row, column, mul(J, mul(c_row, c_column))


def at_drives(walk: Any, rates: Any) -> Any:
    """C q̇: a table of the drives, from one of the joints."""
    if walk.tree.drive_coupling is None:
        return rates
    return [
        _sum(mul(c, rates[j]) for j, c in _row(walk.tree, i, walk.dtype)) for i in range(len(rates))
    ]


def on_joints(walk: Any, torques: Any) -> Any:
    """Cᵀ tau: a table of the joints, from one of the drives."""
    if walk.tree.drive_coupling is None:
        return torques
    found: list[Scalar] = [0.0] * len(torques)
    for i, tau in enumerate(torques):
        for j, c in _row(walk.tree, i, walk.dtype):
            found[j] = add(found[j], mul(c, tau))
    return found


def _row(tree: Any, drive: int, dtype: DTypeLike | None) -> list[tuple[int, Scalar]]:
    """The joints that a drive moves, and by how much."""
    if tree.drive_coupling is None:
        return [(drive, 1.0)]
    row = unpack(tree.drive_coupling[drive], dtype)
    return [(j, c) for j, c in enumerate(row) if not (is_constant(c) and c == 0.0)]


def _sum(parts: Iterator[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for part in parts:
        total = add(total, part)
    return total


def _times(rows: Any, matrix: Array) -> Array:
    rows = number(rows)
    return rows @ numpy_or_jax(rows, matrix).asarray(matrix, rows.dtype)
