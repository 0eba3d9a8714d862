"""The PD of an arm with gravity compensation, over payloads; and plants as a fit knows them."""

import jax
import numpy as np
import pytest

import mime
from fitting.motors import COLUMNS, UNKNOWNS, bench, motor_log
from mime.tuning.bench import Bench, Run
from mime.tuning.plants import plants
from mime.tuning.problem import question

DT, GOAL = 2e-3, np.array([0.6, -0.4, 0.3])
PAYLOAD, TORQUES = "arm.link[link_3].mass_kg", "pd.joint_torques"
INPUTS = {"pd": {"desired_joint_angles": GOAL}}


@pytest.fixture(scope="module")
def arm():
    tree = mime.parse_urdf(mime.model_path("planar_arm_3link"))
    graph = mime.GraphManager()
    graph.add_node(mime.RobotArmNode("arm", DT, tree, "link_3"))
    graph.add_node(mime.JointPDNode("pd", DT, tree, [30.0, 15.0, 4.0], [4.0, 1.5, 0.3]))
    for field in ("joint_angles", "joint_velocities"):
        graph.add_edge("arm", "pd", field, field)
    graph.add_edge("pd", "arm", "joint_torques", "commanded_joint_torques", delay=True)
    graph.add_external_input("pd", "desired_joint_angles")
    return graph.compile()


@pytest.fixture(scope="module")
def tuned(arm):
    return mime.tune(
        arm,
        ["pd.kp", "pd.kd"],
        mime.Goal("rms_error", "arm.joint_angles", "pd.desired_joint_angles", name="error"),
        limits={TORQUES: 40.0, "arm.joint_velocities": 9.0},
        plants={PAYLOAD: (0.3, 1.5)},
        members=3,
        duration=0.6,
        inputs=INPUTS,
        starts=1,
        rounds=8,
        progress=False,
    )


def figures(simulation, mass):
    """Error and largest torque of a plain run with that payload."""
    run = simulation.with_parameters({PAYLOAD: mass}).run(
        0.6, INPUTS, record=["arm.joint_angles", TORQUES], progress=False
    )
    off = np.asarray(run["arm"]["joint_angles"]) - GOAL
    return np.sqrt(np.mean(off**2)), np.abs(np.asarray(run["pd"]["joint_torques"])).max()


def test_an_arms_gains_serve_every_payload_within_the_torque(arm, tuned):
    masses = tuned.plants[PAYLOAD]
    assert len(set(masses)) == 3
    assert np.all((masses > 0.3) & (masses < 1.5))
    assert [row.name for row in tuned.gains][:1] == ["pd.kp[shoulder]"]
    old = np.array([figures(arm, mass) for mass in masses])
    new = np.array([figures(tuned.simulation, mass) for mass in masses])
    error, torque, _ = tuned.figures
    for found, wanted in ((error.before, old[:, 0]), (error.after, new[:, 0])):
        np.testing.assert_allclose(found, wanted, rtol=1e-3)  # runs are in single precision
    np.testing.assert_allclose(torque.after, new[:, 1], rtol=1e-3)
    assert np.all(new[:, 0] < old[:, 0])
    assert np.all(new[:, 1] <= 40.0 * 1.001)
    assert tuned.keeps_limits
    assert len(tuned.margins) == 3  # a loop a joint


def test_plants_of_a_fit_are_drawn_from_its_covariance():
    fit = mime.fit(bench(), motor_log(rows=301), COLUMNS, UNKNOWNS, starts=1, progress=False)
    graph = mime.GraphManager()
    gains = {"velocity_kp": 0.01, "velocity_ki": 0.3, "command_mode": "velocity"}
    values = {name.partition(".")[2]: fit[name].value for name in UNKNOWNS}
    graph.add_node(mime.MotorNode("motor", 1e-3, **values, **gains))
    graph.add_external_input("motor", "commanded_velocity")
    drive = graph.compile()
    _, drawn = plants(drive, fit, 20_000, np.random.default_rng(0))
    logs = np.log([drawn[name] for name in UNKNOWNS])
    found = np.array([fit[name].value for name in UNKNOWNS])
    np.testing.assert_allclose(logs[:, 0], np.log(found), rtol=1e-12)
    chosen = [fit.known.index(name) for name in UNKNOWNS]
    wanted = np.asarray(fit.covariance)[np.ix_(chosen, chosen)] / np.outer(found, found)
    size = np.sqrt(np.diag(wanted))
    # Of 20,000 draws an entry is off by 1 / sqrt(20,000), at most four times that.
    np.testing.assert_allclose(
        np.cov(logs) / np.outer(size, size), wanted / np.outer(size, size), atol=0.03
    )
    tuned = mime.tune(
        drive, ["motor.velocity_kp"],
        mime.Goal("rms_error", "motor.rotor_angular_velocity", "motor.commanded_velocity"),
        plants=fit, members=3, starts=1, rounds=4, duration=0.05, progress=False,
        inputs={"motor": {"commanded_velocity": 10.0}},
    )  # fmt: skip
    assert set(tuned.plants) == set(UNKNOWNS)
    assert tuned.figures[0].after.mean() < tuned.figures[0].before.mean()


@pytest.mark.soak("test_margin_limits has the same of one joint: three cost eleven seconds")
def test_slopes_of_margins_go_through_all_loops_and_the_working_point(arm):
    """Of a joint's margins by every gain, of the others too: against differences, in one batch."""
    with jax.enable_x64(True):
        goal = mime.Goal("rms_error", "arm.joint_angles", "pd.desired_joint_angles")
        run = Run(arm, 0.02, INPUTS)
        said = {"phase_deg": 60.0, "sensitivity": 1.5}
        random = np.random.default_rng(0)
        bench = Bench(run, ["pd.kp", "pd.kd"], [goal], {}, said, {PAYLOAD: 0.3}, 2, random)
        slopes, count = question(bench, 1.0)
        assert count == 2 * 3 * 2  # plants, joints, margins
        z, step = bench.gains.start, 1e-5
        z = z + np.repeat([0.0, 2.0], 3)  # lightly damped ones would keep any margin
        points = np.vstack([z, *(z + s * step * row for row in np.eye(6) for s in (1, -1))])
        ones = np.ones(len(points))
        value, slope, _, excess = slopes(points, np.zeros((len(points), count)), ones)
        assert np.any(excess[0] > 0)
        np.testing.assert_allclose(slope[0], (value[1::2] - value[2::2]) / (2 * step), rtol=1e-5)
