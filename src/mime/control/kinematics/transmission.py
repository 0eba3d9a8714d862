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
from jaxtyping import Bool

from mime.control.kinematics.scalar import Scalar, add, is_constant, mul, unpack


def moved_by_drives(tree: Any) -> Bool[np.ndarray, "drives joints"]:
    """False where a drive does not move a joint; a coupling that is traced moves all."""
    C = tree.drive_coupling
    if C is None:
        return np.eye(tree.num_joints, dtype=bool)
    return C != 0 if isinstance(C, np.ndarray) else np.ones(C.shape, dtype=bool)


def groups(moved: Bool[np.ndarray, "drives joints"]) -> Iterator[list[int]]:
    """The joints that drives tie together, each group in order."""
    either = moved | moved.T
    left = set(range(len(moved)))
    while left:
        group, new = set[int](), {min(left)}
        while new:
            group |= new
            new = {int(j) for i in new for j in np.flatnonzero(either[i])} - group
        left -= group
        yield sorted(group)


def coupled_joints(tree: Any) -> list[list[int]]:
    """The groups of joints that share drives."""
    if tree.drive_coupling is None:
        return []
    return [group for group in groups(moved_by_drives(tree)) if len(group) > 1]


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
