"""Tables of what there is: a node's parameters, a robot's joints, a motor's figures; with units."""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC
from mime.control.kinematics.tree import KinematicTree
from mime.core.address import find
from mime.core.node import Node
from mime.reporting.node_sheet import documentation
from mime.reporting.numbers import number
from mime.running.recording import parameter_values
from mime.scenarios.node_types import arguments_of

PARAMETERS = ("parameter", "value", "unit", "meaning")
JOINTS = (
    *("joint", "type", "moves", "mass [kg]", "lower", "upper", "effort", "velocity", "armature"),
    "",
)
JOINT_NUMBERS = (3, 4, 5, 6, 7, 8)
KINDS = ("revolute", "prismatic", "continuous")


def trees_of(nodes: Iterable[Node]) -> list[tuple[list[str], KinematicTree]]:
    """The robots of a graph, each once, and the nodes that know it: an arm and its controller."""
    found: list[tuple[list[str], KinematicTree]] = []
    for node in nodes:
        tree = getattr(node, "tree", None)
        if not isinstance(tree, KinematicTree):
            continue
        for names, known in found:
            if _same(tree, known):
                names.append(node.name)
                break
        else:
            found.append(([node.name], tree))
    return found


def parameter_rows(node: Node) -> list[tuple[str, str, str, str]]:
    """Parameters, those of effects too, and options; a robot's own numbers have their own table."""
    specs = node.parameter_specs()
    values: dict[str, Any] = parameter_values({node.name: node})[node.name]
    has_tree = isinstance(getattr(node, "tree", None), KinematicTree)
    words = documentation(type(node))
    rows = []
    for name, value in values.items():
        if has_tree and name.startswith("tree."):
            continue
        spec = find(node, name).spec
        unit, meaning = (spec.unit or "1", spec.doc) if spec else ("1", "")
        rows.append((name, number(np.asarray(value), 6), unit, meaning or words.get(name, "")))
    for name in arguments_of(type(node)):
        value = getattr(node, name, None)
        if name not in specs and isinstance(value, str | bool | int | float):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            unit = "1" if is_number else ""
            rows.append((name, number(value), unit, words.get(name, "")))
    return rows


def joint_rows(tree: KinematicTree) -> list[tuple[str, ...]]:
    """Each moving link with its joint; limits are in the joint's own units."""
    rows = []
    armature = np.asarray(tree.armature)
    for i, joint in enumerate(tree.link_joint_names):
        c = tree.coordinate_idxs[i]
        slides = tree.joint_kinds[i] == JOINT_TYPE_PRISMATIC
        limits = [*tree.joint_limits[c], tree.effort_limits[c], tree.velocity_limits[c]]
        mimics = joint != tree.joint_names[c]
        kind = f"mimics {tree.joint_names[c]}" if mimics else KINDS[tree.joint_kinds[i]]
        shown = [] if mimics else [number(float(x), 4) for x in [*limits, armature[c]]]
        units = "m, N, m/s, kg" if slides else "rad, N·m, rad/s, kg·m²"
        mass = number(float(tree.masses[i]), 4)
        cells = (*shown, units) if shown else ("",) * 6
        rows.append((joint, kind, tree.link_names[i], mass, *cells))
    return rows


def _same(a: KinematicTree, b: KinematicTree) -> bool:
    """Whether two robots are the same one, number by number."""
    if a is b:
        return True
    if (a.source, a.joint_names, a.link_names) != (b.source, b.joint_names, b.link_names):
        return False
    ours, theirs = jax.tree.leaves(a), jax.tree.leaves(b)
    return len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))
