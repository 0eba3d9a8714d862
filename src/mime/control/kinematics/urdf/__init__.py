"""URDF: the file format of robots, read into a `KinematicTree`."""

import os
from collections.abc import Sequence

from mime.control.kinematics.packages import Packages
from mime.control.kinematics.report import Findings, checked_base, checked_choice
from mime.control.kinematics.tree import KinematicTree
from mime.control.kinematics.urdf.elements import (
    read_joint,
    read_limits,
    read_link,
    read_transmissions,
)
from mime.control.kinematics.urdf.known_tags import find_ignored
from mime.control.kinematics.urdf.merge import build_tree
from mime.control.kinematics.urdf.visual import read_visuals
from mime.control.kinematics.urdf.xml import Element, UrdfError, read_xml
from mime.core.arguments import path as path_of

__all__ = ["UrdfError", "parse_urdf"]


def parse_urdf(
    path: str | os.PathLike,
    *,
    base: str | None = None,
    on_problem: str = "refuse",
    search_path: Sequence[str | os.PathLike] = (),
) -> KinematicTree:
    """URDF file -> `KinematicTree`.

    Fixed joints are merged; every link stays addressable by `tree.frame(name)`. What is not
    simulated is listed in `tree.report`; what cannot be is refused with a `UrdfError`.

    `on_problem="refuse"`: a file with a mistake is refused, with all that can be mended at once.
    `"report"`: an inertia that no body has becomes the nearest physical one, ends of a limit that
    are swapped are put right, ... (docs/robot_files.md has them all), and `tree.report` lists each
    with file and line. What has no safe mending stays refused.

    `base`: "floating" lets the root fly freely, for which it needs mass and inertia; a URDF itself
    says nothing of it, and None is "fixed".

    `search_path`: where to look for the packages of `package://` meshes before anywhere else
    (`mime.control.kinematics.packages` has the rule); a mesh that is not found is drawn as a box.
    """
    path = path_of("path", path)
    checked_choice(on_problem)
    checked_base(base)
    packages = Packages.of(path, search_path)
    found = Findings()
    return tree_of(read_xml(path, found), packages, found, on_problem, base)


def tree_of(
    robot: Element, packages: Packages, found: Findings, on_problem: str, base: str | None
) -> KinematicTree:
    """The tree of a <robot>; `found` has what was mended to read it."""
    if robot.tag != "robot":
        raise robot.error(
            f"the root element is <{robot.tag}>; expected <robot>. Convert it to URDF."
        )
    if any(part.tag.startswith("xacro:") for part in robot.iter()):
        raise robot.error(
            "the file holds xacro macros; expected plain URDF. Xacro is code: read it, then call "
            "`parse_xacro`, pass --xacro on the command line, or give the file the suffix .xacro."
        )
    find_ignored(robot, found)
    links = _by_name([read_link(e) for e in robot.findall("link")])
    joints = _by_name([read_joint(e) for e in robot.findall("joint")])
    if not links:
        raise robot.error(
            "<robot> has no <link>, so there is nothing to simulate. Export the URDF again."
        )
    for joint in joints.values():
        read_limits(joint, found)
    read_transmissions(robot.findall("transmission"), joints, found)
    visuals = read_visuals(robot, packages, found)
    return build_tree(robot, links, joints, visuals, found, on_problem, base or "fixed")


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
