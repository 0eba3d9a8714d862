"""Kinds of joints, as numbers."""

JOINT_TYPE_REVOLUTE = 0
"""It turns about its axis, between limits; rad."""
JOINT_TYPE_PRISMATIC = 1
"""It slides along its axis; m."""
JOINT_TYPE_CONTINUOUS = 2
"""It turns about its axis without end; rad."""
JOINT_TYPE_FIXED = 3
"""Fixed joints are merged by `parse_urdf`: no joint of a tree has this type."""
