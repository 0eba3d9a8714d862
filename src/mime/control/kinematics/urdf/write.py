"""A tree as a URDF."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mime.control.kinematics.editing.bodies import RigidBody
from mime.control.kinematics.editing.compensation import compensated_of
from mime.control.kinematics.editing.restructure import body_of
from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC
from mime.control.kinematics.poses import rpy_of
from mime.control.kinematics.transmission import coupled_joints
from mime.control.kinematics.urdf.write_drives import unsaid_drives, write_coupled
from mime.control.kinematics.writing import (
    Comments,
    Xml,
    checked_tree,
    header,
    independent,
    numbers,
    other_frames,
    own_offset,
)

NO_LIMIT = 1e300
"""Written where a joint has none: readers ask for an effort and a velocity."""


def urdf_text(
    tree: Any,
    origins: Mapping[str, str] | None = None,
    uncertainties: Mapping[str, Any] | None = None,
) -> str:
    """The file's text."""
    comments = Comments(checked_tree(tree), origins, uncertainties)
    xml = Xml()
    xml.open("robot", name=tree.name)
    xml.comment(*header(tree, "a URDF", _unsaid(tree)))
    names = [_link_name(tree, i) for i in range(tree.num_links)]
    xml.open("link", name=tree.root_link_name)
    _inertial(xml, body_of(tree, -1))
    _visuals(xml, tree, tree.root_link_name)
    xml.close()
    _fixed_links(xml, tree, -1, tree.root_link_name)
    for i, name in enumerate(names):
        xml.comment(*comments.of("link", tree.link_names[i]))
        xml.open("link", name=name)
        _inertial(xml, body_of(tree, i))
        if name == tree.link_names[i]:
            _visuals(xml, tree, name)
        xml.close()
        if name != tree.link_names[i]:
            _fixed(xml, tree, tree.link_names[i], own_offset(tree, i), name)
        _fixed_links(xml, tree, i, name)
    for i in range(tree.num_links):
        parent = tree.parent_idxs[i]
        above = tree.root_link_name if parent < 0 else names[parent]
        if independent(tree, i):
            xml.comment(*comments.of("joint", tree.link_joint_names[i]))
        _joint(xml, tree, i, above, names[i])
    write_coupled(xml, tree)
    shared = {c for group in coupled_joints(tree) for c in group}
    for c, joint in enumerate(tree.joint_names):
        if c in shared:
            continue
        gear, rotor = float(tree.gear_ratio[c]), float(tree.rotor_inertia[c])
        if gear != 1.0 or rotor != 0.0:
            xml.open("transmission", name=f"{joint}_transmission")
            xml.tag("joint", name=joint)
            xml.open("actuator", name=f"{joint}_motor")
            xml.text("mechanicalReduction", numbers(gear))
            xml.text("rotorInertia", numbers(rotor))
            xml.close()
            xml.close()
    xml.close()
    return str(xml)


def _unsaid(tree: Any) -> Iterator[str]:
    if tree.base == "floating":
        yield "that its base floats: read it with base='floating'"
    slides = [k == JOINT_TYPE_PRISMATIC for k in tree.joint_kinds]
    bounds = (tree.effort_limits, tree.velocity_limits)
    if any(not np.isfinite(np.asarray(values)).all() for values in bounds) or any(slides):
        yield f"that a joint has no limit: readers ask for one, and get {NO_LIMIT:g}"
    if tree.spring_stiffness_n_m_per_rad is not None:
        for joint, k, q0 in zip(
            tree.joint_names,
            tree.spring_stiffness_n_m_per_rad,
            tree.spring_reference_rad,
            strict=True,
        ):
            if float(k):
                yield f"joint {joint!r} has a spring of {float(k)!r} N·m/rad about {float(q0)!r}"
    yield from unsaid_drives(tree)
    yield from _compensation(tree)
    if tree.gravity_m_per_s2 is not None:
        yield f"gravity {numbers(tree.gravity_m_per_s2)} m/s²"
    for actuator in tree.actuators:
        yield f"{actuator.kind} {actuator.name!r} on joint {actuator.joint_name!r}"
    for key in tree.keyframes:
        yield f"keyframe {key.name!r}"


