"""What there is to see of a vehicle on the floor: body, wheels, walls, and the way it went.

The floor's frame has x to the right, y down the page and z into the floor, so that the nodes'
clockwise headings are turns about z, and what stands on the floor has a negative z.
"""

from typing import Any

import numpy as np

from mime.core.drawing import (
    Boxes,
    Drawing,
    Frame,
    Mount,
    Numbers,
    Prism,
    Shape,
    Solid,
    Trail,
    Value,
)

FLOOR = "floor"
FLOOR_POSE = (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
WALL_HEIGHT_M = 0.05
PLANAR = ("x", "y", "heading [rad]")
_ALONG_Y = (0.70710678118654757, 0.70710678118654757, 0.0, 0.0)
_BODY_RGBA, _TYRE_RGBA = (0.2, 0.45, 0.75, 1.0), (0.15, 0.15, 0.15, 1.0)
_SPOKE_RGBA = (0.9, 0.9, 0.9, 1.0)
_WALL_RGBA, _WAY_RGBA = (0.78, 0.3, 0.25, 1.0), (0.9, 0.5, 0.1, 1.0)


def vehicle_drawing(vehicle: Any) -> Drawing:
    """Of a `DifferentialDriveNode`."""
    r, W = float(vehicle.wheel_radius_m), float(vehicle.track_width_m)
    frames = [
        Frame(FLOOR, pose=FLOOR_POSE),
        Frame("body", FLOOR, follow=Value("pose_world"), planar=True),
    ]
    frames.append(Frame("axle", "body", (0.0, 0.0, -r, 1.0, 0.0, 0.0, 0.0)))
    shapes: list[Shape] = [Trail("axle", rgba=_WAY_RGBA, layer="way", what="way")]
    mounts = []
    width = 0.15 * W
    for side, sign in (("left", -1.0), ("right", 1.0)):
        at = (0.0, sign * 0.5 * W, -r, 1.0, 0.0, 0.0, 0.0)
        turn = Value(f"{side}_wheel_angle", scale=-1.0)
        frames.append(Frame(f"{side} wheel", "body", at, (0.0, 1.0, 0.0), turn=turn))
        wheel = (0.0, 0.0, 0.0, *_ALONG_Y)
        tyre: dict[str, Any] = {"form": "cylinder", "size": (r, width)}
        shapes.append(Solid(f"{side} wheel", wheel, _TYRE_RGBA, **tyre))
        spoke = (1.4 * r, 1.1 * width, 0.15 * r)
        shapes.append(Solid(f"{side} wheel", rgba=_SPOKE_RGBA, size=spoke))
        inside = (0.0, sign * 0.15 * W, -r, *_ALONG_Y)
        kind = "velocity" if vehicle.model == "kinematic" else "torque"
        mounts.append(Mount(f"{side}_wheel_{kind}", 0, "body", 0.3 * W, inside))
    outline = _outline(vehicle, W)
    above = (0.0, 0.0, -2.6 * r, 1.0, 0.0, 0.0, 0.0)
    shapes.append(Prism("body", above, _BODY_RGBA, outline=outline, height=1.2 * r))
    if vehicle.horizontal_walls is not None:
        size, thickness = float(vehicle.cell_size_m), float(vehicle.wall_thickness_m)
        walls = np.asarray(vehicle.horizontal_walls) > 0.5, np.asarray(vehicle.vertical_walls) > 0.5
        boxes = wall_boxes(walls[0], True, size, thickness)
        boxes += wall_boxes(walls[1], False, size, thickness)
        shapes.append(Boxes(FLOOR, rgba=_WALL_RGBA, layer="walls", boxes=boxes))
    names = {"pose_world": PLANAR, "pose_cells": ("column", "row", "heading [rad]")}
    return Drawing(tuple(frames), tuple(shapes), tuple(mounts), names, 4.0 * W)


def wall_boxes(
    standing: np.ndarray,
    horizontal: bool,
    size: float,
    thickness: float,
    height: float = WALL_HEIGHT_M,
) -> tuple[Numbers, ...]:
    """A box for each wall that stands, from post to post; `standing`: of each edge of the grid."""
    along, across = size + thickness, thickness
    found: list[Numbers] = []
    for row, col in np.argwhere(standing).tolist():
        x, y = (col + 0.5, float(row)) if horizontal else (float(col), row + 0.5)
        sides = (along, across) if horizontal else (across, along)
        found.append((x * size, y * size, -0.5 * height, *sides, height))
    return tuple(found)


def _outline(vehicle: Any, W: float) -> tuple[Numbers, ...]:
    """[forward, right] of the body; a plain one where the node has none."""
    if vehicle.outline_m is None:
        return ((-0.6 * W, -0.4 * W), (0.9 * W, -0.4 * W), (0.9 * W, 0.4 * W), (-0.6 * W, 0.4 * W))
    return tuple((float(x), float(y)) for x, y in np.asarray(vehicle.outline_m))
