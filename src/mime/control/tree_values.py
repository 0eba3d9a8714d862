"""Numbers that no robot has, in words: the array, the link or joint, the value."""

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

from mime.control.kinematics.physical_inertia import INERTIA_ROUNDING, THIN_BODY
from mime.control.kinematics.tree import KinematicTree
from mime.core.parameters import known
from mime.core.problem import Problem

_LIMITS = ("joint_limits", "effort_limits", "velocity_limits")
"""Infinite where a joint has none."""
_OF_SPRINGS = ("spring_stiffness_n_m_per_rad", "spring_reference_rad")
_OF_DRIVES = ("joint_friction", "joint_coulomb_friction", "gear_ratio", "rotor_inertia")
_OF_JOINTS = (*_LIMITS, *_OF_DRIVES, *_OF_SPRINGS)


def tree_problems(tree: KinematicTree) -> Iterator[Problem]:
    """The first number of each array that is none, or out of its range."""
    for field in dataclasses.fields(tree):
        name, values = field.name, getattr(tree, field.name)
        if not isinstance(values, jax.Array | np.ndarray) or not known(values):
            continue
        array, spec = np.asarray(values, float), field.metadata.get("parameter")
        good = ~np.isnan(array) if name in _LIMITS else np.isfinite(array)
        if spec is not None and spec.at_least is not None:
            good &= array >= spec.at_least
        if not good.all():
            expected = spec.expected() if spec else "numbers" if name in _LIMITS else "finite"
            index = tuple(np.argwhere(~good)[0])
            whose = _owner(tree, name, int(index[0]))
            yield Problem((name,), f"must be {expected}, got {array[index]:g} for {whose}")
        elif name == "inertias":
            yield from _inertia_problems(tree, array)


def _inertia_problems(tree: KinematicTree, inertias: np.ndarray) -> Iterator[Problem]:
    moments = np.linalg.eigvalsh(inertias)
    masses = np.asarray(tree.masses) if known(tree.masses) else 0.0
    tolerance = INERTIA_ROUNDING * np.abs(moments[:, 2]) + THIN_BODY * masses  # as a URDF's
    negative = moments[:, 0] < -tolerance
    for i in np.flatnonzero(negative)[:1].tolist():
        message = f"must have no moment below 0 kg·m², got {moments[i, 0]:g} for "
        yield Problem(("inertias",), f"{message}{_owner(tree, 'inertias', i)}")


def _owner(tree: KinematicTree, array: str, index: int) -> str:
    if array in _OF_JOINTS:
        return f"joint {tree.joint_names[index]!r}"
    names = tree.frame_names if array == "frame_offsets" else tree.link_names
    return f"link {names[index]!r}"
