"""Inertias that no body has, planar ones, and links without mass: the equations are Pinocchio's.

MuJoCo does not read such robots. MIME is called with NumPy arrays and without kernels, so that
Python evaluates it in double precision; the last test compiles it in both.
"""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

import mime.control.kinematics as kin
from weak_robots import BROKEN, PLANAR, robot

GRAVITY = np.array([0.3, -0.2, -9.81])
# Some hundred products in double precision on either side.
RTOL = 1e-12
X, Y, Z, O = np.eye(3)[0], np.eye(3)[1], np.eye(3)[2], np.zeros(3)
CHAIN = [
    (-1, Z, O, "revolute"),
    (0, Y, X, "revolute"),
    (1, X, [0.2, 0.1, 0.3], "prismatic"),
    (2, [0.6, 0.0, 0.8], Z, "revolute"),
]
COMS = [[0.1, 0.2, 0.3], [0.2, -0.1, 0.0], [0.0, 0.1, 0.1], [0.3, 0.0, -0.1]]
TURNED = np.array([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
ROBOTS = {
    "planar": {"inertias": [PLANAR] * 4},
    "broken triangle": {"inertias": [BROKEN, TURNED @ BROKEN @ TURNED.T, 3 * BROKEN, BROKEN]},
    "inertia without mass": {"inertias": [BROKEN, PLANAR, PLANAR, BROKEN], "masses": [1, 0, 2, 0]},
    "wrist without mass": {"masses": [1, 2, 0, 0], "rotor_inertia": np.array([0, 0, 0.4, 0.1])},
    "mass on axes": {"masses": [0, 0, 0, 1], "coms": [O, O, O, X]},
}


def pair(folder, which, floats):
    """MIME's tree and Pinocchio's model with the same bodies."""
    given = {"coms": COMS, **ROBOTS[which]}
    given["rotor_inertia"] = given.get("rotor_inertia", np.full(4, 1e-3))
    tree = robot(folder, CHAIN, root=(2.0, BROKEN), **given)
    free = [pin.JointModelFreeFlyer()] if floats else []
    model = pin.buildModelFromUrdf(tree.source, *free)
    model.gravity.linear = GRAVITY
    for i, name in enumerate(tree.link_joint_names):
        body = pin.Inertia(float(tree.masses[i]), tree.coms[i], tree.inertias[i])
        model.inertias[model.getJointId(name)] = body
    if floats:
        model.inertias[1] = pin.Inertia(2.0, O, BROKEN)
        tree = dataclasses.replace(tree, base="floating")
    model.armature = np.concatenate([np.zeros(model.nv - 4), tree.armature])
    return tree, model, model.createData()


def close(ours, theirs, solving=1.0):
    scale = np.max(np.abs(theirs))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=RTOL * solving * scale)


@pytest.mark.parametrize("which", ROBOTS)
def test_torques_mass_and_accelerations(which, tmp_path, monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")
    tree, model, data = pair(tmp_path, which, False)
    q, qd, x = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    close(kin.mass_matrix(tree, q), M)
    close(kin.rnea(tree, q, qd, x, GRAVITY), pin.rnea(model, data, q, qd, x))
    close(kin.gravity_vector(tree, q, GRAVITY), pin.rnea(model, data, q, 0 * q, 0 * q))
    assert kin.joints_without_inertia(tree) == ()
    found = kin.forward_dynamics(tree, q, qd, x, GRAVITY)
    close(found, pin.aba(model, data, q, qd, x), max(1.0, 1e-4 * np.linalg.cond(M)))


@pytest.mark.parametrize("which", ROBOTS)
def test_on_a_floating_base_of_a_broken_triangle(which, tmp_path, monkeypatch):
    monkeypatch.setenv("MIME_NATIVE", "off")
    tree, model, data = pair(tmp_path, which, True)
    rng = np.random.default_rng(1)
    q, (u, forces) = rng.uniform(-1, 1, 4), rng.normal(size=(2, 10))
    full = np.concatenate([pin.neutral(model)[:7], q])
    M = pin.crba(model, data, full)
    M = np.triu(M) + np.triu(M, 1).T
    close(kin.floating_mass_matrix(tree, q), M)
    theirs = pin.aba(model, data, full, u, forces)
    theirs[:3] += np.cross(u[3:6], u[:3])
    ours = kin.floating_forward_dynamics(tree, q, u, forces, GRAVITY)
    close(ours, theirs, max(1.0, 1e-4 * np.linalg.cond(M)))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_machine_code_in_both_precisions(precision, tmp_path):
    tree, model, data = pair(tmp_path, "inertia without mass", False)
    q, qd, x = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    found = kin.forward_dynamics(tree, *(a.astype(precision) for a in (q, qd, x, GRAVITY)))
    assert found.dtype == precision
    M = kin.mass_matrix(tree, q)
    theirs = pin.aba(model, data, q, qd, x)
    # Rounding of the arguments and of solving: the condition of M.
    tolerance = np.finfo(precision).eps * np.linalg.cond(M) * np.abs(theirs).max()
    np.testing.assert_allclose(found, theirs, rtol=0, atol=tolerance)
