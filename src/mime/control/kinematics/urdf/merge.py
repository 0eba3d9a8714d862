"""Builds a `KinematicTree` of URDF records: sorts it, merges fixed links and checks the bodies."""

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from mime._text import nearest, quoted, shortened
from mime.control.kinematics.editing.bodies import NO_BODY, RigidBody
from mime.control.kinematics.editing.checks import base_problems
from mime.control.kinematics.physical_inertia import is_physical, nearest_physical_inertia
from mime.control.kinematics.poses import moved, without_rounding
from mime.control.kinematics.report import Finding, Findings
from mime.control.kinematics.tree import (
    JOINT_TYPE_FIXED,
    JOINT_TYPE_PRISMATIC,
    KinematicTree,
    Visual,
)
from mime.control.kinematics.urdf.elements import UrdfJoint, UrdfLink
from mime.control.kinematics.urdf.xml import LARGEST, Element


@dataclass
class Body:
    """A moving link and everything that is fixed to it."""

    joint: UrdfJoint
    parent_idx: int
    joint_frame: np.ndarray
    parts: list[tuple[UrdfLink, np.ndarray]] = field(default_factory=list)
    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    mended: list[Finding] = field(default_factory=list)

    @property
    def inertial_shift(self) -> np.ndarray:
        """From the centre of mass to the moving link's own `<inertial>` origin (or else frame)."""
        return self.parts[0][0].com - self.com


def build_tree(
    robot: Element,
    links: dict[str, UrdfLink],
    joints: dict[str, UrdfJoint],
    visuals: tuple[Visual, ...],
    found: Findings,
    on_problem: str,
    base: str = "fixed",
) -> KinematicTree:
    """The tree of moving bodies, checked; `found` becomes its `report`, or is refused."""
    root = _check_topology(robot, links, joints)
    bodies, frames = _merge(root, links, joints)
    masters = _masters([body.joint for body in bodies], joints)
    if held := _hold_what_moves_no_mass(bodies, masters):
        found.mended += held
        bodies, frames = _merge(root, links, joints)
    if not bodies and base == "fixed":
        found.settled(on_problem, robot.refusal)  # what was held is told first
        raise robot.error(
            f"{len(links)} links and no moving joint, so there is nothing to simulate. "
            "Add a joint that moves, or let the base float."
        )
    found.mended += [finding for body in bodies for finding in body.mended]
    coordinates = [body.joint for body in bodies if body.joint.mimics is None]
    index = {joint.name: c for c, joint in enumerate(coordinates)}
    for body in bodies:
        if body.joint.mimics is not None:
            found.left_out += _share_with_master(body.joint, *masters[body.joint.name])
    root_body = _root_body(links, frames)
    if base == "floating":  # a base that is held does not show its inertia
        still = [links[name] for name, (link_idx, _) in frames.items() if link_idx < 0]
        inertia, mended = _physical(root_body.inertia, float(root_body.mass), still)
        root_body = dataclasses.replace(root_body, inertia=inertia)
        found.mended += mended
    report = found.settled(on_problem, robot.refusal)
    tree = KinematicTree(
        joint_frames=np.array([body.joint_frame for body in bodies]).reshape(-1, 4, 4),
        joint_axes_local=np.array([body.joint.axis for body in bodies]).reshape(-1, 3),
        mimic_multiplier=np.array([masters[body.joint.name][1] for body in bodies]),
        mimic_offset=np.array([masters[body.joint.name][2] for body in bodies]),
        masses=np.array([body.mass for body in bodies]),
        coms=np.array([body.com for body in bodies]).reshape(-1, 3),
        inertial_shifts=np.array([body.inertial_shift for body in bodies]).reshape(-1, 3),
        inertias=np.array([body.inertia for body in bodies]).reshape(-1, 3, 3),
        joint_friction=np.array([j.damping for j in coordinates]),
        joint_coulomb_friction=np.array([j.friction for j in coordinates]),
        joint_limits=np.array([[j.lower, j.upper] for j in coordinates]).reshape(-1, 2),
        effort_limits=np.array([j.effort for j in coordinates]),
        velocity_limits=np.array([j.velocity for j in coordinates]),
        gear_ratio=np.array([j.gear_ratio for j in coordinates]),
        rotor_inertia=np.array([j.rotor_inertia for j in coordinates]),
        frame_offsets=np.array([offset for _, offset in frames.values()]),
        name=robot.get("name", robot.path.stem),
        source=str(robot.path),
        joint_names=tuple(j.name for j in coordinates),
        link_names=tuple(body.joint.child for body in bodies),
        link_joint_names=tuple(body.joint.name for body in bodies),
        root_link_name=root,
        joint_kinds=tuple(body.joint.kind for body in bodies),
        parent_idxs=tuple(body.parent_idx for body in bodies),
        coordinate_idxs=tuple(index[masters[body.joint.name][0].name] for body in bodies),
        frame_names=tuple(frames),
        frame_link_idxs=tuple(link_idx for link_idx, _ in frames.values()),
        visuals=visuals,
        report=report,
        root_body=root_body,
        base=base,
    )
    for problem in base_problems(tree, base):
        raise links[root].element.error(f"base {problem.message}. {problem.hint}.")
    return tree


