"""MIME-VER-199: friction by load of the joints of an arm, with servos."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy

from mime import LoadFriction, Servo
from mime.core.node import Scalar, State, Values
from mime.core.parameters import with_fields
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest
from mime.verification.benchmarks.motor_load_friction import OfMotorOnly
from mime.verification.benchmarks.robot_arm import FREE, SETUP, planar, plane
from mime.verification.convergence import order_error
from mime.verification.programs import rollout


class _FrictionOfMotorOnly(RobotArmNode):
    """friction that does not feel the external torque"""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        law = OfMotorOnly(**self.friction.params)  # type: ignore[union-attr]
        blind = with_fields(self, friction=law)
        return RobotArmNode.update(blind, state, boundary_inputs, dt)


@benchmark(199, "Joints with friction by load stop", RobotArmNode, _FrictionOfMotorOnly)
def joints_with_load_friction(
    Arm,
    *,
    setup=SETUP,
    coulomb_torque_n_m=(0.3, 0.2, 0.05),
    motor_load=(0.1, 0.15, 0.2),
    external_load=(0.05, 0.1, 0.1),
    motor_load_difference=(0.03, -0.05, 0.1),
    stribeck_torque_n_m=(0.1, 0.1, 0.02),
    stribeck_velocity_rad_per_s=1.0,
    kp_n_m_per_rad=(60.0, 30.0, 10.0),
    kd_n_m_s_per_rad=(3.0, 1.0, 0.2),
    start_rad=(0.5, 0.3, 0.2),
    goal_rad=(0.0, 0.9, -0.4),
    duration_s=1.5,
    timesteps_s=(4e-4, 2e-4, 1e-4),
):
    """M q̈ + c + g = tau_m - tau_f sign(q̇),   tau_m = kp (q_des - q) - kd q̇,   tau_e = -c - g

    tau_f = tau_c + |k_e tau_e - (k_m ± d) tau_m| + tau_s e^{-(q̇/w_s)²},  + where tau_m drives q̇

    Servos move an arm of three links to a goal; friction holds each joint beside it.

    Reference: The plane's equation of motion in closed form, integrated by SciPy's `solve_ivp` to
    1e-9 from event to event: where a joint stops it stands if the torque that this takes is below
    the largest friction, and else it reverses; it breaks away where that torque exceeds it.
    Procedure:
    1. Let the servos move the arm; compare all angles at all times with SciPy's.
    2. Halve the step for the order.
    3. Look at the speeds at the end, where all of SciPy's joints stand.
    Covers: friction by load of coupled joints, motor and weight, driving and braking; stopping
    Excludes: the quadratic terms and elastic joints (tests)
    """
    law = {
        "coulomb_torque_n_m": np.array(coulomb_torque_n_m),
        "motor_load": np.array(motor_load),
        "external_load": np.array(external_load),
        "motor_load_difference": np.array(motor_load_difference),
        "stribeck_torque_n_m": np.array(stribeck_torque_n_m),
        "velocity_rad_per_s": np.full(3, stribeck_velocity_rad_per_s),
    }
    kp, kd, goal = (np.array(x) for x in (kp_n_m_per_rad, kd_n_m_s_per_rad, goal_rad))

    def state_of(q: np.ndarray, qd: np.ndarray) -> "_Torques":
        bars = plane(q, qd)
        return _Torques(bars.M, kp * (goal - q) - kd * qd, -bars.c - bars.g)

    start = np.concatenate([start_rad, np.zeros(3)])
    angles, moving = by_events(state_of, law, start, duration_s)
    errors: list[float] = []
    for dt in timesteps_s:
        servo = Servo(kp, kd, gravity_compensation=False, limit_torque=False, limit_speed=False)
        arm = Arm(
            "arm", dt, planar(), "link_3", friction=LoadFriction(**law), servo=servo,
            joint_friction_n_m_s=np.zeros(3), joint_limit_override=FREE,
        )  # fmt: skip
        steps = round(duration_s / dt)
        begin = {"joint_angles": start[:3], "joint_velocities": start[3:]}
        found = rollout(arm, {"desired_joint_angles": goal}, steps, start=begin)
        t = dt * np.arange(1, steps + 1)
        errors.append(largest(np.asarray(found["joint_angles"]) - angles(t)))
    yield Measurement(
        "largest error of the angles, through stops and reversals",
        errors[-1],
        limit=5e-3,
        unit="rad",
        why="first order at dt = 1e-4 s",
    )
    yield order_error("order of that error", timesteps_s, tuple(errors), 1, limit=0.15)
    yield Measurement(
        "joints of the reference that still move at the end",
        float(np.sum(moving)),
        limit=0.0,
        why="else the next number says nothing",
    )
    yield Measurement(
        "largest speed at the end",
        largest(found["joint_velocities"][-1]),
        limit=0.0,
        unit="rad/s",
        why="a joint that sticks stands at exactly zero",
    )
    curve = {"three joints": tuple(errors)}
    yield Convergence("timestep (s)", timesteps_s, "error of the angles (rad)", curve, 1.0)


class _Torques(NamedTuple):
    M: Any
    motor: Any
    external: Any


def by_events(
    torques: Callable[[np.ndarray, np.ndarray], _Torques],
    law: dict[str, Any],
    start: np.ndarray,
    end: float,
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """Angles at any time and which joints move at the end, from stop to breakaway to stop."""
    n = len(start) // 2

    def friction(way: np.ndarray, qd: np.ndarray, now: _Torques) -> Any:
        s = np.exp(-((qd / law["velocity_rad_per_s"]) ** 2))
        share = law["motor_load"] + law["motor_load_difference"] * way * np.sign(now.motor)
        rubbing = np.abs(law["external_load"] * now.external - share * now.motor)
        return law["coulomb_torque_n_m"] + rubbing + s * law["stribeck_torque_n_m"]

    def motion(q: np.ndarray, qd: np.ndarray, way: np.ndarray) -> tuple[Any, Any, Any]:
        """q̈ with the joints of way 0 held; what they hold, and by how much that is too much."""
        now, slides = torques(q, qd), way != 0
        net = now.motor + now.external
        net = np.where(slides, net - way * friction(way, qd, now), net)
        qdd = np.zeros(n)
        qdd[slides] = np.linalg.solve(now.M[np.ix_(slides, slides)], net[slides])
        held = net - now.M @ qdd
        return qdd, held, np.abs(held) - friction(np.sign(held), np.zeros(n), now)

    t, y, pieces = 0.0, start, []
    way, freed = np.sign(y[n:]), np.zeros(n, dtype=bool)
    while t < end:
        for j in np.flatnonzero(way == 0):  # what others do is felt at once
            _, held, excess = motion(y[:n], y[n:], way)
            if freed[j] or excess[j] > 0:
                way[j] = np.sign(held[j])

        def slope(_: float, y: np.ndarray, way: np.ndarray = way) -> Any:
            return np.concatenate([y[n:], motion(y[:n], y[n:], way)[0]])

        events = []
        for j in range(n):
            if way[j]:

                def event(_: float, y: np.ndarray, j: int = j) -> Any:
                    return y[n + j]

                event.direction = -way[j]  # type: ignore[attr-defined]
            else:

                def event(_: float, y: np.ndarray, j: int = j, way: np.ndarray = way) -> Any:
                    return motion(y[:n], y[n:], way)[2][j]

                event.direction = 1  # type: ignore[attr-defined]
            event.terminal = True  # type: ignore[attr-defined]
            events.append(event)
        found = scipy.integrate.solve_ivp(
            slope, (t, end), y, events=events, method="DOP853", rtol=1e-9, atol=1e-11,
            max_step=2e-2, dense_output=True,
        )  # fmt: skip
        pieces.append((t, found.t[-1], found.sol))
        t, y, way = found.t[-1], found.y[:, -1].copy(), way.copy()
        hit = np.array([len(found.t_events[j]) > 0 for j in range(n)])
        stopped, freed = hit & (way != 0), hit & (way == 0)
        way[stopped], y[n:][stopped] = 0.0, 0.0

    def angles(times: np.ndarray) -> np.ndarray:
        q = np.zeros((len(times), n))
        for begin, over, solution in pieces:
            at = (times > begin) & (times <= over + 1e-12)
            if at.any():
                q[at] = solution(times[at])[:n].T
        return q

    return angles, way != 0
