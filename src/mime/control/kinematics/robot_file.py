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
    on_problem: str = "refuse",
    search_path: Sequence[str | os.PathLike] = (),
    arguments: Mapping[str, Any] | None = None,
) -> KinematicTree:
    """URDF or MJCF -> `KinematicTree`: the root element says which, `<robot>` or `<mujoco>`.

    A file whose name ends in `.xacro` is expanded first. It is code, and is run: read it first.

    `on_problem="refuse"`: what cannot be simulated as it is written is refused. `"report"`: what
    can be mended or left out is, and `tree.report` lists it.

    `base`: "fixed" or "floating"; None is what the file says, an MJCF by a free joint.

    `arguments`: values of the `<xacro:arg>` of a `.xacro` file.
    """
    file = path_of("path", path)
    checked_choice(on_problem)
    if file.suffix.lower() == SUFFIX:
        return parse_xacro(
            file, arguments=arguments, base=base, on_problem=on_problem, search_path=search_path
        )
    if arguments:
        raise InputError(
            f"arguments are for xacro, and {file.name!r} is read as it is, got {brief(arguments)}. "
            "Leave them out, or expand the file with `parse_xacro` (--xacro on the command line)"
        )
    if _root_tag(file) == "mujoco":
        return parse_mjcf(file, base=base, on_problem=on_problem, search_path=search_path)
    return parse_urdf(file, base=base, on_problem=on_problem, search_path=search_path)


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
