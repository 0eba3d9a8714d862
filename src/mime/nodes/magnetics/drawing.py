"""What there is to see of a magnet and its moment, and of a swimmer in its tube."""

import math
from typing import TYPE_CHECKING

import numpy as np

from mime.core.drawing import Arrow, Drawing, Frame, Shape, Solid, Value
from mime.nodes.magnetics.tube import Tube

if TYPE_CHECKING:
    from mime.nodes.magnetics.helical_swimmer import HelicalSwimmerNode
    from mime.nodes.magnetics.permanent_magnet import PermanentMagnetNode

_BODY_RGBA, _MOMENT_RGBA = (0.62, 0.64, 0.68, 1.0), (0.85, 0.1, 0.1, 1.0)
_FIELD_RGBA = (0.15, 0.35, 0.85, 1.0)
_SWIMMER_RGBA, _TUBE_RGBA = (0.2, 0.55, 0.45, 1.0), (0.6, 0.75, 0.9, 0.25)
_DIPOLE_M = 0.01
"""Radius of the ball that stands for a magnet without a size."""


def magnet_drawing(magnet: "PermanentMagnetNode") -> Drawing:
    """A cylinder, or a ball where no size is known; its moment, and the field at its points."""
    if magnet.radius_m is None or magnet.length_m is None:
        body = Solid("magnet", rgba=_BODY_RGBA, form="sphere", size=(_DIPOLE_M,))
        reach = 4.0 * _DIPOLE_M
    else:
        radius, length = float(magnet.radius_m), float(magnet.length_m)
        body = Solid("magnet", rgba=_BODY_RGBA, form="cylinder", size=(radius, length))
        reach = 2.0 * math.hypot(radius, 0.5 * length)
    moment = Arrow(
        "magnet", rgba=_MOMENT_RGBA, layer="fields", vector=Value("moment_world"), reach=reach,
        unit="A·m²", what=f"moment of {magnet.name}",
    )  # fmt: skip
    points = range(magnet.points or 1)
    frames = [Frame("magnet", follow=Value("magnet_pose_world"))]
    frames += [Frame(f"point {k}", place=Value("points_world", 3 * k)) for k in points]
    fields = [
        Arrow(
            f"point {k}", rgba=_FIELD_RGBA, layer="fields", vector=Value("field_world", 3 * k),
            reach=reach, unit="T", what=f"field of {magnet.name}",
        )
        for k in points
    ]  # fmt: skip
    return Drawing(tuple(frames), (body, moment, *fields), size_m=2.0 * reach)


def swimmer_drawing(swimmer: "HelicalSwimmerNode") -> Drawing:
    """A capsule as long and as wide as the helix, its head, and the tube about it."""
    length, radius = float(swimmer.turns * swimmer.pitch_m), float(swimmer.helix_radius_m)
    shapes: list[Shape] = [
        Solid("swimmer", rgba=_SWIMMER_RGBA, form="capsule", size=(radius, length))
    ]
    if swimmer.head_radius_m is not None:
        b = float(swimmer.head_radius_m)
        at = (0.0, 0.0, 0.5 * length + b, 1.0, 0.0, 0.0, 0.0)
        shapes.append(Solid("swimmer", pose=at, rgba=_SWIMMER_RGBA, form="sphere", size=(b,)))
    if swimmer.tube is not None:
        shapes.append(_tube(swimmer.tube))
    frame = Frame("swimmer", follow=Value("swimmer_pose_world"))
    return Drawing((frame,), tuple(shapes), size_m=2.0 * length)


def _tube(tube: Tube) -> Solid:
    """A glassy cylinder along the tube's axis, fixed in the world."""
    x, y, z = np.asarray(tube.axis, float) / np.linalg.norm(tube.axis)
    # The quaternion that turns z to the axis; half a turn about x where the axis is -z.
    turn = np.array([1.0 + z, -y, x, 0.0]) if z > -1.0 + 1e-12 else np.array([0.0, 1.0, 0.0, 0.0])
    pose = (*np.asarray(tube.point_m, float), *(turn / np.linalg.norm(turn)))
    size = (float(tube.radius_m), float(tube.length_m))
    return Solid(
        pose=tuple(map(float, pose)), rgba=_TUBE_RGBA, form="cylinder", size=size, layer="tube"
    )
