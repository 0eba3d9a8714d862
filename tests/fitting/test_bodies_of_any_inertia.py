"""Bodies that cannot exist: as unknowns they start at the nearest that can, else they stay."""

import dataclasses
from html import escape

import jax
import numpy as np
import pinocchio as pin
import pytest

import mime
from fitting.arms import Rig, columns, graph_of
from mime.control.kinematics.physical_inertia import is_physical, nearest_physical_inertia
from mime.fitting import bodies
from mime.fitting.bodies import Body
from mime.models import model_path
from weak_robots import BROKEN, PLANAR, robot

URDF = str(model_path("planar_arm_3link"))
TREE = mime.parse_urdf(URDF)
AXIS = TREE.joint_axes_local[0]
ABOUT = np.einsum("i,lij,j->l", AXIS, TREE.inertias, AXIS)
FRICTION = 0.3


@pytest.mark.parametrize("inertia", [BROKEN, PLANAR, TREE.inertias[0]])
def test_the_start_is_the_nearest_inertia_that_a_body_can_have(inertia):
    body = Body(2.0, np.array([0.1, 0.2, 0.3]), inertia)
    with jax.enable_x64(True):
        start = bodies.of_factors(bodies.factors(body), bodies.size_of(body))
    expected = inertia if is_physical(inertia, 2.0) else nearest_physical_inertia(inertia)
    # A plate starts with 1e-4 of its size across, squared in units of its second moments.
    np.testing.assert_allclose(start.inertia, expected, rtol=0, atol=2e-4 * np.trace(inertia))
    assert (start.mass, *np.asarray(start.com)) == pytest.approx((2.0, 0.1, 0.2, 0.3), rel=1e-15)


def test_one_that_is_no_unknown_keeps_its_bits_and_one_that_is_is_told(tmp_path):
    """The torques of the plane are those of the real arm: what is broken is not felt there."""
    broken = [about * (0.9 * np.outer(AXIS, AXIS) + 0.1 * np.eye(3)) for about in ABOUT]
    tree = dataclasses.replace(TREE, inertias=np.array(broken))
    simulation = graph_of(tree, joint_friction_n_m_s=np.full(3, 0.2))
    log = mime.Log(Rig(pin.buildModelFromUrdf(URDF), FRICTION).log(0, 300), name="a")
    unknowns = ["arm.link[link_3]", "arm.joint_friction_n_m_s"]
    fit = mime.fit(simulation, [log], columns(3), unknowns, by="inverse_dynamics", progress=False)
    assert fit.is_explained, str(fit)
    for j in range(3):
        found = fit[f"arm.joint_friction_n_m_s[{j}]"]
        assert abs(found.value - FRICTION) < 1.7 * 0.5 * (found.high - found.low)
    after = fit.simulation.nodes["arm"].tree
    for name in ("masses", "coms", "inertias"):
        np.testing.assert_array_equal(getattr(after, name)[:2], getattr(tree, name)[:2])
    assert is_physical(np.asarray(after.inertias[2]), float(after.masses[2]))
    (note,) = fit.notes
    assert note.startswith("arm.link[link_3] starts at the nearest inertia that a body can have, p")
    assert note in str(fit)
    assert escape(note) in fit.report()
    fit.save(tmp_path / "fit.json")
    assert mime.Fit.load(tmp_path / "fit.json").notes == fit.notes


def test_a_link_without_mass_on_a_joint_with_a_rotor_is_no_obstacle():
    masses, inertias = np.array(TREE.masses), np.array(TREE.inertias)
    masses[2], inertias[2] = 0.0, 0.0
    rotor = np.array([0.0, 0.0, 0.05])
    tree = dataclasses.replace(TREE, masses=masses, inertias=inertias, rotor_inertia=rotor)
    model = pin.buildModelFromUrdf(URDF)
    model.inertias[3] = pin.Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    model.armature = rotor
    log = mime.Log(Rig(model, FRICTION).log(0, 300), name="a")
    simulation = graph_of(tree, joint_friction_n_m_s=np.full(3, 0.2))
    unknowns = ["arm.link[link_2].inertia_kg_m2", "arm.joint_friction_n_m_s"]
    fit = mime.fit(simulation, [log], columns(3), unknowns, by="inverse_dynamics", progress=False)
    assert fit.is_explained, str(fit)
    assert fit.notes == ()
    for j in range(3):
        found = fit[f"arm.joint_friction_n_m_s[{j}]"]
        assert abs(found.value - FRICTION) < 1.7 * 0.5 * (found.high - found.low)


def test_a_fit_by_simulation_says_so_too(tmp_path):
    joints = [(-1, np.eye(3)[2], np.zeros(3))]
    tree = robot(tmp_path, joints, coms=[[0.3, 0.0, 0.0]], inertias=[BROKEN])
    simulation = graph_of(tree, gravity_world=(0.0, -9.81, 0.0))
    tau = 0.5 * np.sin(np.arange(100) * 0.3)
    run = simulation.run(
        0.1, inputs={"arm": {"commanded_joint_torques": tau[:, None]}}, watch=False
    )
    noise = 1e-4 * np.random.default_rng(0).normal(size=100)
    log = {
        "time": np.asarray(run.time)[-100:],
        "tau0": tau,
        "q0": np.asarray(run["arm"]["joint_angles"])[-100:, 0] + noise,
    }
    names = {"tau0": "arm.commanded_joint_torques[0]", "q0": "arm.joint_angles[0]"}
    unknowns = ["arm.link[l0].inertia_kg_m2"]
    fit = mime.fit(simulation, [mime.Log(log, name="a")], names, unknowns, starts=1, progress=False)
    assert len(fit.notes) == 1
    assert "arm.link[l0].inertia_kg_m2 starts at the nearest inertia" in str(fit)
