"""MJCF: MuJoCo's file format of robots, read into a `KinematicTree` by MuJoCo's own compiler."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mime.control.kinematics.mjcf.build import tree_of
from mime.control.kinematics.mjcf.checks import check
from mime.control.kinematics.mjcf.model import compile_document
from mime.control.kinematics.mjcf.xml import MjcfError, read_document
from mime.control.kinematics.packages import Packages
from mime.control.kinematics.part import Part, part_of
from mime.control.kinematics.report import Findings, checked_base, checked_choice
from mime.control.kinematics.tree import KinematicTree
from mime.core.arguments import path as path_of

__all__ = ["MjcfError", "parse_mjcf"]


def parse_mjcf(
    path: str | os.PathLike,
    *,
    base: str | None = None,
    on_problem: str = "warn",
    search_path: Sequence[str | os.PathLike] = (),
    subtree: Part = None,
    lock: Mapping[str, Any] | None = None,
    open_loops: bool = False,
) -> KinematicTree:
    """MJCF file -> `KinematicTree`, with what MuJoCo's compiler makes of defaults, meshes, units.

    Args:
        path: the file.
        base: a free joint makes its body a base that floats; "fixed" holds it where the file puts
            it. "floating" asks for such a joint, and None takes what the file says.
        on_problem: "warn" reads what changes the motion (tendons, actuators of other kinds, ...)
            with one warning, "refuse" raises its error (docs/robot_files.md has the table).
        search_path: folders to read includes and meshes from, besides those of the file.
        subtree: the root of the part that is wanted, or `{"root": ..., "tip": ...}`.
        lock: joints held for good, by position in rad or m; a ball or a free joint at 0, which is
            where the file puts it. Parts that are taken out are not judged.
        open_loops: cut `connect` and `weld`, so that their bodies move apart.

    Raises:
        MjcfError: what is no tree of hinges and sliders.


    Includes and meshes are read where `mime.control.kinematics.packages` says, and nowhere else. A
    mesh that cannot be had is drawn as a box; where a body takes its mass from it, that is refused.

    """
    path = path_of("path", path)
    checked_choice(on_problem)
    checked_base(base)
    found = Findings(on_problem)
    document = read_document(path, Packages.of(path, search_path), found)
    compiled = compile_document(document, base, subtree, lock)
    check(compiled, found, open_loops)
    tree = dataclasses.replace(tree_of(compiled, found), report=found.settled(MjcfError))
    return part_of(tree, subtree, compiled.selection.locked_hinges)
