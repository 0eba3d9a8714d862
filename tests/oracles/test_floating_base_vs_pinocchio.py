"""Robots on a base that floats against Pinocchio's free-flyer.

MIME is called with NumPy arrays, so that Python computes what JAX would trace: nothing compiles.
Of the base Pinocchio has the velocity in the base's axes, as MIME has, and the rate of change of
these numbers as its acceleration, v̇ - w × v of MIME's.
"""

from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import mime.control.kinematics as kin
from mime import RobotArmNode, parse_robot

GRAVITY = np.array([0.3, -0.2, -9.81])
# Both sides sum some hundred products in double precision; solving with M loses log10(cond M) of
# the digits, whoever does it.
RTOL = 1e-12
FILES = {
    Path(str(file)).stem: file.locate()
    for file in metadata.files("example-robot-data")
    if str(file).endswith(".urdf")
}
ROBOTS = ["quadrotor_base", "iris_simple", "double_pendulum", "ur5_robot", "a1", "talos_reduced"]


class FreeFlyer:
    """The robot in Pinocchio, at a random pose of its base and of its joints."""

    def __init__(self, tree):
        rng = np.random.default_rng(tree.num_links)
        n = tree.num_joints
        self.model = pin.buildModelFromUrdf(tree.source, pin.JointModelFreeFlyer())
        self.model.gravity.linear = GRAVITY
        self.data = self.model.createData()
        assert self.model.nv == 6 + n
        self.q = rng.uniform(-1.0, 1.0, n)
        self.position, quat = rng.normal(size=3), rng.normal(size=4)
        self.quat = quat / np.linalg.norm(quat)
        self.R = pin.Quaternion(*self.quat).toRotationMatrix()
        self.full = pin.neutral(self.model)
        self.full[:7] = [*self.position, *self.quat[1:], self.quat[0]]
        self.joints = [self.model.getJointId(name) for name in tree.joint_names]
        for joint, x in zip(self.joints, self.q, strict=True):
            j = self.model.joints[joint]
            self.full[j.idx_q : j.idx_q + j.nq] = x if j.nq == 1 else (np.cos(x), np.sin(x))
        order = [*range(6), *(self.model.joints[joint].idx_v for joint in self.joints)]
        self.P = np.eye(6 + n)[order]
        self.armature = np.concatenate([np.zeros(6), tree.armature])
        self.model.armature = self.P.T @ self.armature
        self.u, self.u_dot, self.forces = rng.normal(size=(3, 6 + n))
        self.F_ext = rng.normal(size=(n, 6))

    def mass_matrix(self):
        M = pin.crba(self.model, self.data, self.full)
        return self.P @ (np.triu(M) + np.triu(M, 1).T) @ self.P.T

    def rnea(self, tree):
        rates = self.u_dot.copy()
        rates[:3] -= np.cross(self.u[3:6], self.u[:3])
        given = (self.full, self.P.T @ self.u, self.P.T @ rates, self.local_forces(tree))
        return self.P @ pin.rnea(self.model, self.data, *given)

    def forward_dynamics(self, tree):
        given = (self.full, self.P.T @ self.u, self.P.T @ self.forces, self.local_forces(tree))
        u_dot = self.P @ pin.aba(self.model, self.data, *given)
        u_dot[:3] += np.cross(self.u[3:6], self.u[:3])
        return u_dot

    def local_forces(self, tree):
        """Wrenches in the base's axes at the inertial origins, in Pinocchio's joint frames."""
        pin.forwardKinematics(self.model, self.data, self.full)
        found = pin.StdVec_Force()
        found.extend([pin.Force.Zero() for _ in range(self.model.njoints)])
        origins = zip(self.joints, self.F_ext, tree.inertial_origins, strict=True)
        for joint, wrench, origin in origins:
            R = self.R.T @ self.data.oMi[joint].rotation
            f, n = R.T @ wrench[:3], R.T @ wrench[3:]
            found[joint] = pin.Force(f, n + np.cross(origin, f))
        return found


def close(ours, theirs, solving=1.0):
    scale = np.max(np.abs(theirs))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=RTOL * solving * scale)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_free_flyer_has_the_same_equations(name, monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")
    tree = parse_robot(FILES[name], base="floating")
    other = FreeFlyer(tree)
    M, down = other.mass_matrix(), other.R.T @ GRAVITY
    solving = max(1.0, np.finfo(float).eps * np.linalg.cond(M) / RTOL)
    close(kin.floating_mass_matrix(tree, other.q), M)
    given = (other.q, other.u)
    close(kin.floating_rnea(tree, *given, other.u_dot, down, other.F_ext), other.rnea(tree))
    ours = kin.floating_forward_dynamics(tree, *given, other.forces, down, other.F_ext)
    close(ours, other.forward_dynamics(tree), solving)


def test_a_robot_of_unphysical_inertia_floats_with_a_report(monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")
    tree = parse_robot(FILES["romeo_small"], base="floating")
    assert any(finding.rule == "inertia" for finding in tree.report)
    assert tree.base == "floating"
    M = kin.floating_mass_matrix(tree, np.zeros(tree.num_joints))
    assert M.shape == (6 + tree.num_joints,) * 2
    total = float(tree.root_body.mass) + tree.masses.sum()
    np.testing.assert_allclose(np.diag(M)[:3], total, rtol=1e-13)


def test_a_node_has_these_accelerations_in_world_axes():
    tree = parse_robot(FILES["double_pendulum"], base="floating")
    arm = RobotArmNode(
        "arm", 1e-3, tree, "link2", gravity_world=GRAVITY, joint_friction_n_m_s=[0, 0]
    )
    other = FreeFlyer(tree)
    R, wrench = other.R, other.forces[:6].reshape(2, 3)
    state = {
        "joint_angles": jnp.asarray(other.q),
        "joint_velocities": jnp.asarray(other.u[6:]),
        "base_position_world_m": jnp.asarray(other.position),
        "base_orientation_world": jnp.asarray(other.quat),
        "base_twist_world": jnp.asarray((other.u[:6].reshape(2, 3) @ R.T).ravel()),
    }
    inputs = {
        "base_wrench_world": jnp.asarray((wrench @ R.T).ravel()),
        "commanded_joint_torques": jnp.asarray(other.forces[6:]),
        "external_wrenches_per_link": jnp.asarray(
            (other.F_ext.reshape(-1, 3) @ R.T).reshape(-1, 6)
        ),
    }
    ours, _ = jax.jit(arm.accelerations)(state, inputs)
    theirs = other.forward_dynamics(tree)
    theirs[:6] = (theirs[:6].reshape(2, 3) @ R.T).ravel()
    close(ours, theirs)
