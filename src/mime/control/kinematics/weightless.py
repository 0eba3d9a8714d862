"""Joints that move no inertia."""

import numpy as np

from mime.control.kinematics.crba import mass_matrix


def joints_without_inertia(tree):
    if not tree.num_joints:
        return ()
    q = 0.3 + 0.1 * np.arange(tree.num_joints)
    M = np.diag(np.asarray(mass_matrix(tree, q)))
    return tuple(n for n, m in zip(tree.joint_names, M) if m <= 1e-300)
