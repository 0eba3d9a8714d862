"""What is refused when a tree is changed: names that are not there, numbers that no body has."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mime._text import brief, unknown_name
from mime.control.kinematics.physical_inertia import INERTIA_ROUNDING, has_negative_moment
from mime.core.arguments import numbers
from mime.core.parameters import known
from mime.core.problem import InputError, Place, Problem

UNIT_ROUNDING = 1e-6
"""By which a quaternion's length may differ from 1: figures are rounded."""


def refused(tree: Any, problems: Sequence[Problem]) -> InputError:
    """The error of a change that is not possible."""
    return InputError(f"tree {tree.name!r}", problems)


def frame_of(tree: Any, name: Any, place: Place) -> Any:
    """`tree.frame(name)`; an error at `place` when there is no such link."""
    if not isinstance(name, str) or name not in tree.frame_names:
        raise refused(tree, [Problem(place, *unknown_name(name, tree.frame_names, "link"))])
    return tree.frame(name)


def number_problems(label: str, value: Any, shape: tuple[int, ...], unit: str) -> Iterator[Problem]:
    """What is not an array of finite numbers of that shape."""
    try:
        array = value if not known(value) else np.asarray(numbers(label, value), dtype=float)
    except (InputError, ArithmeticError, TypeError, ValueError):
        yield Problem((label,), f"must be numbers [{unit}], got {brief(value)}")
        return
    if array.shape != shape:
        yield Problem((label,), f"must have shape {shape}, got {array.shape}")
    elif known(array) and not np.all(np.isfinite(array)):
        yield Problem((label,), f"must be finite, got {brief(value)}")


def pose_problems(label: str, pose: Any) -> Iterator[Problem]:
    """What is no [x y z qw qx qy qz] with a unit quaternion."""
    found = list(number_problems(label, pose, (7,), "m"))
    yield from found
    if not found and known(pose):
        norm = float(np.linalg.norm(np.asarray(pose)[3:]))
        if abs(norm - 1) > UNIT_ROUNDING:
            message = f"[x y z qw qx qy qz] must hold a unit quaternion, got length {norm:.6g}"
            yield Problem((label,), message)


def mass_problems(mass_kg: Any, inertia_kg_m2: Any) -> Iterator[Problem]:
    """What has no energy >= 0: a mass or a principal moment below 0."""
    if wrong := list(number_problems("mass_kg", mass_kg, (), "kg")):
        yield from wrong
    elif known(mass_kg) and float(mass_kg) < 0:
        yield Problem(("mass_kg",), f"must be >= 0 kg, got {float(mass_kg):g}")
    if not known(inertia_kg_m2):
        return
    inertia = np.asarray(inertia_kg_m2, dtype=float)
    if np.abs(inertia - inertia.T).max() > INERTIA_ROUNDING * float(np.abs(inertia).max()):
        yield Problem(("inertia_kg_m2",), f"must be symmetric, got {brief(inertia.tolist())}")
    elif has_negative_moment(inertia, 0.0 if wrong or not known(mass_kg) else mass_kg):
        small, middle, large = np.linalg.eigvalsh(inertia)
        yield Problem(
            ("inertia_kg_m2",),
            "must have no principal moment below 0; "
            f"got {small:.6g}, {middle:.6g}, {large:.6g} kg·m²",
        )


BASES = ("fixed", "floating")


def base_problems(tree: Any, base: Any) -> Iterator[Problem]:
    """A base of another kind. What moves without inertia is asked by forward dynamics alone."""
    if not isinstance(base, str) or base not in BASES:
        yield Problem(("base",), f"must be 'fixed' or 'floating', got {brief(base)}")
