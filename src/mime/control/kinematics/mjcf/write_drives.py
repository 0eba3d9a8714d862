"""What drives and binds the joints of an MJCF: actuators, equalities, tendons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.control.kinematics.actuator import Actuator
from mime.control.kinematics.transmission import coupled_joints
from mime.control.kinematics.writing import Xml, independent

NO_LIMIT = 1e10
"""Where one side of a range is open: MuJoCo's ranges have two ends."""
FIRM = 0.9999
"""The largest impedance that MuJoCo takes: the part of an acceleration that an equality holds."""


def write_equalities(xml: Xml, tree: Any) -> None:
    """Mimicking joints, each as a line in its master, and as firm as MuJoCo lets it be."""
    mimics = [i for i in range(tree.num_links) if not independent(tree, i)]
    if not mimics:
        return
    xml.open("equality")
    for i in mimics:
        line = [tree.mimic_offset[i], tree.mimic_multiplier[i], 0.0, 0.0, 0.0]
        master = tree.joint_names[tree.coordinate_idxs[i]]
        names = {"joint1": tree.link_joint_names[i], "joint2": master}
        xml.tag("joint", **names, polycoef=line, solimp=(FIRM, FIRM, 1e-3))
    xml.close()


def write_tendons(
    xml: Xml, tree: Any, limits: Mapping[tuple[str, str], tuple[float, float]]
) -> None:
    """Limits of the sum of two joints, and drives that joints share: C q is a tendon's length."""
    shared = sorted(c for group in coupled_joints(tree) for c in group)
    if not limits and not shared:
        return
    xml.open("tendon")
    for drive in shared:
        numbers = {
            "armature": float(tree.drive_inertia[drive]),
            "damping": float(tree.joint_friction[drive]),
            "frictionloss": float(tree.joint_coulomb_friction[drive]),
        }
        effort = float(tree.effort_limits[drive])
        limit = {"actuatorfrcrange": (-effort, effort)} if np.isfinite(effort) else {}
        name = drive_name(tree, drive)
        xml.open("fixed", name=name, **{k: x for k, x in numbers.items() if x}, **limit)
        for joint in shared:
            if coefficient := float(tree.drive_coupling[drive, joint]):
                xml.tag("joint", joint=tree.joint_names[joint], coef=coefficient)
        xml.close()
    for (rotor, spring), ends in limits.items():
        xml.open("fixed", name=f"{rotor}/link", range_=np.clip(ends, -NO_LIMIT, NO_LIMIT))
        xml.tag("joint", joint=rotor, coef=1.0)
        xml.tag("joint", joint=spring, coef=1.0)
        xml.close()
    xml.close()


def drive_name(tree: Any, drive: int) -> str:
    """The tendon of a drive that joints share."""
    return f"{tree.joint_names[drive]}/drive"


def write_actuators(xml: Xml, tree: Any, comments: Mapping[str, Sequence[str]]) -> None:
    """Those of the tree; a motor behind the gear of each drive where it has none."""
    shared = {tree.joint_names[c]: c for group in coupled_joints(tree) for c in group}
    found = tree.actuators or [
        Actuator(f"{joint}_motor", "motor", joint, float(gear), at_drive=True)
        for joint, gear in zip(tree.joint_names, tree.gear_ratio, strict=True)
    ]
    xml.open("actuator")
    for actuator in found:
        xml.comment(*comments.get(actuator.name, ()))
        ranges = {"ctrlrange": actuator.control_range, "forcerange": actuator.force_range}
        given = {
            name: np.clip(ends, -NO_LIMIT, NO_LIMIT)
            for name, ends in ranges.items()
            if np.any(np.isfinite(ends))
        }
        start = {"name": actuator.name, "joint": actuator.joint_name, "gear": actuator.gear}
        if actuator.at_drive and actuator.joint_name in shared:
            tendon = drive_name(tree, shared[actuator.joint_name])
            start = {"name": actuator.name, "tendon": tendon, "gear": actuator.gear}
        if actuator.motor is not None:
            _dcmotor(xml, actuator, start, given)
        else:
            tag, law = _law(actuator)
            xml.tag(tag, **start, **law, **given)
    xml.close()


def _law(actuator: Actuator) -> tuple[str, dict[str, Any]]:
    """The tag that says how a control becomes a force, and its numbers."""
    g0, *gain = actuator.gain
    b0, b1, b2 = actuator.bias
    if not any(gain) and b0 == 0.0:
        if actuator.kind == "motor" and (g0, b1, b2) == (1.0, 0.0, 0.0):
            return "motor", {}
        if actuator.kind == "position" and b1 == -g0:
            return "position", {"kp": g0, "kv": -b2}
        if actuator.kind == "velocity" and (b1, b2) == (0.0, -g0):
            return "velocity", {"kv": g0}
    law = {"gaintype": "affine", "gainprm": actuator.gain}
    return "general", law | {"biastype": "affine", "biasprm": actuator.bias}


def _dcmotor(xml: Xml, actuator: Actuator, start: dict[str, Any], given: dict[str, Any]) -> None:
    motor = actuator.motor
    assert motor is not None
    force = given.pop("forcerange", None)
    cogging = (motor.cogging_n_m, motor.cogging_periods, motor.cogging_phase_rad)
    xml.tag(
        "dcmotor",
        **start,
        motorconst=motor.motor_constant_n_m_per_a,
        resistance=motor.resistance_ohm,
        inductance=motor.inductance_henry or None,
        cogging=cogging if motor.cogging_n_m else None,
        saturation=None if force is None else (float(force[1]), 0.0, 0.0),
        **given,
    )
