"""From MuJoCo's arrays to a `KinematicTree`.

A body of MuJoCo may have several joints, each at a point of its own. The link of a body stands at
its last joint, in the body's axes; a link without mass carries each joint before that one. The
frame of the body itself is `tree.frame(name)`, as is that of each site. A body that flies freely is
the root of the tree, and what stands still beside it is left out.
"""

import dataclasses
import math

import numpy as np

from mime._text import quoted
from mime.control.kinematics.actuator import Actuator, Keyframe
from mime.control.kinematics.mjcf.actuators import drives_of_joints, read_actuators, reason_against
from mime.control.kinematics.mjcf.model import Compiled
from mime.control.kinematics.mjcf.visual import read_visuals
from mime.control.kinematics.poses import moved, pose_matrix, shift
from mime.control.kinematics.report import Findings
from mime.control.kinematics.tree import (
    JOINT_TYPE_CONTINUOUS,
    JOINT_TYPE_FIXED,
    JOINT_TYPE_PRISMATIC,
    JOINT_TYPE_REVOLUTE,
    KinematicTree,
)
from mime.control.kinematics.urdf.elements import UrdfJoint, UrdfLink
from mime.control.kinematics.urdf.merge import build_tree
from mime.core.pose import IDENTITY_POSE


def tree_of(compiled: Compiled, found: Findings) -> KinematicTree:
    """The tree of the model, without a report; what is worth a word is added to `found`."""
    model, document = compiled.model, compiled.document
    actuators, drives = read_actuators(compiled), drives_of_joints(compiled)
    root, *bodies = compiled.bodies
    links = {compiled.body_names[root]: _link(compiled, root)}
    joints: dict[str, UrdfJoint] = {}
    for body in bodies:
        _add_body(compiled, body, links, joints, actuators, drives)
    base = "floating" if root else "fixed"
    tree = build_tree(document.root, links, joints, (), found, base)
    _note_beside(compiled, found)
    _note_compensation(compiled, found)
    names, link_idxs, offsets = _frames(compiled, tree, found)
    order = [compiled.joint_names.index(name) for name in tree.joint_names]
    stiffness, relaxed = _springs(compiled, order)
    gravity = np.zeros(3) if compiled.disabled("mjDSBL_GRAVITY") else model.opt.gravity
    springs = bool(np.any(stiffness))
    return dataclasses.replace(
        tree,
        name=document.root.get("model", document.path.stem),
        source=str(document.path),
        frame_names=names,
        frame_link_idxs=link_idxs,
        frame_offsets=offsets,
        visuals=read_visuals(compiled),
        spring_stiffness_n_m_per_rad=stiffness if springs else None,
        spring_reference_rad=relaxed if springs else None,
        actuator_compensated_joints=tuple(
            name for name in tree.joint_names if _borne_by_actuators(compiled, name)
        ),
        gravity_m_per_s2=(float(gravity[0]), float(gravity[1]), float(gravity[2])),
        actuators=actuators,
        keyframes=_keyframes(compiled, order),
        base_start_pose_world=_start(compiled, model.qpos0) or IDENTITY_POSE,
    )


