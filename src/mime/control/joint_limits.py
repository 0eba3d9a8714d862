"""Joint angles that an arm cannot have, in words: the joint, the angle, its limits."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mime.control.kinematics.tree import KinematicTree, is_prismatic
from mime.core.parameters import known
from mime.core.problem import Place, Problem

_ROUNDING = 1e-6
"""rad or m: an angle at a limit that was written with seven digits, or in single precision."""


def limit_problems(tree: KinematicTree, q: Any, place: Place) -> Iterator[Problem]:
    """A problem for each joint that q, (N,) or (..., N), puts outside of its limits."""
    if not known(q, tree.joint_limits):
        return
    angles = np.reshape(np.asarray(q, float), (-1, tree.num_joints))
    lower, upper = np.asarray(tree.joint_limits, float).T
    low, high = lower - _ROUNDING, upper + _ROUNDING
    outside = ~((low <= angles) & (angles <= high))
    sliding = {c for i, c in enumerate(tree.coordinate_idxs) if is_prismatic(tree, i)}
    for j in np.flatnonzero(outside.any(axis=0)):
        angle, unit = float(angles[np.argmax(outside[:, j]), j]), "m" if j in sliding else "rad"
        radians = np.radians(angle)
        degrees = unit == "rad" and low[j] <= radians <= high[j]
        yield Problem(
            place,
            f"puts joint {tree.joint_names[j]!r} at {angle:g} {unit}, outside its limits "
            f"{lower[j]:g} to {upper[j]:g} {unit}",
            f"If {angle:g} is in degrees, write {radians:.5g} rad"
            if degrees
            else "Stay within them, or override them",
        )
