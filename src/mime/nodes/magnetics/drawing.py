"""What there is to see of a magnet and its moment, and of a swimmer in its tube."""

import itertools
import math
from collections.abc import Iterator
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
_MOST = 120
"""Capsules of a helix."""


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
    """The helix, which is seen to turn, its head, and the tube about it."""
    length = float(swimmer.turns) * float(swimmer.pitch_m)
    shapes: list[Shape] = list(_helix(swimmer))
    if swimmer.head_radius_m is not None:
        b = float(swimmer.head_radius_m)
        at = (0.0, 0.0, 0.5 * length + b, 1.0, 0.0, 0.0, 0.0)
        shapes.append(Solid("swimmer", pose=at, rgba=_SWIMMER_RGBA, form="sphere", size=(b,)))
    if swimmer.tube is not None:
        shapes.append(_tube(swimmer.tube))
    frame = Frame("swimmer", follow=Value("swimmer_pose_world"))
    return Drawing((frame,), tuple(shapes), size_m=2.0 * length)


def _helix(swimmer: "HelicalSwimmerNode") -> Iterator[Solid]:
    """A chain of capsules along the filament."""
    turns, pitch, rho = (float(x) for x in (swimmer.turns, swimmer.pitch_m, swimmer.helix_radius_m))
    phi = np.linspace(-math.pi * turns, math.pi * turns, min(math.ceil(12 * turns), _MOST) + 1)
    sign = 1.0 if swimmer.handedness == "right" else -1.0
    x, y = rho * np.cos(phi), sign * rho * np.sin(phi)
    points = np.stack([x, y, pitch / (2.0 * math.pi) * phi], axis=1)
    for start, end in itertools.pairwise(points):
        way = float(np.linalg.norm(end - start))
        size = (float(swimmer.filament_radius_m), way)
        pose = _pose(0.5 * (start + end), (end - start) / way)
        yield Solid("swimmer", pose=pose, rgba=_SWIMMER_RGBA, form="capsule", size=size)


def _tube(tube: Tube) -> Solid:
    """A glassy cylinder along the tube's axis, fixed in the world."""
    pose = _pose(np.asarray(tube.point_m, float), np.asarray(tube.axis / np.linalg.norm(tube.axis)))
    size = (float(tube.radius_m), float(tube.length_m))
    return Solid(pose=pose, rgba=_TUBE_RGBA, form="cylinder", size=size, layer="tube")


def _pose(place: np.ndarray, direction: np.ndarray) -> tuple[float, ...]:
    """A place, and the quaternion that turns z to a direction; half a turn about x to -z."""
    x, y, z = direction
    turn = np.array([1.0 + z, -y, x, 0.0]) if z > -1.0 + 1e-12 else np.array([0.0, 1.0, 0.0, 0.0])
    return tuple(map(float, (*place, *(turn / np.linalg.norm(turn)))))
