"""MIME-VER-123, 124, 129: the arm of three links held, driven and released, step by step."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import (
    Convergence,
    Finding,
    Measurement,
    Subject,
    benchmark,
    largest,
    replaced,
    scaled,
)
from mime.verification.benchmarks.robot_arm import DT, FREE, GRAVITY, SETUP, planar, plane, planes
from mime.verification.convergence import order
from mime.verification.programs import at_rest, rollout, varying
from mime.xla.folding import jit_folding

STEPS = 2000
AMPLITUDE, RATE, PHASE = 0.3, 0.5 * np.pi, np.array([0.0, 1.0, 2.0])
KP, KD = np.array([300.0, 100.0, 20.0]), np.array([20.0, 5.0, 0.5])


def _control(node: RobotArmNode, kp: Any, kd: Any, centre: Any, amplitude: Any) -> Any:
    """q and what it should be after each step: PD about a sine, with the plane's gravity torque."""

    def wanted(t: Any) -> Any:
        return centre + amplitude * jnp.sin(RATE * t + PHASE)

    def wanted_rate(t: Any) -> Any:
        return amplitude * RATE * jnp.cos(RATE * t + PHASE)

    def step(state: dict, n: Any) -> tuple[dict, Any]:
        t, q, qd = n * DT, state["joint_angles"], state["joint_velocities"]
        tau = kp * (wanted(t) - q) + kd * (wanted_rate(t) - qd) + plane(q, qd).g
        state = node.update(state, {"commanded_joint_torques": tau}, DT)
        return state, (state["joint_angles"], wanted(t + DT))

    start = {"joint_angles": wanted(0.0), "joint_velocities": wanted_rate(0.0)}
    return jax.lax.scan(step, start, jnp.arange(STEPS))[1]


_controlled = jit_folding(_control)


def _errors(Arm: Subject, *control: Any) -> np.ndarray:
    node = varying(Arm("arm", DT, planar(), "link_3", gravity_world=GRAVITY), "gravity_world")
    q, wanted = _controlled(node, *control)
    return np.asarray(q - wanted)


@benchmark(123, "Gravity torques hold the arm", RobotArmNode, scaled("gravity_world", -1.0))
def held(Arm, *, setup=SETUP, timestep_s=DT, steps=STEPS, start_rad=(0.4, -0.7, 0.5)):
    """tau = g(q)   =>   q(t) = q(0)

    Reference: tau = g(q) = Σ m_i g ∂z_i/∂q of the three bars, so that q̈ = 0.
    Procedure:
    1. Give each step the gravity torque at its own angles.
    2. Look at the drift in 2 s.
    Covers: sign and size of gravity in a step of the node
    Excludes: motion (MIME-VER-124)
    """
    errors = _errors(Arm, np.zeros(3), np.zeros(3), np.array([0.4, -0.7, 0.5]), 0.0)
    why = "roundings of the torque, 1e-15 N·m, on a bar of 3e-3 kg·m² for 2 s, times 100"
    yield Measurement("drift", largest(errors), limit=1e-10, unit="rad", why=why)


@benchmark(
    124,
    "PD control with gravity compensation tracks a sine",
    RobotArmNode,
    scaled("gravity_world", -1.0),
    kind="requirement",
)
def tracks(
    Arm,
    *,
    setup=SETUP,
    timestep_s=DT,
    steps=STEPS,
    amplitude_rad=AMPLITUDE,
    rate_rad_per_s=RATE,
    phase_rad=PHASE,
    kp_n_m_per_rad=KP,
    kd_n_m_s_per_rad=KD,
):
    """tau = kp (q* - q) + kd (q̇* - q̇) + g(q),   q* = A sin(w t + phi)

    Reference: The sine itself; gravity torques of the three bars in closed form.
    Procedure:
    1. Start on the sine, at its velocity.
    2. Each step: tau = kp (q* - q) + kd (q̇* - q̇) + g(q).
    3. Take the RMS of q - q* over 2 s and all joints.
    Covers: a closed loop over the node's step
    Excludes: MIME's own controllers (tested by themselves); limits of effort
    """
    errors = _errors(Arm, KP, KD, np.zeros(3), AMPLITUDE)
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
    Arm, *, setup=SETUP, timestep_s=DT, steps=100_000, start_rad=(-np.pi / 2 + 0.5, 0.2, 0.0)
):
    """E = q̇ᵀ M(q) q̇ / 2 + Σ m_i g z_i = constant

    M depends on q, so that semi-implicit Euler is not symplectic: the energy swings and drifts,
    both of first order in the step.

    Reference: E = q̇ᵀ M q̇ / 2 + Σ m_i g z_i of the three bars, which is constant.
    Procedure:
    1. Release the hanging arm by half a radian: regular motion, as a bound needs.
    2. Look at E every 100 steps over 100 s, and fit a line to it.
    3. Halve the step three times and fit the order of the largest error within 10 s.
    Covers: energy over 1e5 steps; the order of semi-implicit Euler
    Excludes: chaotic motion, whose energy drifts; friction and limits
    """
    options = {"joint_limit_override": FREE, "joint_friction_n_m_s": np.zeros(3)}
    node = varying(Arm("arm", DT, planar(), "link_3", **options), "joint_friction_n_m_s")
    error = _energy_error(node, DT, every=100)
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
    timesteps = (DT, DT / 2, DT / 4, DT / 8)
    errors = tuple(largest(_energy_error(node, dt, round(0.01 / dt))) for dt in timesteps)
    yield Convergence(
        "timestep (s)", timesteps, "largest error over |E(0)|, 10 s", {"released": errors}, 1.0
    )
    yield Measurement(
        "order of the error, distance from 1",
        abs(order(timesteps, errors) - 1),
        limit=0.05,
        why="the second-order term at the coarsest step",
    )


def _energy_error(node: RobotArmNode, dt: float, every: int) -> np.ndarray:
    """(E - E(0)) / |E(0)| at 1000 times."""
    start = at_rest(node, joint_angles=[-np.pi / 2 + 0.5, 0.2, 0.0])
    states = rollout(node, start, {}, samples=1000, every=every, dt=dt)
    q, qd = (
        np.concatenate([np.asarray(start[name])[None], states[name]])
        for name in ("joint_angles", "joint_velocities")
    )
    truth = planes(q, qd)
    E = 0.5 * np.einsum("ti,tij,tj->t", qd, truth.M, qd) + np.asarray(truth.V)
    return (E - E[0]) / abs(E[0])
