"""Drives that two joints share, as a URDF has them; see `coupled`."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mime.control.kinematics.transmission import coupled_joints
from mime.control.kinematics.urdf.coupled import DIFFERENTIAL, FOUR_BAR
from mime.control.kinematics.writing import Xml, numbers


class _Form(NamedTuple):
    """A type of transmission with its numbers; the first joint's reduction is 1."""

    kind: str
    joints: list[int]
    """In the type's order."""
    actuators: tuple[float, float]
    second: float
    """The reduction of the second joint."""


def write_coupled(xml: Xml, tree: Any) -> None:
    """Write the drives that two joints share, where a type has their ratios."""
    for group in coupled_joints(tree):
        form = _form(tree, group)
        if form is None:
            continue
        names = [tree.joint_names[c] for c in form.joints]
        xml.open("transmission", name=f"{'_'.join(names)}_transmission")
        xml.text("type", f"transmission_interface/{form.kind}")
        for k, ratio in enumerate((1.0, form.second)):
            xml.open("joint", name=names[k])
            xml.text("role", f"joint{k + 1}")
            xml.text("mechanicalReduction", numbers(ratio))
            xml.close()
        for k, ratio in enumerate(form.actuators):
            xml.open("actuator", name=f"{names[k]}_motor")
            xml.text("role", f"actuator{k + 1}")
            xml.text("mechanicalReduction", numbers(ratio))
            xml.text("rotorInertia", numbers(tree.rotor_inertia[form.joints[k]]))
            xml.close()
        xml.close()


def unsaid_drives(tree: Any) -> Iterator[str]:
    """The drives whose ratios no type has."""
    T = np.asarray(tree.transmission, float)
    for group in coupled_joints(tree):
        if _form(tree, group) is None:
            for i in group:
                parts = [f"{T[i, j]!r} {tree.joint_names[j]!r}" for j in group if T[i, j]]
                words = f"motor {tree.joint_names[i]!r} turns by {' + '.join(parts)}, and its rotor"
                yield f"{words} has {float(tree.rotor_inertia[i])!r} kg·m²"


def _form(tree: Any, group: Sequence[int]) -> _Form | None:
    if len(group) != 2:
        return None
    order = list(group)
    T = np.asarray(tree.transmission, float)[np.ix_(order, order)]
    if T[1, 0] == 0.0:  # the second motor moves its own joint only: it is the type's first
        T, order = T[::-1, ::-1], order[::-1]
    if T[1, 0] == 0.0 or T[0, 0] == 0.0:
        return None
    actuators = float(T[0, 0]), float(T[1, 0])
    if T[0, 1] == 0.0:
        return _Form(FOUR_BAR, order, actuators, float(T[1, 1] / T[1, 0]))
    # 1e-14: gears and couplings are quotients, each rounded
    if np.isclose(T[0, 0] * T[1, 1], -T[0, 1] * T[1, 0], rtol=1e-14, atol=0.0):
        return _Form(DIFFERENTIAL, order, actuators, float(T[0, 1] / T[0, 0]))
    return None
