"""The servo beside MuJoCo's position actuators, over four decades of gains.

Three robots go to a pose under the same gains, with and without their torque limits; MuJoCo by
`implicitfast`, our speed limit off. The reference is MuJoCo with a hundredth of the step. Prints
the table and writes it to docs/servo_gains.md. About a minute.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import jax
import mujoco
import numpy as np
from mujoco import rollout

from mime import GraphManager, RobotArmNode, Servo, Simulation
from mime.control.kinematics import KinematicTree, mass_matrix, parse_urdf
from mime.models import model_path

STEP_S, DURATION_S = 2e-4, 0.4
STIFFNESSES = (1e1, 1e2, 1e3, 1e4, 1e5)
DAMPING_S = 0.05
"""kd / kp: an error falls as exp(-20 t/s) where the gains outweigh the arm."""
GRAVITY = (0.0, 0.0, -9.80665)
PAGE = Path(__file__).parent.parent / "docs" / "servo_gains.md"


@dataclass(frozen=True)
class Gains:
    """One servo for all joints of a robot."""

    kp: float
    limited: bool

    @property
    def kd(self) -> float:
        return DAMPING_S * self.kp


GAINS = tuple(Gains(kp, limited) for limited, kp in product((False, True), STIFFNESSES))


@dataclass(frozen=True)
class Robot:
    """A URDF, with joints that are held still in both simulators."""

    name: str
    path: Path
    held: tuple[str, ...] = ()

    @property
    def tree(self) -> KinematicTree:
        return _tree(self.path, self.held)

    @property
    def start_and_goal(self) -> tuple[np.ndarray, np.ndarray]:
        """(N,) each, well within the joint limits."""
        lower, upper = np.asarray(self.tree.joint_limits).T
        start = np.clip(np.zeros(self.tree.num_joints), lower + 0.5, upper - 0.5)
        return start, start + 0.3 * np.cos(np.arange(len(start)))

    def least_inertia(self) -> np.ndarray:
        """1 / (M⁻¹)_jj (N,): what a joint feels while the others are free; at start or goal."""
        matrices = (np.asarray(mass_matrix(self.tree, q)) for q in self.start_and_goal)
        return np.min([1 / np.diag(np.linalg.inv(M)) for M in matrices], axis=0)

    def leap(self, gains: Gains, step_s: float = STEP_S) -> float:
        """kd dt / 2 J, the largest of all joints: beyond 1, clamped torques of MuJoCo's change
        their sign from step to step.

        A torque T that a step holds changes the velocity by dt T / J. The torques of the servo fall
        from T to -T over 2 T / kd. A larger change leaps over them.
        """
        return float(np.max(gains.kd * step_s / (2 * self.least_inertia())))


@cache
def robots() -> tuple[Robot, ...]:
    files = metadata.files("example-robot-data") or []
    ur5, panda = (
        Path(next(str(f.locate()) for f in files if str(f).endswith(f"/{name}")))
        for name in ("ur5_robot.urdf", "panda.urdf")
    )
    fingers = ("panda_finger_joint1", "panda_finger_joint2")
    desktop = Path(model_path("desktop_arm_6axis"))
    return Robot("UR5", ur5), Robot("panda", panda, fingers), Robot("desktop arm", desktop)


@cache
def _tree(path: Path, held: tuple[str, ...]) -> KinematicTree:
    tree = parse_urdf(path)
    return tree.lock({name: 0.0 for name in held if name in tree.joint_names})


def simulation(robot: Robot, step_s: float) -> Simulation:
    """The robot with a servo whose gains and torque limits are parameters of a run."""
    tree, n = robot.tree, robot.tree.num_joints
    ones = jax.numpy.ones(n)
    servo = Servo(ones, ones, ones, gravity_compensation=False, limit_speed=False)
    free = np.tile([-np.inf, np.inf], (n, 1))
    arm = RobotArmNode(
        "arm",
        step_s,
        tree,
        tree.frame_names[-1],
        servo=servo,
        joint_limit_override=free,
        gravity_world=GRAVITY,
    )
    graph = GraphManager()
    graph.add_node(arm)
    graph.add_external_input("arm", "desired_joint_angles")
    return graph.compile()


def ours(robot: Robot, all_gains: Sequence[Gains], step_s: float, every: int = 1) -> np.ndarray:
    """Joint angles (gains, samples, N), one sample each `every` steps."""
    n = robot.tree.num_joints
    limits = np.asarray(robot.tree.effort_limits)
    start, goal = robot.start_and_goal
    run = simulation(robot, step_s).run_batch(
        DURATION_S,
        {"arm": {"desired_joint_angles": goal}},
        parameters={
            "arm.servo.kp": np.array([[g.kp] * n for g in all_gains]),
            "arm.servo.kd": np.array([[g.kd] * n for g in all_gains]),
            "arm.servo.torque_limits_n_m": np.array(
                [limits if g.limited else np.full(n, np.inf) for g in all_gains]
            ),
        },
        initial_state={"arm": {"joint_angles": start}},
        record=["arm.joint_angles"],
        every=every,
        progress=False,
    )
    return np.asarray(run["arm"]["joint_angles"])


def theirs(robot: Robot, all_gains: Sequence[Gains], step_s: float, every: int = 1) -> np.ndarray:
    """MuJoCo's joint angles (gains, samples, N); NaN where it gave up."""
    models = [_mujoco_model(robot, gains, step_s) for gains in all_gains]
    data = mujoco.MjData(models[0])
    order = [models[0].joint(name).qposadr[0] for name in robot.tree.joint_names]
    start, goal = robot.start_and_goal
    data.qpos[order] = start
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(models[0], full))
    mujoco.mj_getState(models[0], data, state, full)
    steps = round(DURATION_S / step_s)
    motions = []
    for model in models:  # one at a time: at the finest step each takes some 30 MB
        states, _ = rollout.rollout(model, data, state[None], goal[None, None], nstep=steps)
        motions.append(states[0, every - 1 :: every, 1:][:, order])  # after the time: qpos
    return np.array(motions)


