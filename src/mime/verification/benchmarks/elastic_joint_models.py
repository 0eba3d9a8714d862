"""MIME-VER-131, 132, 133, 138: how far an inserted body is from the elastic joint itself."""

from typing import Any

import numpy as np
import scipy

from mime.nodes.actuation import elastic_joint_analysis as analysis
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.elastic_joint import JOINT, equations, joint, label, torques
from mime.verification.convergence import order_error
from mime.verification.programs import final_state, rollout

FIGURES = {  # J/I, I_f/I: eps, frequency error, largest deflection error at zeta
    (1.0, 1e-2): ("2.00e-02", "-9.85e-03", "7.31e-02"),
    (1.0, 1e-4): ("2.00e-04", "-1.00e-04", "7.36e-04"),
    (0.1, 1e-3): ("1.10e-02", "-5.46e-03", "4.03e-02"),
    (0.01, 1e-3): ("1.01e-01", "-4.70e-02", "3.48e-01"),
}


def last_digits(value: float, printed: str) -> float:
    """|value - printed| in units of the printed number's last digit; rounding allows 0.5."""
    mantissa, exponent = printed.split("e")
    decimals = len(mantissa.partition(".")[2])
    return abs(value - float(printed)) / 10.0 ** (int(exponent) - decimals)


def _digits(name: str, values: list[float], printed: list[str]) -> Measurement:
    return Measurement(
        f"{name}, distance from the figures",
        largest([last_digits(value, text) for value, text in zip(values, printed, strict=True)]),
        limit=0.5,
        unit="last digits",
        why="all printed digits, rounded",
    )


@benchmark(
    131,
    "What an inserted body changes",
    ElasticJointNode,
    scaled("rotor_inertia_kg_m2", 0.5),
    kind="published figures",
)
def inserted_body(
    Joint,
    *,
    J_over_I=tuple(J for J, _ in FIGURES),
    I_f_over_I=tuple(I_f for _, I_f in FIGURES),
    damping_ratio=0.05,
    resonance_rad_per_s=1.0,
    timestep_s=0.01,
    duration_s=200.0,
):
    """eps = I_f/mu = (I_f/I)(1 + I/J),   w_f/w = (1 + eps)^{-1/2}

    Reference: Four cases worked out to three digits: eps = I_f/mu, the frequency error
    (1 + eps)^(-1/2) - 1, and the largest difference of the two step responses over the static
    deflection, mu = I J / (I + J).
    Procedure:
    1. Run both models from rest under a unit torque, for ten time constants.
    2. Compare their largest difference, over the static deflection, with the figures.
    3. Compare `inserted_body_error` and `largest_deflection_error` with the figures.
    Covers: that the ratio which counts is I_f/mu, not I_f/I: a light rotor makes it large
    Excludes: damping ratios other than 0.05
    """
    zeta, cases = damping_ratio, list(zip(J_over_I, I_f_over_I))
    eps, frequency, deflection = (list(column) for column in zip(*FIGURES.values()))
    errors = [analysis.inserted_body_error(J, 1.0, I_f, zeta) for J, I_f in cases]
    yield _digits("eps", [float(e.eps) for e in errors], eps)
    yield _digits("frequency error", [float(e.frequency_error) for e in errors], frequency)
    formula = [analysis.largest_deflection_error(float(e.eps), zeta) for e in errors]
    yield _digits("largest deflection error by formula", formula, deflection)
    simulated = []
    for J, I_f in cases:
        k = float(analysis.reduced_inertia(J, 1.0)) * resonance_rad_per_s**2
        v = zeta * float(analysis.critical_damping(J, 1.0, k))
        values = dict(zip(JOINT, (J, 1.0, k, v)))
        exact, with_body = (
            rollout(node, torques(1.0), round(duration_s / timestep_s))["deflection"]
            for node in (joint(Joint, body, timestep_s, **values) for body in (None, I_f))
        )
        static = 1.0 / (1.0 + J) / k
        simulated.append(largest(with_body - exact) / static)
    yield _digits("largest deflection error of the nodes", simulated, deflection)
    estimates = [float(e.deflection_error) / float(d) - 1 for e, d in zip(errors, deflection)]
    yield Measurement(
        "eps/(2 e zeta) over the largest deflection error, distance from 1",
        largest(estimates),
        limit=0.07,
        why="its next term in eps, 0.1 at most",
    )


def _stiffer_with_a_body(Joint):
    """the inserted body's spring stiffer by 0.1 %"""

    def build(*args: Any, **parameters: Any) -> Any:
        factor = 1.001 if "inserted_inertia_kg_m2" in parameters else 1.0
        k = factor * parameters["stiffness_n_m_per_rad"]
        return Joint(*args, **parameters | {"stiffness_n_m_per_rad": k})

    return build


