"""MIME-VER-123, 124, 129: the arm of three links held, driven and released, step by step."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.native.folding import jit_folding
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import (
    Convergence,
    Measurement,
    benchmark,
    largest,
    replaced,
    scaled,
)
from mime.verification.benchmarks.robot_arm import FREE, GRAVITY, SETUP, planar, plane
from mime.verification.convergence import order_error
from mime.verification.programs import rollout, varying


def _control(node: RobotArmNode, kp: Any, kd: Any, sine: Any, dt: Any, *, steps: int) -> Any:
    """q and what it should be after each step: PD about a sine, with the plane's gravity torque."""
    centre, amplitude, rate, phase = sine

    def wanted(t: Any) -> Any:
        return centre + amplitude * jnp.sin(rate * t + phase)

    def wanted_rate(t: Any) -> Any:
        return amplitude * rate * jnp.cos(rate * t + phase)

    def step(state: dict, n: Any) -> tuple[dict, Any]:
        t, q, qd = n * dt, state["joint_angles"], state["joint_velocities"]
        tau = kp * (wanted(t) - q) + kd * (wanted_rate(t) - qd) + plane(q, qd).g
        state = node.update(state, {"commanded_joint_torques": tau}, dt)
        return state, (state["joint_angles"], wanted(t + dt))

    start = {"joint_angles": wanted(0.0), "joint_velocities": wanted_rate(0.0)}
    return jax.lax.scan(step, start, jnp.arange(steps))[1]


_controlled = jit_folding(_control, ("steps",))


def _errors(Arm, kp: Any, kd: Any, sine: tuple[Any, ...], dt: float, steps: int) -> np.ndarray:
    node = varying(Arm("arm", dt, planar(), "link_3", gravity_world=GRAVITY), "gravity_world")
    q, wanted = _controlled(node, kp, kd, sine, dt, steps=steps)
    return np.asarray(q - wanted)


@benchmark(
    123,
    "Gravity torques hold the arm",
    RobotArmNode,
    scaled("gravity_world", -1.0),
    slug="robot_arm_gravity_hold",
    test="tests/verification/test_robot_arm.py::test_ver123_gravity_hold",
)
def held(Arm, *, setup=SETUP, timestep_s=1e-3, steps=2000, start_rad=(0.4, -0.7, 0.5)):
    """tau = g(q)   =>   q(t) = q(0)

    Reference: tau = g(q) = Σ m_i g ∂z_i/∂q of the three bars, so that q̈ = 0.
    Procedure: Give each step the gravity torque at its own angles; look at the drift.
    Covers: sign and size of gravity in a step of the node
    Excludes: motion (MIME-VER-124)
    """
    still = np.array(start_rad), 0.0, 0.0, np.zeros(3)
    errors = _errors(Arm, np.zeros(3), np.zeros(3), still, timestep_s, steps)
    why = "roundings of the torque, 1e-15 N·m, on a bar of 3e-3 kg·m² for 2 s, times 100"
    yield Measurement("drift", largest(errors), limit=1e-10, unit="rad", why=why)


@benchmark(
    124,
    "PD control with gravity compensation tracks a sine",
    RobotArmNode,
    scaled("gravity_world", -1.0),
    kind="requirement",
    slug="robot_arm_pd_tracking",
    test="tests/verification/test_robot_arm.py::test_ver124_pd_tracking",
)
def tracks(
    Arm,
    *,
    setup=SETUP,
    timestep_s=1e-3,
    steps=2000,
    amplitude_rad=0.3,
    rate_rad_per_s=0.5 * np.pi,
    phase_rad=(0.0, 1.0, 2.0),
    kp_n_m_per_rad=(300.0, 100.0, 20.0),
    kd_n_m_s_per_rad=(20.0, 5.0, 0.5),
):
    """tau = kp (q* - q) + kd (q̇* - q̇) + g(q),   q* = A sin(w t + phi)

    Reference: The sine itself; gravity torques of the three bars in closed form.
    Procedure:
    1. Start on the sine, at its velocity.
    2. Each step: tau = kp (q* - q) + kd (q̇* - q̇) + g(q).
    3. Take the RMS of q - q* over all steps and joints.
    Covers: a closed loop over the node's step
    Excludes: MIME's own controllers (tested by themselves); limits of effort
    """
    kp, kd = np.array(kp_n_m_per_rad), np.array(kd_n_m_s_per_rad)
    sine = np.zeros(3), amplitude_rad, rate_rad_per_s, np.array(phase_rad)
    errors = _errors(Arm, kp, kd, sine, timestep_s, steps)
    yield Measurement(
        "RMS of the error",
        float(np.degrees(np.sqrt(np.mean(errors**2)))),
        limit=0.5,
        unit="°",
        why="required; what remains is inertia over stiffness, no truncation",
    )


@benchmark(
    129,
    "Energy of a frictionless pendulum of three links",
    RobotArmNode,
    replaced("a friction of 1e-3 N·m·s/rad in each joint", joint_friction_n_m_s=[1e-3] * 3),
)
def energy(
    Arm,
    *,
    setup=SETUP,
    timestep_s=1e-3,
    steps=100_000,
    start_rad=(-np.pi / 2 + 0.5, 0.2, 0.0),
    timesteps_s=(1e-3, 1e-3 / 2, 1e-3 / 4, 1e-3 / 8),
):
    """E = q̇ᵀ M(q) q̇ / 2 + Σ m_i g z_i = constant

    M depends on q, so that semi-implicit Euler is not symplectic: the energy swings and drifts,
    both of first order in the step.

    Reference: E = q̇ᵀ M q̇ / 2 + Σ m_i g z_i of the three bars, which is constant.
    Procedure:
    1. Release the hanging arm by half a radian: regular motion, as a bound needs.
    2. Look at E every 100 steps, and fit a line to it.
    3. Halve the step three times and fit the order of the largest error within 10 s.
    Covers: energy over 1e5 steps; the order of semi-implicit Euler
    Excludes: chaotic motion, whose energy drifts; friction and limits
    """
    options = {"joint_limit_override": FREE, "joint_friction_n_m_s": np.zeros(3)}
    node = Arm("arm", timestep_s, planar(), "link_3", **options)
    node, start = varying(node, "joint_friction_n_m_s"), {"joint_angles": start_rad}

    def relative_error(samples, dt, every):
        states = rollout(node, {}, samples, every=every, dt=dt, start=start)
        q = np.concatenate([[start_rad], states["joint_angles"]])
        qd = np.concatenate([np.zeros((1, 3)), states["joint_velocities"]])
        truth = plane(q, qd)
        E = 0.5 * np.einsum("ti,tij,tj->t", qd, truth.M, qd) + truth.V
        return (E - E[0]) / abs(E[0])

    error = relative_error(steps // 100, timestep_s, every=100)
    yield Measurement(
        "largest error over |E(0)|, 100 s",
        largest(error),
        limit=1e-2,
        why="of first order in the step; 1 % is required",
    )
    yield Measurement(
        "drift of the energy over |E(0)|",
        abs(float(np.polyfit(0.1 * np.arange(len(error)), error, 1)[0])),
        limit=1e-4,
        unit="1/s",
        why="1 % in 100 s",
    )
    errors = tuple(largest(relative_error(1000, dt, round(0.01 / dt))) for dt in timesteps_s)
    curve, what = {"released": errors}, "largest error over |E(0)|, 10 s"
    yield Convergence("timestep (s)", timesteps_s, what, curve, 1.0)
    yield order_error("order of the error", timesteps_s, errors, 1, limit=0.05)
