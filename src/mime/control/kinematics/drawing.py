"""A tree as a drawing: a frame for every link, its visuals, its inertia, its skeleton.

    T_parent_link = joint frame · turn(axis, multiplier · q + offset)

The same frames serve a run, whose joint angles are recorded, and a robot alone, whose joints a
reader moves. A visual whose mesh cannot be had is drawn as its link's inertia box, or as a cube
where the link has no mass.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC
from mime.control.kinematics.poses import quaternion
from mime.control.kinematics.tree import KinematicTree, Visual
from mime.control.kinematics.urdf.elements import rotation_from_rpy
from mime.core.drawing import (
    ColourScale,
    Drawing,
    Frame,
    Line,
    Mesh,
    Mount,
    Numbers,
    Shape,
    Solid,
    Value,
)

LINK = "link:"
"""Before the name of a moving link: its frame, at its joint. Plain names are the file's links."""
BASE = "link:"
"""The frame of the root; no link has an empty name."""
_INERTIA_RGBA = (0.95, 0.6, 0.1, 0.45)
_SUBSTITUTE_RGBA = (0.6, 0.6, 0.65, 1.0)
_SUBSTITUTE_EDGE = 0.05
"""Of the cube, as a part of the tree's reach."""
_BONE_RGBA = (0.35, 0.4, 0.5, 1.0)
Scale = Callable[[int], ColourScale | None]
"""The colour scale of the joint of a coordinate."""


def tree_drawing(
    tree: KinematicTree,
    angles: str = "q",
    base: Frame | None = None,
    scale: Scale = lambda joint: None,
) -> Drawing:
    """Frames and shapes of a tree whose coordinates are the numbers of the field `angles`.

    `base`: the frame `BASE`; where the file puts the root, if it is not given.
    """
    frames = [base or Frame(BASE, pose=_floats(tree.base_start_pose_world))]
    for i, name in enumerate(tree.link_names):
        parent = tree.parent_idxs[i]
        q = Value(
            angles,
            tree.coordinate_idxs[i],
            float(tree.mimic_multiplier[i]),
            float(tree.mimic_offset[i]),
        )
        slides = tree.joint_kinds[i] == JOINT_TYPE_PRISMATIC
        frames.append(
            Frame(
                LINK + name,
                BASE if parent < 0 else LINK + tree.link_names[parent],
                pose_of(np.asarray(tree.joint_frames[i], float)),
                _floats(tree.joint_axes_local[i]),
                turn=None if slides else q,
                slide=q if slides else None,
            )
        )
    for name, link, offset in zip(tree.frame_names, tree.frame_link_idxs, tree.frame_offsets):
        home = BASE if link < 0 else LINK + tree.link_names[link]
        frames.append(Frame(name, home, pose_of(np.asarray(offset, float)), shown=True))
    shapes = [
        *(_visual(tree, visual, scale) for visual in tree.visuals),
        *_inertia_boxes(tree, hidden=bool(tree.visuals)),
        *_skeleton(tree, hidden=bool(tree.visuals)),
    ]
    names = {angles: tree.joint_names}
    return Drawing(tuple(frames), tuple(shapes), (), names, reach_m(tree))


def mounts(tree: KinematicTree, field: str) -> tuple[Mount, ...]:
    """Where a motor sits that drives a joint: at the joint, its z along the axis."""
    found = []
    for i, parent in enumerate(tree.parent_idxs):
        T = np.asarray(tree.joint_frames[i], float)
        T = T @ _z_along(np.asarray(tree.joint_axes_local[i], float))
        home = BASE if parent < 0 else LINK + tree.link_names[parent]
        if tree.link_joint_names[i] in tree.joint_names:
            joint = tree.coordinate_idxs[i]
            found.append(Mount(field, joint, home, 0.12 * reach_m(tree), pose_of(T)))
    return tuple(found)


def joint_pose(tree: KinematicTree, joint: int) -> tuple[str, Numbers]:
    """The frame that a coordinate moves, and the pose in it whose z is the joint's axis."""
    i = tree.link_joint_names.index(tree.joint_names[joint])
    axis = np.asarray(tree.joint_axes_local[i], float)
    return LINK + tree.link_names[i], pose_of(_z_along(axis))


