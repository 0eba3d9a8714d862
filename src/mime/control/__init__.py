"""Kinematics, dynamics and control laws: pure functions that nodes are built from."""
