"""A URDF in Pinocchio, and why it may differ from MIME's."""

import re
from pathlib import Path
from xml.dom import expatbuilder

import numpy as np
import pinocchio as pin

from mime.control.kinematics import KinematicTree
from pinocchio_tree import GRAVITY, Reference  # tests/
from survey.agreement import SINGULAR, Motion, State

_FREE_FLYER = 7
"""Coordinates of the only joint that has as many."""


class InPinocchio(Reference):
    """The robot; a floating joint of the file is its base."""

    gravity_world = GRAVITY

    def __init__(self, tree: KinematicTree, file: Path):
        super().__init__(tree, str(file))
        self.base = np.eye(4)
        joints = list(self.model.joints)
        self.free = next((j for j in joints if j.nq == _FREE_FLYER), None)
        if (self.free is not None) != (tree.base == "floating"):
            raise ValueError(f"MIME's base is {tree.base}, Pinocchio's is not")
        if self.free is not None:
            six = np.zeros((self.model.nv, 6))
            six[self.free.idx_v : self.free.idx_v + 6] = np.eye(6)
            self.G = np.hstack([six, self.G])
        armature = np.zeros(self.model.nv)
        for name, value in zip(tree.joint_names, tree.armature, strict=True):
            armature[self.model.joints[self.model.getJointId(name)].idx_v] = value
        self.model.armature = armature

    def q(self, q: np.ndarray) -> np.ndarray:
        full = super().q(q)
        if self.free is not None:
            pose = self.model.jointPlacements[self.free.id].inverse() * pin.SE3(self.base)
            full[self.free.idx_q : self.free.idx_q + _FREE_FLYER] = pin.SE3ToXYZQUAT(pose)
        return full

    def _check_mimics(self, q: np.ndarray) -> None:
        """Every <mimic> of the file holds: M is reduced by MIME's own multipliers."""
        tree, at = self.tree, {}
        for i, name in enumerate(tree.link_joint_names):
            at[name] = tree.mimic_multiplier[i] * q[tree.coordinate_idxs[i]] + tree.mimic_offset[i]
        text = re.sub("(?s)<!--.*?-->", "", Path(self.source).read_text(errors="replace"))
        robot = expatbuilder.parseString(text.strip().encode(), namespaces=False)
        for mimic in robot.getElementsByTagName("mimic"):
            name, master = mimic.parentNode.getAttribute("name"), mimic.getAttribute("joint")
            if name not in at or master not in at:
                continue
            wanted = float(mimic.getAttribute("multiplier") or 1) * at[master]
            wanted += float(mimic.getAttribute("offset") or 0)
            if abs(at[name] - wanted) > 1e-12 * max(1.0, abs(wanted)):
                raise ValueError(f"<mimic> of joint {name!r} does not hold")

    def motion(self, state: State) -> Motion:
        self.base, q, u = state.base, state.q, state.u
        self._check_mimics(q)
        rates = np.zeros_like(u)
        if self.free is not None:  # Pinocchio has v̇, and MIME v̇ + w × v
            rates[:3] = -np.cross(u[3:6], u[:3])
        M, qdd = self.mass_matrix(q), None
        bias = self.rnea(q, u, rates)
        if M.any() and np.linalg.cond(M) < SINGULAR:
            qdd = self.forward_dynamics(q, u, state.tau) - rates
        frames = dict(zip(self.tree.frame_names, self.frame_transforms(q), strict=True))
        return Motion(M, bias, qdd, frames)

    def other_inertias(self) -> list[str]:
        """Moving links whose mass, centre or inertia is another one in Pinocchio."""
        found = []
        for i, joint in enumerate(self.joints):
            mine = pin.Inertia(
                float(self.tree.masses[i]), self.tree.coms[i], self.tree.inertias[i]
            ).matrix()
            theirs = self.model.inertias[joint].matrix()
            if np.linalg.norm(mine - theirs) > 1e-9 * max(np.linalg.norm(theirs), 1e-12):
                found.append(self.tree.link_names[i])
        return found


def why_other(peer: InPinocchio, text: str, said: str) -> str:
    """The reason why inertias differ, as far as the file and Pinocchio's parser tell it."""
    links = peer.other_inertias()
    if not links:
        return ""
    words = [f"other inertia of {', '.join(links[:3])}{' …' if len(links) > 3 else ''}"]
    if re.search(r"<inertia\b[^>]*=\s*\"[^\"]*[\r\n][^\"]*\"", text):
        words.append("Pinocchio drops an inertia with a line break in an attribute")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if lines:
        words.append(f"its parser says: {' / '.join(dict.fromkeys(lines))[:160]}")
    return "; ".join(words)
