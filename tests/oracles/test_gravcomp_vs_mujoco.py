"""Compensation of gravity (MJCF `gravcomp`) against MuJoCo, which reads the same files."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import RobotArmNode
from mime.control.kinematics.compensation import by_actuators

# Both add the same products in another order; torques are of a few terms.
RTOL = 1e-13
ARM = """<mujoco model="arm"><compiler angle="radian"/>
<option gravity="0.7 -1.1 -9.3" integrator="{integrator}"/><worldbody>
<body name="post" pos="0 0 0.3" gravcomp="0.4">
<inertial mass="3" pos="0.1 0 0" diaginertia="0.1 0.1 0.1"/>
<body name="upper" pos="0.1 0 0" euler="0.2 0.3 -0.4" gravcomp="{upper}">
  <joint name="lift" type="slide" axis="0 1 2" pos="0.05 0 0.1" {lift}/>
  <joint name="shoulder" axis="1 2 0.5" pos="0.1 -0.2 0.05" {shoulder} damping="0.3"/>
  <inertial mass="2.5" pos="0.2 0.1 -0.05" euler="0.3 0.2 0.1" diaginertia="0.03 0.04 0.05"/>
  <body name="counterweight" pos="-0.3 0 0.1" gravcomp="{weight}"><inertial mass="1.2"
    pos="-0.1 0 0.02" diaginertia="0.01 0.01 0.01"/>
    <body name="spike" pos="0 0.2 0.1" euler="1 0 0"><inertial mass="0.3" pos="0 0.1 0"
      diaginertia="0.001 0.001 0.001"/></body></body>
  <body name="fore" pos="0.5 0 0.1" gravcomp="{fore}">
    <joint name="elbow" axis="0 1 0" {elbow} damping="0.1" stiffness="3" springref="0.2"/>
    <inertial mass="0.9" pos="0.1 0 0.3" diaginertia="0.01 0.02 0.02"/>
    <body name="hand" pos="0 0 0.4" gravcomp="1.5"><joint name="wrist" axis="1 0 0"/>
      <inertial mass="0.4" pos="0.02 0.01 0.1" diaginertia="0.002 0.001 0.002"/></body></body>
</body></body></worldbody><actuator>{drives}</actuator></mujoco>"""
DRIVES = """<motor joint="lift" gear="20"/><position joint="shoulder" kp="30" forcerange="-9 9"/>
<motor joint="elbow" gear="4" ctrlrange="-1 1"/>"""
MOTORS = "".join(f'<motor joint="{j}"/>' for j in ("lift", "shoulder", "elbow", "wrist"))
PLAIN = {
    "upper": "0.7", "weight": "-0.5", "fore": "1", "lift": "", "shoulder": "",
    "elbow": "", "drives": DRIVES, "integrator": "Euler",
}  # fmt: skip
BY_ACTUATORS = {
    "shoulder": 'actuatorgravcomp="true" actuatorfrcrange="-4 4"',
    "elbow": 'actuatorgravcomp="true"',
}
CASES = {
    "different parts": {},
    "actuators bear it": BY_ACTUATORS,
    "more than all": {"upper": "2.5", "weight": "0", "fore": "3"},
    "masses that cancel": {"upper": "0.48", "weight": "-1"},
}


def floating(text):
    """The same with a base that floats: the post."""
    return text.replace('gravcomp="0.4">', 'gravcomp="0.4"><freejoint/>')


def written(tmp_path, text):
    file = tmp_path / "arm.xml"
    file.write_text(text)
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return kin.parse_mjcf(file), model


def at_random(model, seed):
    """MuJoCo's data at a random state."""
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    data.qpos[:], data.qvel[:] = rng.uniform(-1, 1, model.nq), rng.uniform(-1, 1, model.nv)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qfrc_applied[-4:], data.ctrl[:] = rng.uniform(-1, 1, 4), rng.uniform(-2, 2, model.nu)
    mujoco.mj_forward(model, data)
    return data


