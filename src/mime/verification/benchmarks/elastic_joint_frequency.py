"""MIME-VER-136 and 137: frequency responses of the elastic joint, its resonances and damping."""

import numpy as np
import scipy

from mime.nodes.actuation import elastic_joint_analysis as analysis
from mime.nodes.actuation.elastic_joint import ElasticJointNode
from mime.verification.benchmark import Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.elastic_joint import JOINT, joint

PAIRS = [(output, source) for output in ("rotor", "output") for source in ("motor", "external")]


def response(J: float, I: float, k: float, v: float, I_f: float, s: np.ndarray) -> np.ndarray:
    """Angles (rotor, output) by torques (motor, external) at s: (2, 2, frequencies).

    ((I + I_f) s² + v s + k) x1 + I s² x2 = f,   I s² x1 + (I + J) s² x2 = u + f
    """
    a, b, d = (I + I_f) * s**2 + v * s + k, I * s**2, (I + J) * s**2
    determinant = a * d - b**2
    columns = []
    for by_x1, by_x2 in ((0.0, 1.0), (1.0, 1.0)):  # right-hand sides of u and of f
        x1 = (by_x1 * d - b * by_x2) / determinant
        x2 = (a * by_x2 - b * by_x1) / determinant
        columns.append([x2, x1 + x2])
    return np.swapaxes(np.array(columns), 0, 1)


@benchmark(
    136,
    "Transfer functions of the elastic joint",
    ElasticJointNode,
    scaled("stiffness_n_m_per_rad", 0.5),
)
def transfer_functions(
    Joint,
    *,
    parameters=JOINT,
    inserted_inertia_kg_m2=(0.0, 1e-2),
    lowest_frequency_rad_per_s=0.1,
    highest_frequency_rad_per_s=1000.0,
    frequencies=81,
):
    """((I + I_f) s² + v s + k) x1 + I s² x2 = f,   I s² x1 + (I + J) s² x2 = u + f

    Reference: Cramer's rule on the joint's two equations at s = i w.
    Procedure:
    1. Solve C (s - A)⁻¹ B of the node's `state_space` at the frequencies.
    2. Evaluate the polynomials of `transfer_function` there.
    3. Compare both with Cramer's rule: rotor and output, by motor and by load.
    Covers: `state_space` and `transfer_function`, with and without an inserted body
    Excludes: python-control's own arithmetic (in the tests)
    """
    J, I, k, v = parameters.values()
    s = 1j * np.geomspace(lowest_frequency_rad_per_s, highest_frequency_rad_per_s, frequencies)
    for I_f in inserted_inertia_kg_m2:
        truth = response(J, I, k, v, I_f, s)
        A, B, C, _ = (np.asarray(matrix) for matrix in joint(Joint, I_f).state_space())
        ours = C @ np.linalg.solve(s[:, None, None] * np.eye(4) - A, B + 0j)
        yield Measurement(
            f"relative error of `state_space`, I_f = {I_f:g} kg·m²",
            largest(np.moveaxis(ours, 0, -1) / truth - 1),
            limit=1e-9,
            why="cancellation between k and I s² at both ends, 1e6 roundings",
        )
        found = np.empty_like(truth)
        for index, (output, source) in enumerate(PAIRS):
            polynomials = analysis.transfer_function(J, I, k, v, I_f, output=output, source=source)
            above, below = (np.polyval(np.asarray(p), s) for p in polynomials)
            found[divmod(index, 2)] = above / below
        yield Measurement(
            f"relative error of `transfer_function`, I_f = {I_f:g} kg·m²",
            largest(found / truth - 1),
            limit=1e-9,
            why="the same cancellation, in the reference's determinant",
        )


def zeros(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The finite generalised eigenvalues of Rosenbrock's pencil [[A - z, B], [C, 0]]."""
    pencil = np.block([[A, B], [C, np.zeros((1, 1))]])
    found = scipy.linalg.eigvals(pencil, np.diag([1.0] * len(A) + [0.0]))
    return found[np.isfinite(found) & (np.abs(found) < 1e6)]


@benchmark(
    137,
    "Resonance, anti-resonance and critical damping",
    ElasticJointNode,
    scaled("stiffness_n_m_per_rad", 0.5),
)
def resonances(Joint, *, undamped=JOINT | {"damping_n_m_s": 0.0}, shares_of_critical=(0.99, 1.01)):
    """w = sqrt(k/mu),   w_zero = sqrt(k/I),   w_locked = sqrt(k/J),   v_c = 2 sqrt(k mu)

    Reference: Closed forms of `elastic_joint_analysis`: sqrt(k/mu), sqrt(k/I), sqrt(k/J),
    2 sqrt(k mu), mu = I J / (I + J).
    Procedure:
    1. Poles: eigenvalues of A; zeros: generalised eigenvalues of Rosenbrock's pencil.
    2. A body of 1e9 kg·m² is as good as a locked output.
    3. Look whether poles are complex just below and just above the critical damping.
    Covers: what the closed forms say of the node's `state_space`
    Excludes: inserted bodies (MIME-VER-133)
    """
    J, I, k, _ = undamped.values()
    A, B, C, _ = (np.asarray(m) for m in joint(Joint, **undamped).state_space())
    heavy = joint(Joint, **undamped | {"output_inertia_kg_m2": 1e9})
    # A double root at 0 spreads to 1e-7; the roots that are compared are simple.
    relative = {
        "resonance": (np.linalg.eigvals(A), analysis.resonance(J, I, k), 1e-9),
        "anti-resonance": (zeros(A, B[:, :1], C[:1]), analysis.anti_resonance(I, k), 1e-9),
        "resonance with a locked output": (
            np.linalg.eigvals(np.asarray(heavy.state_space()[0])),
            analysis.locked_output_resonance(J, k),
            1e-8,
        ),
    }
    for name, (roots, closed, limit) in relative.items():
        why = "roundings of simple roots" if limit == 1e-9 else "J/I = 1e-10, and rounding"
        error = abs(largest(roots) / float(closed) - 1)
        yield Measurement(f"relative error of the {name}", error, limit=limit, why=why)
    critical = float(analysis.critical_damping(J, I, k))
    below, above = (
        largest(np.linalg.eigvals(np.asarray(node.state_space()[0])).imag)
        for node in (joint(Joint, damping_n_m_s=share * critical) for share in shares_of_critical)
    )
    yield Measurement(
        "frequency of the swing at 0.99 of the critical damping",
        below,
        limit=1e-6,
        unit="rad/s",
        at_least=True,
        why="it swings",
    )
    yield Measurement(
        "frequency of the swing at 1.01 of the critical damping",
        above,
        limit=1e-6,
        unit="rad/s",
        why="it does not",
    )