def _check_topology(
    robot: Element, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]
) -> str:
    """The root's name, after making sure that the joints span one tree."""
    parent_joint: dict[str, UrdfJoint] = {}
    for joint in joints.values():
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                raise joint.element.error(
                    f"joint {joint.name!r} has {role} link {name!r}, which does not exist"
                    f"{nearest(name, links, 3)}. "
                    "Add the <link> or correct the name."
                )
        if joint.child in parent_joint:
            other = parent_joint[joint.child].name
            raise joint.element.error(
                f"link {joint.child!r} is the child of joints {other!r} and "
                f"{joint.name!r}; expected one parent. "
                "MIME simulates trees: open the loop by removing a joint."
            )
        parent_joint[joint.child] = joint
    rooted: set[str] = set()
    for start in links:
        seen = {start: None}
        name = start
        while name in parent_joint and name not in rooted:
            name = parent_joint[name].parent
            if name in seen:
                around = [*list(seen)[list(seen).index(name) :], name]
                raise parent_joint[name].element.error(
                    f"the joints form a cycle: {shortened(' <- '.join(around), 500)}. "
                    "MIME simulates trees: remove one joint."
                )
            seen[name] = None
        rooted |= seen.keys()
    roots = [name for name in links if name not in parent_joint]
    if len(roots) != 1:
        raise robot.error(
            f"{len(roots)} root links, {quoted(roots)}; expected one. Join them by fixed joints "
            "or delete the loose ones."
        )
    return roots[0]


def _merge(
    root: str, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]
) -> tuple[list[Body], dict[str, tuple[int, np.ndarray]]]:
    """Moving bodies, parents first, depth first in the order of the file; and each link's frame."""
    children: dict[str, list[UrdfJoint]] = {}
    for joint in joints.values():
        children.setdefault(joint.parent, []).append(joint)
    bodies: list[Body] = []
    frames = {root: (-1, np.eye(4))}
    waiting = list(reversed(children.get(root, [])))
    while waiting:
        joint = waiting.pop()
        link_idx, offset = frames[joint.parent]
        pose = offset @ joint.origin
        pose[:3, :3] = without_rounding(pose[:3, :3])
        if joint.kind != JOINT_TYPE_FIXED:
            bodies.append(Body(joint, link_idx, pose))
            link_idx, pose = len(bodies) - 1, np.eye(4)
        if link_idx >= 0:
            bodies[link_idx].parts.append((links[joint.child], pose))
        frames[joint.child] = (link_idx, pose)
        waiting += reversed(children.get(joint.child, []))
    for body in bodies:
        _weigh(body)
        _make_physical(body)
    return bodies, frames


def _weigh(body: Body) -> None:
    """Sums: m = Σ m_k, c = Σ m_k c_k / m, I = Σ R_k I_k R_kᵀ + m_k (d² 1 - d dᵀ), d = c_k - c."""
    heavy = [(link, pose) for link, pose in body.parts if link.mass > 0.0 or np.any(link.inertia)]
    body.mass = sum((link.mass for link, _ in heavy), 0.0)
    centres = [pose[:3, :3] @ link.com + pose[:3, 3] for link, pose in heavy]
    if len(heavy) == 1:
        body.com = centres[0]  # m c / m would lose the last digit
    elif body.mass > 0.0:
        body.com = (
            sum(link.mass * c for (link, _), c in zip(heavy, centres, strict=True)) / body.mass
        )
    for (link, pose), centre in zip(heavy, centres, strict=True):
        d = centre - body.com
        body.inertia = (
            body.inertia
            + pose[:3, :3] @ link.inertia @ pose[:3, :3].T
            + link.mass * (d @ d * np.eye(3) - np.outer(d, d))
        )
    body.inertia = (body.inertia + body.inertia.T) / 2


def _root_body(links: dict[str, UrdfLink], frames: dict[str, tuple[int, np.ndarray]]) -> RigidBody:
    """All that stands still, as one body."""
    whole = NO_BODY
    for name, (link_idx, pose) in frames.items():
        if link_idx < 0:
            own = links[name]
            whole = whole.joined(RigidBody(own.mass, own.com, own.inertia).seen_from(pose))
    return whole


def _make_physical(body: Body) -> None:
    """Mends an inertia that no distribution of mass has; says so."""
    links = [link for link, _ in body.parts]
    body.inertia, body.mended = _physical(body.inertia, body.mass, links)


def _physical(
    inertia: np.ndarray, mass: float, links: list[UrdfLink]
) -> tuple[np.ndarray, list[Finding]]:
    """The inertia of links that are fixed to the first of them, or the nearest physical one."""
    if is_physical(inertia, mass):
        return inertia, []
    mended = nearest_physical_inertia(inertia)
    merged = f"(with {quoted(link.name for link in links[1:])}) "
    words = (
        f"{merged if links[1:] else ''}has principal moments of inertia {_moments(inertia)} kg·m²; "
        "expected none below 0 and the largest at most the sum of the other two"
    )
    how = f"the nearest physical ones are taken: {_moments(mended)} kg·m²"
    element = links[0].element
    return mended, [element.finding(words, how, element.find("inertial/inertia"))]


