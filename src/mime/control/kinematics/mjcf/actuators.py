"""The actuators of an MJCF that are affine in control, position and velocity, and its DC motors."""

import math
from typing import Any

import numpy as np

from mime.control.kinematics.actuator import Actuator, Affine, DcMotor, Range
from mime.control.kinematics.mjcf.model import Compiled

_KINDS = ("motor", "position", "velocity", "dcmotor")


def reason_against(compiled: Compiled, index: Any) -> str:
    """Why an actuator is none that acts on a joint by an affine law; empty when it is one."""
    model, mujoco = compiled.model, compiled.mujoco
    at = int(index)
    if not _on_joint(compiled, at):
        return "acts on no joint: MIME drives joints"
    joint, equalities = int(model.actuator_trnid[at, 0]), compiled.equalities
    if joint in equalities.held or not equalities.of(joint)[1]:
        return "acts on a joint that an equality holds"
    if np.any(model.actuator_dampingpoly[at]):
        return "has a damping that is not linear"
    if model.actuator_delay[at] or model.actuator_history[at].any():
        return "has a delay"
    if min(float(model.actuator_armature[at]), float(model.actuator_damping[at])) < 0.0:
        return "has a negative armature or damping"
    if model.actuator_gaintype[at] == mujoco.mjtGain.mjGAIN_DCMOTOR:
        return _reason_against_motor(model, at)
    if model.actuator_dyntype[at] != mujoco.mjtDyn.mjDYN_NONE:
        return "has a state of its own (a filter or an integral)"
    gain = mujoco.mjtGain(int(model.actuator_gaintype[at]))
    bias = mujoco.mjtBias(int(model.actuator_biastype[at]))
    affine = gain in (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_AFFINE)
    affine &= bias in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE)
    return "" if affine else "is not affine in control, position and velocity"


def _on_joint(compiled: Compiled, at: int) -> bool:
    kinds = compiled.mujoco.mjtTrn
    hinges = (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
    free = int(compiled.model.actuator_trnid[at, 0]) in compiled.free_joints
    return int(compiled.model.actuator_trntype[at]) in hinges and not free


def drives_of_joints(compiled: Compiled) -> dict[int, list[int]]:
    """The actuators on each joint, of whatever kind, by MuJoCo's numbers."""
    found: dict[int, list[int]] = {}
    for a in range(compiled.model.nactuator):
        if _on_joint(compiled, a):
            found.setdefault(int(compiled.model.actuator_trnid[a, 0]), []).append(a)
    return found


def _reason_against_motor(model: Any, at: int) -> str:
    gain, bias, dyn = (
        np.asarray(getattr(model, f"actuator_{name}prm"))[at] for name in ("gain", "bias", "dyn")
    )
    if gain[2:].any() or bias[3:].any() or dyn[1:].any():
        return "is a motor with a controller, a thermal model, LuGre friction or a limited slew"
    if gain[0] <= 0.0 or model.actuator_ctrlnum[at] != 1:
        return "is a motor without a resistance, or with several controls"
    if int(model.actuator_ctrlspec[at]) != _VOLTAGE:
        return "is a motor that is not commanded by its voltage"
    return ""


_VOLTAGE = 8
"""MuJoCo's code of a control in volts."""


def read_actuators(compiled: Compiled) -> tuple[Actuator, ...]:
    """Those that `reason_against` has nothing against; none where <flag> switches them off."""
    if compiled.disabled("mjDSBL_ACTUATION"):
        return ()
    count = compiled.model.nactuator
    return tuple(_read(compiled, a) for a in range(count) if not reason_against(compiled, a))


def _read(compiled: Compiled, at: int) -> Actuator:
    model = compiled.model
    tag = compiled.element("actuators", at).tag
    gain, bias, dyn = (
        np.asarray(getattr(model, f"actuator_{name}prm"))[at] for name in ("gain", "bias", "dyn")
    )
    motor = None
    if model.actuator_gaintype[at] == compiled.mujoco.mjtGain.mjGAIN_DCMOTOR:
        R, K = float(gain[0]), float(gain[1])
        motor = DcMotor(K, R, float(dyn[0]) * R, *map(float, bias[:3]))
        gain, bias = np.array([K / R, 0.0, 0.0]), np.array([0.0, 0.0, -K * K / R])
    affine = model.actuator_gaintype[at] == compiled.mujoco.mjtGain.mjGAIN_AFFINE
    biased = model.actuator_biastype[at] != compiled.mujoco.mjtBias.mjBIAS_NONE
    joint = int(model.actuator_trnid[at, 0])
    master, m, o = compiled.equalities.of(joint)
    gear = float(model.actuator_gear[at, 0])
    force_range = _range(model.actuator_forcerange[at], model.actuator_forcelimited[at])
    if master != joint:  # l = gear (m q + o): the shift goes into the constants
        affine = affine or bool(gain[1:3].any())
        gain = np.array([gain[0] + gain[1] * gear * o, *gain[1:]])
        bias = np.array([bias[0] + bias[1] * gear * o, *bias[1:]])
        force_range = _within_joint(compiled, joint, gear, force_range)
        gear *= m
    clamped = model.actuator_ctrllimited[at] and not compiled.disabled("mjDSBL_CLAMPCTRL")
    return Actuator(
        compiled.actuator_names[at],
        tag if tag in _KINDS else "general",
        compiled.joint_names[master],
        gear,
        _three(gain) if affine else (float(gain[0]), 0.0, 0.0),
        _three(bias) if biased else (0.0, 0.0, 0.0),
        _range(model.actuator_ctrlrange[at], clamped),
        force_range,
        motor,
    )


def _within_joint(compiled: Compiled, joint: int, gear: float, force: Range) -> Range:
    """The force of an actuator within what its joint bears, where it acts there alone."""
    model = compiled.model
    alone = len(drives_of_joints(compiled)[joint]) == 1
    if not (model.jnt_actfrclimited[joint] and gear and alone):
        return force
    low, high = sorted(float(x) / gear for x in model.jnt_actfrcrange[joint])
    return max(force[0], low), min(force[1], high)


def _three(values: np.ndarray) -> Affine:
    return float(values[0]), float(values[1]), float(values[2])


def _range(values: np.ndarray, limited: Any) -> Range:
    return (float(values[0]), float(values[1])) if limited else (-math.inf, math.inf)