def _mujoco_model(robot: Robot, gains: Gains, step_s: float) -> Any:
    text = re.sub("(?s)<(visual|collision)>.*?</\\1>", "", robot.path.read_text())
    spec = mujoco.MjSpec.from_string(text)
    for equality in list(spec.equalities):  # of a finger that mimics another
        spec.delete(equality)
    for name in robot.held:
        spec.delete(spec.joint(name))
    for name, limit in zip(robot.tree.joint_names, robot.tree.effort_limits, strict=True):
        spec.add_actuator(
            name=name,
            target=name,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE,
            gainprm=[gains.kp, *[0.0] * 9],
            biasprm=[0.0, -gains.kp, -gains.kd, *[0.0] * 7],
            forcelimited=gains.limited,
            forcerange=[-limit, limit],
        )
    model = spec.compile()
    model.opt.timestep, model.opt.gravity = step_s, GRAVITY
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.jnt_actfrclimited[:] = 0  # it would be the effort of the URDF, limited or not
    return model


def apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Largest distance of two motions in rad (gains,)."""
    return np.abs(first - second).max((1, 2))


def rows(robot: Robot) -> Iterator[str]:
    fine = STEP_S / 100
    here, there = ours(robot, GAINS, STEP_S), theirs(robot, GAINS, STEP_S)
    reference = theirs(robot, GAINS, fine, every=100)
    columns = apart(here, reference), apart(there, reference), apart(here, there)
    for gains, of_ours, of_theirs, between in zip(GAINS, *columns, strict=True):
        limits = "on" if gains.limited else "off"
        yield (
            f"| {robot.name} | {gains.kp:g} | {gains.kd:g} | {limits} | {robot.leap(gains):.2g} | "
            f"{of_ours:.1e} | {of_theirs:.1e} | {between:.1e} | {robot.leap(gains, fine):.2g} |"
        )


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    page = [
        "# The servo beside MuJoCo, over four decades of gains",
        "",
        f"Each robot goes to a pose 0.3 rad away, {DURATION_S:g} s at {STEP_S:g} s, without "
        "gravity compensation and speed limits; the torque limits are those of its URDF.",
        "MuJoCo has a position actuator of the same gains at each joint (`forcerange` its limit) "
        "and the integrator `implicitfast`. The reference is MuJoCo with a hundredth of the step.",
        "Distances are the largest of all joints and times, in rad. Written by `python "
        "benchmarks/servo_gains.py`; what it means is in [servo](servo.md#beside-mujoco).",
        "",
        "| robot | kp | kd | torque limits | kd dt / 2 J | MIME to the reference | MuJoCo to the "
        "reference | MIME to MuJoCo | kd dt / 2 J of the reference |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for robot in robots():
        for row in rows(robot):
            print(row, flush=True)
            page.append(row)
    PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(PAGE.parent.parent)}")


if __name__ == "__main__":
    main()
