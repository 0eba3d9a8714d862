"""The elements of a URDF, each read into a record of plain numbers."""

import math
import re
from dataclasses import dataclass, field

import numpy as np

from mime._text import brief
from mime.control.kinematics.poses import without_rounding
from mime.control.kinematics.report import Findings
from mime.control.kinematics.tree import (
    JOINT_TYPE_CONTINUOUS,
    JOINT_TYPE_FIXED,
    JOINT_TYPE_PRISMATIC,
    JOINT_TYPE_REVOLUTE,
)
from mime.control.kinematics.urdf.coupled import couples, read_coupled
from mime.control.kinematics.urdf.known_tags import REDUCTION
from mime.control.kinematics.urdf.xml import (
    LONGEST_TEXT,
    Element,
    attribute,
    child,
    number,
    numbers,
    parsed_numbers,
)

JOINT_TYPES = {
    "revolute": JOINT_TYPE_REVOLUTE,
    "continuous": JOINT_TYPE_CONTINUOUS,
    "prismatic": JOINT_TYPE_PRISMATIC,
    "fixed": JOINT_TYPE_FIXED,
}


@dataclass
class UrdfLink:
    """A <link>: inertia about the centre of mass, in the link's axes."""

    element: Element
    name: str
    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    gravcomp: float = 0.0
    """The part of its weight that something bears: MJCF has that."""


@dataclass
class UrdfJoint:
    """A <joint>, with the gear and rotor of its <transmission>."""

    element: Element
    name: str
    kind: int
    parent: str
    child: str
    origin: np.ndarray
    axis: np.ndarray
    damping: float = 0.0
    friction: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    effort: float = math.inf
    velocity: float = math.inf
    gear_ratio: float = 1.0
    rotor_inertia: float = 0.0
    drives: dict[str, float] | None = None
    """Turns of its motor for one of each joint, where that moves several; see `coupled`."""
    mimics: str | None = None
    multiplier: float = 1.0
    offset: float = 0.0
    floating: bool = False
    """A `floating` joint, which is fixed until `build_tree` lets the base float."""


