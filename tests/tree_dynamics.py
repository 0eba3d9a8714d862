"""The equations of a tree in plain NumPy, from its arrays alone: slow, and nothing to compile.

M = Σ m Jvᵀ Jv + Jwᵀ I Jw + armature,    c = Σ Jvᵀ m (a - g) + Jwᵀ (I α + w × I w)
"""

import numpy as np

from mime.control.kinematics.tree import is_prismatic


def rotation(axis, angle):
    K = np.array(
        [[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]], dtype=float
    )
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def link_poses(tree, q):
    poses = []
    for i, parent in enumerate(tree.parent_idxs):
        T = np.eye(4) if parent < 0 else poses[parent]
        T = T @ tree.joint_frames[i]
        p = tree.mimic_multiplier[i] * q[tree.coordinate_idxs[i]] + tree.mimic_offset[i]
        move = np.eye(4)
        if is_prismatic(tree, i):
            move[:3, 3] = tree.joint_axes_local[i] * p
        else:
            move[:3, :3] = rotation(tree.joint_axes_local[i], p)
        poses.append(T @ move)
    return poses


def mass_and_bias(tree, q, qd, gravity):
    n, poses = tree.num_joints, link_poses(tree, q)
    M, bias = np.diag(np.asarray(tree.armature, float)), np.zeros(n)
    motions = []  # Jv at the origin, Jw, and what velocities alone accelerate
    for i, parent in enumerate(tree.parent_idxs):
        T, c = poses[i], tree.coordinate_idxs[i]
        Jv, Jw, a, alpha = (np.zeros((3, n)), np.zeros((3, n)), np.zeros(3), np.zeros(3))
        if parent >= 0:
            Jv0, Jw0, a0, alpha0 = motions[parent]
            r, w = T[:3, 3] - poses[parent][:3, 3], Jw0 @ qd
            Jv, Jw = Jv0 + np.cross(Jw0.T, r).T, Jw0.copy()
            a, alpha = a0 + np.cross(alpha0, r) + np.cross(w, np.cross(w, r)), alpha0
        u, w = T[:3, :3] @ tree.joint_axes_local[i], Jw @ qd
        rate = tree.mimic_multiplier[i] * qd[c]
        Jv, Jw = Jv.copy(), Jw.copy()
        if is_prismatic(tree, i):
            Jv[:, c] += tree.mimic_multiplier[i] * u
            a = a + 2 * np.cross(w, u * rate)
        else:
            Jw[:, c] += tree.mimic_multiplier[i] * u
            alpha = alpha + np.cross(w, u * rate)
        motions.append((Jv, Jw, a, alpha))
        m, com = float(tree.masses[i]), T[:3, :3] @ tree.coms[i]
        I = T[:3, :3] @ tree.inertias[i] @ T[:3, :3].T
        w, Jc = Jw @ qd, Jv + np.cross(Jw.T, com).T
        a_c = a + np.cross(alpha, com) + np.cross(w, np.cross(w, com))
        M = M + m * Jc.T @ Jc + Jw.T @ I @ Jw
        bias = bias + Jc.T @ (m * (a_c - gravity)) + Jw.T @ (I @ alpha + np.cross(w, I @ w))
    return M, bias


def compensating_torques(tree, q, gravity):
    """tau_k = Σ u_k · ((p_i - p_k) × F_i + N_i) over the links i beyond joint k, slides u_k · F_i.

    F_i = -m_i g and N_i = -(R_i h_i) × g are those of the compensated masses.
    """
    tau, poses = np.zeros(tree.num_joints), link_poses(tree, q)
    for i, T in enumerate(poses):
        F = -tree.compensated_masses[i] * gravity
        N = -np.cross(T[:3, :3] @ tree.compensated_moments[i], gravity)
        k = i
        while k >= 0:
            u = poses[k][:3, :3] @ tree.joint_axes_local[k]
            lever = np.cross(T[:3, 3] - poses[k][:3, 3], F) + N
            part = u @ F if is_prismatic(tree, k) else u @ lever
            tau[tree.coordinate_idxs[k]] += tree.mimic_multiplier[k] * part
            k = tree.parent_idxs[k]
    return tau
