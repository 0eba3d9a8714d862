"""What there is to see of a magnet: its body, and its moment as an arrow."""

import math
from typing import TYPE_CHECKING

from mime.core.drawing import Arrow, Drawing, Frame, Solid, Value

if TYPE_CHECKING:
    from mime.nodes.magnetics.permanent_magnet import PermanentMagnetNode

_BODY_RGBA, _MOMENT_RGBA = (0.62, 0.64, 0.68, 1.0), (0.85, 0.1, 0.1, 1.0)
_FIELD_RGBA = (0.15, 0.35, 0.85, 1.0)
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
