"""A tree as an MJCF.

A link without mass that carries one other gives its joint to that one's body, which is how MJCF
says it. MuJoCo reads no other body that moves without mass, none with a moment of inertia of 0, and
none whose largest moment is above the sum of the other two. Such a tree is refused, or with `mend`
gets what MuJoCo reads: tiny masses and moments, the nearest physical inertia.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mime.control.kinematics.actuator import Keyframe
from mime.control.kinematics.editing.bodies import RigidBody
from mime.control.kinematics.editing.compensation import compensated_of
from mime.control.kinematics.editing.restructure import body_of
from mime.control.kinematics.joint_types import JOINT_TYPE_PRISMATIC
from mime.control.kinematics.mjcf.write_drives import (
    FIRM,
    NO_LIMIT,
    write_actuators,
    write_equalities,
    write_tendons,
)
from mime.control.kinematics.physical_inertia import breaks_triangle, nearest_physical_inertia
from mime.control.kinematics.poses import pose_matrix, quaternion
from mime.control.kinematics.transmission import coupled_joints
from mime.control.kinematics.writing import (
    Comments,
    Xml,
    checked_tree,
    header,
    independent,
    inverse,
    numbers,
    other_frames,
    own_offset,
)
from mime.core.problem import InputError, Problem

LEAST = 1e-15
"""kg and kg·m²: what MuJoCo asks of a body that moves (mjMINVAL)."""
TINY = 1e-14
"""kg and kg·m²: what `mend` gives it where it has less."""
ROUNDING = 1e-12
"""Part of a moment by which centres that are one may differ: sums of bodies are rounded."""
STANDARD_GRAVITY = (0.0, 0.0, -9.80665)


@dataclass
class Body:
    """A body of the file: its link, and the massless links before it whose joints it takes."""

    link: int
    chain: list[int]


def mjcf_text(
    tree: Any,
    origins: Mapping[str, str] | None = None,
    uncertainties: Mapping[str, Any] | None = None,
    unsaid: Sequence[str] = (),
    tendon_limits: Mapping[tuple[str, str], tuple[float, float]] | None = None,
    timestep: float | None = None,
    base_in_world: np.ndarray | None = None,
    actuator_comments: Mapping[str, Sequence[str]] | None = None,
    mend: bool = False,
) -> str:
    """The file's text. `tendon_limits` are those of the sum of two joints: a rotor and its spring.

    `unsaid` goes into the header, with what the tree itself holds and MJCF cannot say, and what
    `mend` has changed.
    """
    comments = Comments(checked_tree(tree), origins, uncertainties)
    bodies = _bodies(tree)
    if not mend and (found := list(_unreadable(tree, bodies))):
        where = f"tree {tree.name!r} as an MJCF (mend=True writes the nearest that MuJoCo reads)"
        raise InputError(where, found)
    xml = Xml()
    xml.open("mujoco", model=tree.name)
    xml.comment(*header(tree, "an MJCF", [*unsaid, *_unsaid(tree, bodies)]))
    xml.tag("compiler", angle="radian", autolimits="true")
    gravity = STANDARD_GRAVITY if tree.gravity_m_per_s2 is None else tree.gravity_m_per_s2
    xml.tag("option", gravity=gravity, timestep=timestep)
    xml.open("worldbody")
    floats = tree.base == "floating"
    base = np.eye(4) if base_in_world is None else base_in_world
    if floats:
        start = np.array(tree.base_start_pose_world)
        base = pose_matrix(start[:3], start[3:])
    wrapped = floats or tree.root_link_name != "world" or not np.array_equal(base, np.eye(4))
    if wrapped:
        root = "base" if tree.root_link_name == "world" else tree.root_link_name
        share = _gravcomp(tree, -1) if floats else None
        xml.open("body", name=root, **_pose(base), gravcomp=share)
    if floats:
        _inertial(xml, body_of(tree, -1), np.eye(4))
        xml.tag("freejoint", name=f"{root}/free")
        _bearer(xml, tree, -1, np.eye(4))
    _sites(xml, other_frames(tree, -1), np.eye(4))
    _geoms(xml, tree, -1, np.eye(4))
    _children(xml, tree, bodies, -1, comments)
    if wrapped:
        xml.close()
    xml.close()
    write_equalities(xml, tree)
    write_tendons(xml, tree, tendon_limits or {})
    write_actuators(xml, tree, actuator_comments or {})
    _keyframes(xml, tree, bodies)
    xml.close()
    return str(xml)


def _bodies(tree: Any) -> dict[int, list[Body]]:
    """The bodies that hang on each link, -1 for the root; in the order of the tree."""
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(tree.parent_idxs):
        children.setdefault(parent, []).append(i)
    bodies: dict[int, list[Body]] = {}
    for parent, found in children.items():
        for i in found:
            chain = [i]
            while _passes_on(tree, chain[-1], children):
                chain.append(children[chain[-1]][0])
            bodies.setdefault(parent, []).append(Body(chain[-1], chain[:-1]))
    passed = {link for found in bodies.values() for body in found for link in body.chain}
    return {parent: found for parent, found in bodies.items() if parent not in passed}


def _massless(tree: Any, i: int) -> bool:
    return float(tree.masses[i]) == 0.0 and not np.any(np.asarray(tree.inertias[i]))


def _passes_on(tree: Any, i: int, children: Mapping[int, list[int]]) -> bool:
    shown = any(visual.frame_name == tree.link_names[i] for visual in tree.visuals)
    alone = len(children.get(i, [])) == 1 and not other_frames(tree, i) and not shown
    part = compensated_of(tree, i)
    relieved = bool(float(part.mass) or np.any(part.moment))
    return alone and _massless(tree, i) and not relieved


def _unsaid(tree: Any, bodies: Mapping[int, list[Body]]) -> Iterator[str]:
    for joint, speed in zip(tree.joint_names, tree.velocity_limits, strict=True):
        if math.isfinite(float(speed)):
            yield f"joint {joint!r} turns at {float(speed)!r} rad/s at most"
    for name, body in _written(tree, bodies):
        mass, moments, _ = _readable(body)
        if mass != float(body.mass):
            yield f"link {name!r} has {float(body.mass)!r} kg: {mass!r} kg are written"
        if not np.allclose(moments, own := _principal(body.inertia)[0], rtol=1e-12, atol=0):
            own_words, words = numbers(own), numbers(moments)
            yield f"link {name!r} has principal moments {own_words} kg·m²: {words} are written"
    if not all(actuator.at_drive for actuator in tree.actuators):
        for c in (c for group in coupled_joints(tree) for c in group):
            if math.isfinite(effort := float(tree.effort_limits[c])):
                yield f"drive {tree.joint_names[c]!r} gives {effort!r} N·m at most"
    yield from _unsaid_compensation(tree)
    for i in range(tree.num_links):
        if not independent(tree, i):
            yield _of_mimic(tree, i)
        if np.any(np.asarray(tree.inertial_shifts[i])):
            yield f"link {tree.link_names[i]!r} has parts fixed to it: they are one body here"
    for visual in tree.visuals:
        if visual.shape == "mesh":
            yield f"the mesh {visual.mesh_path!r} of link {visual.frame_name!r}"


def _unsaid_compensation(tree: Any) -> Iterator[str]:
    for i in (*range(tree.num_links), *([-1] if tree.base == "floating" else [])):
        part = compensated_of(tree, i)
        name = tree.root_link_name if i < 0 else tree.link_names[i]
        mass = float(part.mass)
        if mass == 0.0 and np.any(part.moment):
            moment = numbers(part.moment)
            yield f"link {name!r} is relieved of a moment of {moment} kg·m without a weight"
        elif mass and _gravcomp(tree, i) is None:
            words = f"link {name!r} is relieved of the weight of {mass!r} kg beside its centre"
            yield f"{words}: a body of {TINY:g} kg with that gravcomp says it"


def _of_mimic(tree: Any, i: int) -> str:
    joint, offset = tree.link_joint_names[i], float(tree.mimic_offset[i])
    words = (
        f"joint {joint!r} mimics {tree.joint_names[tree.coordinate_idxs[i]]!r} rigidly: MuJoCo's "
        f"equality is soft; it holds accelerations to about {1 - FIRM:.0e} (solimp) and takes an "
        "error back within some 0.02 s (solref)"
    )
    return words + (f"; set {joint!r} to {offset!r} when all others are 0" if offset else "")


def _children(
    xml: Xml, tree: Any, bodies: Mapping[int, list[Body]], parent: int, comments: Comments
) -> None:
    """Opens and closes the bodies beyond a link, without recursion: chains may be long."""
    waiting: list[tuple[int, Body] | None] = [(parent, b) for b in bodies.get(parent, [])[::-1]]
    while waiting:
        entry = waiting.pop()
        if entry is None:
            xml.close()
            continue
        above, body = entry
        _open_body(xml, tree, above, body, comments)
        waiting.append(None)
        waiting += [(body.link, inner) for inner in bodies.get(body.link, [])[::-1]]


def _open_body(xml: Xml, tree: Any, parent: int, body: Body, comments: Comments) -> None:
    i, own = body.link, own_offset(tree, body.link)
    T = np.eye(4) if parent < 0 else inverse(own_offset(tree, parent))
    links = [*body.chain, i]
    for link in links:
        T = T @ np.asarray(tree.joint_frames[link], float)
    T = T @ own
    xml.comment(*comments.of("link", tree.link_names[i]))
    xml.open("body", name=tree.link_names[i], **_pose(T), gravcomp=_gravcomp(tree, i))
    _inertial(xml, body_of(tree, i), own)
    for at, link in enumerate(links):
        beyond = np.eye(4)
        for further in links[at + 1 :]:
            beyond = beyond @ np.asarray(tree.joint_frames[further], float)
        if independent(tree, link):
            xml.comment(*comments.of("joint", tree.link_joint_names[link]))
        _joint(xml, tree, link, inverse(beyond @ own))
    _sites(xml, other_frames(tree, i), own)
    _geoms(xml, tree, i, own)
    _bearer(xml, tree, i, own)


def _gravcomp(tree: Any, i: int) -> float | None:
    """c where the compensated part of a link is c times its mass, at its centre; else None."""
    part, body = compensated_of(tree, i), body_of(tree, i)
    mass, moment = float(part.mass), np.asarray(part.moment, float)
    off = np.abs(moment - mass * np.asarray(body.com, float))
    if mass == 0.0 or float(body.mass) == 0.0 or np.any(off > ROUNDING * np.abs(moment).max()):
        return None
    return mass / float(body.mass)


def _bearer(xml: Xml, tree: Any, i: int, own: np.ndarray) -> None:
    """A tiny body where a link is relieved of another weight than a part of its own."""
    part = compensated_of(tree, i)
    if float(part.mass) == 0.0 or _gravcomp(tree, i) is not None:
        return
    back, share = inverse(own), float(part.mass) / TINY
    centre = back[:3, :3] @ np.asarray(part.moment, float) / float(part.mass) + back[:3, 3]
    name = tree.root_link_name if i < 0 else tree.link_names[i]
    xml.open("body", name=f"{name}/relieved", pos=centre, gravcomp=share)
    xml.tag("inertial", mass=TINY, pos=np.zeros(3), diaginertia=np.full(3, TINY))
    xml.close()


def _inertial(xml: Xml, body: RigidBody, own: np.ndarray) -> None:
    mass, moments, axes = _readable(body)
    back = inverse(own)
    R = back[:3, :3] @ axes
    centre = back[:3, :3] @ np.asarray(body.com, float) + back[:3, 3]
    plain = np.count_nonzero(R) == 3  # the axes of the link, in some order: no rotation is needed
    if plain:
        moments, R = np.abs(R) @ moments, np.eye(3)
    xml.tag(
        "inertial",
        mass=mass,
        pos=centre,
        quat=None if plain else quaternion(R),
        diaginertia=moments,
    )


def _written(tree: Any, bodies: Mapping[int, list[Body]]) -> Iterator[tuple[str, RigidBody]]:
    """The bodies that move, and so have an inertia in the file, by the names of their links."""
    if tree.base == "floating":
        yield tree.root_link_name, body_of(tree, -1)
    for found in bodies.values():
        for body in found:
            yield tree.link_names[body.link], body_of(tree, body.link)


def _unreadable(tree: Any, bodies: Mapping[int, list[Body]]) -> Iterator[Problem]:
    """What MuJoCo would not read, link by link."""
    for name, body in _written(tree, bodies):
        mass, moments = float(body.mass), _principal(body.inertia)[0]
        found = []
        if mass < LEAST:
            found.append(f"a mass of {mass!r} kg: MuJoCo reads none below {LEAST:g} of what moves")
        if moments[0] < LEAST and (mass >= LEAST or moments.any()):
            what = f"principal moments {numbers(moments)} kg·m²"
            found.append(f"{what}: MuJoCo reads none below {LEAST:g}")
        elif breaks_triangle(body.inertia, mass):
            what = f"principal moments {numbers(moments)} kg·m²"
            found.append(f"{what}: MuJoCo reads none above the sum of the other two")
        if found:
            yield Problem(("link", name), f"has {', and '.join(found)}", label=f"link {name!r}")


def _readable(body: RigidBody) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, principal moments and axes that MuJoCo reads; the body's own where it does.

    Its triangle inequality has no tolerance: what fails by rounding is cut to the sum.
    """
    mass, inertia = float(body.mass), np.asarray(body.inertia, float)
    if breaks_triangle(inertia, mass):
        inertia = nearest_physical_inertia(inertia)
    moments, axes = _principal(inertia)
    small, middle, large = np.where(moments < LEAST, TINY, moments).tolist()
    moments = np.array([small, middle, min(large, small + middle)])
    return mass if mass >= LEAST else TINY, moments, axes


