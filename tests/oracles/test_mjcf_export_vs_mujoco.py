"""Elastic joints, driven by motors and by a servo, run by MuJoCo from the file that was written.

MuJoCo takes the spring explicitly and the current exactly, MIME the spring exactly or by the
midpoint rule and the back-EMF of the step before: the two differ by first order in the step, and
so by half as much where it is halved.
"""

import mujoco
import numpy as np
import pytest

from mime import (
    Gear,
    GraphManager,
    Limits,
    MotorNode,
    Payload,
    RobotArmNode,
    Servo,
    elastic_drive,
    parse_mjcf,
)
from mime.core.problem import InputError

VOLTS, ANGLE, DURATION = 5.0, 0.6, 0.1
PENDULUM = """<mujoco><worldbody><body name="link" euler="0 80 0">
<joint name="shoulder" damping="0.1" axis="0 1 0"/>
<inertial mass="0.5" pos="0 0 0.2" diaginertia="0.01 0.01 0.01"/></body></worldbody>
</mujoco>"""


def motor(dt, **more):
    return MotorNode(
        "motor",
        dt,
        inertia_kg_m2=1e-5,
        kt_n_m_per_a=0.05,
        r_ohm=1.0,
        l_henry=1e-3,
        damping_n_m_s=1e-5,
        command_mode="voltage",
        shaft="driven",
        gear=Gear(ratio=20.0),
        **more,
    )


def theirs(file, control=VOLTS):
    """MuJoCo's model from the file, and its joints after each step."""
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data, angles = mujoco.MjData(model), []
    data.ctrl[:] = control
    for _ in range(round(DURATION / model.opt.timestep)):
        mujoco.mj_step(model, data)
        angles.append(np.array(data.qpos))
    at = {model.joint(j).name: int(model.jnt_qposadr[j]) for j in range(model.njnt)}
    return model, {name: np.array(angles)[:, i] for name, i in at.items()}


def drive_error(dt, file):
    graph = elastic_drive(
        motor(dt), output_inertia_kg_m2=0.02, stiffness_n_m_per_rad=30.0, damping_n_m_s=0.01
    )
    simulation = graph.compile()
    run = simulation.run(DURATION, {"motor": {"commanded_voltage": VOLTS}}, progress=False)
    simulation.to_mjcf(
        file,
        origins={"motor.r_ohm": "data sheet, page 3"},
        uncertainties={"motor.r_ohm": 0.1, "motor.kt_n_m_per_a": 0.002},
    )
    model, angles = theirs(file)
    assert model.opt.timestep == dt
    rotor, deflection = run["joint"]["rotor_angle"], run["joint"]["deflection"]
    error = np.max(np.abs(angles["joint"] - rotor)) / np.max(np.abs(rotor))
    return error + np.max(np.abs(angles["joint_spring"] - deflection)) / np.max(np.abs(deflection))


def arm_error(dt, file):
    pendulum = file.with_name("pendulum.xml")
    pendulum.write_text(PENDULUM)
    reflected = motor(dt).reflected_inertia()
    arm = RobotArmNode(
        "arm",
        dt,
        parse_mjcf(pendulum),
        "link",
        rotor_inertia_kg_m2={"shoulder": float(reflected)},
        joint_stiffness_n_m_per_rad={"shoulder": 60.0},
    )
    graph = GraphManager()
    graph.add_node(motor(dt))
    graph.add_node(arm)
    graph.add_edge("motor", "arm", "shaft_torque", "commanded_joint_torques", lambda tau: tau[None])
    graph.add_edge("arm", "motor", "rotor_velocities", "shaft_velocity", lambda w: w[0], delay=True)
    graph.add_external_input("motor", "commanded_voltage")
    simulation = graph.compile()
    volts, wanted = {"motor": {"commanded_voltage": VOLTS}}, ["arm.joint_angles"]
    run = simulation.run(DURATION, volts, progress=False, record=wanted)
    simulation.to_mjcf(file)
    _, angles = theirs(file)
    ours = np.array(run["arm"]["joint_angles"])[:, 0]
    link = angles["shoulder"] + angles["shoulder_spring"]
    return np.max(np.abs(link - ours)) / np.max(np.abs(ours))


