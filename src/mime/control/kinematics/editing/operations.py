"""Trees made of trees: a payload, a joint locked, a part, two robots as one, a named frame."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import brief, counted, nearest, quoted
from mime.control.kinematics.editing.arrays import (
    inverse,
    moved,
    number,
    numpy_or_jax,
    placement,
    stacked,
)
from mime.control.kinematics.editing.bodies import ROOT, RigidBody
from mime.control.kinematics.editing.checks import (
    base_problems,
    frame_of,
    mass_problems,
    number_problems,
    pose_problems,
    refused,
)
from mime.control.kinematics.editing.compensation import of_two
from mime.control.kinematics.editing.drives import of_both
from mime.control.kinematics.editing.restructure import body_of, restructured
from mime.control.kinematics.editing.transmission import OF_DRIVES, drives_of_both
from mime.core.parameters import known
from mime.core.problem import Problem


def with_payload(tree: Any, link: str, mass_kg: Any, com_m: Any, inertia_kg_m2: Any) -> Any:
    """The tree with a body fixed to a link."""
    inertia = np.zeros((3, 3)) if inertia_kg_m2 is None else inertia_kg_m2
    found = [
        *number_problems("mass_kg", mass_kg, (), "kg"),
        *number_problems("com_m", com_m, (3,), "m"),
        *number_problems("inertia_kg_m2", inertia, (3, 3), "kg·m²"),
    ]
    if found := found or list(mass_problems(mass_kg, inertia)):
        raise refused(tree, found)
    link_idx, offset = frame_of(tree, link, ("link",))
    payload = RigidBody(*map(number, (mass_kg, com_m, inertia))).seen_from(offset)
    body = body_of(tree, link_idx).joined(payload)
    return _with_body(tree, link_idx, body)


def lock(tree: Any, positions: Mapping[str, Any]) -> Any:
    """The tree with some joints held: their links are parts of what carries them."""
    found = []
    for joint, position in positions.items():
        if joint not in tree.joint_names:
            if joint in tree.link_joint_names:
                master = tree.coordinate_idxs[tree.link_joint_names.index(joint)]
                hint = f"Lock {tree.joint_names[master]!r}, which it mimics"
                found.append(Problem((joint,), "mimics another, which is to be locked", hint))
                continue
            near = nearest(str(joint), tree.joint_names, 3)
            hint = f"It has {counted(str(joint), tree.joint_names, 'joint')}"
            found.append(Problem((joint,), f"is no joint{near}", hint))
            continue
        wrong = list(number_problems(joint, position, (), "rad"))
        found += wrong
        limits = tree.joint_limits[tree.joint_names.index(joint)]
        if not wrong and known(position, limits):
            lower, upper = np.asarray(limits)
            if not lower <= float(position) <= upper:
                message = f"must be from {lower:g} to {upper:g}, the joint's limits"
                found.append(Problem((joint,), f"{message}; got {float(position):g}"))
    if found:
        raise refused(tree, found)
    held = {tree.joint_names.index(joint): number(x) for joint, x in positions.items()}
    moving = [i for i, c in enumerate(tree.coordinate_idxs) if c not in held]
    fixed: dict[int, tuple[int, Any]] = {ROOT: (ROOT, np.eye(4))}
    for i, c in enumerate(tree.coordinate_idxs):
        if c in held:
            x = tree.mimic_multiplier[i] * held[c] + tree.mimic_offset[i]
            X = tree.joint_frames[i] @ moved(tree.joint_axes_local[i], x, _slides(tree, i))
            at, T = fixed.get(tree.parent_idxs[i], (tree.parent_idxs[i], np.eye(4)))
            fixed[i] = (at, T @ X)
    return restructured(tree, moving, fixed)


def subtree(tree: Any, root: str, tip: str | None) -> Any:
    """The links from `root`, which stands still now, to `tip`, or all that hang on it.

    Where no joint moves one of them they are one rigid body.
    """
    base, offset = frame_of(tree, root, ("root",))
    if tip is None:
        moving = [i for i in range(tree.num_links) if i != base and base in _path(tree, i)]
    else:
        end, _ = frame_of(tree, tip, ("tip",))
        path = _path(tree, end)
        if base not in path:
            message = f"{tip!r} does not hang on {root!r}"
            raise refused(tree, [Problem(("tip",), message, "Choose a link that carries it")])
        moving = path[: path.index(base)][::-1]
    part = restructured(tree, moving, {base: (ROOT, inverse(offset))}, root)
    return part if base == ROOT else dataclasses.replace(part, base="fixed")


def with_base(tree: Any, base: str) -> Any:
    """The tree with a root that stands still, or floats."""
    if found := list(base_problems(tree, base)):
        raise refused(tree, found)
    return dataclasses.replace(tree, base=base)


def attach(tree: Any, other: Any, link: str, pose: Any, prefix: str) -> Any:
    """Both robots as one tree: `other`'s root is fixed to `link`."""
    at, offset = frame_of(tree, link, ("link",))
    if found := list(pose_problems("pose", pose)):
        raise refused(tree, found)
    found = [
        Problem(("prefix",), f"must tell the robots' {what}s apart; both have {quoted(shared)}")
        for what, names in (("link", "frame_names"), ("joint", "link_joint_names"))
        if (shared := sorted({prefix + n for n in getattr(other, names)} & {*getattr(tree, names)}))
    ]
    if found:
        raise refused(tree, found)
    T = offset @ placement(pose)
    on_root = body_of(tree, at).joined(other.root_body.seen_from(T))
    L, N = tree.num_links, tree.num_joints

    def both(name: str) -> Any:
        first, second = getattr(tree, name), getattr(other, name)
        return numpy_or_jax(first, second).concatenate([first, second])

    def named(name: str) -> tuple[str, ...]:
        return (*getattr(tree, name), *(prefix + entry for entry in getattr(other, name)))

    def place(link_idx: int, offset: Any) -> Any:
        return T @ offset if link_idx == ROOT else offset

    parents = zip(other.parent_idxs, other.joint_frames, strict=True)
    frames = zip(other.frame_link_idxs, other.frame_offsets, strict=True)
    joined = dataclasses.replace(
        tree,
        joint_frames=stacked(
            [*tree.joint_frames, *(place(p, X) for p, X in parents)], tree.joint_frames
        ),
        **{name: both(name) for name in (*_OF_LINKS, "joint_limits", *OF_DRIVES)},
        frame_offsets=stacked([*tree.frame_offsets, *(place(k, X) for k, X in frames)]),
        **{name: named(name) for name in _NAMES},
        joint_kinds=(*tree.joint_kinds, *other.joint_kinds),
        parent_idxs=(*tree.parent_idxs, *(at if p == ROOT else L + p for p in other.parent_idxs)),
        coordinate_idxs=(*tree.coordinate_idxs, *(N + c for c in other.coordinate_idxs)),
        frame_link_idxs=(
            *tree.frame_link_idxs,
            *(at if k == ROOT else L + k for k in other.frame_link_idxs),
        ),
        visuals=(
            *tree.visuals,
            *(v._replace(frame_name=prefix + v.frame_name) for v in other.visuals),
        ),
        report=(*tree.report, *other.report),
        drive_coupling=drives_of_both(tree, other),
        **of_both(tree, other, prefix),
        **of_two(tree, other, at, T),
    )
    return _with_body(joined, at, on_root)


