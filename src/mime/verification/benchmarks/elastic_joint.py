"""MIME-VER-130, 134, 135, 139: the elastic joint against matrix exponential and balances.

The two models against each other are in `elastic_joint_models`, frequency responses in
`elastic_joint_frequency`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy

from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, scaled
from mime.verification.convergence import order_error
from mime.verification.programs import final_state, rollout

JOINT = {
    "rotor_inertia_kg_m2": 0.1,
    "output_inertia_kg_m2": 5.0,
    "stiffness_n_m_per_rad": 20.0,
    "damping_n_m_s": 0.1,
}
FIELDS = ("rotor_angle", "rotor_velocity", "deflection", "deflection_velocity")


def joint(Joint, I_f: float | None = None, timestep: float = 1e-3, **changes: Any) -> Any:
    """The joint of most benchmarks; with I_f, its spring hangs on an inserted body."""
    body = {} if I_f is None else {"model": "inserted_body", "inserted_inertia_kg_m2": I_f}
    return Joint("joint", timestep, **(JOINT | body | changes))


def label(I_f: float | None) -> str:
    """The model of a joint."""
    return "sea" if I_f is None else "inserted_body"


def torques(motor: Any, external: Any = 0.0) -> dict[str, Any]:
    """The inputs of a joint."""
    return {"motor_torque": motor, "external_torque": external}


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
    scaled("stiffness_n_m_per_rad", 0.5),
    kind="independent code",
)
def exact_steps(
    Joint, *, parameters=JOINT, cases=tuple(CASES), inserted_inertia_kg_m2=1e-5, steps=200
):
    """x(t + dt) = e^{A dt} x(t) + ∫ e^{A s} B (u, f) ds

    A and B from (I + I_f) x1'' + I x2'' = -k x1 - v x1' + f,   I x1'' + (I + J) x2'' = u + f.

    Reference: SciPy's exponential of the joint's equations, x' = A x + B (u, f), torques held
    constant over each step.
    Procedure:
    1. Start from x2 = 0.3, x2' = -0.2, x1 = 0.05, x1' = 0.4 (rad, rad/s).
    2. Drive by random torques of motor and load (seed 0).
    3. Compare all four states, each over its largest value, in six cases and both models.
    Covers: `integrator='exact'` at any step, damping, stiffness and gear, both models
    Excludes: hardening and backlash, which have no matrix; the other integrators
    """
    start, pairs = [0.3, -0.2, 0.05, 0.4], np.random.default_rng(0).normal(size=(steps, 2))
    for I_f in (None, inserted_inertia_kg_m2):
        for case, (dt, changes) in CASES.items():
            node = joint(Joint, I_f, dt, **changes)
            states = rollout(node, torques(*pairs.T), steps, start=dict(zip(FIELDS, start)))
            J, I, k, v = (changes.get(name, value) for name, value in parameters.items())
            N = changes.get("gear_ratio", 1.0)
            A, B = equations(N**2 * J, I, k, v, I_f or 0.0)
            B[:, 0] *= N
            step = scipy.linalg.expm(np.block([[A, B], [np.zeros((2, 6))]]) * dt)
            path = [np.array(start)]
            for pair in pairs:
                path.append(step[:4, :4] @ path[-1] + step[:4, 4:] @ pair)
            truth = np.array(path[1:])
            ours = np.stack([states[name] for name in FIELDS], axis=1)
            yield Measurement(
                f"relative error, {label(I_f)}, {case}",
                largest((ours - truth) / np.max(np.abs(truth), axis=0)),
                limit=1e-10,
                why="200 steps of the exponential's own rounding, up to 1e-12 where it is stiff",
            )


@benchmark(
    134, "Momentum of the elastic joint", ElasticJointNode, scaled("output_inertia_kg_m2", 0.5)
)
def momentum(Joint, *, parameters=JOINT, inserted_inertia_kg_m2=1e-2, timestep_s=1e-3, steps=2000):
    """J x2' + I y' = ∫ (u + f) dt

    Reference: The sum of all torques times the step: J x2' + I y' has no other source.
    Procedure: Drive by random torques (seed 1); compare after each step.
    Covers: action and reaction of the spring, both models
    Excludes: energy (MIME-VER-135)
    """
    J, I, _, _ = parameters.values()
    pairs = np.random.default_rng(1).normal(size=(steps, 2))
    for I_f in (None, inserted_inertia_kg_m2):
        states = rollout(joint(Joint, I_f, timestep_s), torques(*pairs.T), steps)
        rotor, relative = states["rotor_velocity"], states["deflection_velocity"]
        L = J * rotor + I * (rotor + relative)
        yield Measurement(
            f"error of the momentum, {label(I_f)}",
            largest(L - timestep_s * np.cumsum(pairs.sum(axis=1))),
            limit=1e-13,
            unit="N·m·s",
            why="2000 roundings of 0.1 N·m·s, 1e-17 each, add up to some 1e-14",
        )


@benchmark(
    135, "Energy balance of the elastic joint", ElasticJointNode, scaled("damping_n_m_s", 0.5)
)
def energy_balance(
    Joint,
    *,
    parameters=JOINT,
    inserted_inertia_kg_m2=1e-2,
    motor_torque_n_m=0.7,
    external_torque_n_m=-0.4,
    steps=2000,
    timestep_of_implicit_s=1e-2,
    timestep_of_exact_s=1e-3,
):
    """E(t) - E(0) = ∫ u dx2 + ∫ f dy - ∫ v x1'² dt

    Reference: E = (J x2'² + I y'² + I_f x1'² + k x1²) / 2 grows by the torques' work less what the
    damper takes.
    Procedure:
    1. Start with x1 = 0.1 rad, x2' = 0.3 rad/s; run under constant torques.
    2. Midpoint rule: its own sum of v x1'² at the middle of the steps, so equal to rounding.
    3. Exact solution: the damper's loss by Simpson's rule on the samples.
    Covers: work, loss and storage of both models; `energy` of the node
    Excludes: hardening and backlash; backward Euler, which loses energy
    """
    J, I, k, v = parameters.values()
    u, f = motor_torque_n_m, external_torque_n_m
    start = dict.fromkeys(FIELDS, 0.0) | {"deflection": 0.1, "rotor_velocity": 0.3}
    for I_f in (None, inserted_inertia_kg_m2):
        for integrator, dt, limit, why in (
            ("implicit", timestep_of_implicit_s, 1e-12, "rounding"),
            ("exact", timestep_of_exact_s, 1e-9, "Simpson's rule, dt⁴"),
        ):
            node = joint(Joint, I_f, dt, integrator=integrator)
            path = rollout(node, torques(u, f), steps, start=start)
            states = {name: np.concatenate([[start[name]], path[name]]) for name in FIELDS}
            x2, w2, x1, w1 = states.values()
            E = 0.5 * (J * w2**2 + I * (w1 + w2) ** 2 + (I_f or 0.0) * w1**2 + k * x1**2)
            squares = (
                dt * np.sum((0.5 * (w1[1:] + w1[:-1])) ** 2)
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


@benchmark(139, "A stiff elastic joint", ElasticJointNode, scaled("stiffness_n_m_per_rad", 0.5))
def stiff_joint(
    Joint,
    *,
    soft_joint=JOINT,
    stiff_stiffness_n_m_per_rad=1e6,
    stiff_damping_n_m_s=0.01,
    stiff_rotor_inertias_kg_m2=(0.1, 1e-6),
    inserted_inertia_kg_m2=1e-5,
    motor_torque_n_m=3.0,
    timestep_s=1e-3,
    steps=20_000,
    soft_timesteps_s=(4e-3, 2e-3, 1e-3, 5e-4),
):
    """y = u t² / (2 (I + J)),   mean(x1) = -u I / ((I + J) k),   at any sqrt(k/(mu + I_f)) dt

    Reference: The rigid motion u t² / (2 (I + J)), and the static deflection -u I / ((I + J) k).
    For the order of the midpoint rule: the matrix exponential of the soft joint.
    Procedure:
    1. Run from rest under a constant torque; with J = 1e-6 a step is 48 periods.
    2. Compare the output's angle with the rigid motion, the mean deflection with the static.
    3. On the soft joint, halve the step three times and fit the midpoint rule's order.
    Covers: stability at any stiffness, exact and midpoint rule; the order of the midpoint rule
    Excludes: the swing's phase, which such a step does not resolve
    """
    u, k = motor_torque_n_m, stiff_stiffness_n_m_per_rad
    I, t = soft_joint["output_inertia_kg_m2"], timestep_s * np.arange(1, steps + 1)
    for integrator in ("exact", "implicit"):
        for J in stiff_rotor_inertias_kg_m2:
            stiff = {"stiffness_n_m_per_rad": k, "damping_n_m_s": stiff_damping_n_m_s}
            stiff |= {"rotor_inertia_kg_m2": J, "integrator": integrator}
            node = joint(Joint, inserted_inertia_kg_m2, timestep_s, **stiff)
            states = rollout(node, torques(u), steps)
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
    timesteps, A = soft_timesteps_s, equations(*soft_joint.values())[0]
    truth = (scipy.linalg.expm(2.0 * A) @ [0, 0, 0.1, 0])[2]
    node = joint(Joint, integrator="implicit")
    ends = (
        final_state(node, torques(0.0), round(2.0 / dt), dt=dt, start={"deflection": 0.1})
        for dt in timesteps
    )
    errors = tuple(abs(float(end["deflection"] - truth)) for end in ends)
    what = "error of the deflection at 2 s (rad)"
    yield Convergence("timestep (s)", timesteps, what, {"midpoint rule": errors}, 2.0)
    why = "the fourth-order term at the coarsest step"
    yield order_error("order of the midpoint rule", timesteps, errors, 2, limit=0.05, why=why)
