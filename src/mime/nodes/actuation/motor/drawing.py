"""What there is to see of a motor: a can, warm as its winding is, and a shaft that turns.

A data sheet tells no measures here, so it is drawn as large as where it sits has room.
"""

import numpy as np

from mime.core.drawing import ColourScale, Drawing, Frame, Solid, Value
from mime.nodes.actuation.motor.parameters import MotorParameters

SIZE_M = 0.1
_CAN_RGBA, _SHAFT_RGBA = (0.55, 0.6, 0.68, 1.0), (0.75, 0.75, 0.78, 1.0)
_MARK_RGBA = (0.9, 0.35, 0.1, 1.0)
_WARM_K = 100.0
"""Above ambient: the end of the scale for a winding without a largest temperature."""


def motor_drawing(motor: MotorParameters) -> Drawing:
    """A can about the axis; the output shaft, or the rotor's, with a mark to see it turn."""
    axis = np.asarray(motor.axis_in_parent_frame, float)
    frames = (
        Frame("mount", follow=Value("parent_pose_world")),
        Frame("axis", "mount", (0.0, 0.0, 0.0, *_quaternion_to(axis / np.linalg.norm(axis)))),
        Frame("shaft", "axis", turn=_angle(motor)),
    )
    warm = None
    if (winding := motor.winding) is not None:
        ambient, most = float(winding.ambient_temperature_c), winding.max_temperature_c
        high = ambient + _WARM_K if most is None else float(most)
        value = Value("winding_temperature")
        words = "winding temperature"
        warm = ColourScale(value, ambient, high, "°C", f"{words} of {motor.name}", words)
    behind = (0.0, 0.0, -0.3 * SIZE_M, 1.0, 0.0, 0.0, 0.0)
    ahead = (0.0, 0.0, 0.3 * SIZE_M, 1.0, 0.0, 0.0, 0.0)
    mark = (0.15 * SIZE_M, 0.0, 0.45 * SIZE_M, 1.0, 0.0, 0.0, 0.0)
    cylinder, size = "cylinder", SIZE_M
    shapes = (
        Solid("axis", behind, _CAN_RGBA, "motors", False, warm, cylinder, (0.3 * size, 0.6 * size)),
        Solid("shaft", ahead, _SHAFT_RGBA, "motors", form=cylinder, size=(0.06 * size, 0.6 * size)),
        Solid("shaft", mark, _MARK_RGBA, "motors", size=(0.3 * size, 0.08 * size, 0.05 * size)),
    )
    return Drawing(frames, shapes, size_m=SIZE_M)


def _angle(motor: MotorParameters) -> Value:
    return Value("rotor_angle") if motor.gear is None else Value("output_angle")


def _quaternion_to(axis: np.ndarray) -> tuple[float, ...]:
    """[w x y z] that turns z to a unit vector the short way."""
    w = 1.0 + axis[2]
    if w < 1e-9:
        return (0.0, 1.0, 0.0, 0.0)
    q = np.array([w, -axis[1], axis[0], 0.0])
    return tuple(float(x) for x in q / np.linalg.norm(q))
