"""What the page of a robot alone holds: its drawing, a slider per joint, a table of masses."""

import dataclasses
import math
from typing import Any

import numpy as np

from mime.control.kinematics.drawing import tree_drawing
from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC
from mime.control.kinematics.packages import NO_MESH
from mime.control.kinematics.tree import KinematicTree
from mime.core.drawing import to_data
from mime.replay.codec import Block
from mime.replay.content import shapes_data
from mime.replay.meshes import Meshes

_FREE_TURN, _FREE_SLIDE = math.pi, 1.0
"""What a slider spans, in rad or m, where a joint has no limit."""


def robot_content(tree: KinematicTree, title: str = "") -> tuple[dict[str, Any], Block]:
    """The scene as JSON has it, and the block of its numbers."""
    block = Block()
    notes: list[str] = []
    meshes = Meshes(block)
    drawing = tree_drawing(tree)
    plain = tuple(dataclasses.replace(shape, scale=None) for shape in drawing.shapes)
    shapes = shapes_data(dataclasses.replace(drawing, shapes=plain), meshes, notes)
    shapes = [data for data in shapes if data["kind"] != "none"]
    tables, numbers, more = meshes.packed()
    for data in shapes:
        if data["kind"] == "mesh":
            data["mesh"] = numbers[data.pop("path")]
    # A mesh that is missing is told with what is drawn in its place.
    left_out = [
        f"not simulated: {words}" for words in tree.ignored if not words.startswith(NO_MESH)
    ]
    scene = {
        "title": title or tree.name,
        "about": _about(tree),
        "size": drawing.size_m,
        "frames": [to_data(frame) for frame in drawing.frames],
        "shapes": shapes,
        "meshes": tables,
        "joints": [_joint(tree, j) for j in range(tree.num_joints)],
        "masses": mass_table(tree),
        "notes": [*notes, *more, *left_out],
    }
    return scene, block


def _about(tree: KinematicTree) -> str:
    root = ", a base that floats" if tree.base == "floating" else ""
    return f"{tree.num_joints} joints, {tree.num_links} moving links{root}, {_total(tree):.4g} kg"


def mass_table(tree: KinematicTree) -> list[list[str]]:
    """Headings, then mass, centre of mass and principal moments of each moving link, in words."""
    rows = [["link", "mass [kg]", "centre of mass [m]", "principal moments [kg·m²]"]]
    body = tree.root_body
    if tree.base == "floating":
        moments = np.linalg.eigvalsh(np.asarray(body.inertia, float))
        com = np.asarray(body.com, float)
        root = [tree.root_link_name, f"{float(body.mass):.4g}", _numbers(com), _numbers(moments)]
        rows.append(root)
    for i, name in enumerate(tree.link_names):
        moments = np.linalg.eigvalsh(np.asarray(tree.inertias[i], float))
        com = np.asarray(tree.coms[i], float)
        rows.append([name, f"{float(tree.masses[i]):.4g}", _numbers(com), _numbers(moments)])
    return [*rows, ["all that moves", f"{_total(tree):.4g}", "", ""]]


def _joint(tree: KinematicTree, j: int) -> dict[str, Any]:
    i = tree.link_joint_names.index(tree.joint_names[j])
    slides = tree.joint_kinds[i] == JOINT_TYPE_PRISMATIC
    unit, free = ("m", _FREE_SLIDE) if slides else ("rad", _FREE_TURN)
    low, high = (float(x) for x in np.asarray(tree.joint_limits, float)[j])
    words = [f"{low:.4g} to {high:.4g} {unit}" if math.isfinite(high - low) else "no limits"]
    force = "N" if slides else "N·m"
    for limit, of in ((tree.effort_limits[j], force), (tree.velocity_limits[j], f"{unit}/s")):
        words += [f"{float(limit):.4g} {of}"] if math.isfinite(limit) else []
    ends = low if math.isfinite(low) else -free, high if math.isfinite(high) else free
    value = min(max(0.0, ends[0]), ends[1])
    return {
        "name": tree.joint_names[j],
        "unit": unit,
        "low": ends[0],
        "high": ends[1],
        "value": value,
        "limits": ", ".join(words),
    }


def _total(tree: KinematicTree) -> float:
    root = float(tree.root_body.mass) if tree.base == "floating" else 0.0
    return float(np.sum(np.asarray(tree.masses, float))) + root


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{x:.3g}" for x in values + 0.0)