@benchmark(132, "Convergence in the inserted inertia", ElasticJointNode, _stiffer_with_a_body)
def convergence(
    Joint,
    *,
    parameters=JOINT,
    inserted_inertias_kg_m2=(1e-5, 1e-6, 1e-7),
    timestep_s=1e-3,
    steps=3000,
    motor_torque_n_m=1.0,
):
    """max |x1(t; I_f) - x1(t; 0)| ~ I_f

    Reference: The joint itself, which the inserted body approaches: error ~ I_f.
    Procedure:
    1. Run from rest under a constant torque, with each inserted body and without one.
    2. Fit the order of the largest difference of deflections.
    Covers: that both models are one in the limit
    Excludes: large bodies (MIME-VER-131)
    """
    inertias = inserted_inertias_kg_m2
    exact, *others = (
        rollout(joint(Joint, I_f, timestep_s, **parameters), torques(motor_torque_n_m), steps)
        for I_f in (None, *inertias)
    )
    errors = tuple(largest(other["deflection"] - exact["deflection"]) for other in others)
    yield Convergence(
        "inserted inertia (kg·m²)",
        inertias,
        "largest error of the deflection (rad)",
        {"step of the torque": errors},
        1.0,
    )
    for i in (0, 1):
        why = "the second-order term, I_f/mu = 1e-4, and rounding"
        yield order_error(
            f"order from {inertias[i]:g} to {inertias[i + 1]:g} kg·m²",
            inertias[i : i + 2],
            errors[i : i + 2],
            1,
            limit=0.01,
            why=why,
        )


@benchmark(
    133,
    "Frequency law of the inserted body",
    ElasticJointNode,
    scaled("inserted_inertia_kg_m2", 0.5),
)
def frequency_law(
    Joint,
    *,
    undamped=JOINT | {"damping_n_m_s": 0.0},
    rotor_inertia_kg_m2=(5.0, 0.05, 0.1),
    inserted_inertia_kg_m2=(5e-2, 5e-3, 1e-5),
):
    """w_f/w = (1 + I_f/mu)^{-1/2}

    Reference: w_f = w (1 + I_f/mu)^(-1/2), w = sqrt(k/mu): after ten such periods an undamped swing
    is back where it began.
    Procedure:
    1. Compare the poles of both models' `state_space` with the law.
    2. Release the joint with x1 = 0.1 rad and run ten periods of the law in 640 steps.
    Covers: poles and steps of both models; `inserted_body_error` and `resonance`
    Excludes: damping
    """
    _, I, k, _ = undamped.values()
    for J, I_f in zip(rotor_inertia_kg_m2, inserted_inertia_kg_m2):
        case, values = f"J = {J:g}, I_f = {I_f:g}", undamped | {"rotor_inertia_kg_m2": J}
        law = 1.0 + float(analysis.inserted_body_error(J, I, I_f).frequency_error)
        exact, with_body = (
            largest(np.linalg.eigvals(np.asarray(joint(Joint, b, **values).state_space()[0])))
            for b in (None, I_f)
        )
        yield Measurement(
            f"relative error of the poles, {case}",
            abs(with_body / exact / law - 1.0),
            limit=1e-9,
            why="rounding of a double root beside them",
        )
        period = 2 * np.pi / (law * float(analysis.resonance(J, I, k)))
        node = joint(Joint, I_f, period / 64, **values)
        end = final_state(node, torques(0.0), 640, start={"deflection": 0.1})
        back = float(abs(end["deflection"] / 0.1 - 1.0) + abs(end["deflection_velocity"]))
        yield Measurement(
            f"state after ten periods, error, {case}", back, limit=1e-9, why="640 roundings"
        )


@benchmark(
    138,
    "Flexible pendulum under PD control",
    ElasticJointNode,
    scaled("inserted_inertia_kg_m2", 0.5),
    kind="published figures",
)
def flexible_pendulum(
    Joint,
    *,
    parameters=JOINT,
    inserted_inertia_kg_m2=1e-5,
    kp_n_m_per_rad=100.0,
    kd_n_m_s=1.0,
    duration_s=10.0,
):
    """x' = (A + B K) x,   u = -kp x2 - kd x2'

    Reference: The difference of the two models in Jiminy's example of a flexible pendulum, from
    SciPy's matrix exponential: 4.667e-7 rad in x1, 9.20e-8 rad in x2.
    Procedure:
    1. Compare `state_space` of both models with their equations.
    2. Close the loop u = -kp x2 - kd x2' and start with x1' = 0.1 rad/s.
    3. Compare the largest differences of the models with the figures.
    Covers: `state_space` of both models; how far apart the models are in a known example
    Excludes: Jiminy's own trajectory (in the tests, where Jiminy is installed)
    """
    gain, paths = np.array([[-kp_n_m_per_rad, -kd_n_m_s, 0, 0], [0, 0, 0, 0]]), []
    for I_f in (None, inserted_inertia_kg_m2):
        A, B, _, _ = (np.asarray(matrix) for matrix in joint(Joint, I_f).state_space())
        truth = equations(*parameters.values(), I_f=I_f or 0.0)
        yield Measurement(
            f"relative error of A and B, {label(I_f)}",
            largest([largest((ours - t) / (1 + np.abs(t))) for ours, t in zip((A, B), truth)]),
            limit=1e-12,
            why="a few roundings",
        )
        step, path = scipy.linalg.expm((A + B @ gain) * 1e-3), [np.array([0, 0, 0, 0.1])]
        for _ in range(round(duration_s / 1e-3)):
            path.append(step @ path[-1])
        paths.append(np.array(path))
    difference = np.max(np.abs(paths[1] - paths[0]), axis=0)
    yield _digits("difference of x1", [difference[2]], ["4.667e-07"])
    yield _digits("difference of x2", [difference[0]], ["9.20e-08"])
