"""The components of recorded fields as people call them: joints, x y z; each in its own unit."""

import dataclasses

import numpy as np

from mime.replay.content import component_labels
from mime.running.trajectory import Trajectory
from mime.scenarios.fields import picked_shape, split_field
from mime.scenarios.merits import unit_of

AXES = ("x", "y", "z")
QUATERNION = ("qw", "qx", "qy", "qz")
_OF_SPACE = {"m", "m/s", "m/s²", "N"}
"""Units whose three numbers, where nobody names them, are along x, y and z."""


@dataclasses.dataclass(frozen=True)
class Component:
    """One number of a field."""

    index: int
    """Counted through all axes."""
    label: str
    """`shoulder`, `x`, `[1, 2]`; nothing where the field is one number."""
    unit: str


def components(run: Trajectory, name: str) -> list[Component]:
    """What `node.field` or `node.field[1:3]` stands for, in order."""
    node, field, index = split_field(name)
    unit = unit_of(run, name)
    shape = field_shape(run, name)
    if index is not None and picked_shape(shape, index) is None:
        raise IndexError(f"{name}: there is no such component; the field has shape {shape}")
    every = _named(component_labels(run.drawing.names, f"{node}.{field}", shape, unit), unit)
    numbers = np.arange(len(every)).reshape(shape)[index or ()].ravel()
    return [Component(int(i), *every[i]) for i in numbers]


def field_shape(run: Trajectory, name: str) -> tuple[int, ...]:
    """The shape of one sample of a field."""
    node, field, _ = split_field(name)
    return run[node][field].shape[1 if run.batch_size is None else 2 :]


def samples(run: Trajectory, name: str) -> np.ndarray:
    """(component, member, sample) of all components of a field; one run is one member."""
    node, field, _ = split_field(name)
    values = run[node][field]
    values = values[None] if run.batch_size is None else values
    return np.moveaxis(values.reshape(*values.shape[:2], -1), 2, 0)


def _named(labels: tuple[str, ...], unit: str) -> list[tuple[str, str]]:
    """Label and unit of each component; a field of two units says both: `N, N·m`."""
    first, comma, second = unit.partition(", ")
    if comma and len(labels) == 6:
        return [(label, first) for label in AXES] + [(label, second) for label in AXES]
    if len(labels) == 3 and unit in _OF_SPACE and labels[0].startswith("["):
        labels = AXES
    return [_own_unit(label, unit) for label in labels]


def _own_unit(label: str, unit: str) -> tuple[str, str]:
    """`heading [rad]` is in rad, and a quaternion has no unit, wherever they stand."""
    if label in QUATERNION:
        return label, ""
    words, bracket, inside = label.partition(" [")
    return (words, inside.removesuffix("]")) if bracket else (label, unit)