def rotation_from_rpy(rpy: np.ndarray) -> np.ndarray:
    """R = Rz(yaw) Ry(pitch) Rx(roll), with rounding noise around 0 and ±1 removed."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    R = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return without_rounding(R)


def read_origin(element: Element) -> np.ndarray:
    """4x4 pose of <origin>, the identity when there is none."""
    T = np.eye(4)
    origin = element.find("origin")
    if origin is not None:
        T[:3, :3] = rotation_from_rpy(numbers(origin, "rpy", 3, "0 0 0"))
        T[:3, 3] = numbers(origin, "xyz", 3, "0 0 0")
    return T


def read_link(element: Element, found: Findings) -> UrdfLink:
    """Name and inertia of a <link>; without <inertial> it is massless."""
    link = UrdfLink(element, attribute(element, "name"))
    inertial = element.find("inertial")
    if inertial is not None and inertial.find("mass") is None:
        found.add("half inertial", element.finding("has an <inertial> without <mass>", at=inertial))
    elif inertial is not None:
        T = read_origin(inertial)
        link.mass = number(child(inertial, "mass"), "value")
        if link.mass < 0.0:
            message = f"{element.label} has mass {link.mass} kg; expected 0 or more."
            raise inertial.error(message, "negative")
        link.com = T[:3, 3]
        e = inertial.find("inertia")
        if e is None:
            words = "has an <inertial> without <inertia>"
            found.add("half inertial", element.finding(words, at=inertial))
            return link
        xx, xy, xz, yy, yz, zz = (
            number(e, name, "0" if name in ("ixy", "ixz", "iyz") else None)
            for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        principal = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        link.inertia = T[:3, :3] @ principal @ T[:3, :3].T
    return link


def read_joint(element: Element) -> UrdfJoint:
    """All of a <joint> but its limits."""
    name, kind = attribute(element, "name"), attribute(element, "type")
    floating = kind == "floating"
    if kind not in JOINT_TYPES and not floating:
        raise element.error(
            f"joint {name!r} is {kind!r}; MIME handles {', '.join(JOINT_TYPES)}. "
            f"Split it into joints of one degree of freedom, or hold it by lock={{{name!r}: 0}}.",
            "joint type",
        )
    joint = UrdfJoint(
        element,
        name,
        JOINT_TYPE_FIXED if floating else JOINT_TYPES[kind],
        attribute(child(element, "parent"), "link"),
        attribute(child(element, "child"), "link"),
        read_origin(element),
        np.array([1.0, 0.0, 0.0]),  # URDF's default axis
        floating=floating,
    )
    joint.axis = _read_axis(joint)
    dynamics = element.find("dynamics")
    if dynamics is not None:
        joint.damping = number(dynamics, "damping", "0")
        joint.friction = number(dynamics, "friction", "0")
        if min(joint.damping, joint.friction) < 0.0:
            raise dynamics.error(
                f"joint {name!r}: damping {joint.damping}, friction {joint.friction}; "
                "expected 0 or more, since a negative one feeds energy in.",
                "negative",
            )
    mimic = element.find("mimic")
    if mimic is not None:
        joint.mimics = attribute(mimic, "joint")
        joint.multiplier = number(mimic, "multiplier", "1")
        joint.offset = number(mimic, "offset", "0")
    return joint


def _read_axis(joint: UrdfJoint) -> np.ndarray:
    axis = joint.element.find("axis")
    if axis is None:
        return joint.axis
    xyz = numbers(axis, "xyz", 3)
    largest = np.max(np.abs(xyz))
    if joint.kind == JOINT_TYPE_FIXED:
        return joint.axis  # many exporters write '0 0 0' there
    if largest == 0.0:
        raise axis.error(
            f"joint {joint.name!r} has axis '0 0 0', which is no direction. Give a non-zero vector."
        )
    if largest < 1e-100:
        xyz = xyz / largest  # or its squares would be zero
    return xyz / np.linalg.norm(xyz)


def read_limits(joint: UrdfJoint, found: Findings) -> None:
    """Fill in the joint's limits."""
    limit = joint.element.find("limit")
    values = {} if limit is None else {name: _limit(limit, name) for name in limit.attrib}
    if joint.kind == JOINT_TYPE_FIXED:
        for tag in ("dynamics", "mimic"):
            if joint.element.find(tag) is not None:
                found.add("unused", joint.element.finding(f"is fixed: its <{tag}> is not used"))
        return
    bounded = limit is not None and ("lower" in limit.attrib or "upper" in limit.attrib)
    if joint.kind == JOINT_TYPE_CONTINUOUS:
        if bounded:
            words = "is continuous: lower and upper limit are not used"
            found.add("unused", joint.element.finding(words))
    elif limit is not None and bounded:
        joint.lower, joint.upper = values.get("lower", 0.0), values.get("upper", 0.0)
        if joint.lower > joint.upper:
            words = f"has lower limit {joint.lower}, above upper limit {joint.upper}"
            found.add("swapped", joint.element.finding(words, at=limit))
            joint.lower, joint.upper = joint.upper, joint.lower
        elif joint.kind == JOINT_TYPE_REVOLUTE and look_like_degrees(joint.lower, joint.upper):
            words = f"has limits {joint.lower:g} and {joint.upper:g} rad, which look like degrees"
            found.add("degrees", joint.element.finding(words, at=limit))
    else:
        found.add("unlimited", joint.element.finding("has no <limit lower upper>"))
    for what in ("effort", "velocity"):
        if limit is None or what not in values:
            continue
        value = values[what]
        if value in (0.0, -1.0):
            words = f"has {what} limit {value:g}"
            found.add("no limit", joint.element.finding(words, f"no {what} limit", limit))
            value = math.inf
        elif value < 0.0:
            words = f"has {what} limit {value:g}, below 0"
            found.add("negative limit", joint.element.finding(words, at=limit), f"{-value:g}")
        setattr(joint, what, abs(value))


_DEGREES = 30.0, 720.0


def look_like_degrees(lower: float, upper: float) -> bool:
    """True for bounds of five turns of the joint or more that are multiples of a half.

    Larger ones are how files write that there is no limit.
    """
    low, high = _DEGREES
    halves = all(
        2.0 * bound == round(2.0 * bound) for bound in (lower, upper) if abs(bound) <= high
    )
    return halves and low <= max(abs(lower), abs(upper)) <= high


