"""Kinematics and dynamics of robots that are trees of rigid links."""

from mime.control.kinematics.crba import mass_matrix
from mime.control.kinematics.energy import kinetic_energy, potential_energy
from mime.control.kinematics.fk import (
    frame_jacobian,
    frame_jacobian_at,
    frame_jacobian_dot_qd,
    frame_jacobian_dot_qd_at,
    frame_pose,
    frame_transform,
    joint_to_world_transforms,
    link_to_world_transforms,
    link_world_poses,
)
from mime.control.kinematics.forward_dynamics import forward_dynamics
from mime.control.kinematics.rnea import gravity_vector, nonlinear_bias, rnea
from mime.control.kinematics.tree import (
    JOINT_TYPE_CONTINUOUS,
    JOINT_TYPE_FIXED,
    JOINT_TYPE_PRISMATIC,
    JOINT_TYPE_REVOLUTE,
    KinematicTree,
    LinkFrame,
    Visual,
    ancestor_mask,
)
from mime.control.kinematics.urdf import UrdfError, parse_urdf

__all__ = [
    "JOINT_TYPE_CONTINUOUS",
    "JOINT_TYPE_FIXED",
    "JOINT_TYPE_PRISMATIC",
    "JOINT_TYPE_REVOLUTE",
    "KinematicTree",
    "LinkFrame",
    "UrdfError",
    "Visual",
    "ancestor_mask",
    "forward_dynamics",
    "frame_jacobian",
    "frame_jacobian_at",
    "frame_jacobian_dot_qd",
    "frame_jacobian_dot_qd_at",
    "frame_pose",
    "frame_transform",
    "gravity_vector",
    "joint_to_world_transforms",
    "kinetic_energy",
    "link_to_world_transforms",
    "link_world_poses",
    "mass_matrix",
    "nonlinear_bias",
    "parse_urdf",
    "potential_energy",
    "rnea",
]
