"""Kinematics and dynamics of robots that are trees of rigid links."""

from mime.control.kinematics.actuator import Actuator as Actuator
from mime.control.kinematics.actuator import DcMotor as DcMotor
from mime.control.kinematics.actuator import Keyframe as Keyframe
from mime.control.kinematics.actuator import actuator_torques as actuator_torques
from mime.control.kinematics.compensation import compensating_torques as compensating_torques
from mime.control.kinematics.crba import mass_matrix as mass_matrix
from mime.control.kinematics.energy import kinetic_energy as kinetic_energy
from mime.control.kinematics.energy import potential_energy as potential_energy
from mime.control.kinematics.fk import frame_jacobian as frame_jacobian
from mime.control.kinematics.fk import frame_jacobian_at as frame_jacobian_at
from mime.control.kinematics.fk import frame_jacobian_dot_qd as frame_jacobian_dot_qd
from mime.control.kinematics.fk import frame_jacobian_dot_qd_at as frame_jacobian_dot_qd_at
from mime.control.kinematics.fk import frame_pose as frame_pose
from mime.control.kinematics.fk import frame_transform as frame_transform
from mime.control.kinematics.fk import joint_to_world_transforms as joint_to_world_transforms
from mime.control.kinematics.fk import link_to_world_transforms as link_to_world_transforms
from mime.control.kinematics.fk import link_world_poses as link_world_poses
from mime.control.kinematics.floating import floating_forward_dynamics as floating_forward_dynamics
from mime.control.kinematics.floating import floating_mass_matrix as floating_mass_matrix
from mime.control.kinematics.floating import floating_rnea as floating_rnea
from mime.control.kinematics.forward_dynamics import forward_dynamics as forward_dynamics
from mime.control.kinematics.joints_without_inertia import (
    joints_without_inertia as joints_without_inertia,
)
from mime.control.kinematics.mjcf import MjcfError as MjcfError
from mime.control.kinematics.mjcf import parse_mjcf as parse_mjcf
from mime.control.kinematics.momentum import WholeBody as WholeBody
from mime.control.kinematics.momentum import whole_body as whole_body
from mime.control.kinematics.report import Finding as Finding
from mime.control.kinematics.report import RobotFileError as RobotFileError
from mime.control.kinematics.report import RobotFileWarning as RobotFileWarning
from mime.control.kinematics.rnea import gravity_vector as gravity_vector
from mime.control.kinematics.rnea import nonlinear_bias as nonlinear_bias
from mime.control.kinematics.rnea import rnea as rnea
from mime.control.kinematics.robot_file import parse_robot as parse_robot
from mime.control.kinematics.tree import JOINT_TYPE_CONTINUOUS as JOINT_TYPE_CONTINUOUS
from mime.control.kinematics.tree import JOINT_TYPE_FIXED as JOINT_TYPE_FIXED
from mime.control.kinematics.tree import JOINT_TYPE_PRISMATIC as JOINT_TYPE_PRISMATIC
from mime.control.kinematics.tree import JOINT_TYPE_REVOLUTE as JOINT_TYPE_REVOLUTE
from mime.control.kinematics.tree import KinematicTree as KinematicTree
from mime.control.kinematics.tree import LinkFrame as LinkFrame
from mime.control.kinematics.tree import Visual as Visual
from mime.control.kinematics.tree import ancestor_mask as ancestor_mask
from mime.control.kinematics.urdf import UrdfError as UrdfError
from mime.control.kinematics.urdf import parse_urdf as parse_urdf
from mime.control.kinematics.xacro import expand_xacro as expand_xacro
from mime.control.kinematics.xacro import parse_xacro as parse_xacro