def close(ours, theirs, rtol=RTOL):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * np.max(np.abs(theirs)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_torques_are_mujocos(tmp_path, case, base):
    text = ARM.format(**PLAIN | CASES[case])
    tree, model = written(tmp_path, floating(text) if base == "floating" else text)
    assert tree.base == base
    for seed in range(3):
        data = at_random(model, seed)
        q, qd, n = np.array(data.qpos[-4:]), np.array(data.qvel[-4:]), 4
        gravity, turn = np.array(tree.gravity_m_per_s2), np.eye(3)
        if base == "floating":
            mujoco.mju_quat2Mat(flat := np.zeros(9), data.qpos[3:7])
            turn = flat.reshape(3, 3)
        borne = kin.compensating_torques(tree, q, turn.T @ gravity)
        close(borne[-n:], data.qfrc_gravcomp[-n:])
        if base == "floating":  # MuJoCo has the force in world axes
            close(turn @ borne[:3], data.qfrc_gravcomp[:3])
            close(borne[3:6], data.qfrc_gravcomp[3:6])
        spring = -tree.joint_friction * qd
        spring -= tree.spring_stiffness_n_m_per_rad * (q - tree.spring_reference_rad)
        passive = spring + np.where(by_actuators(tree), 0, borne[-n:])
        close(passive, data.qfrc_passive[-n:])
        drives = kin.actuator_torques(tree, np.array(data.ctrl), q, qd, turn.T @ gravity)
        close(drives, data.qfrc_actuator[-n:])
    assert by_actuators(tree).any() == (case == "actuators bear it")


def test_an_actuator_gives_no_more_than_the_joint_bears(tmp_path):
    tree, model = written(tmp_path, ARM.format(**PLAIN | BY_ACTUATORS))
    np.testing.assert_array_equal(tree.effort_limits[1:3], [4.0, np.inf])
    q, qd = np.array([0.1, 0.4, -0.3, 0.2]), np.zeros(4)
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = q, [0.0, 2.0, 3.0]
    mujoco.mj_forward(model, data)
    drives = kin.actuator_torques(tree, data.ctrl, q, qd)
    assert abs(drives[1]) == 4.0
    assert abs(drives[2] - 4.0) > 1.0  # 4 N·m of its control, and the weight
    close(drives, data.qfrc_actuator)


def arm_and_model(tmp_path, base, changes, **options):
    """The arm, and MuJoCo's model in which each command is the control of a motor."""
    text = ARM.format(**PLAIN | {"drives": MOTORS} | changes)
    tree, model = written(tmp_path, floating(text) if base == "floating" else text)
    if not options.get("saturate_effort"):
        model.jnt_actfrclimited[:] = 0
    return RobotArmNode("arm", 1e-3, tree, "hand", **options), model


def state_of(arm, data):
    """The state in which MuJoCo's data is."""
    state = {"joint_angles": data.qpos[-4:], "joint_velocities": data.qvel[-4:]}
    if arm.base == "floating":
        mujoco.mju_quat2Mat(flat := np.zeros(9), data.qpos[3:7])
        w = flat.reshape(3, 3) @ data.qvel[3:6]
        state["base_position_world_m"] = data.qpos[:3]
        state["base_orientation_world"] = data.qpos[3:7]
        state["base_twist_world"] = np.concatenate([data.qvel[:3], w])
    return {name: jnp.asarray(np.array(x)) for name, x in state.items()}


ARMS = {
    "passive": ({}, False),
    "by actuators": (BY_ACTUATORS, False),
    "by actuators, saturated": (BY_ACTUATORS, True),
}


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("case", ARMS)
def test_an_arm_accelerates_as_mujocos(tmp_path, case, base):
    changes, saturate = ARMS[case]
    arm, model = arm_and_model(tmp_path, base, changes, saturate_effort=saturate)
    at_limit = 0
    for seed in range(3):
        data = at_random(model, seed)
        data.qfrc_applied[:], command = 0.0, np.array(data.ctrl) * 5
        data.ctrl[:] = command
        mujoco.mj_forward(model, data)
        inputs = {"commanded_joint_torques": command}
        qdd, _ = arm.accelerations(state_of(arm, data), inputs)
        close(np.asarray(qdd)[-4:], data.qacc[-4:], 1e-11)  # the condition of M is some 1e3
        if base == "floating":
            close(np.asarray(qdd)[:3], data.qacc[:3], 1e-11)
        at_limit += abs(data.qfrc_actuator[-3]) == 4.0
    assert bool(at_limit) == saturate


@pytest.mark.parametrize("integrator", ["implicit", "rk4"])
def test_an_arm_moves_as_mujocos(tmp_path, integrator):
    changes = {"integrator": "RK4" if integrator == "rk4" else "Euler"}
    changes |= BY_ACTUATORS | {"elbow": ""}
    arm, model = arm_and_model(tmp_path, "fixed", changes, integrator=integrator)
    model.opt.timestep = arm.timestep
    data = at_random(model, 1)
    data.qfrc_applied[:] = 0.0
    state, inputs = state_of(arm, data), {"commanded_joint_torques": np.array(data.ctrl)}
    inputs = arm.complete_inputs(inputs, np.float64)
    step = jax.jit(lambda state: arm.update(state, inputs, arm.timestep))
    for _ in range(100):
        state = step(state)
        mujoco.mj_step(model, data)
    # Rounding, grown over the swing.
    close(np.asarray(state["joint_angles"]), data.qpos, 1e-11)


def test_a_file_that_is_written_has_the_same_compensation_in_mujoco(tmp_path):
    tree, _ = written(tmp_path, floating(ARM.format(**PLAIN | BY_ACTUATORS)))
    tree = tree.with_payload("hand", 0.5, (0.1, 0.0, 0.2))
    tree.to_mjcf(tmp_path / "out.xml")
    words = (tmp_path / "out.xml").read_text()
    assert "link 'hand' is relieved of the weight of 0.6" in words  # 1.5 · 0.4 kg, not of the load
    again = kin.parse_mjcf(tmp_path / "out.xml")
    assert again.actuator_compensated_joints == ("shoulder", "elbow")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    data = at_random(model, 4)
    mujoco.mju_quat2Mat(flat := np.zeros(9), data.qpos[3:7])
    gravity = flat.reshape(3, 3).T @ np.array(tree.gravity_m_per_s2)
    for ours in (tree, again):
        borne = kin.compensating_torques(ours, np.array(data.qpos[-4:]), gravity)
        close(borne[3:], data.qfrc_gravcomp[3:])
        close(flat.reshape(3, 3) @ borne[:3], data.qfrc_gravcomp[:3])


def test_what_mujoco_switches_off_is_absent(tmp_path):
    text = ARM.format(**PLAIN | BY_ACTUATORS)
    off = '<flag spring="disable" damper="disable"/></option>'
    passive_off = text.replace('integrator="Euler"/>', f'integrator="Euler">{off}')
    tree, model = written(tmp_path, passive_off)
    assert not np.any(at_random(model, 0).qfrc_gravcomp)
    assert tree.compensated_masses is None
    assert tree.actuator_compensated_joints == ()
    text = text.replace(DRIVES, "")
    with pytest.warns(kin.RobotFileWarning, match=r"joint 'elbow' leaves its weight to actuators"):
        tree, _ = written(tmp_path, text)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    assert not np.any(at_random(model, 0).qfrc_actuator)
    assert tree.actuator_compensated_joints == ("shoulder", "elbow")