def servo_error(dt, file):
    """A servo on the rotor of a loaded pendulum; the torque limit is in its way at first."""
    pendulum = file.with_name("pendulum.xml")
    pendulum.write_text(PENDULUM)
    arm = RobotArmNode(
        "arm",
        dt,
        parse_mjcf(pendulum),
        "link",
        rotor_inertia_kg_m2={"shoulder": 0.02},
        joint_stiffness_n_m_per_rad={"shoulder": 60.0},
        joint_stiffness_damping_n_m_s={"shoulder": 0.2},
        payload=Payload("link", 0.3, (0.0, 0.0, 0.4)),
        servo=Servo(20.0, 1.0, 8.0, gravity_compensation=False),
    )
    graph = GraphManager()
    graph.add_node(arm)
    graph.add_external_input("arm", "desired_joint_angles")
    simulation = graph.compile()
    goal = {"arm": {"desired_joint_angles": [ANGLE]}}
    run = simulation.run(DURATION, goal, progress=False)
    simulation.to_mjcf(file)
    model, angles = theirs(file, ANGLE)
    assert model.body("link").mass[0] == pytest.approx(0.8)
    assert np.max(np.abs(run["arm"]["servo_torques"])) == 8.0
    ours = np.array(run["arm"]["joint_angles"])[:, 0]
    link = angles["shoulder"] + angles["shoulder_spring"]
    return np.max(np.abs(link - ours)) / np.max(np.abs(ours))


@pytest.mark.small("drive_error", "servo_error")
@pytest.mark.parametrize("error", [drive_error, arm_error, servo_error])
def test_a_motor_driven_elastic_joint_moves_in_mujoco_as_here_to_the_order_of_the_step(
    error, tmp_path
):
    coarse, fine = (error(dt, tmp_path / "out.xml") for dt in (1e-4, 5e-5))
    assert fine < 0.02
    assert fine < 0.65 * coarse, (coarse, fine)


def test_the_file_says_where_values_came_from_and_what_it_cannot_say(tmp_path):
    file = tmp_path / "out.xml"
    drive_error(2e-4, file)
    text = file.read_text()
    assert "<!-- motor.r_ohm: ± 0.1 (data sheet, page 3) -->" in text
    assert "<!-- motor.kt_n_m_per_a: ± 0.002 -->" in text
    lossy = MotorNode(
        "motor",
        1e-3,
        1e-5,
        0.05,
        1.0,
        1e-3,
        1e-5,
        command_mode="voltage",
        shaft="driven",
        gear=Gear(ratio=20.0, efficiency=0.8),
        limits=Limits(supply_voltage_v=12.0, torque_n_m=0.2),
    )
    joint = {"output_inertia_kg_m2": 0.02, "stiffness_n_m_per_rad": 30.0}
    graph = elastic_drive(lossy, **joint, backlash_rad=0.01, integrator="implicit")
    graph.compile().to_mjcf(file)
    text = file.read_text()
    assert "the gear of 'motor' has an efficiency of 0.8" in text
    assert "backlash of 0.01 rad on either side" in text
    model = mujoco.MjModel.from_xml_path(str(file))
    np.testing.assert_array_equal(model.actuator_ctrlrange[0], [-12, 12])
    np.testing.assert_array_equal(model.actuator_forcerange[0], [-0.2, 0.2])
    with pytest.raises(InputError, match="origins must be addresses"):
        graph.compile().to_mjcf(file, origins={"nobody.r_ohm": "?"})
    alone = GraphManager()
    alone.add_node(lossy)
    with pytest.raises(InputError, match="one arm or elastic joint; this one has"):
        alone.compile().to_mjcf(file)
