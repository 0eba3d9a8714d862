"""A robot in Pinocchio, spoken to in MIME's coordinates."""

from functools import cached_property
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from mime.control.kinematics import KinematicTree

GRAVITY = np.array([0.3, -0.2, -9.81])  # tilted: no axis is parallel to it by accident


class Reference:
    """The same robot in Pinocchio, spoken to in MIME's coordinates."""

    def __init__(self, tree: KinematicTree, source: str = ""):
        self.tree, self.source = tree, source or tree.source
        self.model = pin.buildModelFromUrdf(self.source)
        self.model.gravity.linear = GRAVITY
        self.data = self.model.createData()
        self.joints = [self.model.getJointId(name) for name in tree.link_joint_names]
        self.G = np.zeros((self.model.nv, tree.num_joints))
        for i, joint in enumerate(self.joints):
            row = self.model.joints[joint].idx_v
            self.G[row, tree.coordinate_idxs[i]] = tree.mimic_multiplier[i]

    @cached_property
    def links(self):
        return {e.get("name"): e for e in ElementTree.parse(self.source).iter("link")}

    def q(self, q: np.ndarray) -> np.ndarray:
        full = pin.neutral(self.model)
        for i, joint in enumerate(self.joints):
            j = self.model.joints[joint]
            x = self.tree.mimic_multiplier[i] * q[self.tree.coordinate_idxs[i]]
            x += self.tree.mimic_offset[i]
            full[j.idx_q : j.idx_q + j.nq] = x if j.nq == 1 else (np.cos(x), np.sin(x))
        return full

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.q(q))
        return self.G.T @ (np.triu(M) + np.triu(M, 1).T) @ self.G

    def rnea(self, q, qd, qdd, F_ext=None):
        args = (self.model, self.data, self.q(q), self.G @ qd, self.G @ qdd)
        if F_ext is None:
            return self.G.T @ pin.rnea(*args)
        return self.G.T @ pin.rnea(*args, self._local_forces(q, F_ext))

    def forward_dynamics(self, q, qd, tau, F_ext=None):
        if np.array_equal(self.G @ self.G.T, np.eye(self.model.nv)):  # every joint by itself
            args = (self.model, self.data, self.q(q), self.G @ qd, self.G @ tau)
            if F_ext is None:
                return self.G.T @ pin.aba(*args)
            return self.G.T @ pin.aba(*args, self._local_forces(q, F_ext))
        bias = self.rnea(q, qd, 0 * qd, F_ext)
        return np.linalg.solve(self.mass_matrix(q), tau - bias)

    def _local_forces(self, q, F_ext):
        """World axes at the inertial origin -> Pinocchio's joint frames."""
        pin.forwardKinematics(self.model, self.data, self.q(q))
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero() for _ in range(self.model.njoints)])
        for i, (joint, wrench) in enumerate(zip(self.joints, F_ext, strict=True)):
            R = self.data.oMi[joint].rotation
            f, n = R.T @ wrench[:3], R.T @ wrench[3:]
            forces[joint] = pin.Force(f, n + np.cross(self.inertial_origin(i), f))
        return forces

    def frame_transforms(self, q):
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        ids = [self.model.getFrameId(name, pin.FrameType.BODY) for name in self.tree.frame_names]
        return np.array([self.data.oMf[i].homogeneous for i in ids])

    def inertial_origin(self, link_idx):
        """As the file has it; of a link without mass, the centre of what is fixed to it."""
        own = self.links[self.tree.link_names[link_idx]].find("inertial")
        if own is None or not float(own.find("mass").get("value")):
            return self.model.inertias[self.joints[link_idx]].lever
        origin = own.find("origin")
        words = "0 0 0" if origin is None else origin.get("xyz", "0 0 0")
        return np.array(words.split(), float)

    def link_jacobian(self, q, link_idx):
        joint = self.joints[link_idx]
        pin.computeJointJacobians(self.model, self.data, self.q(q))
        J = pin.getJointJacobian(self.model, self.data, joint, pin.LOCAL_WORLD_ALIGNED)
        c = self.data.oMi[joint].rotation @ self.inertial_origin(link_idx)
        return np.vstack([J[:3] - pin.skew(c) @ J[3:], J[3:]]) @ self.G

    def origin_acceleration(self, q, qd, link_idx):
        joint = self.joints[link_idx]
        pin.forwardKinematics(
            self.model, self.data, self.q(q), self.G @ qd, np.zeros(self.model.nv)
        )
        a = pin.getClassicalAcceleration(self.model, self.data, joint, pin.LOCAL_WORLD_ALIGNED)
        return a.vector
