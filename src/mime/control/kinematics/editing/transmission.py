"""A tree with other motors, gears and rotors; its drives when joints are held, left out or joined.

A drive that moves several joints ties them to a group. Held joints leave it: where one joint is
left, its drives become one,

    J = Σ C_i² J_i,  f = Σ C_i² f_i,  τ_c = Σ |C_i| τ_c,i,  T = Σ |C_i| T_i,  V = min V_i / |C_i|

with limits T and V. Where several joints are left with more drives than joints, the change is
refused.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mime._text import brief, quoted, unknown_name
from mime.control.kinematics.editing.arrays import numpy_or_jax
from mime.control.kinematics.editing.checks import number_problems, refused
from mime.control.kinematics.transmission import groups, moved_by_drives
from mime.core.arguments import numbers
from mime.core.parameters import known
from mime.core.problem import InputError, Problem

OF_DRIVES = (
    "joint_friction",
    "joint_coulomb_friction",
    "effort_limits",
    "velocity_limits",
    "gear_ratio",
    "rotor_inertia",
)
"""Arrays with an entry per drive."""
_ALIKE = 1e12
"""Condition number of T beyond which two motors turn alike."""


def with_drives(tree: Any, rotor_inertia_kg_m2: Any, transmission: Any) -> Any:
    """The tree with these motors."""
    found: list[Problem] = []
    T = _transmission(tree, transmission, found)
    rotor = _rotors(tree, rotor_inertia_kg_m2, found)
    if not found and T is not None:
        found += coupling_problems(tree, T, "transmission")
    if found:
        raise refused(tree, found)
    changed: dict[str, Any] = {} if rotor is None else {"rotor_inertia": rotor}
    if T is not None:
        g, C = split(T)
        changed |= {"gear_ratio": g, "drive_coupling": C}
    return dataclasses.replace(tree, **changed)


def split(T: Any) -> tuple[Any, Any]:
    """g and C of T = diag(g) C: the diagonal, or a row's largest where that is 0; C None if 1."""
    xp = numpy_or_jax(T)
    g = xp.diag(T)
    if isinstance(T, jax.Array):
        return g, T / g[:, None]
    largest = T[np.arange(len(T)), np.argmax(np.abs(T), axis=1)]
    g = np.where(g == 0.0, largest, g)
    C = T / g[:, None] + 0.0  # no -0.0
    return g, None if np.array_equal(C, np.eye(len(C))) else C


def coupling_problems(tree: Any, T: Any, label: str) -> Iterator[Problem]:
    """A matrix that is not invertible, with the motors or joints that it does not tell apart."""
    if not known(T) or not len(T):
        return
    T = np.asarray(T, float)
    for axis, what in ((1, "a motor that moves no joint"), (0, "a joint that no motor moves")):
        for i in np.flatnonzero(~T.any(axis=axis))[:1]:
            message = f"has {what}: {tree.joint_names[i]!r}"
            yield Problem((label,), message, "Each motor needs a ratio other than 0")
            return
    rows = T / np.linalg.norm(T, axis=1)[:, None]
    _, s, Vt = np.linalg.svd(rows.T)
    if s[-1] * _ALIKE <= s[0]:
        part = np.abs(Vt[-1]) > 1e-6 * np.abs(Vt[-1]).max()
        names = quoted([name for name, takes in zip(tree.joint_names, part, strict=True) if takes])
        message = f"must be invertible; the motors {names} turn alike"
        yield Problem((label,), message, "Each joint needs a motor that it moves on its own")


def _rotors(tree: Any, given: Any, found: list[Problem]) -> Any:
    label = "rotor_inertia_kg_m2"
    if given is None:
        return None
    if isinstance(given, Mapping):
        values = np.array(tree.rotor_inertia, float)
        for motor, J in _by_name(label, given, tree, found):
            found += [p.inside(label) for p in number_problems(motor, J, (), "kg·m²")]
            if not found:
                values[tree.joint_names.index(motor)] = float(J)
        given = values
    elif wrong := list(number_problems(label, given, (tree.num_joints,), "kg·m²")):
        found += wrong
        return None
    J = given if isinstance(given, jax.Array) else np.asarray(given, float)
    if known(J) and np.any(np.asarray(J) < 0):
        i = int(np.argmax(np.asarray(J) < 0))
        message = f"must be >= 0 kg·m², got {float(J[i]):g} for motor {tree.joint_names[i]!r}"
        found.append(Problem((label,), message))
    return J


def _transmission(tree: Any, given: Any, found: list[Problem]) -> Any:
    """T (N, N), or None where nothing is given."""
    label, n = "transmission", tree.num_joints
    if given is None:
        return None
    if isinstance(given, Mapping):
        return _from_rows(tree, given, found)
    form = f"must be {n} gear ratios or a matrix {(n, n)}, motors by joints"
    if not isinstance(given, jax.Array):
        try:
            given = np.asarray(numbers(label, given), float)
        except (InputError, ArithmeticError, TypeError, ValueError):
            found.append(Problem((label,), f"{form}; got {brief(given)}"))
            return None
    if given.shape not in ((n,), (n, n)):
        found.append(Problem((label,), f"{form}; got shape {given.shape}"))
        return None
    if known(given) and not np.all(np.isfinite(np.asarray(given))):
        found.append(Problem((label,), f"must be finite, got {brief(np.asarray(given).tolist())}"))
        return None
    return given if given.ndim == 2 else numpy_or_jax(given).diag(given)


