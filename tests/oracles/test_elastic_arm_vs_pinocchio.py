"""Wrenches on an arm with elastic joints, against Pinocchio; MIME-VER-125 is all without them."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin

from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmarks.elastic_arm_pinocchio import (
    FRICTION,
    K,
    N,
    V,
    desktop,
    elastic_arm,
    random_motion,
    with_balls,
)

# Some hundred products on both sides, and the condition of M with light balls in it (1e4).
RTOL = 1e-10


def test_wrenches_reach_the_links_behind_inserted_bodies():
    elastic = (1, 4)
    model, tree = with_balls(elastic), desktop()
    data = model.createData()
    node = elastic_arm(RobotArmNode, elastic, "inserted_body")
    rng = np.random.default_rng(3)
    state, tau = random_motion(3, 2)
    q, qd, x, xd = state.values()
    wrenches = rng.normal(size=(N, 6))
    z = np.insert(q, [1, 4], x)
    zd = np.insert(qd, [1, 4], xd)
    z[[2, 6]] -= x
    zd[[2, 6]] -= xd
    torques = np.insert(
        tau - FRICTION * np.delete(zd, [1, 5]), [1, 4], -K[[1, 4]] * x - V[[1, 4]] * xd
    )
    pin.forwardKinematics(model, data, z)
    forces = pin.StdVec_Force()
    for _ in range(model.njoints):
        forces.append(pin.Force.Zero())
    for i, name in enumerate(tree.joint_names):
        j = model.getJointId(name)
        placement = data.oMi[j]
        com = pin.SE3(placement.rotation.T, model.inertias[j].lever)
        forces[j] = com.act(pin.Force(wrenches[i]))
    theirs = pin.aba(model, data, z, zd, torques, forces)
    qdd, xdd = node.accelerations(
        jax.tree.map(jnp.asarray, state),
        {"commanded_joint_torques": tau, "external_wrenches_per_link": wrenches},
    )
    expected = np.delete(theirs, [1, 5])
    expected[[1, 4]] += theirs[[1, 5]]
    np.testing.assert_allclose(xdd, theirs[[1, 5]], rtol=RTOL)
    np.testing.assert_allclose(qdd, expected, rtol=RTOL, atol=RTOL * np.abs(expected).max())
