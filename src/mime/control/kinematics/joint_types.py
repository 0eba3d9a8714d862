"""Kinds of joints, as numbers."""

JOINT_TYPE_REVOLUTE = 0
JOINT_TYPE_PRISMATIC = 1
JOINT_TYPE_CONTINUOUS = 2
JOINT_TYPE_FIXED = 3
"""Fixed joints are merged by `parse_urdf`: no joint of a tree has this type."""