def with_frame(tree: Any, name: str, link: str, pose: Any) -> Any:
    """The tree with one more name for a place on a link."""
    link_idx, offset = frame_of(tree, link, ("link",))
    found = list(pose_problems("pose", pose))
    if not isinstance(name, str) or not name:
        found.append(Problem(("name",), f"must be a name, a string, got {brief(name)}"))
    elif name in tree.frame_names:
        found.append(Problem(("name",), f"must be new, got {name!r}, which a link has already"))
    if found:
        raise refused(tree, found)
    return dataclasses.replace(
        tree,
        frame_names=(*tree.frame_names, name),
        frame_link_idxs=(*tree.frame_link_idxs, link_idx),
        frame_offsets=stacked([*tree.frame_offsets, offset @ placement(pose)]),
    )


_OF_LINKS = (
    "joint_axes_local",
    "mimic_multiplier",
    "mimic_offset",
    "masses",
    "coms",
    "inertial_shifts",
    "inertias",
)
_NAMES = ("joint_names", "link_names", "link_joint_names", "frame_names")
_PRISMATIC = 1


def _slides(tree: Any, link_idx: int) -> bool:
    return bool(tree.joint_kinds[link_idx] == _PRISMATIC)


def _path(tree: Any, link_idx: int) -> list[int]:
    """The link, all that carry it, and the root."""
    path = [link_idx]
    while path[-1] != ROOT:
        path.append(tree.parent_idxs[path[-1]])
    return path


def _with_body(tree: Any, link_idx: int, body: RigidBody) -> Any:
    """The tree with another body in the place of a link's; its inertial origin stays."""
    if link_idx == ROOT:
        return dataclasses.replace(tree, root_body=body)
    rows = {
        "masses": body.mass,
        "coms": body.com,
        "inertias": body.inertia,
        "inertial_shifts": tree.inertial_origins[link_idx] - body.com,
    }
    changed = {name: _with_row(getattr(tree, name), link_idx, row) for name, row in rows.items()}
    return dataclasses.replace(tree, **changed)


def _with_row(array: Any, index: int, value: Any) -> Any:
    return stacked([value if i == index else row for i, row in enumerate(array)])
