"""MIME-VER-165: an arm on a base that floats, where its motion has a closed form."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mime.control.kinematics import KinematicTree, parse_urdf
from mime.models import model_path
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import Measurement, benchmark
from mime.verification.programs import final_state, rollout


def _lighter_hull(RobotArm: Any) -> Any:
    """a hull with half of its inertia"""

    def make(*args: Any, **options: Any) -> Any:
        arm = RobotArm(*args, **options)
        return arm.with_params(**{"tree.root_body.inertia": 0.5 * arm.tree.root_body.inertia})

    return make


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def _matrix(quat: np.ndarray) -> np.ndarray:
    w, u = quat[0], np.asarray(quat[1:])
    K = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def _gyrostat(tree: KinematicTree, w: np.ndarray, wheel: float, time_s: float) -> np.ndarray:
    """R(t) = exp(t L / A) exp(t s e_z): a wheel on the axis of a round hull, no torque at all.

    A is the inertia across the axis, L the angular momentum, s = w_z - L_z / A.
    """
    hull, disc = np.asarray(tree.root_body.inertia), np.asarray(tree.inertias[0])
    A = hull[0, 0] + disc[0, 0]
    L = (hull + disc) @ w + np.array([0, 0, disc[2, 2] * wheel])
    size = float(np.linalg.norm(L))
    spin = float(w[2] - L[2] / A)
    return _rotation(L / size, time_s * size / A) @ _rotation(np.array([0, 0, 1.0]), time_s * spin)


@benchmark(165, "A base that floats", RobotArmNode, _lighter_hull)
def floating_base(
    RobotArm: Any,
    *,
    model: str = "satellite_arm",
    wheel_torque_n_m: float = 0.2,
    hull_spin_rad_per_s: tuple[float, float, float] = (0.4, -0.3, 0.8),
    wheel_speed_rad_per_s: float = 120.0,
    joint_torques_n_m: tuple[float, float, float] = (0.3, 2.0, -1.0),
    gravity_m_per_s2: tuple[float, float, float] = (0.5, 0.0, -9.80665),
    timestep_s: float = 1e-3,
    steps: int = 1000,
) -> Iterator[Measurement]:
    """P' = P + dt (m g + Σ F),  L' = L + dt Σ N,  c' = c + dt P'/m

    Reference: a reaction wheel, a gyrostat without torque, and a falling stone, in NumPy.
    Procedure:
    1. Turn the wheel by a constant torque: the hull turns against it by -n (n + 1)/2 dt² τ / I.
    2. Let hull and wheel spin freely: orientation against the closed form, with the default
       integrator at the step and at half of it, and with 'gauss4'.
    3. Drive wheel and arm while all falls: the centre of mass, from the poses of the links, against
       c + n dt v + n (n + 1)/2 dt² g.
    4. Take the largest deviation of the quaternion's length from 1 in all runs.
    Covers: forward dynamics with a floating base, its pose and twist, both kinds of integrators
    Excludes: wrenches from outside, friction, springs, stops and servos (tests have them)
    """
    tree = parse_urdf(model_path(model), base="floating")
    two = tree.subtree("hull", "wheel")
    lengths = []

    def seen(states: dict[str, Any]) -> dict[str, Any]:
        quats = np.reshape(states["base_orientation_world"], (-1, 4))
        lengths.append(float(np.max(np.abs(np.linalg.norm(quats, axis=1) - 1))))
        return states

    def pair(**options: Any) -> Any:
        return RobotArm("pair", timestep_s, two, "hull", gravity_world=(0, 0, 0), **options)

    torque = {"commanded_joint_torques": np.array([wheel_torque_n_m])}
    turned = seen(rollout(pair(), torque, steps))
    n = np.arange(1, steps + 1)
    I = float(np.asarray(two.root_body.inertia)[2, 2])
    angle = 2 * np.arctan2(
        turned["base_orientation_world"][:, 3], turned["base_orientation_world"][:, 0]
    )
    exact = -n * (n + 1) / 2 * timestep_s**2 * wheel_torque_n_m / I
    yield Measurement(
        "angle of a hull that turns against its wheel",
        float(np.max(np.abs(angle - exact))),
        limit=1e-13,
        unit="rad",
        why="the scheme's own sum: roundings of 1e-16 in each of a thousand steps",
    )

    spin = np.array(hull_spin_rad_per_s)
    start = {
        "base_twist_world": np.concatenate([np.zeros(3), spin]),
        "joint_velocities": np.array([wheel_speed_rad_per_s]),
    }
    time_s = steps * timestep_s
    reference = _gyrostat(two, spin, wheel_speed_rad_per_s, time_s)

    def error(arm: Any, refinement: int) -> float:
        dt = timestep_s / refinement
        end = seen(final_state(arm, {}, steps * refinement, dt=dt, start=start))
        return float(np.linalg.norm(_matrix(end["base_orientation_world"]) - reference))

    arm = pair()
    coarse, fine = error(arm, 1), error(arm, 2)
    yield Measurement(
        "order of the default integrator on a gyrostat",
        float(np.log2(coarse / fine)),
        limit=0.95,
        at_least=True,
        why="semi-implicit Euler is of first order",
    )
    yield Measurement(
        "orientation of a gyrostat by gauss4",
        error(pair(integrator="gauss4"), 1),
        limit=1e-12,
        why="of fourth order: (3e-3 rad per step)^5 in each of a thousand, and rounding",
    )

    robot = RobotArm("robot", timestep_s, tree, "tool", gravity_world=gravity_m_per_s2)
    inputs = {"commanded_joint_torques": np.array(joint_torques_n_m)}
    fallen = seen(rollout(robot, inputs, steps, start={"base_twist_world": _start_twist(spin)}))
    at_start = robot.initial_state() | {"base_twist_world": _start_twist(spin)}
    centre, velocity = _centre(tree, at_start), _drift(tree, at_start)
    g = np.array(gravity_m_per_s2)
    samples = (steps // 4, steps // 2, steps)
    deviations = [
        _centre(tree, {name: values[k - 1] for name, values in fallen.items()})
        - (centre + k * timestep_s * velocity + k * (k + 1) / 2 * timestep_s**2 * g)
        for k in samples
    ]
    yield Measurement(
        "centre of mass of a falling robot",
        float(np.max(np.abs(deviations))),
        limit=1e-12,
        unit="m",
        why="the scheme's own parabola: roundings of 1e-15 m in each of a thousand steps",
    )
    yield Measurement(
        "deviation of the quaternion's length from 1",
        max(lengths),
        limit=5e-16,
        why="normalised in each step: two roundings",
    )


def _start_twist(spin: np.ndarray) -> np.ndarray:
    """[v; w] at the start: it flies while it spins."""
    return np.concatenate([[0.3, -0.2, 0.1], spin])


def _poses(tree: KinematicTree, state: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """R and p of the base and of each link, each hung on its parent."""
    q = np.asarray(state["joint_angles"])
    base = np.eye(4)
    base[:3, :3] = _matrix(np.asarray(state["base_orientation_world"]))
    base[:3, 3] = state["base_position_world_m"]
    frames: list[np.ndarray] = []
    for i, parent in enumerate(tree.parent_idxs):
        turn = np.eye(4)
        turn[:3, :3] = _rotation(np.asarray(tree.joint_axes_local[i]), float(q[i]))
        frames.append((base if parent < 0 else frames[parent]) @ tree.joint_frames[i] @ turn)
    return [(T[:3, :3], T[:3, 3]) for T in [base, *frames]]


def _masses(tree: KinematicTree) -> list[tuple[float, np.ndarray]]:
    return [
        (float(tree.root_body.mass), np.asarray(tree.root_body.com)),
        *zip(map(float, tree.masses), tree.coms, strict=True),
    ]


def _centre(tree: KinematicTree, state: dict[str, Any]) -> np.ndarray:
    """c = Σ m_i c_i / m"""
    parts = zip(_masses(tree), _poses(tree, state), strict=True)
    total = sum(m for m, _ in _masses(tree))
    return np.sum([m * (R @ com + p) for (m, com), (R, p) in parts], axis=0) / total


def _drift(tree: KinematicTree, state: dict[str, Any]) -> np.ndarray:
    """ċ of a robot whose joints are at rest: v + w × (c - p)."""
    v, w = np.split(np.asarray(state["base_twist_world"]), 2)
    return v + np.cross(w, _centre(tree, state) - np.asarray(state["base_position_world_m"]))
