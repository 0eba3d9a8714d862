"""Transmissions of two motors on two joints, as ros2_control's `transmission_interface` has them.

    DifferentialTransmission:      theta_1 = n_a1 (n_j1 q_1 + n_j2 q_2)
                                   theta_2 = n_a2 (n_j1 q_1 - n_j2 q_2)
    FourBarLinkageTransmission:    theta_1 = n_a1 n_j1 q_1
                                   theta_2 = n_a2 (q_1 + n_j2 q_2)

n_a and n_j are the `mechanicalReduction`s of actuators and joints, 1 where there is none. Torques
follow from these angles, tau = Tᵀ tau_motor. (What ros2_control says of the four-bar linkage's
efforts is not the transpose, and does not conserve power.) The motor of `actuator1` gets the name
of `joint1`.
"""

from typing import Any

from mime.control.kinematics.joint_types import JOINT_TYPE_FIXED
from mime.control.kinematics.report import Findings
from mime.control.kinematics.urdf.xml import Element, attribute, parsed_numbers

DIFFERENTIAL, FOUR_BAR = "DifferentialTransmission", "FourBarLinkageTransmission"


def kind_of(transmission: Element) -> str:
    """The last part of its type, `transmission_interface/SimpleTransmission`."""
    return transmission.findtext("type", "").strip().rpartition("/")[2]


def couples(transmission: Element) -> bool:
    """True where it moves two joints together, and states what the motors' rotors weigh."""
    return kind_of(transmission) in (DIFFERENTIAL, FOUR_BAR) and any(
        part.tag == "rotorInertia" for part in transmission.iter()
    )


def read_coupled(transmission: Element, joints: dict[str, Any], found: Findings) -> None:
    """Give both joints their motor's row of T and its rotor; say when that cannot be done."""
    moved = _in_order(transmission, "joint")
    motors = _in_order(transmission, "actuator")
    left_out = ""
    if len(moved) != 2 or len(motors) != 2:
        left_out = f"has {len(motors)} actuators on {len(moved)} joints; its type has 2 on 2"
    else:
        for name in (attribute(part, "name") for part in moved):
            if name not in joints:
                left_out = f"drives joint {name!r}, which does not exist"
            elif joints[name].kind == JOINT_TYPE_FIXED or joints[name].mimics is not None:
                left_out = f"drives joint {name!r}, which has no motion of its own"
    if left_out:
        found.add("transmission", transmission.finding(left_out))
        return
    a, b = (_number(motor, "mechanicalReduction", 1.0) for motor in motors)
    c, d = (_number(joint, "mechanicalReduction", 1.0) for joint in moved)
    rotors = [_number(motor, "rotorInertia", 0.0) for motor in motors]
    if 0.0 in (a, b, c, d) or min(rotors) < 0.0:
        message = f"{transmission.label}: gear ratios {a}, {b}, {c}, {d}, rotor inertias {rotors}"
        message += " kg·m²; expected ratios other than 0 and inertias of 0 or more."
        raise transmission.error(message, "negative")
    is_differential = kind_of(transmission) == DIFFERENTIAL
    rows = [(a * c, a * d), (b * c, -b * d)] if is_differential else [(a * c, 0.0), (b, b * d)]
    first, second = (joints[attribute(part, "name")] for part in moved)
    for joint, row, rotor in zip((first, second), rows, rotors, strict=True):
        joint.drives = dict(zip((first.name, second.name), row, strict=True))
        joint.rotor_inertia = rotor
    words = f"moves {first.name!r} and {second.name!r} together"
    found.add("drives", transmission.finding(words))


def _in_order(transmission: Element, tag: str) -> list[Element]:
    """joint1 before joint2, by their roles; as they stand where a role is missing."""
    parts = transmission.findall(tag)
    roles = [part.findtext("role", part.get("role", "")).strip() for part in parts]
    if sorted(roles) == [f"{tag}1", f"{tag}2"]:
        return [parts[roles.index(role)] for role in sorted(roles)]
    return parts


def _number(element: Element, tag: str, default: float) -> float:
    part = element.find(tag)
    if part is None:
        return default
    text = part.get("value", part.text or "")
    return float(parsed_numbers(part, f"<{tag}> holds ", text, 1)[0])
