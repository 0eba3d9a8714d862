"""What there is to see of an arm: links, torques, tool path, springs, wrenches."""

from typing import Any

import numpy as np

from mime.control.kinematics.drawing import BASE, LINK, joint_pose, mounts, reach_m, tree_drawing
from mime.core.drawing import Arrow, ColourScale, Drawing, Frame, Numbers, Trail, Twist, Value
from mime.core.pose import IDENTITY_POSE
from mime.nodes.actuation.robot_arm.floating import ORIENTATION, POSITION
from mime.nodes.actuation.robot_arm.parameters import RobotArmParameters

TIP = "tool tip"
_TIP_RGBA = (0.9, 0.2, 0.2, 1.0)
_FORCE_RGBA, _MOMENT_RGBA = (0.85, 0.1, 0.4, 1.0), (0.5, 0.2, 0.8, 1.0)
_TWIST_RGBA = (0.1, 0.65, 0.4, 0.8)


def arm_drawing(arm: RobotArmParameters) -> Drawing:
    """The tree at its joint angles, each link in the colour of its joint's torque."""
    tree = arm.tree

    def torque(joint: int) -> ColourScale:
        limit = float(np.asarray(tree.effort_limits)[joint])
        return ColourScale(
            Value("joint_torques_actual", joint),
            0.0,
            limit if np.isfinite(limit) else None,
            "N·m",
            f"torque of {tree.joint_names[joint]}",
            "joint torque",
            magnitude=True,
        )

    if arm.base == "floating":
        place, orient = Value(POSITION), Value(ORIENTATION)
        base = Frame(BASE, pose=tree.base_start_pose_world, place=place, orient=orient)
    else:
        base = Frame(BASE, pose=tuple(float(x) for x in np.asarray(arm.base_pose_world)))
    drawn = tree_drawing(tree, "joint_angles", base, torque)
    offset = tuple(float(x) for x in np.asarray(arm.end_effector_offset_in_link))
    tip = Frame(TIP, arm.end_effector_link_name, offset, shown=True)
    shapes = [
        Trail(TIP, rgba=_TIP_RGBA, layer="tool path", what="tool path reached"),
        *_wrench(TIP, IDENTITY_POSE, "end_effector_wrench_world", 0, "on the tool", arm),
    ]
    if arm.base == "floating":
        shapes += _wrench(BASE, IDENTITY_POSE, "base_wrench_world", 0, "on the base", arm)
    origins = np.asarray(tree.inertial_origins, float)
    for i, name in enumerate(tree.link_names):
        at = (*(float(x) for x in origins[i]), *IDENTITY_POSE[3:])
        field = "external_wrenches_per_link"
        shapes += _wrench(LINK + name, at, field, 6 * i, f"on {name}", arm)
    for k, name in enumerate(arm.wrench_frames):
        field = "external_wrenches_at_frames"
        shapes += _wrench(name, IDENTITY_POSE, field, 6 * k, f"at {name}", arm)
    for e, joint in enumerate(arm.elastic_joints):
        frame, pose = joint_pose(tree, joint)
        shapes.append(
            Twist(
                frame,
                pose,
                _TWIST_RGBA,
                "spring deflection",
                angle=Value("joint_deflections", e),
                radius=0.12 * reach_m(tree),
                what=f"deflection of {tree.joint_names[joint]}",
            )
        )
    joints = tree.joint_names
    elastic = tuple(joints[j] for j in arm.elastic_joints)
    wanted = {"joint_angles", "joint_velocities", "joint_torques_actual", "servo_torques"}
    wanted |= {"rotor_angles", "rotor_velocities", "commanded_joint_torques"}
    wanted |= {"desired_joint_angles", "desired_joint_velocities"}
    names = dict.fromkeys(sorted(wanted), joints)
    names |= dict.fromkeys(["joint_deflections", "spring_torques"], elastic)
    names["joint_deflection_velocities"] = elastic
    return Drawing(
        (*drawn.frames, tip),
        (*drawn.shapes, *shapes),
        mounts(tree, "commanded_joint_torques"),
        names,
        drawn.size_m,
    )


def _wrench(
    frame: str, pose: Numbers, field: str, first: int, where: str, arm: RobotArmParameters
) -> list[Any]:
    """Force and moment as arrows."""
    reach = 0.3 * reach_m(arm.tree)
    force: dict[str, Any] = {"reach": reach, "unit": "N", "what": f"force {where}"}
    moment: dict[str, Any] = {"reach": reach, "unit": "N·m", "what": f"moment {where}"}
    return [
        Arrow(frame, pose, _FORCE_RGBA, "wrenches", vector=Value(field, first), **force),
        Arrow(frame, pose, _MOMENT_RGBA, "wrenches", vector=Value(field, first + 3), **moment),
    ]
