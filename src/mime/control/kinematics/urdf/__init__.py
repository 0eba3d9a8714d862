"""URDF: the file format of robots, read into a `KinematicTree`."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mime.control.kinematics.packages import Packages
from mime.control.kinematics.part import Part, part_of
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
from mime.control.kinematics.urdf.selection import select
from mime.control.kinematics.urdf.visual import read_visuals
from mime.control.kinematics.urdf.xml import Element, UrdfError, read_xml
from mime.core.arguments import path as path_of

__all__ = ["UrdfError", "parse_urdf"]


def parse_urdf(
    path: str | os.PathLike,
    *,
    base: str | None = None,
    on_problem: str = "warn",
    search_path: Sequence[str | os.PathLike] = (),
    subtree: Part = None,
    lock: Mapping[str, Any] | None = None,
    open_loops: bool = False,
) -> KinematicTree:
    """URDF file -> `KinematicTree`.

    Fixed joints are merged; every link stays addressable by `tree.frame(name)`. Masses and inertias
    are those of the file, to the bit. `tree.report` lists what is not simulated as it is written.

    Args:
        path: the file.
        base: "fixed" or "floating": the root flies freely. None is "fixed", unless the root
            carries the robot by a `floating` joint.
        on_problem: "warn" reads what changes the motion with one warning, "refuse" raises its
            error, "mend" mends inertias, joints without inertia and limits as well
            (docs/robot_files.md has the table).
        search_path: where to look for the packages of `package://` meshes first.
        subtree: the root of the part that is wanted, or `{"root": ..., "tip": ...}`.
        lock: joints held for good, by position in rad or m.
        open_loops: cut a link from its second parent.

    Raises:
        UrdfError: what has two meanings, or is no machine.

    """
    path = path_of("path", path)
    checked_choice(on_problem)
    checked_base(base)
    packages = Packages.of(path, search_path)
    found = Findings(on_problem)
    return tree_of(read_xml(path, found), packages, found, base, open_loops, subtree, lock)


def tree_of(
    robot: Element,
    packages: Packages,
    found: Findings,
    base: str | None,
    open_loops: bool = False,
    subtree: Part = None,
    lock: Mapping[str, Any] | None = None,
) -> KinematicTree:
    """The part of a <robot> that is wanted; `found` has what was skipped to read it."""
    if robot.tag != "robot":
        raise robot.error(
            f"the root element is <{robot.tag}>; expected <robot>. Convert it to URDF."
        )
    if any(part.tag.startswith("xacro:") for part in robot.iter()):
        raise robot.error(
            "the file holds xacro macros; expected plain URDF. Xacro is code: read it, then call "
            "`parse_xacro`, pass --xacro on the command line, or give the file the suffix .xacro.",
            "xacro",
        )
    locked = select(robot, subtree, lock)
    find_ignored(robot, found)
    links = _by_name([read_link(e, found) for e in robot.findall("link")])
    joints = _by_name([read_joint(e) for e in robot.findall("joint")])
    if not links:
        raise robot.error(
            "<robot> has no <link>, so there is nothing to simulate. Export the URDF again.",
            "structure",
        )
    for joint in joints.values():
        read_limits(joint, found)
    read_transmissions(robot.findall("transmission"), joints, found)
    visuals = read_visuals(robot, packages, found)
    tree = build_tree(robot, links, joints, visuals, found, base, open_loops)
    tree = dataclasses.replace(tree, report=found.settled(robot.refusal))
    return part_of(tree, subtree, locked)


def _by_name(items: list) -> dict:
    found: dict = {}
    for item in items:
        if item.name in found:
            raise item.element.error(
                f"{item.element.label} is there twice, first on line "
                f"{found[item.name].element.line}. "
                "Names must be unique: rename one.",
                "structure",
            )
        found[item.name] = item
    return found
