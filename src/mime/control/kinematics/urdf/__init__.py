"""URDF: the file format of robots, read into a `KinematicTree`."""

import os
from collections.abc import Sequence
from pathlib import Path

from mime._files import is_file
from mime._text import shortened
from mime.control.kinematics.tree import KinematicTree
from mime.control.kinematics.urdf.elements import (
    read_joint,
    read_limits,
    read_link,
    read_transmissions,
)
from mime.control.kinematics.urdf.merge import build_tree
from mime.control.kinematics.urdf.visual import material_notes, read_visuals
from mime.control.kinematics.urdf.xml import UrdfError, ignored_tags, read_xml
from mime.core.arguments import path as path_of
from mime.core.arguments import several, wrong

__all__ = ["UrdfError", "parse_urdf"]


def parse_urdf(
    path: str | os.PathLike,
    *,
    package_dirs: Sequence[str | os.PathLike] = (),
    base: str | None = None,
    allow_unphysical_inertia: bool = False,
) -> KinematicTree:
    """URDF file -> `KinematicTree`.

    Fixed joints are merged; every link stays addressable by `tree.frame(name)`. What is not
    simulated is listed in `tree.ignored`; what cannot be is refused with a `UrdfError`.

    `package_dirs`: where to look for `package://` meshes besides the folders above the file
    (drawing only). `base`: "floating" lets the root fly freely, for which it needs mass and
    inertia; a URDF itself says nothing of it, and None is "fixed". `allow_unphysical_inertia`:
    accept bodies that no mass distribution can have (many published files hold some); they are then
    listed in `tree.ignored`.
    """
    path = path_of("path", path)
    folders = [path_of("package_dirs", folder) for folder in several("package_dirs", package_dirs)]
    if base not in (None, "fixed", "floating"):
        raise wrong("base", "'fixed' or 'floating'", base)
    robot = read_xml(path)
    if robot.tag != "robot":
        raise robot.error(
            f"the root element is <{robot.tag}>; expected <robot>. Convert it to URDF."
        )
    if any(part.tag.startswith("xacro:") for part in robot.iter()):
        raise robot.error(
            "the file holds xacro macros; expected plain URDF. Expand it with `xacro` first."
        )
    notes = list(ignored_tags(robot))
    links = _by_name([read_link(e) for e in robot.findall("link")])
    joints = _by_name([read_joint(e) for e in robot.findall("joint")])
    if not links:
        raise robot.error(
            "<robot> has no <link>, so there is nothing to simulate. Export the URDF again."
        )
    for joint in joints.values():
        notes += read_limits(joint)
    notes += read_transmissions(robot.findall("transmission"), joints)
    visuals = read_visuals(robot, folders)
    notes += material_notes(robot)
    notes += [
        f"mesh not found: {shortened(visual.mesh_path, 300)}"
        for visual in visuals
        if visual.mesh_path is not None and not is_file(Path(visual.mesh_path))
    ]
    return build_tree(
        robot, links, joints, visuals, notes, allow_unphysical_inertia, base or "fixed"
    )


def _by_name(items: list) -> dict:
    found: dict = {}
    for item in items:
        if item.name in found:
            raise item.element.error(
                f"{item.element.label} is there twice, first on line "
                f"{found[item.name].element.line}. "
                "Names must be unique: rename one."
            )
        found[item.name] = item
    return found
