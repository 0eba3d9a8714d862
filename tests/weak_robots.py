"""Robots of any masses: links without any, points on axes, planar inertias, broken triangles.

They are parsed with unit balls as links, and then get their numbers, so that no reader of files has
a say in them.
"""

import dataclasses

import numpy as np

from mime import parse_urdf

BALL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
NOTHING = np.zeros((3, 3))
PLANAR = np.diag([0.0, 0.0, 0.02])
BROKEN = np.diag([0.01, 0.02, 0.05])
"""No body has it: its largest moment is above the other two's sum. It is no planar one either."""


def robot(folder, joints, masses=None, coms=None, inertias=None, root=(0.0, NOTHING), **changed):
    """The tree of joints (parent link, axis, xyz), with (parent, axis, xyz, kind) or with a mimic.

    Links are l0, l1, ... under joints j0, j1, ...; the root is `base`, link -1. A fifth entry
    (master, multiplier) makes a joint mimic another. Masses are 1 kg at their joints if not given.
    """
    text = [f'<robot name="made"><link name="base">{BALL}</inertial></link>']
    for i, (parent, axis, xyz, *rest) in enumerate(joints):
        above = "base" if parent < 0 else f"l{parent}"
        numbers = [" ".join(map(repr, map(float, x))) for x in (axis, xyz)]
        mimic = f'<mimic joint="j{rest[1][0]}" multiplier="{rest[1][1]}"/>' if rest[1:] else ""
        kind = rest[0] if rest else "continuous"
        limit = '<limit lower="-1" upper="1" effort="1e9" velocity="1e9"/>'
        text.append(
            f'<link name="l{i}">{BALL}</inertial></link><joint name="j{i}" type="{kind}">'
            f'<parent link="{above}"/><child link="l{i}"/><axis xyz="{numbers[0]}"/>'
            f'<origin xyz="{numbers[1]}"/>{limit if kind != "continuous" else ""}{mimic}</joint>'
        )
    path = folder / "made.urdf"
    path.write_text("".join([*text, "</robot>"]))
    tree, n = parse_urdf(path, base="floating"), len(joints)
    body = dataclasses.replace(tree.root_body, mass=np.array(root[0]), inertia=np.array(root[1]))
    order = [int(name[1:]) for name in tree.link_names]  # a tree goes along each branch first

    def rows(values, shape, default):
        given = np.full((n, *shape), default) if values is None else np.array(values, float)
        return given.reshape(n, *shape)[order]

    return dataclasses.replace(
        tree,
        masses=rows(masses, (), 1.0),
        coms=rows(coms, (3,), 0.0),
        inertias=rows(inertias, (3, 3), 0.0),
        inertial_shifts=np.zeros((n, 3)),
        root_body=body,
        **{"base": "fixed", **changed},
    )
