"""UR5 and Panda from joint torques on a designed motion: base parameters as Pinocchio's regressor
says, and a motion of another kind held out.

In `make test` the UR5's wrist is held, in `make soak` all of its joints move."""

from importlib import metadata

import jax
import numpy as np
import pinocchio as pin
import pytest

import mime
from fitting.arms import Rig, as_pinocchio, columns, graph_of, guess
from mime.fitting import bodies
from mime.fitting.arm import _linear, _starts
from mime.fitting.bodies import Body
from mime.fitting.coordinates import coordinates
from mime.fitting.inverse_dynamics import TorqueModel, _row_space, linearised
from mime.fitting.model import in_double
from mime.fitting.parameters import told
from mime.fitting.torques import read_run
from sizes import sized

RANKS = {"ur5_robot": sized(36, small=15), "panda": 43}
HELD = {"ur5_robot": sized((), small=("wrist",)), "panda": ("finger",)}
NOISE = 0.05
SECONDS, PERIOD = 8.0, 0.02
STARTS = sized(3, small=1)


def robot(name):
    files = metadata.files("example-robot-data")
    path = str(next(f for f in files if str(f).endswith(f"urdf/{name}.urdf")).locate())
    tree, model = mime.parse_urdf(path), pin.buildModelFromUrdf(path)
    held = [joint for joint in model.names if any(part in joint for part in HELD[name])]
    if held:  # in the tree those that follow others are no joints of their own
        tree = tree.lock({joint: 0.0 for joint in tree.joint_names if joint in held})
        ids = [model.getJointId(joint) for joint in held]
        model = pin.buildReducedModel(model, ids, pin.neutral(model))
    limits = np.asarray(tree.joint_limits)
    middle = np.where(np.isfinite(limits).all(axis=1), limits.mean(axis=1), 0.0)
    return tree, Rig(model, middle=middle, torque_noise=NOISE)


@pytest.mark.slow
@pytest.mark.soak("an arm of three joints is held to Pinocchio in tests/fitting/test_arm.py")
@pytest.mark.parametrize("name", RANKS)
def test_base_parameters_of_a_robot_are_pinocchios(name):
    tree, rig = robot(name)
    n = tree.num_joints
    simulation = graph_of(guess(tree), joint_friction_n_m_s=np.zeros(n))
    unknowns = [f"arm.link[{link}]" for link in tree.link_names]
    of = columns(n, delay=0)
    planned = mime.design_motion(tree, duration=SECONDS, period=PERIOD, noise=NOISE, starts=STARTS)
    assert planned.rank == RANKS[name]
    assert min(planned.narrower("step"), planned.narrower("chirp")) > 1.8
    felt = planned.q, planned.qd, planned.qdd
    logs = [
        mime.Log(rig.read(1, planned.time_s, planned.q, felt), name="designed"),
        mime.Log(rig.log(2, 400, SECONDS), name="sines", held_out=True),
    ]
    double = in_double(simulation)
    with jax.enable_x64(True):
        run = read_run(double, logs[0], of)
        found = coordinates(double, unknowns, [run.experiment])
        shown = _linear(found, told(double, found, _starts(found)))
        rows = linearised(TorqueModel(double, "arm", shown), run, shown.z)
        exact = [
            np.asarray(bodies.moments(Body(tree.masses[i], tree.coms[i], tree.inertias[i])))
            for i in range(n)
        ]
    V = _row_space([rows], {part.field: 1.0 for part in rows}, np.zeros(10 * n))
    scales = as_pinocchio(np.array([c.scale for c in shown.coordinates]).reshape(n, 10)).ravel()
    V = as_pinocchio(V.T.reshape(-1, n, 10)).reshape(-1, 10 * n).T
    _, s, Vt = np.linalg.svd(rig.regressor() * scales)
    rank = int(np.count_nonzero(s > 1e-9 * s[0]))
    assert V.shape[1] == rank == RANKS[name]
    sines = np.linalg.svd(V - Vt[:rank].T @ (Vt[:rank] @ V), compute_uv=False)
    assert sines.max() < 1e-8  # of the principal angles: rounding over the smallest singular value

    fit = mime.fit(simulation, logs, of, unknowns, by="inverse_dynamics", progress=False)
    assert fit.is_explained, str(fit)
    assert f"feel {rank} combinations of the {10 * n} parameters" in str(fit)
    for check in fit.held_out:
        assert check.over_noise == pytest.approx(1.0, abs=0.12)
    truth = dict(
        zip(
            (f"{u}.{moment}" for u in unknowns for moment in bodies.MOMENTS),
            np.ravel(exact),
            strict=True,
        )
    )
    off = [
        (e.value - truth[e.name]) / (0.5 * (e.high - e.low)) for e in fit.estimates if e.is_known
    ]
    assert len(off) >= sized(10, small=8)
    assert np.mean(np.abs(off) <= 1) > 0.8
    assert np.max(np.abs(off)) < 2.0  # four standard deviations
    arm = fit.simulation.nodes["arm"].tree
    for i in range(n):
        body = Body(arm.masses[i], arm.coms[i], arm.inertias[i])
        assert np.linalg.eigvalsh(bodies.pseudo_inertia(body)).min() > 0
