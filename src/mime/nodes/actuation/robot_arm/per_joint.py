"""Values for each joint, as users give them: an array, or a mapping from names."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from mime._text import unknown_name
from mime.core.arguments import numbers
from mime.core.problem import Problem


def by_name(
    label: str,
    value: Mapping[str, Any],
    joint_names: tuple[str, ...],
    default: Any,
    found: list[Problem],
) -> Any:
    """(N,) from a mapping of joint names."""
    array = np.array(np.broadcast_to(np.asarray(default, float), (len(joint_names),)))
    for joint, entry in value.items():
        if joint in joint_names:
            array[joint_names.index(joint)] = entry
        else:
            found.append(Problem((label,), *unknown_name(joint, joint_names, "joint")))
    return array


def sized(label: str, value: Any, shape: tuple[int, ...], found: list[Problem]) -> Any:
    """A parameter given by the user, at the shape that the robot asks for; None stays None."""
    if value is None or (isinstance(value, jax.Array) and value.shape == shape):
        return value
    array = np.asarray(numbers(label, value), dtype=float)
    may_be_infinite = "limit" in label or label == "joint_stiffness_n_m_per_rad"
    if array.shape != shape:
        found.append(Problem((label,), f"must have shape {shape}, got {array.shape}"))
    elif np.any(np.isnan(array)) or not (may_be_infinite or np.all(np.isfinite(array))):
        found.append(Problem((label,), f"must be finite, got {array}"))
    else:
        return array
    return None
