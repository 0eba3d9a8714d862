"""MIME-VER-130, 134, 135, 139: the elastic joint against matrix exponential and balances.

The two models against each other are in `elastic_joint_models`, frequency responses in
`elastic_joint_frequency`.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.verification.benchmark import (
    Convergence,
    Finding,
    Measurement,
    Subject,
    benchmark,
    halved,
    largest,
)
from mime.verification.convergence import order
from mime.verification.programs import quick_jit

JOINT = {
    "rotor_inertia_kg_m2": 0.1,
    "output_inertia_kg_m2": 5.0,
    "stiffness_n_m_per_rad": 20.0,
    "damping_n_m_s": 0.1,
}
FIELDS = ("rotor_angle", "rotor_velocity", "deflection", "deflection_velocity")
LONGEST = 20_000
ALGORITHM = {"subject": ElasticJointNode, "node_id": "MIME-NODE-103"}


def joint(Joint: Subject, I_f: float | None = None, timestep: float = 1e-3, **changes: Any) -> Any:
    """The joint of most benchmarks; with I_f, its spring hangs on an inserted body."""
    body = {} if I_f is None else {"model": "inserted_body", "inserted_inertia_kg_m2": I_f}
    return Joint("joint", timestep, **(JOINT | body | changes))


def label(I_f: float | None) -> str:
    """The model of a joint."""
    return "sea" if I_f is None else "inserted_body"


@quick_jit
def _scan(node: ElasticJointNode, dt: Any, state: dict, torques: Any) -> Any:
    def step(state: dict, pair: Any) -> tuple[dict, dict]:
        inputs = {"motor_torque": pair[0], "external_torque": pair[1]}
        state = node.update(state, inputs, dt)
        return state, state

    return jax.lax.scan(step, state, torques)[1]


def run(node: Any, torques: np.ndarray, **initial: float) -> dict[str, np.ndarray]:
    """The state after each step; `torques` is (steps, 2): motor and external."""
    state = node.initial_state() | {name: jnp.asarray(value) for name, value in initial.items()}
    # One program for all timesteps and lengths: dt is an argument, the torques end in zeros.
    node, dt, steps = dataclasses.replace(node, timestep=1.0), node.timestep, len(torques)
    padded = jnp.asarray(np.concatenate([torques, np.zeros((LONGEST - steps, 2))]))
    return {k: np.asarray(v)[:steps] for k, v in _scan(node, dt, state, padded).items()}


def equations(
    J: float, I: float, k: float, v: float, I_f: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """A, B of (x2, x2', x1, x1') from (I + I_f) x1'' + I x2'' = -k x1 - v x1' + f,
    I x1'' + (I + J) x2'' = u + f
    """
    M = np.array([[I + I_f, I], [I, I + J]])  # of (x1, x2)
    by_state = np.linalg.solve(M, np.array([[0, 0, -k, -v], [0, 0, 0, 0]]))
    by_torque = np.linalg.solve(M, np.array([[0, 1], [1, 1]]))
    A, B = np.zeros((4, 4)), np.zeros((4, 2))
    A[0, 1] = A[2, 3] = 1
    A[1], A[3], B[1], B[3] = by_state[1], by_state[0], by_torque[1], by_torque[0]
    return A, B


CASES: dict[str, tuple[float, dict[str, float]]] = {
    "dt = 1 ms": (1e-3, {}),
    "dt = 100 ms": (0.1, {}),
    "undamped": (1e-2, {"damping_n_m_s": 0.0}),
    "overdamped": (1e-2, {"damping_n_m_s": 50.0}),
    "light rotor, stiff": (1e-4, {"rotor_inertia_kg_m2": 1e-3, "stiffness_n_m_per_rad": 1e3}),
    "gear 100": (1e-2, {"rotor_inertia_kg_m2": 1e-5, "gear_ratio": 100.0}),
}


@benchmark(
    130,
    "Exact steps of the elastic joint",
    ElasticJointNode,
    halved("stiffness_n_m_per_rad"),
    kind="independent code",
)
def exact_steps(
    Joint, *, joint_parameters=JOINT, inserted_inertia_kg_m2=1e-5, cases=", ".join(CASES), steps=200
):
    """x(t + dt) = e^{A dt} x(t) + ∫ e^{A s} B (u, f) ds

    A and B from (I + I_f) x1'' + I x2'' = -k x1 - v x1' + f,   I x1'' + (I + J) x2'' = u + f.

    Reference: SciPy's exponential of the joint's equations, x' = A x + B (u, f), torques held
    constant over each step.
    Procedure:
    1. Start from x2 = 0.3, x2' = -0.2, x1 = 0.05, x1' = 0.4 (rad, rad/s).
    2. Drive 200 steps by random torques of motor and load (seed 0).
    3. Compare all four states, each over its largest value, in six cases and both models.
    Covers: `integrator='exact'` at any step, damping, stiffness and gear, both models
    Excludes: hardening and backlash, which have no matrix; the other integrators
    """
    for I_f in (None, 1e-5):
        for case, (dt, changes) in CASES.items():
            yield Measurement(
                f"relative error, {label(I_f)}, {case}",
                _error_of_exact_steps(Joint, I_f, dt, changes),
                limit=1e-10,
                why="200 steps of the exponential's own rounding, up to 1e-12 where it is stiff",
            )


def _error_of_exact_steps(
    Joint: Subject, I_f: float | None, dt: float, changes: dict[str, float]
) -> float:
    J, I, k, v = (changes.get(name, value) for name, value in JOINT.items())
    N = changes.get("gear_ratio", 1.0)
    A, B = equations(N**2 * J, I, k, v, I_f or 0.0)
    B[:, 0] *= N
    torques = np.random.default_rng(0).normal(size=(200, 2))
    start = [0.3, -0.2, 0.05, 0.4]
    states = run(joint(Joint, I_f, dt, **changes), torques, **dict(zip(FIELDS, start)))
    step = scipy.linalg.expm(np.block([[A, B], [np.zeros((2, 6))]]) * dt)
    x, path = np.array(start), []
    for pair in torques:
        x = step[:4, :4] @ x + step[:4, 4:] @ pair
        path.append(x)
    truth = np.array(path)
    ours = np.stack([states[name] for name in FIELDS], axis=1)
    return largest((ours - truth) / np.max(np.abs(truth), axis=0))


@benchmark(134, "Momentum of the elastic joint", ElasticJointNode, halved("output_inertia_kg_m2"))
def momentum(
    Joint, *, joint_parameters=JOINT, inserted_inertia_kg_m2=1e-2, timestep_s=1e-3, steps=2000
):
    """J x2' + I y' = ∫ (u + f) dt

    Reference: The sum of all torques times the step: J x2' + I y' has no other source.
    Procedure:
    1. Drive 2000 steps by random torques (seed 1).
    2. Compare after each step.
    Covers: action and reaction of the spring, both models
    Excludes: energy (MIME-VER-135)
    """
    torques = np.random.default_rng(1).normal(size=(2000, 2))
    for I_f in (None, 1e-2):
        states = run(joint(Joint, I_f), torques)
        rotor, relative = states["rotor_velocity"], states["deflection_velocity"]
        L = JOINT["rotor_inertia_kg_m2"] * rotor
        L = L + JOINT["output_inertia_kg_m2"] * (rotor + relative)
        yield Measurement(
            f"error of the momentum, {label(I_f)}",
            largest(L - 1e-3 * np.cumsum(torques.sum(axis=1))),
            limit=1e-13,
            unit="N·m·s",
            why="2000 roundings of 0.1 N·m·s, 1e-17 each, add up to some 1e-14",
        )


@benchmark(135, "Energy balance of the elastic joint", ElasticJointNode, halved("damping_n_m_s"))
def energy_balance(
    Joint,
    *,
    joint_parameters=JOINT,
    inserted_inertia_kg_m2=1e-2,
    motor_torque_n_m=0.7,
    external_torque_n_m=-0.4,
    steps=2000,
    timestep_s="1e-2 (implicit), 1e-3 (exact)",
):
    """E(t) - E(0) = ∫ u dx2 + ∫ f dy - ∫ v x1'² dt

    Reference: E = (J x2'² + I y'² + I_f x1'² + k x1²) / 2 grows by the torques' work less what the
    damper takes.
    Procedure:
    1. Start with x1 = 0.1 rad, x2' = 0.3 rad/s; run 2000 steps under constant torques.
    2. Midpoint rule: its own sum of v x1'² at the middle of the steps, so equal to rounding.
    3. Exact solution: the damper's loss by Simpson's rule on the samples.
    Covers: work, loss and storage of both models; `energy` of the node
    Excludes: hardening and backlash; backward Euler, which loses energy
    """
    limits = {"implicit": (1e-2, 1e-12, "rounding"), "exact": (1e-3, 1e-9, "Simpson's rule, dt⁴")}
    J, I, k, v = JOINT.values()
    u, f = 0.7, -0.4
    for I_f in (None, 1e-2):
        for integrator, (dt, limit, why) in limits.items():
            node = joint(Joint, I_f, dt, integrator=integrator)
            start = dict.fromkeys(FIELDS, 0.0) | {"deflection": 0.1, "rotor_velocity": 0.3}
            after = run(node, np.tile([u, f], (2000, 1)), **start)
            states = {name: np.concatenate([[start[name]], after[name]]) for name in FIELDS}
            x2, w2, x1, w1 = states.values()
            E = 0.5 * (J * w2**2 + I * (w1 + w2) ** 2 + (I_f or 0.0) * w1**2 + k * x1**2)
            middle = 0.5 * (w1[1:] + w1[:-1])
            squares = (
                dt * np.sum(middle**2)
                if integrator == "implicit"
                else scipy.integrate.simpson(w1**2, dx=dt)
            )
            work = u * (x2[-1] - x2[0]) + f * (x1[-1] + x2[-1] - x1[0] - x2[0])
            yield Measurement(
                f"balance over the largest energy, {integrator}, {label(I_f)}",
                abs(E[-1] - E[0] - work + v * squares) / E.max(),
                limit=limit,
                why=why,
            )
            own = np.asarray(node.energy({name: jnp.asarray(x) for name, x in states.items()}))
            yield Measurement(
                f"`energy` of the node, relative error, {integrator}, {label(I_f)}",
                largest(own - E) / E.max(),
                limit=1e-14,
                why="a few roundings",
            )


@benchmark(139, "A stiff elastic joint", ElasticJointNode, halved("stiffness_n_m_per_rad"))
def stiff_joint(
    Joint,
    *,
    joint_parameters=JOINT,
    stiffness_n_m_per_rad=1e6,
    damping_n_m_s=0.01,
    rotor_inertia_kg_m2=(0.1, 1e-6),
    inserted_inertia_kg_m2=1e-5,
    motor_torque_n_m=3.0,
    timestep_s=1e-3,
    steps=LONGEST,
):
    """y = u t² / (2 (I + J)),   mean(x1) = -u I / ((I + J) k),   at any sqrt(k/(mu + I_f)) dt

    Reference: The rigid motion u t² / (2 (I + J)), and the static deflection -u I / ((I + J) k).
    For the order of the midpoint rule: the exact steps of a soft joint.
    Procedure:
    1. Run 20 s from rest under a constant torque; with J = 1e-6 a step is 48 periods.
    2. Compare the output's angle with the rigid motion, the mean deflection with the static.
    3. On the soft joint, halve the step three times and fit the midpoint rule's order.
    Covers: stability at any stiffness, exact and midpoint rule; the order of the midpoint rule
    Excludes: the swing's phase, which such a step does not resolve
    """
    u, k, I = 3.0, 1e6, JOINT["output_inertia_kg_m2"]
    t = 1e-3 * np.arange(1, LONGEST + 1)
    for integrator in ("exact", "implicit"):
        for J in (0.1, 1e-6):
            stiff = {"stiffness_n_m_per_rad": k, "damping_n_m_s": 0.01, "rotor_inertia_kg_m2": J}
            node = joint(Joint, 1e-5, integrator=integrator, **stiff)
            states = run(node, np.tile([u, 0.0], (LONGEST, 1)))
            static = -u * I / (I + J) / k
            y = states["deflection"] + states["rotor_angle"]
            yield Measurement(
                f"distance from the rigid motion, {integrator}, J = {J:g}",
                largest(y - 0.5 * u / (I + J) * t**2),
                limit=2 * J / (I + J) * abs(static) + 1e-9,
                unit="rad",
                why="J/(I + J) of a free swing, twice the static deflection; rounding of 120 rad",
            )
            yield Measurement(
                f"mean over static deflection, distance from 1, {integrator}, J = {J:g}",
                abs(float(np.mean(states["deflection"])) / static - 1),
                limit=1e-2,
                why="20,000 samples of a swing that is not resolved",
            )
    timesteps = (4e-3, 2e-3, 1e-3, 5e-4)
    errors = tuple(_midpoint_error(Joint, dt) for dt in timesteps)
    what = "error of the deflection at 2 s (rad)"
    yield Convergence("timestep (s)", timesteps, what, {"midpoint rule": errors}, 2.0)
    yield Measurement(
        "order of the midpoint rule, distance from 2",
        abs(order(timesteps, errors) - 2),
        limit=0.05,
        why="the fourth-order term at the coarsest step",
    )


def _midpoint_error(Joint: Subject, dt: float) -> float:
    """Against the closed form of the oscillator (mu + I_f) x1'' + v x1' + k x1 = 0 at 2 s."""
    J, I, k, v = JOINT.values()
    steps, start = round(2.0 / dt), {"deflection": 0.1}
    states = run(joint(Joint, timestep=dt, integrator="implicit"), np.zeros((steps, 2)), **start)
    A, _ = equations(J, I, k, v)
    return abs(float(states["deflection"][-1] - (scipy.linalg.expm(2.0 * A) @ [0, 0, 0.1, 0])[2]))