def _from_rows(tree: Any, given: Mapping[str, Any], found: list[Problem]) -> Any:
    """Rows by motor: a gear ratio, or a ratio for each joint; others keep theirs."""
    T = np.array(tree.transmission, float)
    for motor, row in _by_name("transmission", given, tree, found):
        i = tree.joint_names.index(motor)
        T[i] = 0.0
        entries = row if isinstance(row, Mapping) else {motor: row}
        for joint, ratio in entries.items():
            if joint not in tree.joint_names:
                words = unknown_name(joint, tree.joint_names, "joint")
                found.append(Problem(("transmission", motor), *words))
            elif wrong := list(number_problems(str(joint), ratio, (), "")):
                found += [problem.inside("transmission", motor) for problem in wrong]
            else:
                T[i, tree.joint_names.index(joint)] = float(ratio)
    return T


def _by_name(
    label: str, given: Mapping[str, Any], tree: Any, found: list[Problem]
) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if name in tree.joint_names:
            yield name, value
        else:
            found.append(Problem((label,), *unknown_name(name, tree.joint_names, "motor")))


def drives_of_coordinates(tree: Any, coordinates: Sequence[int]) -> dict[str, Any]:
    """The fields of drives in a tree in which these coordinates are left, in this order."""
    kept = list(coordinates)
    moved = moved_by_drives(tree)
    source = dict(zip(kept, kept, strict=True))
    lumped: dict[int, list[int]] = {}
    for group in groups(moved):
        left = [c for c in group if c in source]
        drives = [i for i in group if moved[i, left].any()]
        if len(drives) == len(left):
            source |= dict(zip(left, drives, strict=True))
        elif len(left) == 1:
            lumped[left[0]] = drives
        else:
            names = [tree.joint_names[c] for c in group]
            gone = [tree.joint_names[c] for c in group if c not in left]
            message = f"leaves {len(drives)} motors on {len(left)} joints: {quoted(names)} share"
            hint = "Hold or keep all of them together, or give other drives by with_drives first"
            raise refused(tree, [Problem((gone[0],), f"{message} their drives", hint)])
    at = np.array([source[c] for c in kept], dtype=int)
    C = tree.drive_coupling
    fields = {name: getattr(tree, name)[at] for name in OF_DRIVES}
    if C is None:
        return fields | {"drive_coupling": None}
    joints = np.array(kept, dtype=int)
    C_kept = C[at][:, joints]
    for joint, drives in lumped.items():
        place = kept.index(joint)
        C_kept = _with_row(C_kept, place, np.eye(len(kept))[place])
        one = _as_one(tree, C[np.array(drives), joint], np.array(drives), fields, place)
        fields = {name: _with_row(fields[name], place, value) for name, value in one.items()}
    g, rest = split(C_kept) if isinstance(C_kept, np.ndarray) else (1.0, C_kept)
    if rest is None and len(kept):  # each drive has a joint of its own again: its gear is all
        fields["gear_ratio"] = fields["gear_ratio"] * g
        fields |= _after_gear(fields, g)
        C_kept = None
    return fields | {"drive_coupling": C_kept if len(kept) else None}


def _after_gear(fields: dict[str, Any], g: Any) -> dict[str, Any]:
    """Friction and limits of drives that get one gear more."""
    return {
        "joint_friction": fields["joint_friction"] * g**2,
        "joint_coulomb_friction": fields["joint_coulomb_friction"] * abs(g),
        "effort_limits": fields["effort_limits"] * abs(g),
        "velocity_limits": fields["velocity_limits"] / abs(g),
    }


def _as_one(tree: Any, c: Any, drives: Any, fields: dict[str, Any], place: int) -> dict[str, Any]:
    """Several drives on one joint, as its own; it keeps the gear ratio of its place."""
    xp = numpy_or_jax(c, *(getattr(tree, name) for name in OF_DRIVES))
    ratio, gear = xp.abs(c), fields["gear_ratio"][place]
    return {
        "joint_friction": c**2 @ tree.joint_friction[drives],
        "joint_coulomb_friction": ratio @ tree.joint_coulomb_friction[drives],
        "effort_limits": ratio @ tree.effort_limits[drives],
        "velocity_limits": xp.min(tree.velocity_limits[drives] / ratio),
        "gear_ratio": gear,
        "rotor_inertia": c**2 @ tree.drive_inertia[drives] / gear**2,
    }


def drives_of_both(tree: Any, other: Any) -> Any:
    """The coupling of two robots as one."""
    first, second = tree.drive_coupling, other.drive_coupling
    if first is None and second is None:
        return None
    first, second = (
        np.eye(robot.num_joints) if C is None else C
        for C, robot in ((first, tree), (second, other))
    )
    xp = numpy_or_jax(first, second)
    across = np.zeros((len(first), len(second)))
    return xp.block([[first, across], [across.T, second]])


def _with_row(array: Any, index: int, value: Any) -> Any:
    if numpy_or_jax(array, value) is np:
        array = np.array(array, float)
        array[index] = value
        return array
    return numpy_or_jax(array, value).asarray(array).at[index].set(value)
