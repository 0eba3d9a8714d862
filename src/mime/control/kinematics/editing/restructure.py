"""A tree of some of the links of another: some still move, some are fixed to those."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.control.kinematics.editing.arrays import number, stacked
from mime.control.kinematics.editing.bodies import ROOT, RigidBody
from mime.control.kinematics.editing.compensation import of_moving
from mime.control.kinematics.editing.drives import of_coordinates
from mime.control.kinematics.editing.transmission import drives_of_coordinates


def body_of(tree: Any, link_idx: int) -> RigidBody:
    """A link's body in its own frame; the root's is what is fixed to it."""
    if link_idx == ROOT:
        return tree.root_body
    return RigidBody(number(tree.masses[link_idx]), tree.coms[link_idx], tree.inertias[link_idx])


def restructured(
    tree: Any,
    moving: Sequence[int],
    fixed: Mapping[int, tuple[int, Any]],
    root_link_name: str | None = None,
) -> Any:
    """The tree in which `moving` links (parents first) keep their joints.

    `fixed` says what each link that no longer moves is fixed to, and where there: a moving link or
    the root, both by their old index. The old root is among them. Others are left out, and so are
    coordinates that move nothing any more.
    """
    new = {ROOT: ROOT} | {old: at for at, old in enumerate(moving)}
    bodies = {old: body_of(tree, old) for old in moving}
    root, *rest = [body_of(tree, k).seen_from(T) for k, (at, T) in fixed.items() if at == ROOT]
    for body in rest:
        root = root.joined(body)
    for link, (at, T) in fixed.items():
        if at != ROOT:
            bodies[at] = bodies[at].joined(body_of(tree, link).seen_from(T))
    joint_frames, parents = [], []
    for link in moving:
        parent, joint_frame = tree.parent_idxs[link], tree.joint_frames[link]
        if parent in fixed:
            parent, T = fixed[parent]
            joint_frame = T @ joint_frame
        joint_frames.append(joint_frame)
        parents.append(new[parent])
    frames = [
        (name, *((link, offset) if link in bodies else (fixed[link][0], fixed[link][1] @ offset)))
        for name, link, offset in zip(
            tree.frame_names, tree.frame_link_idxs, tree.frame_offsets, strict=True
        )
        if link in bodies or link in fixed
    ]
    coordinates = sorted({tree.coordinate_idxs[link] for link in moving})
    links, joints = np.array(moving, dtype=int), np.array(coordinates, dtype=int)
    coms = [bodies[link].com for link in moving]
    origins = tree.inertial_origins
    names = [name for name, _, _ in frames]

    def at_links(name: str) -> Any:
        return tuple(getattr(tree, name)[link] for link in moving)

    return dataclasses.replace(
        tree,
        joint_frames=stacked(joint_frames, tree.joint_frames),
        joint_axes_local=tree.joint_axes_local[links],
        mimic_multiplier=tree.mimic_multiplier[links],
        mimic_offset=tree.mimic_offset[links],
        masses=stacked([bodies[link].mass for link in moving], tree.masses),
        coms=stacked(coms, tree.coms),
        inertial_shifts=stacked(
            [origins[k] - c for k, c in zip(moving, coms, strict=True)], tree.coms
        ),
        inertias=stacked([bodies[link].inertia for link in moving], tree.inertias),
        joint_limits=tree.joint_limits[joints],
        **drives_of_coordinates(tree, coordinates),
        **of_coordinates(tree, coordinates),
        **of_moving(tree, moving, fixed),
        frame_offsets=stacked([offset for _, _, offset in frames]),
        root_body=root,
        joint_names=tuple(tree.joint_names[c] for c in coordinates),
        link_names=at_links("link_names"),
        link_joint_names=at_links("link_joint_names"),
        root_link_name=tree.root_link_name if root_link_name is None else root_link_name,
        joint_kinds=at_links("joint_kinds"),
        parent_idxs=tuple(parents),
        coordinate_idxs=tuple(coordinates.index(c) for c in at_links("coordinate_idxs")),
        frame_names=tuple(names),
        frame_link_idxs=tuple(new[link] for _, link, _ in frames),
        visuals=tuple(visual for visual in tree.visuals if visual.frame_name in names),
    )