def _compensation(tree: Any) -> Iterator[str]:
    for i in (-1, *range(tree.num_links)):
        part = compensated_of(tree, i)
        if float(part.mass) or np.any(part.moment):
            name = tree.root_link_name if i < 0 else tree.link_names[i]
            words = f"link {name!r} is relieved of the weight of {float(part.mass)!r} kg"
            yield f"{words} with the moment {numbers(part.moment)} kg·m"
    for joint in tree.actuator_compensated_joints:
        yield f"actuators bear that of joint {joint!r}, within its effort limit"


def _link_name(tree: Any, link_idx: int) -> str:
    """A URDF link stands at its joint; one whose frame does not gets another name there."""
    name = tree.link_names[link_idx]
    if np.array_equal(own_offset(tree, link_idx), np.eye(4)):
        return str(name)
    return f"{name}/joint"


def _origin(xml: Xml, T: np.ndarray) -> None:
    xml.tag("origin", xyz=T[:3, 3], rpy=rpy_of(T[:3, :3]))


def _inertial(xml: Xml, body: RigidBody) -> None:
    mass, I = float(body.mass), np.asarray(body.inertia, float)
    if mass == 0.0 and not np.any(I):
        return
    xml.open("inertial")
    xml.tag("origin", xyz=body.com, rpy=np.zeros(3))
    xml.tag("mass", value=mass)
    upper = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    xml.tag("inertia", **{f"i{'xyz'[r]}{'xyz'[c]}": I[r, c] for r, c in upper})
    xml.close()


def _fixed_links(xml: Xml, tree: Any, link_idx: int, parent: str) -> None:
    for name, offset in other_frames(tree, link_idx):
        _fixed(xml, tree, name, offset, parent)


def _fixed(xml: Xml, tree: Any, name: str, offset: np.ndarray, parent: str) -> None:
    xml.open("link", name=name)
    _visuals(xml, tree, name)
    xml.close()
    xml.open("joint", name=f"{name}/fixed", type="fixed")
    xml.tag("parent", link=parent)
    xml.tag("child", link=name)
    _origin(xml, offset)
    xml.close()


def _joint(xml: Xml, tree: Any, i: int, parent: str, child: str) -> None:
    c, own = tree.coordinate_idxs[i], independent(tree, i)
    lower, upper = (float(x) for x in tree.joint_limits[c]) if own else (-np.inf, np.inf)
    slides = tree.joint_kinds[i] == JOINT_TYPE_PRISMATIC
    bounded = bool(np.isfinite(lower) or np.isfinite(upper))
    kind = "prismatic" if slides else "revolute" if bounded else "continuous"
    xml.open("joint", name=tree.link_joint_names[i], type=kind)
    xml.tag("parent", link=parent)
    xml.tag("child", link=child)
    _origin(xml, np.asarray(tree.joint_frames[i], float))
    xml.tag("axis", xyz=tree.joint_axes_local[i])
    if own:
        xml.tag("dynamics", damping=tree.joint_friction[c], friction=tree.joint_coulomb_friction[c])
        effort, speed = float(tree.effort_limits[c]), float(tree.velocity_limits[c])
        if bounded or slides or np.isfinite(effort) or np.isfinite(speed):
            ends = {"lower": lower, "upper": upper} if bounded or slides else {}
            both = {**ends, "effort": effort, "velocity": speed}
            xml.tag("limit", **{k: np.clip(v, -NO_LIMIT, NO_LIMIT) for k, v in both.items()})
    else:
        xml.tag(
            "mimic",
            joint=tree.joint_names[c],
            multiplier=tree.mimic_multiplier[i],
            offset=tree.mimic_offset[i],
        )
    xml.close()


def _visuals(xml: Xml, tree: Any, frame: str) -> None:
    for visual in tree.visuals:
        if visual.frame_name != frame:
            continue
        xml.open("visual")
        xml.tag("origin", xyz=visual.xyz, rpy=visual.rpy)
        xml.open("geometry")
        size = visual.size
        if visual.shape == "mesh":
            xml.tag("mesh", filename=visual.mesh_path, scale=size)
        elif visual.shape == "box":
            xml.tag("box", size=size)
        elif visual.shape == "sphere":
            xml.tag("sphere", radius=size[0])
        else:
            xml.tag(visual.shape, radius=size[0], length=size[1])
        xml.close()
        if visual.rgba is not None:
            xml.open("material", name=f"rgba {numbers(visual.rgba)}")
            xml.tag("color", rgba=visual.rgba)
            xml.close()
        xml.close()
