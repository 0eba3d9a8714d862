"""Numbers that no robot has, in words: the array, the link or joint, the value."""

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

from mime.control.kinematics.editing.transmission import coupling_problems
from mime.control.kinematics.physical_inertia import has_negative_moment
from mime.control.kinematics.tree import KinematicTree
from mime.core.parameters import known
from mime.core.problem import Problem

_LIMITS = ("joint_limits", "effort_limits", "velocity_limits")
"""Infinite where a joint has none."""
_OF_SPRINGS = ("spring_stiffness_n_m_per_rad", "spring_reference_rad")
_OF_DRIVES = (
    "joint_friction",
    "joint_coulomb_friction",
    "gear_ratio",
    "rotor_inertia",
    "drive_coupling",
)
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
    T = None if tree.drive_coupling is None else tree.transmission
    if T is not None and known(T) and np.isfinite(np.asarray(T, float)).all():
        yield from coupling_problems(tree, T, "transmission")
    yield from _root_problems(tree)


def _inertia_problems(tree: KinematicTree, inertias: np.ndarray) -> Iterator[Problem]:
    negative = has_negative_moment(inertias, np.asarray(tree.masses) if known(tree.masses) else 0.0)
    for i in np.flatnonzero(negative)[:1].tolist():
        yield _negative(inertias[i], _owner(tree, "inertias", i), "inertias")


def _root_problems(tree: KinematicTree) -> Iterator[Problem]:
    """The body of a base that floats; one that is held does not show its inertia."""
    body = tree.root_body
    if tree.base != "floating" or not known(body.mass, body.com, body.inertia):
        return
    whose, place = f"the base, link {tree.root_link_name!r}", ("root_body",)
    mass, *others = (np.asarray(x, float) for x in (body.mass, body.com, body.inertia))
    if not all(np.isfinite(x).all() for x in (mass, *others)):
        yield Problem(place, f"must be finite, got {body.mass}, {body.com}, {body.inertia}")
    elif mass < 0:
        yield Problem(place, f"must have a mass >= 0 kg, got {mass:g} for {whose}")
    elif has_negative_moment(others[1], mass):
        yield _negative(others[1], whose, *place)


def _negative(inertia: np.ndarray, whose: str, *place: str) -> Problem:
    least = np.linalg.eigvalsh(inertia)[0]
    return Problem(place, f"must have no moment below 0 kg·m², got {least:g} for {whose}")


def _owner(tree: KinematicTree, array: str, index: int) -> str:
    if array in _OF_JOINTS:
        return f"joint {tree.joint_names[index]!r}"
    names = tree.frame_names if array == "frame_offsets" else tree.link_names
    return f"link {names[index]!r}"
