"""Builds a `KinematicTree` of URDF records: sorts it, merges fixed links and checks the bodies."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mime._text import nearest, quoted, shortened
from mime.control.kinematics.editing.bodies import NO_BODY, NO_MOMENTS, FirstMoments, RigidBody
from mime.control.kinematics.editing.compensation import Fields, compensated_fields
from mime.control.kinematics.joints_without_inertia import joints_without_inertia
from mime.control.kinematics.physical_inertia import (
    has_negative_moment,
    is_physical,
    nearest_physical_inertia,
)
from mime.control.kinematics.poses import quaternion, without_rounding
from mime.control.kinematics.report import Findings
from mime.control.kinematics.tree import (
    JOINT_TYPE_FIXED,
    JOINT_TYPE_PRISMATIC,
    KinematicTree,
    Visual,
)
from mime.control.kinematics.urdf.elements import UrdfJoint, UrdfLink
from mime.control.kinematics.urdf.xml import LARGEST, Element
from mime.core.pose import IDENTITY_POSE


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
    base: str | None = None,
    open_loops: bool = False,
) -> KinematicTree:
    """The tree of moving bodies, without a report; what is worth a word is added to `found`.

    `base`: None floats where a floating joint says so, and is fixed elsewhere.
    """
    root = _check_topology(robot, links, joints, found, open_loops)
    root, base, start = _release(root, links, joints, base, found)
    visuals = tuple(visual for visual in visuals if visual.frame_name in links)
    bodies, frames = _merge(root, links, joints)
    _judge_inertias(links, frames, base, found)
    for body in bodies:
        _weigh(body)
    masters = _masters([body.joint for body in bodies], joints)
    coordinates = [body.joint for body in bodies if body.joint.mimics is None]
    index = {joint.name: c for c, joint in enumerate(coordinates)}
    for body in bodies:
        if body.joint.mimics is not None:
            _share_with_master(body.joint, *masters[body.joint.name], found)
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
        report=(),
        root_body=_root_body(links, frames),
        base=base,
        base_start_pose_world=start,
        **_compensated(links, frames, len(bodies)),
    )
    if rows := {joint.name: joint.drives for joint in coordinates if joint.drives is not None}:
        tree = tree.with_drives(transmission=rows)
    return _judge_masses(tree, robot, root, links, found)


def _release(
    root: str,
    links: dict[str, UrdfLink],
    joints: dict[str, UrdfJoint],
    base: str | None,
    found: Findings,
) -> tuple[str, str, tuple[float, ...]]:
    """The root, the base and where that starts, after a floating joint at the root was let go.

    `base="fixed"` holds such a joint at its origin.
    """
    floating = [joint for joint in joints.values() if joint.floating]
    if not floating or base == "fixed":
        return root, base or "fixed", IDENTITY_POSE
    joint = floating[0]
    if len(floating) > 1 or joint.parent != root or links[root].mass > 0.0:
        message = "is 'floating'; MIME handles one floating joint, at a root without mass. "
        message += "Split it into joints of one degree of freedom, hold it by "
        message += f"lock={{{joint.name!r}: 0}}, or read the file with base='fixed'."
        raise joint.element.error(f"joint {joint.name!r} {message}", "joint type")
    found.add("floating", joint.element.finding("is 'floating'"))
    carried = {joint.child}
    for other in _outwards(root, joints):
        if other.parent in carried:
            carried.add(other.child)
    for name in [name for name in links if name not in carried]:
        if name != root:
            words = f"stands still beside the base {joint.child!r}"
            found.add("beside", links[name].element.finding(words))
        del links[name]
    for name in [name for name, other in joints.items() if other.parent not in carried]:
        del joints[name]
    x, y, z = (float(entry) for entry in joint.origin[:3, 3])
    return joint.child, "floating", (x, y, z, *map(float, quaternion(joint.origin[:3, :3])))


def _outwards(root: str, joints: dict[str, UrdfJoint]) -> Iterator[UrdfJoint]:
    """All joints, each after that of its parent: depth first, in the order of the file."""
    children: dict[str, list[UrdfJoint]] = {}
    for joint in joints.values():
        children.setdefault(joint.parent, []).append(joint)
    waiting = list(reversed(children.get(root, [])))
    while waiting:
        joint = waiting.pop()
        yield joint
        waiting += reversed(children.get(joint.child, []))


def _check_topology(
    robot: Element,
    links: dict[str, UrdfLink],
    joints: dict[str, UrdfJoint],
    found: Findings,
    open_loops: bool,
) -> str:
    """The root's name, after making sure that the joints span one tree."""
    parent_joint: dict[str, UrdfJoint] = {}
    for joint in list(joints.values()):
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                raise joint.element.error(
                    f"joint {joint.name!r} has {role} link {name!r}, which does not exist"
                    f"{nearest(name, links, 3)}. Add the <link> or correct the name.",
                    "structure",
                )
        if joint.child in parent_joint:
            other = parent_joint[joint.child].name
            if open_loops:
                words = f"is a second parent of link {joint.child!r}, after joint {other!r}"
                found.add("open loop", joint.element.finding(words))
                del joints[joint.name]
                continue
            raise joint.element.error(
                f"link {joint.child!r} is the child of joints {other!r} and "
                f"{joint.name!r}; expected one parent. "
                "MIME simulates trees: take one out by subtree=, or cut it by open_loops=True.",
                "loop",
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
                    "MIME simulates trees: remove one joint.",
                    "structure",
                )
            seen[name] = None
        rooted |= seen.keys()
    roots = [name for name in links if name not in parent_joint]
    if len(roots) != 1:
        raise robot.error(
            f"{len(roots)} root links, {quoted(roots)}; expected one. Join them by fixed joints "
            "or delete the loose ones.",
            "structure",
        )
    return roots[0]