def _principal(inertia: Any) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments in rising order and their axes as columns, right-handed."""
    I = np.asarray(inertia, float)
    if not np.any(I - np.diag(np.diag(I))):
        order = np.argsort(np.diag(I), kind="stable")
        moments, axes = np.diag(I)[order], np.eye(3)[:, order]
    else:
        moments, axes = np.linalg.eigh(I)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments, axes


def _joint(xml: Xml, tree: Any, link: int, link_in_body: np.ndarray) -> None:
    c, own = tree.coordinate_idxs[link], independent(tree, link)
    slides = tree.joint_kinds[link] == JOINT_TYPE_PRISMATIC
    attributes: dict[str, Any] = {}
    if own:
        limits = np.asarray(tree.joint_limits[c], float)
        if np.any(np.isfinite(limits)):
            attributes["range_"] = np.clip(limits, -NO_LIMIT, NO_LIMIT)
        shared = any(c in group for group in coupled_joints(tree))  # `write_tendons` has them
        if not shared:
            attributes |= _positive(
                damping=tree.joint_friction[c],
                frictionloss=tree.joint_coulomb_friction[c],
                armature=tree.armature[c],
            )
        if tree.spring_stiffness_n_m_per_rad is not None:
            spring = _positive(stiffness=tree.spring_stiffness_n_m_per_rad[c])
            attributes |= spring
            attributes |= {"springref": tree.spring_reference_rad[c]} if spring else {}
        effort = float(tree.effort_limits[c])
        if math.isfinite(effort) and not shared:
            attributes["actuatorfrcrange"] = (-effort, effort)
        if tree.joint_names[c] in tree.actuator_compensated_joints:
            attributes["actuatorgravcomp"] = "true"
    at = link_in_body[:3, 3]
    xml.tag(
        "joint",
        name=tree.link_joint_names[link],
        type="slide" if slides else "hinge",
        pos=at if np.any(at) else None,
        axis=link_in_body[:3, :3] @ np.asarray(tree.joint_axes_local[link], float),
        **attributes,
    )


def _positive(**values: Any) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if float(value) != 0.0}


def _sites(xml: Xml, frames: Sequence[tuple[str, np.ndarray]], own: np.ndarray) -> None:
    for name, offset in frames:
        T = inverse(own) @ offset
        xml.tag("site", name=name, **_pose(T))


def _geoms(xml: Xml, tree: Any, link_idx: int, own: np.ndarray) -> None:
    """Shapes to look at: without mass, and they touch nothing."""
    for visual in tree.visuals:
        at = tree.frame_names.index(visual.frame_name)
        if tree.frame_link_idxs[at] != link_idx or visual.shape == "mesh":
            continue
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = _from_rpy(visual.rpy), visual.xyz
        T = inverse(own) @ np.asarray(tree.frame_offsets[at], float) @ T
        size = np.array(visual.size)
        size = size / 2 if visual.shape == "box" else size * [1, 0.5][: len(size)]
        xml.tag(
            "geom",
            type=visual.shape,
            size=size,
            **_pose(T),
            rgba=visual.rgba,
            mass=0.0,
            contype="0",
            conaffinity="0",
        )


def _from_rpy(rpy: Sequence[float]) -> np.ndarray:
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _pose(T: np.ndarray) -> dict[str, Any]:
    """pos and quat, each where it is not the default."""
    R, r = T[:3, :3], T[:3, 3]
    turned = not np.array_equal(R, np.eye(3))
    return {"pos": r if np.any(r) else None, "quat": quaternion(R) if turned else None}


def _free_motion(tree: Any, key: Keyframe) -> tuple[Sequence[float], Sequence[float]]:
    """qpos and qvel of a free joint, which has v in the world's axes and w in the body's."""
    if tree.base == "fixed":
        return (), ()
    pose = key.base_pose_world or tree.base_start_pose_world
    R = pose_matrix(np.zeros(3), np.array(pose[3:]))[:3, :3]
    v, w = np.split(np.array(key.base_twist_world or (0.0,) * 6), 2)
    return pose, [*v.tolist(), *(R.T @ w).tolist()]


def _keyframes(xml: Xml, tree: Any, bodies: Mapping[int, list[Body]]) -> None:
    if not tree.keyframes:
        return
    links: list[int] = []
    waiting = bodies.get(-1, [])[::-1]
    while waiting:
        body = waiting.pop()
        links += [*body.chain, body.link]
        waiting = [*waiting, *bodies.get(body.link, [])[::-1]]

    def spread(values: Sequence[float], constant: bool) -> list[float]:
        return [
            float(tree.mimic_multiplier[i]) * values[tree.coordinate_idxs[i]]
            + constant * float(tree.mimic_offset[i])
            for i in links
        ]

    xml.open("keyframe")
    for key in tree.keyframes:
        pose, twist = _free_motion(tree, key)
        xml.tag(
            "key",
            name=key.name,
            qpos=[*pose, *spread(key.joint_angles, True)],
            qvel=[*twist, *spread(key.joint_velocities, False)],
            ctrl=key.controls or None,
        )
    xml.close()