def _moments(inertia: np.ndarray) -> str:
    """Principal moments in words; noise beside the largest is 0."""
    moments = np.linalg.eigvalsh(inertia)
    noise = 1e-14 * np.max(np.abs(moments))
    return ", ".join(f"{moment:.6g}" for moment in np.where(abs(moments) < noise, 0.0, moments))


def _hold_what_moves_no_mass(bodies: list[Body], masters: "dict[str, Master]") -> list[Finding]:
    """Makes joints fixed that move no mass, themselves or by their mimics: M would be singular.

    Each is held at 0, or at the limit next to it. Nothing that has mass feels the difference.
    """
    moves = [_resistance(body) > 0.0 for body in bodies]
    for i in reversed(range(len(bodies))):
        parent = bodies[i].parent_idx
        if parent >= 0:
            moves[parent] |= moves[i]
    by_master: dict[str, bool] = {}
    for body, moving in zip(bodies, moves, strict=True):
        name = masters[body.joint.name][0].name
        by_master[name] = by_master.get(name, False) or moving
    held = []
    for body in bodies:
        joint = body.joint
        master, multiplier, offset = masters[joint.name]
        if by_master[master.name]:
            continue
        q = multiplier * min(max(0.0, master.lower), master.upper) + offset
        words = (
            f"moves with joint {joint.name!r} but neither it nor a link beyond has mass or inertia "
            "there"
        )
        slides = joint.kind == JOINT_TYPE_PRISMATIC
        how = f"the joint is held at {q:g} {'m' if slides else 'rad'}"
        held.append(body.parts[0][0].element.finding(words, how))
        joint.origin = joint.origin @ moved(joint.axis, q, slides)
        joint.kind, joint.mimics = JOINT_TYPE_FIXED, None
    return held


def _resistance(body: Body) -> float:
    """Mass or inertia of the body alone, as its own joint feels it."""
    c, u = body.com, body.joint.axis
    about_origin = body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
    return body.mass if body.joint.kind == JOINT_TYPE_PRISMATIC else float(u @ about_origin @ u)


Master = tuple[UrdfJoint, float, float]
"""The independent joint behind a chain of mimics:  q_joint = multiplier · q_master + offset."""


def _masters(moving: list[UrdfJoint], joints: dict[str, UrdfJoint]) -> dict[str, Master]:
    """The master of each joint; each link of a chain of mimics is walked once."""
    masters: dict[str, Master] = {}
    for start in moving:
        chain = {start.name: start}
        joint = start
        while joint.mimics is not None and joint.name not in masters:
            if joint.mimics not in joints or joint.mimics in chain:
                near = nearest(joint.mimics, joints, 3)
                known = joint.mimics in joints
                what = "one that mimics it back" if known else f"which does not exist{near}"
                raise joint.element.error(
                    f"joint {joint.name!r} mimics {joint.mimics!r}, {what}. Correct its <mimic>."
                )
            joint = joints[joint.mimics]
            chain[joint.name] = joint
        master, multiplier, offset = masters.setdefault(joint.name, (joint, 1.0, 0.0))
        for joint in list(chain.values())[-2::-1]:
            _check_master(joint, master)
            multiplier, offset = joint.multiplier * multiplier, joint.multiplier * offset
            offset += joint.offset
            if not max(abs(multiplier), abs(offset)) <= LARGEST:
                raise joint.element.error(
                    f"joint {joint.name!r} moves by {multiplier:g} times {master.name!r} plus "
                    f"{offset:g}; expected at most {LARGEST:g}. Correct its <mimic>."
                )
            masters[joint.name] = master, multiplier, offset
    return masters


def _check_master(joint: UrdfJoint, master: UrdfJoint) -> None:
    if master.kind == JOINT_TYPE_FIXED:
        raise joint.element.error(
            f"joint {joint.name!r} mimics {master.name!r}, which is fixed. Make it fixed "
            "too, or drop its <mimic>."
        )


def _share_with_master(
    joint: UrdfJoint, master: UrdfJoint, multiplier: float, offset: float
) -> list[Finding]:
    """The master carries its follower's friction and keeps within its follower's limits."""
    master.damping += multiplier**2 * joint.damping
    master.friction += abs(multiplier) * joint.friction
    if multiplier == 0.0:
        return []
    master.velocity = min(master.velocity, joint.velocity / abs(multiplier))
    lower, upper = sorted(
        ((joint.lower - offset) / multiplier, (joint.upper - offset) / multiplier)
    )
    lower, upper = max(master.lower, lower), min(master.upper, upper)
    if lower >= upper:
        words = f"has limits that exclude those of {master.name!r}, which it mimics"
        return [joint.element.finding(words)]
    master.lower, master.upper = lower, upper
    return []