def _merge(
    root: str, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]
) -> tuple[list[Body], dict[str, tuple[int, np.ndarray]]]:
    """Moving bodies, parents first, depth first in the order of the file; and each link's frame."""
    bodies: list[Body] = []
    frames = {root: (-1, np.eye(4))}
    for joint in _outwards(root, joints):
        link_idx, offset = frames[joint.parent]
        pose = offset @ joint.origin
        pose[:3, :3] = without_rounding(pose[:3, :3])
        if joint.kind != JOINT_TYPE_FIXED:
            bodies.append(Body(joint, link_idx, pose))
            link_idx, pose = len(bodies) - 1, np.eye(4)
        if link_idx >= 0:
            bodies[link_idx].parts.append((links[joint.child], pose))
        frames[joint.child] = (link_idx, pose)
    return bodies, frames


def _judge_inertias(
    links: dict[str, UrdfLink],
    frames: dict[str, tuple[int, np.ndarray]],
    base: str,
    found: Findings,
) -> None:
    """Note each inertia that no solid body has; refuse a negative moment of a link that moves."""
    for name, (link_idx, _) in frames.items():
        link = links[name]
        if is_physical(link.inertia, link.mass):
            continue
        element = link.element
        words = f"has principal moments of inertia {_moments(link.inertia)} kg·m²"
        negative = has_negative_moment(link.inertia, link.mass)
        moves = link_idx >= 0 or base == "floating"
        nearest = nearest_physical_inertia(link.inertia)
        how = f"the nearest physical ones are taken: {_moments(nearest)} kg·m²"
        words += "; expected none below 0" if negative else ", the largest above the others' sum"
        finding = element.finding(words, at=element.find("inertial/inertia"))
        if found.add("negative moment" if negative and moves else "inertia", finding, how):
            link.inertia = nearest


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


def _compensated(
    links: dict[str, UrdfLink], frames: dict[str, tuple[int, np.ndarray]], count: int
) -> Fields:
    """c m of all links, summed over those that are one body."""
    if not any(link.gravcomp for link in links.values()):
        return {}
    found = [NO_MOMENTS] * (count + 1)  # the last is the root's, whose index is -1
    for name, (link_idx, pose) in frames.items():
        own = links[name]
        mass = own.gravcomp * own.mass
        part = FirstMoments(mass, mass * own.com).seen_from(pose)
        found[link_idx] = found[link_idx].joined(part)
    return compensated_fields(found[:-1], found[-1])


def _moments(inertia: np.ndarray) -> str:
    """Principal moments in words; noise beside the largest is 0."""
    moments = np.linalg.eigvalsh(inertia)
    noise = 1e-14 * np.max(np.abs(moments))
    return ", ".join(f"{moment:.6g}" for moment in np.where(abs(moments) < noise, 0.0, moments))


def _judge_masses(
    tree: KinematicTree, robot: Element, root: str, links: dict[str, UrdfLink], found: Findings
) -> KinematicTree:
    """Note what has no mass, and with `on_problem="mend"` hold the joints that move none."""
    if not tree.num_links and tree.base == "fixed":
        found.add(
            "no joint",
            robot.finding(f"has {len(links)} link{'s' * (len(links) > 1)} and no moving joint"),
        )
    names = joints_without_inertia(tree)
    held = {name: _rest(tree, name) for name in names if name in tree.joint_names}
    if held and not np.any(tree.masses) and not np.any(tree.inertias):
        words = f"has no mass in any of its {len(links)} links"
        mends = found.add("no mass", robot.finding(words))
        return tree.lock(held) if mends else tree
    mends = False
    for name in names:
        link, how = root, ""
        if name in held:
            i = tree.link_joint_names.index(name)
            link, slides = tree.link_names[i], tree.joint_kinds[i] == JOINT_TYPE_PRISMATIC
            how = f"the joint is held at {held[name]:g} {'m' if slides else 'rad'}"
        what = f"joint {name!r}" if name in held else name
        words = f"moves by {what}, to which no mass or moment gives inertia"
        mends |= found.add("no inertia", links[link].element.finding(words), how)
    return tree.lock(held) if mends and held else tree


def _rest(tree: KinematicTree, joint: str) -> float:
    """0, or the limit of a joint that is next to it."""
    lower, upper = np.asarray(tree.joint_limits, float)[tree.joint_names.index(joint)]
    return float(min(max(0.0, lower), upper))


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
                    f"joint {joint.name!r} mimics {joint.mimics!r}, {what}. Correct its <mimic>.",
                    "structure",
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
            "too, or drop its <mimic>.",
            "structure",
        )


def _share_with_master(
    joint: UrdfJoint, master: UrdfJoint, multiplier: float, offset: float, found: Findings
) -> None:
    """Give the master its follower's friction, rotor and limits."""
    master.damping += multiplier**2 * joint.damping
    master.friction += abs(multiplier) * joint.friction
    armature = joint.gear_ratio**2 * joint.rotor_inertia
    if armature and master.drives is not None:
        words = f"has a rotor, and mimics {master.name!r}, which shares its drives"
        found.add("transmission", joint.element.finding(words))
        armature = 0.0
    master.rotor_inertia += multiplier**2 * armature / master.gear_ratio**2
    if multiplier == 0.0:
        return
    master.velocity = min(master.velocity, joint.velocity / abs(multiplier))
    lower, upper = sorted(
        ((joint.lower - offset) / multiplier, (joint.upper - offset) / multiplier)
    )
    lower, upper = max(master.lower, lower), min(master.upper, upper)
    if lower >= upper:
        words = f"has limits that exclude those of {master.name!r}, which it mimics"
        found.add("mimic limits", joint.element.finding(words))
        return
    master.lower, master.upper = lower, upper
