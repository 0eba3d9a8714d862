"""The servo beside MuJoCo's position actuators (`implicitfast`), its speed limit off: three robots,
gains over four decades; and with the torque limits of the URDF. Both are of first order in the step
and take the damping implicitly; MuJoCo takes the stiffness at the beginning of the step, MIME at
its end, and clamps the torque of the step's beginning.
"""

import re
import warnings
from importlib import metadata
from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mime.control.kinematics as kin
from mime import GraphManager, LimitWarning, RobotArmNode, Servo, model_path

DT, STEPS = 2e-4, 2000
PANDA = next(
    str(file.locate())
    for file in metadata.files("example-robot-data")
    if str(file).endswith("panda.urdf")
)
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
ROBOTS = {
    "planar_arm_3link": (model_path("planar_arm_3link"), ()),
    "desktop_arm_6axis": (model_path("desktop_arm_6axis"), ()),
    "panda": (PANDA, FINGERS),
}


def mujoco_motion(path, locked, tree, q0, goal, kp, kd, limited):
    """(steps + 1, N), or None where MuJoCo is not stable."""
    text = re.sub("(?s)<(visual|collision)>.*?</\\1>", "", Path(path).read_text())
    spec = mujoco.MjSpec.from_string(text)
    for equality in list(spec.equalities):  # of a finger that mimics another
        spec.delete(equality)
    for name in locked:
        spec.delete(spec.joint(name))
    for name in tree.joint_names:
        spec.add_actuator(
            name=name,
            target=name,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE,
            gainprm=[kp, *[0.0] * 9],
            biasprm=[0.0, -kp, -kd, *[0.0] * 7],
        )
    model = spec.compile()
    model.opt.timestep, model.opt.gravity = DT, (0.0, 0.0, -9.80665)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    if not limited:
        model.jnt_actfrclimited[:] = 0
    data = mujoco.MjData(model)
    order = [model.joint(name).qposadr[0] for name in tree.joint_names]
    data.qpos[order], data.ctrl[:] = q0, goal
    motion = [q0]
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
        motion.append(data.qpos[order].copy())
        if not np.abs(data.qvel).max() < 1e3:
            return None
    at_rest = np.ptp(motion[-50:], axis=0).max() < 1e-3  # else its clamped torques chatter
    return np.array(motion) if at_rest else None


@pytest.mark.parametrize(
    ("robot", "limited", "stiffnesses"),
    [
        *((robot, False, (1e1, 1e2, 1e3, 1e4, 1e5)) for robot in ROBOTS),
        ("planar_arm_3link", True, (1e2, 1e3)),
    ],
)
def test_it_moves_as_mujocos_actuators_do_wherever_those_are_stable(
    robot, limited, stiffnesses, record_figure
):
    path, locked = ROBOTS[robot]
    tree = kin.parse_urdf(path)
    tree = tree.lock({name: 0.0 for name in locked if name in tree.joint_names})
    n = tree.num_joints
    ones = jnp.ones(n)
    servo = Servo(
        ones, ones, None, None, gravity_compensation=False, limit_speed=False, limit_torque=limited
    )
    arm = RobotArmNode(
        "arm", DT, tree, tree.frame_names[-1], servo=servo, coulomb_friction_n_m=np.zeros(n)
    )
    graph = GraphManager()
    graph.add_node(arm)
    graph.add_external_input("arm", "desired_joint_angles")
    simulation = graph.compile()
    lower, upper = np.asarray(tree.joint_limits).T
    q0 = np.clip(np.zeros(n), lower + 0.5, upper - 0.5)
    goal = q0 + 0.3 * np.cos(np.arange(n))
    stable = []
    for kp in stiffnesses:
        kd = kp / 20
        theirs = mujoco_motion(path, locked, tree, q0, goal, kp, kd, limited)
        gains = {"arm.servo.kp": [kp] * n, "arm.servo.kd": [kd] * n}
        with warnings.catch_warnings():  # of speeds: the limits are off
            warnings.simplefilter("ignore", LimitWarning)
            run = simulation.with_parameters(gains).run(
                steps=STEPS,
                inputs={"arm": {"desired_joint_angles": goal}},
                initial_state={"arm": {"joint_angles": q0}},
            )
        ours = np.asarray(run["arm"]["joint_angles"])
        if theirs is None:
            continue
        stable.append(kp)
        apart = np.abs(ours - theirs[-len(ours) :]).max()
        record_figure(f"{robot}, kp {kp:g}: largest distance in rad", apart)
        # The stiffness is taken a step apart: 20 dt of the error, which falls as e' = -20 e.
        assert apart < 2 * 20 * DT * np.abs(goal - q0).max(), (kp, apart)
    record_figure(f"{robot}: MuJoCo is stable at kp", stable)
    assert stable
