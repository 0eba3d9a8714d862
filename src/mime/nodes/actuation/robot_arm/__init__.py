"""An arm of rigid links on a fixed base, with rigid or elastic joints, read from a URDF."""

from mime.nodes.actuation.robot_arm.forces import (
    wrench_to_joint_torques as _wrench_to_joint_torques,
)
from mime.nodes.actuation.robot_arm.node import RobotArmNode

__all__ = ["RobotArmNode", "_wrench_to_joint_torques"]
