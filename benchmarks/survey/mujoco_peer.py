"""An MJCF in MuJoCo without what MIME does not simulate."""

import mujoco
import numpy as np

from mime.control.kinematics import KinematicTree
from survey.agreement import SINGULAR, Motion, State

_OFF = ("CONSTRAINT", "ACTUATION", "SPRING", "DAMPER")


class InMujoco:
    """The model with neither constraints, drives, springs, dampers, fluid nor tendons, and no
    armature of the base's free joint.

    MuJoCo's velocities are T u: a joint that mimics another moves by its multiplier, and the base
    has its v in world axes. So M = Tᵀ M_all T and c = Tᵀ c_all; T is constant but for the base,
    whose classical acceleration is that of MIME.
    """

    def __init__(self, tree: KinematicTree, model: mujoco.MjModel):
        self.tree, self.model = tree, model
        for name in _OFF:
            model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}")
        model.opt.density = model.opt.viscosity = 0.0
        model.opt.wind[:] = 0.0
        model.tendon_armature[:] = 0.0
        self.data = mujoco.MjData(model)
        off = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
        self.gravity_world = np.zeros(3) if off else np.array(model.opt.gravity)
        names = [model.joint(j).name or f"joint_{j}" for j in range(model.njnt)]
        self.joints = [names.index(name) for name in tree.link_joint_names]
        kinds = np.asarray(model.jnt_type)
        free = np.flatnonzero(kinds == mujoco.mjtJoint.mjJNT_FREE)
        self.free = int(free[0]) if tree.base == "floating" else None
        six = 6 if self.free is not None else 0
        self.T = np.zeros((model.nv, six + tree.num_joints))
        for i, joint in enumerate(self.joints):
            column = six + tree.coordinate_idxs[i]
            self.T[model.jnt_dofadr[joint], column] = tree.mimic_multiplier[i]
        if self.free is not None:
            at = int(model.jnt_dofadr[self.free])
            self.T[at : at + 6, :6] = np.eye(6)
            model.dof_armature[at : at + 6] = 0.0
        if len(free) > six // 6 or np.count_nonzero(self.T.any(axis=1)) < model.nv:
            raise ValueError("MuJoCo has joints that MIME has not")

    def motion(self, state: State) -> Motion:
        model, data, T = self.model, self.data, self.T.copy()
        data.qpos[:] = model.qpos0
        for i, joint in enumerate(self.joints):
            q = self.tree.mimic_multiplier[i] * state.q[self.tree.coordinate_idxs[i]]
            data.qpos[model.jnt_qposadr[joint]] = q + self.tree.mimic_offset[i]
        if self.free is not None:
            at, dof = int(model.jnt_qposadr[self.free]), int(model.jnt_dofadr[self.free])
            data.qpos[at : at + 3] = state.base[:3, 3]
            mujoco.mju_mat2Quat(data.qpos[at + 3 : at + 7], state.base[:3, :3].ravel())
            T[dof : dof + 3, :3] = state.base[:3, :3]
        self._check_mimics()
        data.qvel[:] = T @ state.u
        mimics = not np.allclose(T.T @ T, np.eye(T.shape[1]))
        data.qfrc_applied[:] = 0.0 if mimics else T @ state.tau
        mujoco.mj_forward(model, data)
        full = np.zeros((model.nv, model.nv))
        for k, unit in enumerate(np.eye(model.nv)):
            mujoco.mj_mulM(model, data, full[k], unit)
        M, bias, qdd, relief = T.T @ full @ T, T.T @ data.qfrc_bias, None, None
        if np.linalg.cond(M) < SINGULAR:
            qdd = np.linalg.solve(M, state.tau - bias) if mimics else T.T @ data.qacc_smooth
        if np.any(model.body_gravcomp):
            relief = T.T @ self._relief()
        return Motion(M, bias, qdd, self._frames(), relief)

    def _check_mimics(self) -> None:
        """Where MIME makes a joint follow another, the equality in the file holds.

        M is reduced by MIME's own multipliers, so this is what tells a wrong one.
        """
        model, q = self.model, self.data.qpos - self.model.qpos0
        leaders = {self.joints[self.tree.link_joint_names.index(n)] for n in self.tree.joint_names}
        for e in np.flatnonzero(model.eq_active0):
            first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
            if model.eq_type[e] != mujoco.mjtEq.mjEQ_JOINT or leaders.issuperset({first, second}):
                continue
            at = q[model.jnt_qposadr[second]] if second >= 0 else 0.0
            wanted = np.polyval(model.eq_data[e, 4::-1], at)
            if abs(q[model.jnt_qposadr[first]] - wanted) > 1e-12 * max(1.0, abs(wanted)):
                raise ValueError(f"equality {e} of joint {model.joint(first).name!r} does not hold")

    def _relief(self) -> np.ndarray:
        """The torques of gravcomp, which MuJoCo leaves out where springs and dampers are off."""
        flags = self.model.opt.disableflags
        for name in ("SPRING", "DAMPER"):
            self.model.opt.disableflags &= ~int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
        mujoco.mj_passive(self.model, self.data)
        self.model.opt.disableflags = flags
        return np.array(self.data.qfrc_gravcomp)

    def _frames(self) -> dict[str, np.ndarray]:
        """Bodies, and sites that have no body's name."""
        model, data, found = self.model, self.data, {}
        for site in range(model.nsite):
            found[model.site(site).name] = _pose(data.site_xpos[site], data.site_xmat[site])
        for body in range(model.nbody):
            found[model.body(body).name] = _pose(data.xpos[body], data.xmat[body])
        return found


def _pose(position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.reshape(3, 3), position
    return pose
