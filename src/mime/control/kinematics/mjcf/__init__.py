"""MJCF: MuJoCo's file format of robots, read into a `KinematicTree` by MuJoCo's own compiler."""

import os
from collections.abc import Sequence

from mime.control.kinematics.mjcf.build import tree_of
from mime.control.kinematics.mjcf.checks import check
from mime.control.kinematics.mjcf.model import compile_document
from mime.control.kinematics.mjcf.xml import MjcfError, read_document
from mime.control.kinematics.packages import Packages
from mime.control.kinematics.report import REFUSE_HINT, checked_base, checked_choice, refused
from mime.control.kinematics.tree import KinematicTree
from mime.core.arguments import path as path_of

__all__ = ["MjcfError", "parse_mjcf"]


def parse_mjcf(
    path: str | os.PathLike,
    *,
    base: str | None = None,
    on_problem: str = "refuse",
    search_path: Sequence[str | os.PathLike] = (),
) -> KinematicTree:
    """MJCF file -> `KinematicTree`, with what MuJoCo's compiler makes of defaults, meshes, units.

    `on_problem="refuse"`: what has no counterpart is refused, all of it at once, with a
    `MjcfError`. `"report"`: contacts, tendons, equalities and actuators that are not affine are
    left out and listed in `tree.report`; all else stays refused.

    `base`: a free joint makes its body a base that floats; "fixed" holds it where the file puts it.
    "floating" asks for such a joint, and None takes what the file says.

    Includes and meshes are read where `mime.control.kinematics.packages` says, and nowhere else. A
    mesh that cannot be had is drawn as a box; where a body takes its mass from it, that is refused.
    """
    path = path_of("path", path)
    checked_choice(on_problem)
    checked_base(base)
    compiled = compile_document(read_document(path, Packages.of(path, search_path)), base)
    problems, leavable = check(compiled)
    leavable = [*compiled.document.found.mended, *leavable]
    if on_problem == "refuse" and leavable:
        raise refused(MjcfError, [*problems, *leavable], "" if problems else REFUSE_HINT)
    if problems:
        raise refused(MjcfError, problems)
    return tree_of(compiled, leavable)
