"""What a file says of some joints only: springs beside them, actuators, named states."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mime.control.kinematics.editing.arrays import numpy_or_jax

SPRINGS = ("spring_stiffness_n_m_per_rad", "spring_reference_rad")
"""Arrays with an entry per coordinate, or None."""


def of_coordinates(tree: Any, coordinates: Sequence[int]) -> dict[str, Any]:
    """The fields of a tree in which these coordinates are left, in this order."""
    joints = np.array(coordinates, dtype=int)
    names = {tree.joint_names[c] for c in coordinates}
    kept = [k for k, actuator in enumerate(tree.actuators) if actuator.joint_name in names]

    def chosen(values: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
        return tuple(values[k] for k in places)

    springs = {name: getattr(tree, name) for name in SPRINGS}
    return {
        **{name: None if x is None else x[joints] for name, x in springs.items()},
        "actuators": chosen(tree.actuators, kept),
        "actuator_compensated_joints": tuple(
            name for name in tree.actuator_compensated_joints if name in names
        ),
        "keyframes": tuple(
            state._replace(
                joint_angles=chosen(state.joint_angles, coordinates),
                joint_velocities=chosen(state.joint_velocities, coordinates),
                controls=chosen(state.controls, kept),
            )
            for state in tree.keyframes
        ),
    }


def of_both(tree: Any, other: Any, prefix: str) -> dict[str, Any]:
    """The fields of two robots as one. Named states of one say nothing of the other: they go."""

    def both(name: str) -> Any:
        pair = getattr(tree, name), getattr(other, name)
        if pair[0] is None and pair[1] is None:
            return None
        first, second = (
            np.zeros(robot.num_joints) if x is None else x
            for x, robot in zip(pair, (tree, other), strict=True)
        )
        return numpy_or_jax(first, second).concatenate([first, second])

    renamed = [
        a._replace(name=prefix + a.name, joint_name=prefix + a.joint_name) for a in other.actuators
    ]
    return {
        **{name: both(name) for name in SPRINGS},
        "actuators": (*tree.actuators, *renamed),
        "actuator_compensated_joints": (
            *tree.actuator_compensated_joints,
            *(prefix + name for name in other.actuator_compensated_joints),
        ),
        "keyframes": (),
    }