def reach_m(tree: KinematicTree) -> float:
    """How far the tree reaches, about: its longest chain of links."""
    far = [0.0] * tree.num_links
    for i, parent in enumerate(tree.parent_idxs):
        step = float(np.linalg.norm(np.asarray(tree.joint_frames[i], float)[:3, 3]))
        far[i] = step + (far[parent] if parent >= 0 else 0.0)
    offsets = np.asarray(tree.frame_offsets, float)[:, :3, 3]
    ends = [
        far[link] + float(np.linalg.norm(offset)) if link >= 0 else 0.0
        for link, offset in zip(tree.frame_link_idxs, offsets)
    ]
    return max([0.05, *far, *ends])


def pose_of(T: np.ndarray) -> Numbers:
    """[x y z qw qx qy qz] of a 4x4."""
    return (*_floats(T[:3, 3]), *_floats(quaternion(T[:3, :3])))


def inertia_box(
    mass: float, com: np.ndarray, inertia: np.ndarray
) -> tuple[Numbers, Numbers] | None:
    """Size and pose of the even box of this mass and inertia; None without a mass.

    I = m/12 diag(b² + c², a² + c², a² + b²), hence a² = 6 (I_y + I_z - I_x) / m
    """
    if not mass > 0:
        return None
    moments, axes = np.linalg.eigh(0.5 * (inertia + inertia.T))
    axes = axes if np.linalg.det(axes) > 0 else axes * [1, 1, -1]
    squares = 6.0 * (moments.sum() - 2.0 * moments) / mass
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = axes, com
    return _floats(np.sqrt(np.maximum(squares, 0.0))), pose_of(T)


def _visual(tree: KinematicTree, visual: Visual, scale: Scale) -> Shape:
    link, offset = tree.frame(visual.frame_name)
    T = np.eye(4)
    T[:3, :3] = rotation_from_rpy(np.asarray(visual.rpy))
    T[:3, 3] = visual.xyz
    shared: dict[str, Any] = {
        "frame": BASE if link < 0 else LINK + tree.link_names[link],
        "pose": pose_of(np.asarray(offset, float) @ T),
        "rgba": visual.rgba,
        "scale": None if link < 0 else scale(tree.coordinate_idxs[link]),
    }
    if visual.shape != "mesh":
        return Solid(**shared, form=visual.shape, size=visual.size)
    edge = _SUBSTITUTE_EDGE * reach_m(tree)
    size, pose = _box_of(tree, link) or ((edge, edge, edge), shared["pose"])
    more = {"pose": pose, "rgba": _SUBSTITUTE_RGBA, "size": size}
    substitute = Solid(**{**shared, **more})
    shared |= {"path": visual.mesh_path or "", "stretch": visual.size}
    return Mesh(**shared, substitute=substitute, of=f"link {visual.frame_name!r}")


def _box_of(tree: KinematicTree, link: int) -> tuple[Numbers, Numbers] | None:
    if link < 0:
        body = tree.root_body
        values = body.mass, body.com, body.inertia
    else:
        values = tree.masses[link], tree.coms[link], tree.inertias[link]
    mass, com, inertia = (np.asarray(x, float) for x in values)
    return inertia_box(float(mass), com, inertia)


def _inertia_boxes(tree: KinematicTree, hidden: bool) -> list[Shape]:
    found: list[Shape] = []
    for i in range(-1, tree.num_links):
        box = _box_of(tree, i)
        if box is not None:
            frame = BASE if i < 0 else LINK + tree.link_names[i]
            found.append(Solid(frame, box[1], _INERTIA_RGBA, "inertia boxes", hidden, size=box[0]))
    return found


def _skeleton(tree: KinematicTree, hidden: bool) -> list[Shape]:
    """Lines from joint to joint, and to the links at the ends."""
    found: list[Shape] = []
    ends = [(i, np.asarray(T, float)) for i, T in zip(tree.parent_idxs, tree.joint_frames)]
    ends += [(i, np.asarray(T, float)) for i, T in zip(tree.frame_link_idxs, tree.frame_offsets)]
    for parent, T in ends:
        if np.any(T[:3, 3]):
            frame = BASE if parent < 0 else LINK + tree.link_names[parent]
            points = ((0.0, 0.0, 0.0), _floats(T[:3, 3]))
            shared: dict[str, Any] = {"rgba": _BONE_RGBA, "layer": "skeleton", "hidden": hidden}
            found.append(Line(frame, points=points, **shared))
    return found


def _z_along(axis: np.ndarray) -> np.ndarray:
    """A 4x4 that turns z to an axis."""
    z = axis / np.linalg.norm(axis)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return T


def _floats(values: Any) -> Numbers:
    return tuple(float(x) for x in np.asarray(values, float))