def _springs(compiled: Compiled, order: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """k = Σ m² k_i and q0 = Σ m k_i (q0_i - o) / k of each coordinate and all that mimic it."""
    model = compiled.model
    k = np.array(model.jnt_stiffness, float)
    if compiled.disabled("mjDSBL_SPRING"):
        k = np.zeros_like(k)
    relaxed = np.array(model.qpos_spring, float)[model.jnt_qposadr]
    pulls = {joint: (k[joint], k[joint] * relaxed[joint]) for joint in order}
    for joint, (master, m, o) in compiled.equalities.masters.items():
        stiffness, pull = pulls.get(master, (0.0, 0.0))
        pull += m * k[joint] * (relaxed[joint] - o)
        pulls[master] = stiffness + m * m * k[joint], pull
    stiffness = np.array([pulls[joint][0] for joint in order])
    pulled = [pulls[j][1] / pulls[j][0] if pulls[j][0] else relaxed[j] for j in order]
    alone = {master for master, _, _ in compiled.equalities.masters.values()}
    pulled = [x if j in alone else relaxed[j] for j, x in zip(order, pulled, strict=True)]
    return stiffness, np.array(pulled)


def _note_beside(compiled: Compiled, found: Findings) -> None:
    """Note what the world holds besides a base that floats; nothing of it moves."""
    model = compiled.model
    words = "stands still beside the base that floats, and is left out"
    for b in range(1, model.nbody):
        if not model.body_parentid[b] and b not in compiled.bodies:
            found.add("beside", compiled.element("bodies", b).finding(words))


def _start(compiled: Compiled, qpos: np.ndarray) -> tuple[float, ...]:
    """Where a base that floats is in a state of MuJoCo's; empty where the base is fixed."""
    if not compiled.root_body:
        return ()
    at = int(compiled.model.jnt_qposadr[compiled.free_joints[0]])
    return tuple(float(x) for x in qpos[at : at + 7])


def _twist(compiled: Compiled, qpos: np.ndarray, qvel: np.ndarray) -> tuple[float, ...]:
    """How it moves there: MuJoCo has v in the world's axes and w in the body's."""
    if not compiled.root_body:
        return ()
    at = int(compiled.model.jnt_dofadr[compiled.free_joints[0]])
    pose = _start(compiled, qpos)
    R = pose_matrix(np.zeros(3), np.array(pose[3:]) / np.linalg.norm(pose[3:]))[:3, :3]
    return tuple(float(x) for x in (*qvel[at : at + 3], *(R @ qvel[at + 3 : at + 6])))


def _link_point(compiled: Compiled, body: int) -> np.ndarray:
    """Where the link of a body stands in the body's frame: at its last joint."""
    joints = compiled.simulated_joints(body)
    return np.array(compiled.model.jnt_pos[joints[-1]]) if joints else np.zeros(3)


def _link(compiled: Compiled, body: int) -> UrdfLink:
    """A body's mass, seen from where its link stands; the world has none."""
    model = compiled.model
    R = pose_matrix(np.zeros(3), model.body_iquat[body])[:3, :3]
    inertia = R @ np.diag(model.body_inertia[body]) @ R.T
    com = np.array(model.body_ipos[body]) - _link_point(compiled, body)
    element = compiled.element("bodies", body) if body else compiled.document.root
    if body in compiled.unweighed:
        return UrdfLink(element, compiled.body_names[body])
    mass, relieved = float(model.body_mass[body]), float(_gravcomp(compiled)[body])
    return UrdfLink(element, compiled.body_names[body], mass, com, inertia, relieved)


def _gravcomp(compiled: Compiled) -> np.ndarray:
    """The part of each body's weight that is compensated; without passive forces MuJoCo has none.

    Nothing is compensated of the world.
    """
    off = compiled.disabled("mjDSBL_SPRING") and compiled.disabled("mjDSBL_DAMPER")
    return np.asarray(compiled.model.body_gravcomp, float) * (not off)


def _borne_by_actuators(compiled: Compiled, joint: str) -> bool:
    flags = compiled.model.jnt_actgravcomp
    return bool(_gravcomp(compiled).any() and flags[compiled.joint_names.index(joint)])


def _note_compensation(compiled: Compiled, found: Findings) -> None:
    """Note all bodies whose weight is compensated in one line, at the first of them."""
    parts = _gravcomp(compiled)
    bodies = [b for b in np.flatnonzero(parts).tolist() if b in compiled.bodies]
    if not bodies:
        return
    least, most = min(parts[bodies]), max(parts[bodies])
    amount = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    words = f"is relieved of gravity (gravcomp {amount})"
    if others := [compiled.body_names[b] for b in bodies[1:]]:
        are = "is" if len(others) == 1 else "are"
        words += f", as {are} {len(others)} more: {quoted(others[:3])}"
        words += ", ..." if len(others) > 3 else ""
    found.add("gravcomp", compiled.element("bodies", bodies[0]).finding(words))


def _add_body(
    compiled: Compiled,
    body: int,
    links: dict[str, UrdfLink],
    joints: dict[str, UrdfJoint],
    actuators: tuple[Actuator, ...],
    drives: dict[int, list[int]],
) -> None:
    model, element = compiled.model, compiled.element("bodies", body)
    name, parent = compiled.body_names[body], int(model.body_parentid[body])
    above = compiled.body_names[parent]
    origin = shift(-_link_point(compiled, parent))
    origin = origin @ pose_matrix(model.body_pos[body], model.body_quat[body])
    simulated = compiled.simulated_joints(body)  # a free joint is held where the file puts it
    if not simulated:
        fixed = UrdfJoint(
            element, f"{name}/fixed", JOINT_TYPE_FIXED, above, name, origin, np.array([1.0, 0, 0])
        )
        joints[_unique(fixed.name, joints)] = fixed
    point = np.zeros(3)
    for j in simulated:
        last = j == simulated[-1]
        own = compiled.joint_names[j]
        child = name if last else _unique(f"{name}/{own}", [*links, *compiled.body_names])
        origin = origin @ shift(model.jnt_pos[j] - point)
        joint = _joint(compiled, j, above, child, origin, actuators, drives.get(j, []))
        joints[own] = joint
        if not last:
            links[child] = UrdfLink(element, child)
        point, above, origin = np.array(model.jnt_pos[j]), child, np.eye(4)
    links[name] = _link(compiled, body)


def _unique(name: str, taken: object) -> str:
    while name in taken:  # type: ignore[operator]
        name += "'"
    return name


def _joint(
    compiled: Compiled,
    j: int,
    parent: str,
    child: str,
    origin: np.ndarray,
    actuators: tuple[Actuator, ...],
    drives: list[int],
) -> UrdfJoint:
    model = compiled.model
    slides = model.jnt_type[j] == compiled.mujoco.mjtJoint.mjJNT_SLIDE
    dof, axis = int(model.jnt_dofadr[j]), np.array(model.jnt_axis[j])
    lower, upper = -math.inf, math.inf
    free = compiled.disabled("mjDSBL_CONSTRAINT")
    if model.jnt_limited[j] and not (free or compiled.disabled("mjDSBL_LIMIT")):
        lower, upper = map(float, model.jnt_range[j])
    kind = JOINT_TYPE_PRISMATIC if slides else JOINT_TYPE_REVOLUTE
    if not slides and math.isinf(lower):
        kind = JOINT_TYPE_CONTINUOUS
    damping, armature = float(model.dof_damping[dof]), float(model.dof_armature[dof])
    for a in drives:  # also of those that are left out: they hang on the joint
        gear = float(model.actuator_gear[a, 0])
        armature += gear**2 * float(model.actuator_armature[a])
        damping += gear**2 * float(model.actuator_damping[a])
    mine = [actuator for actuator in actuators if actuator.joint_name == compiled.joint_names[j]]
    gears = {actuator.gear for actuator in mine if actuator.gear}
    gear = gears.pop() if len(gears) == 1 else 1.0
    effort = sum((actuator.effort for actuator in mine), 0.0) or math.inf
    if _borne_by_actuators(compiled, compiled.joint_names[j]):
        effort = math.inf  # the actuators' own limits are not those of their sum with the weight
    if model.jnt_actfrclimited[j]:
        effort = min(effort, max(map(abs, map(float, model.jnt_actfrcrange[j]))))
    still = free or compiled.disabled("mjDSBL_FRICTIONLOSS")
    master, multiplier, offset = compiled.equalities.of(j)
    position = compiled.equalities.held.get(j)
    if position is not None:
        kind = JOINT_TYPE_FIXED
        origin = origin @ moved(axis, position, slides)
    return UrdfJoint(
        compiled.element("joints", j),
        compiled.joint_names[j],
        kind,
        parent,
        child,
        origin @ moved(axis, -float(model.qpos0[model.jnt_qposadr[j]]), slides),
        axis,
        damping=0.0 if compiled.disabled("mjDSBL_DAMPER") else damping,
        friction=0.0 if still else float(model.dof_frictionloss[dof]),
        lower=lower,
        upper=upper,
        effort=effort or math.inf,
        gear_ratio=gear,
        rotor_inertia=armature / gear**2,
        mimics=None if master == j else compiled.joint_names[master],
        multiplier=multiplier,
        offset=offset,
    )


def _frames(
    compiled: Compiled, tree: KinematicTree, found: Findings
) -> tuple[tuple[str, ...], tuple[int, ...], np.ndarray]:
    """Bodies at their own origins, then sites; a site with the name of a body is `site/NAME`."""
    model = compiled.model
    names, idxs = list(tree.frame_names), list(tree.frame_link_idxs)
    offsets = [np.array(offset) for offset in tree.frame_offsets]
    for body in compiled.bodies:
        i = names.index(compiled.body_names[body])
        offsets[i] = offsets[i] @ shift(-_link_point(compiled, body))
    for site, plain in enumerate(compiled.site_names):
        if int(model.site_bodyid[site]) not in compiled.bodies:
            continue
        name = plain if plain not in names else _unique(f"site/{plain}", names)
        if name != plain:
            words = "has the name of a body or a site"
            element = compiled.element("sites", site)
            found.add("renamed", element.finding(words, f"its frame is {name!r}"))
        body = names.index(compiled.body_names[int(model.site_bodyid[site])])
        names.append(name)
        idxs.append(idxs[body])
        offsets.append(offsets[body] @ pose_matrix(model.site_pos[site], model.site_quat[site]))
    return tuple(names), tuple(idxs), np.array(offsets)


def _keyframes(compiled: Compiled, order: list[int]) -> tuple[Keyframe, ...]:
    model = compiled.model
    controls = [
        int(model.actuator_ctrladr[a])
        for a in range(model.nactuator)
        if not reason_against(compiled, a) and not compiled.disabled("mjDSBL_ACTUATION")
    ]
    names = [model.key(k).name or f"key_{k}" for k in range(model.nkey)]
    return tuple(
        Keyframe(
            names[k],
            tuple(float(model.key_qpos[k, model.jnt_qposadr[j]]) for j in order),
            tuple(float(model.key_qvel[k, model.jnt_dofadr[j]]) for j in order),
            tuple(float(model.key_ctrl[k, c]) for c in controls),
            _start(compiled, model.key_qpos[k]),
            _twist(compiled, model.key_qpos[k], model.key_qvel[k]),
        )
        for k in range(model.nkey)
    )
