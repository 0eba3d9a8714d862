"""The desktop arm against MuJoCo, which reads the same URDF with its own parser."""

import mujoco
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime.models import model_path

GRAVITY = np.array([0.5, -1.0, -9.81])
# MuJoCo diagonalises each inertia and stores it as a quaternion: a few 1e-16 more than our own
# sums.
RTOL = 1e-10


@pytest.fixture(scope="module", params=["desktop_arm_6axis", "planar_arm_3link"])
def arm(request):
    path = model_path(request.param)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.gravity = GRAVITY
    # Limits, contacts and joint damping are not part of the equation under test.
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return kin.parse_urdf(path), model


@pytest.mark.parametrize("seed", range(5))
def test_mass_bias_acceleration_and_centres_of_mass_agree(arm, seed):
    tree, model = arm
    data, n = mujoco.MjData(model), tree.num_joints
    rng = np.random.default_rng(seed)
    q, qd, tau = rng.uniform(-3.0, 3.0, (3, n))
    order = [model.joint(name).qposadr[0] for name in tree.joint_names]
    data.qpos[order], data.qvel[order], data.qfrc_applied[order] = q, qd, tau
    mujoco.mj_forward(model, data)
    M = np.zeros((n, n))
    for k in range(n):  # column by column: mj_mulM needs no knowledge of MuJoCo's sparse layout
        mujoco.mj_mulM(model, data, M[k], np.eye(n)[k])
    bodies = [model.body(name).id for name in tree.link_names]
    T = kin.joint_to_world_transforms(tree, q)
    pairs = {
        "mass matrix": (kin.mass_matrix(tree, q), M[np.ix_(order, order)]),
        "bias": (kin.nonlinear_bias(tree, q, qd, GRAVITY), data.qfrc_bias[order]),
        "acceleration": (kin.forward_dynamics(tree, q, qd, tau, GRAVITY), data.qacc[order]),
        "centres": (
            T[:, :3, 3] + np.einsum("ijk,ik->ij", T[:, :3, :3], tree.coms),
            data.xipos[bodies],
        ),
    }
    for what, (ours, theirs) in pairs.items():
        scale = np.max(np.abs(theirs))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=RTOL * scale, err_msg=what)
