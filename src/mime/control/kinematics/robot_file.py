"""A robot from a file, whichever format it is in."""

import os
from pathlib import Path
from xml.parsers import expat

from mime.control.kinematics.mjcf import parse_mjcf
from mime.control.kinematics.tree import KinematicTree
from mime.control.kinematics.urdf import parse_urdf
from mime.core.arguments import path as path_of
from mime.core.arguments import wrong

_FIRST_BYTES = 2**16
ON_PROBLEM = ("refuse", "report")


def parse_robot(
    path: str | os.PathLike, *, base: str | None = None, on_problem: str = "refuse"
) -> KinematicTree:
    """URDF or MJCF -> `KinematicTree`: the root element says which, `<robot>` or `<mujoco>`.

    `on_problem="refuse"`: what cannot be simulated as it is written is refused. `"report"`: what
    can be mended or left out is, and `tree.report` lists it.

    `base`: "fixed" or "floating"; None is what the file says, an MJCF by a free joint.
    """
    file = path_of("path", path)
    if on_problem not in ON_PROBLEM:
        raise wrong("on_problem", "'refuse' or 'report'", on_problem)
    if _root_tag(file) == "mujoco":
        return parse_mjcf(file, base=base, on_problem=on_problem)
    return parse_urdf(file, base=base, allow_unphysical_inertia=on_problem == "report")


def _root_tag(file: Path) -> str:
    """The tag that the file begins with; what its name says when that cannot be read."""
    found: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: found.append(tag)
    try:
        with file.open("rb") as stream:
            parser.Parse(stream.read(_FIRST_BYTES), False)
    except (OSError, ValueError, LookupError, expat.ExpatError):
        pass  # the reader of the format says what is wrong
    named = "mujoco" if file.suffix.lower() in (".xml", ".mjcf") else "robot"
    return found[0] if found else named