def _limit(limit: Element, name: str) -> float:
    """A limit as it is: many files write the largest number for none."""
    if name not in ("lower", "upper", "effort", "velocity"):
        return 0.0
    return number(limit, name, largest=math.inf)


def read_transmissions(
    transmissions: list[Element], joints: dict[str, UrdfJoint], found: Findings
) -> None:
    """Gives joints their gear ratios and rotor inertias."""
    names: dict[str, Element] = {}
    driven: dict[str, Element] = {}
    for transmission in transmissions:
        _read_transmission(transmission, joints, found)
        for joint in transmission.findall("joint"):
            first = driven.setdefault(attribute(joint, "name"), transmission)
            if first is transmission:
                continue
            words = f"drives {joint.label}, as does that on line {first.line}"
            if any(part.tag in REDUCTION for one in (first, transmission) for part in one.iter()):
                message = f"{transmission.label} {words}; expected one. Delete one of them."
                raise transmission.error(message, "contradiction")
            found.add("unused", transmission.finding(words))
        if (name := transmission.get("name")) is not None:
            first = names.setdefault(name, transmission)
            if first is not transmission:
                words = f"is there twice, first on line {first.line}"
                found.add("unused", transmission.finding(words))


def _read_transmission(
    transmission: Element, joints: dict[str, UrdfJoint], found: Findings
) -> None:
    """Gives its joints gear ratios and rotor inertias; says when that cannot be done."""
    names = [attribute(e, "name") for e in transmission.findall("joint")]
    placeholders = [part for part in transmission.iter() if _is_placeholder(part)]
    for part in placeholders:
        words = f"of {transmission.label} holds {brief(_text(part), LONGEST_TEXT)}, no number"
        found.add(_lost(transmission), part.finding(words, "its gear and rotor are not used"))
    if placeholders:
        return
    if couples(transmission):
        read_coupled(transmission, joints, found)
        return
    gears = _values(transmission, "mechanicalReduction", "drake:gear_ratio")
    rotors = _values(transmission, "rotorInertia", "drake:rotor_inertia")
    if not gears and not rotors and len(names) < 2:
        return
    left_out = ""
    if len(names) != 1 or len(gears) > 1 or len(rotors) > 1:
        left_out = f"has {len(gears)} gears on {len(names)} joints; one on one is simulated, and"
        left_out += " two on two of a differential or four-bar linkage with rotorInertia"
    elif names[0] not in joints:
        left_out = f"drives joint {names[0]!r}, which does not exist"
    elif joints[names[0]].kind == JOINT_TYPE_FIXED or joints[names[0]].mimics is not None:
        left_out = f"drives joint {names[0]!r}, which has no motion of its own"
    if left_out:
        found.add(_lost(transmission), transmission.finding(left_out))
        return
    joint = joints[names[0]]
    joint.gear_ratio = gears[0] if gears else 1.0
    joint.rotor_inertia = rotors[0] if rotors else 0.0
    if joint.gear_ratio == 0.0 or joint.rotor_inertia < 0.0:
        raise transmission.error(
            f"{transmission.label}: gear ratio {joint.gear_ratio}, rotor inertia "
            f"{joint.rotor_inertia} kg·m²; "
            "expected a ratio other than 0 and an inertia of 0 or more.",
            "negative",
        )


def _lost(transmission: Element) -> str:
    """The rule of a transmission that is not used: without a rotor it changes no motion."""
    rotor = any(part.tag in ("rotorInertia", "drake:rotor_inertia") for part in transmission.iter())
    return "transmission" if rotor else "unused"


def _text(part: Element) -> str:
    """The number of a tag: an attribute, or the text inside."""
    return part.get("value", part.text or "")


def _is_placeholder(part: Element) -> bool:
    """True for words in the place of a number; a number that is written wrongly is none."""
    starts_as_number = re.match(r"\s*[-+.]*(\d|inf|nan)", _text(part), re.IGNORECASE)
    return part.tag in REDUCTION and starts_as_number is None


def _values(transmission: Element, *tags: str) -> list[float]:
    """Numbers of the given tags, anywhere in the transmission: joint, actuator or neither."""
    return [
        float(parsed_numbers(part, f"<{part.tag}> holds ", _text(part), 1)[0])
        for part in transmission.iter()
        if part.tag in tags
    ]
