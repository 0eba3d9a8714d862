"""What is refused of an arm: values that contradict each other, and starts outside of limits."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mime._text import quoted
from mime.control.joint_limits import limit_problems
from mime.control.kinematics.transmission import coupled_joints, moved_by_drives
from mime.control.kinematics.tree import is_prismatic
from mime.control.tree_values import tree_problems
from mime.core.parameters import known
from mime.core.pose import IDENTITY_POSE
from mime.core.problem import Problem

HIGHER_ORDER = ("midpoint", "gauss4", "rk4")
"""Integrators that evaluate the accelerations more than once in a step; see `integrators`."""


def state_problems(arm: Any, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Joints outside of their limits, where a step would move them onto these."""
    Q = given.get("base_orientation_world")
    if Q is not None and known(Q):
        norm = np.linalg.norm(np.asarray(Q, float), axis=-1)
        if np.any(off := np.abs(norm - 1) > 1e-6):
            message = f"must be a unit quaternion, got length {norm[off].flat[0]:.6g}"
            yield Problem(("base_orientation_world",), message)
    q = given.get("joint_angles")
    if q is not None and arm.num_joints and arm.joint_limits != "spring":
        yield from limit_problems(arm.tree, q, ("joint_angles",))


def value_problems(arm: Any) -> Iterator[Problem]:
    """Values that no arm has, or that do not go together."""
    for label in ("base_pose_world", "end_effector_offset_in_link"):
        pose = getattr(arm, label)
        if known(pose) and abs((norm := np.linalg.norm(np.asarray(pose)[3:])) - 1) > 1e-6:
            message = f"[x y z qw qx qy qz] must hold a unit quaternion, got length {norm:.6g}"
            yield Problem((label,), message)
    standing = known(arm.base_pose_world) and np.array_equal(arm.base_pose_world, IDENTITY_POSE)
    if arm.base == "floating" and not standing:
        message = "is that of a fixed base: one that floats has its pose in the state"
        hint = "Give base_position_world_m and base_orientation_world as initial_state"
        yield Problem(("base_pose_world",), message, hint)
    tree = arm.tree
    lower, upper = np.asarray(tree.joint_limits).T if known(tree.joint_limits) else (0, 0)
    if np.any(lower > upper):
        joint = tree.joint_names[int(np.argmax(lower > upper))]
        message = f"puts the lower limit of joint {joint!r} above its upper one"
        yield Problem(("joint_limit_override",), message)
    yield from (problem.inside("tree") for problem in tree_problems(tree))
    if arm.base == "fixed" and not tree.num_links:
        message = "has no joint that moves, and on a fixed base nothing else does"
        yield Problem(("tree",), message, "Let it float (base='floating'), or use its kinematics")
    if arm.integrator in HIGHER_ORDER and arm.friction is not None:
        message = f"must be None with integrator {arm.integrator!r}: a joint that sticks is"
        message += " found over the default's step"
        hint = "Give torque_n_m = 0 where the URDF's `friction` is not wanted, or take 'implicit'"
        yield Problem(("friction",), message, hint)
    if arm.integrator in HIGHER_ORDER and arm.servo is not None:
        message = f"does not go with integrator {arm.integrator!r}: a servo is taken over the"
        message += " whole step of the default"
        yield Problem(("servo",), message, "Take 'implicit', or a JointPDNode for the torque")
    yield from _spring_problems(arm)


def _spring_problems(arm: Any) -> Iterator[Problem]:
    tree, model = arm.tree, arm.joint_model
    if not arm.elastic_joints:
        for label in ("joint_stiffness_damping_n_m_s", "inserted_inertia_kg_m2"):
            if getattr(arm, label) is not None:
                message = "needs joint_stiffness_n_m_per_rad as well: all joints are rigid"
                yield Problem((label,), message)
        return
    if (arm.inserted_inertia_kg_m2 is not None) != (model == "inserted_body"):
        got = f"{arm.inserted_inertia_kg_m2} with {model!r}"
        message = f"belongs to joint_model='inserted_body', which needs it; got {got}"
        yield Problem(("inserted_inertia_kg_m2",), message)
    moved = moved_by_drives(tree)
    if model == "inserted_body" and tree.drive_coupling is not None:
        message = "'inserted_body' needs a drive for each joint; the tree's transmission couples"
        names = [tree.joint_names[c] for group in coupled_joints(tree) for c in group]
        message += f" {quoted(names)}"
        yield Problem(("joint_model",), message, "Use joint_model 'sea'")
    armature = tree.armature
    for j in arm.elastic_joints:
        joint = tree.joint_names[j]
        if known(armature) and not float(armature[j]) > 0:
            yield Problem(
                ("rotor_inertia_kg_m2",),
                f"must be > 0 at elastic joint {joint!r}, and gear_ratio not 0: the rotor is "
                f"what the spring holds; got gear² · inertia = {float(armature[j]):g} kg·m²",
            )
        if np.count_nonzero(moved[j]) + np.count_nonzero(moved[:, j]) > 2:
            yield Problem(
                ("joint_stiffness_n_m_per_rad",),
                f"must be inf at joint {joint!r}: its drive moves other joints too, and a spring "
                "stands between one rotor and one joint",
            )
        links = [i for i, c in enumerate(tree.coordinate_idxs) if c == j]
        if model == "inserted_body" and (len(links) > 1 or is_prismatic(tree, links[0])):
            yield Problem(
                ("joint_model",),
                f"'inserted_body' is not for joint {joint!r}: it slides, or other joints mimic it",
                "Use joint_model 'sea', which takes any joint",
            )
    if model == "inserted_body" and arm.joint_limits == "spring":
        message = "'spring' goes with joint_model='sea' only"
        yield Problem(("joint_limits",), message, "Use 'stop' or 'clip'")
