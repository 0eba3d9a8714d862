"""A robot from a file, whichever format it is in."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

from mime._files import read_plain
from mime._text import brief
from mime.control.kinematics.mjcf import parse_mjcf
from mime.control.kinematics.part import Part
from mime.control.kinematics.report import checked_choice
from mime.control.kinematics.tree import KinematicTree
from mime.control.kinematics.urdf import parse_urdf
from mime.control.kinematics.xacro import SUFFIX, parse_xacro
from mime.core.arguments import path as path_of
from mime.core.problem import InputError

_FIRST_BYTES = 2**16


def parse_robot(
    path: str | os.PathLike,
    *,
    base: str | None = None,
    on_problem: str = "warn",
    search_path: Sequence[str | os.PathLike] = (),
    arguments: Mapping[str, Any] | None = None,
    subtree: Part = None,
    lock: Mapping[str, Any] | None = None,
    open_loops: bool = False,
) -> KinematicTree:
    """URDF or MJCF -> `KinematicTree`: the root element says which, `<robot>` or `<mujoco>`.

    A file whose name ends in `.xacro` is expanded first. It is code, and is run: read it first.

    Args:
        path: the file.
        base: "fixed" or "floating"; None is what the file says.
        on_problem: "warn" reads what changes the motion with one warning, "refuse" raises its
            error, "mend" mends inertias, joints without inertia and limits as well
            (docs/robot_files.md has the table).
        search_path: where to look for packages, includes and meshes first.
        arguments: values of the `<xacro:arg>` of a `.xacro` file.
        subtree: the root of the part that is wanted, or `{"root": ..., "tip": ...}`.
        lock: joints held for good, by position in rad or m.
        open_loops: cut closed loops, so that their parts move apart.

    Raises:
        RobotFileError: what has two meanings, or is no machine that MIME simulates.

    """
    file = path_of("path", path)
    checked_choice(on_problem)
    options: Any = {
        "base": base,
        "on_problem": on_problem,
        "search_path": search_path,
        "subtree": subtree,
        "lock": lock,
        "open_loops": open_loops,
    }
    if file.suffix.lower() == SUFFIX:
        return parse_xacro(file, arguments=arguments, **options)
    if arguments:
        raise InputError(
            f"arguments are for xacro, and {file.name!r} is read as it is, got {brief(arguments)}. "
            "Leave them out, or expand the file with `parse_xacro` (--xacro on the command line)"
        )
    if _root_tag(file) == "mujoco":
        return parse_mjcf(file, **options)
    return parse_urdf(file, **options)


def given_tree(robot: KinematicTree | str | os.PathLike[str], on_problem: str) -> KinematicTree:
    """A tree as it is, or that of a file: what a node's `tree` argument takes."""
    if isinstance(robot, KinematicTree):
        return robot
    return parse_robot(robot, on_problem=on_problem)


def _root_tag(file: Path) -> str:
    """The tag that the file begins with; what its name says when that cannot be read."""
    found: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: found.append(tag)
    # The reader of the format says what is wrong.
    with contextlib.suppress(OSError, ValueError, LookupError, expat.ExpatError):
        parser.Parse(read_plain(file, _FIRST_BYTES).lstrip(), False)
    named = "mujoco" if file.suffix.lower() in (".xml", ".mjcf") else "robot"
    return found[0] if found else named
