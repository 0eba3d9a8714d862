"""MIME-VER-163: integrators of higher order of the arm of three links."""

from typing import Any

import numpy as np
import scipy

from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, replaced
from mime.verification.benchmarks.robot_arm import FREE, SETUP, planar, plane
from mime.verification.convergence import order_error
from mime.verification.programs import rollout

ORDERS = {"midpoint": 2, "gauss4": 4, "rk4": 4}
STIFFNESS = (400.0, 300.0, 200.0)
SPRINGS = {
    "joint_stiffness_n_m_per_rad": STIFFNESS,
    "rotor_inertia_kg_m2": (1e-4, 1e-4, 1e-4),
    "gear_ratio": (50.0, 50.0, 50.0),
}


def _reference(start: Any, duration: float, elastic: bool) -> np.ndarray:
    """q at the end: the plane's equation of motion, integrated by SciPy to 1e-13."""
    k = np.array(STIFFNESS) if elastic else np.zeros(3)
    rotor = 50.0**2 * 1e-4

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        q, qd, theta, spin = x.reshape(4, 3)
        pull = k * (q - theta)
        bars = plane(q, qd)
        qdd = np.linalg.solve(bars.M, -bars.c - bars.g - pull)
        return np.concatenate([qd, qdd, spin, pull / rotor])

    x = np.concatenate([start, np.zeros(3), start, np.zeros(3)])
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}
    found = scipy.integrate.solve_ivp(slope, (0, duration), x, **options)
    return found.y[:3, -1]


@benchmark(
    163,
    "Integrators of higher order for an arm",
    RobotArmNode,
    replaced("semi-implicit Euler in their place", integrator="implicit"),
)
def higher_orders(
    Arm,
    *,
    setup=SETUP,
    springs=SPRINGS,
    start_rad=(0.5, 0.3, 0.2),
    timesteps_s=(8e-3, 4e-3, 2e-3),
    elastic_timesteps_s=(1e-3, 5e-4, 2.5e-4),
    duration_s=0.2,
    energy_timestep_s=1e-3,
    energy_steps=100_000,
):
    """error ~ dt² (midpoint), dt⁴ (gauss4, rk4);   |E(t) - E(0)| bounded (midpoint, gauss4)

    Reference: The plane's equation of motion in closed form, with the rotors behind their springs
    where the arm is elastic, integrated by SciPy (DOP853) to 1e-13; and the constant
    E = q̇ᵀ M q̇ / 2 + Σ m_i g z_i.
    Procedure:
    1. Release the arm, rigid and elastic, without friction; compare the angles after 0.2 s at three
       timesteps and fit the order. At the smallest of them the error, 1e-11, is still a hundred
       times that of the reference.
    2. Let the rigid arm swing for 100 s with each integrator; look at E every 100 steps. Its scale
       is the largest kinetic energy of the run. The motion is chaotic, so that its digits differ
       from one processor to the next: errors are rounded up to a power of ten.
    Covers: orders; the energy of a frictionless arm over 1e5 steps; elastic joints
    Excludes: friction and stops; the default integrator (MIME-VER-129)
    """
    kinds: Any = (("rigid", {}, timesteps_s), ("elastic", springs, elastic_timesteps_s))
    for kind, options, steps in kinds:
        truth, curves = _reference(start_rad, duration_s, bool(options)), {}
        for name, order in ORDERS.items():
            node = _arm(Arm, name, **options)
            errors = tuple(
                largest(_swing(node, start_rad, 1, dt, round(duration_s / dt))[0][-1] - truth)
                for dt in steps
            )
            curves[name] = errors
            why = "the next term of the error at the coarsest step"
            label = f"order of {name}, {kind}"
            yield order_error(label, steps, errors, order, limit=0.2, why=why)
        what = f"error of the angles after {duration_s:g} s (rad), {kind}"
        yield Convergence("timestep (s)", steps, what, curves, 4.0)
    whys = {
        "midpoint": "bounded, of second order: 30 rad/s at 1 ms",
        "gauss4": "bounded, of fourth order; required",
        "rk4": "drifts by its fifth-order error over 1e5 steps",
    }
    for name, limit in {"midpoint": 1e-2, "gauss4": 1e-6, "rk4": 1e-3}.items():
        q, qd = _swing(_arm(Arm, name), start_rad, energy_steps // 100, energy_timestep_s, 100)
        arm = plane(q, qd)
        kinetic = 0.5 * np.einsum("ti,tij,tj->t", qd, arm.M, qd)
        E = kinetic + arm.V
        error = largest(E - E[0]) / kinetic.max()
        yield Measurement(
            f"error of the energy over its scale, {name}, up to a power of ten",
            float(10.0 ** np.ceil(np.log10(error))) if error > 0 else error,
            limit=limit,
            why=whys[name],
        )


def _arm(Arm, integrator: str, **options: Any) -> Any:
    still = {"joint_limit_override": FREE, "joint_friction_n_m_s": np.zeros(3)}
    return Arm("arm", 1e-3, planar(), "link_3", integrator=integrator, **still, **options)


def _swing(node: Any, start: Any, samples: int, dt: float, every: int) -> tuple[Any, Any]:
    """q and q̇ at the start and after each `every` steps."""
    states = rollout(node, {}, samples, every=every, dt=dt, start={"joint_angles": start})
    q = np.concatenate([[start], states["joint_angles"]])
    return q, np.concatenate([np.zeros((1, 3)), states["joint_velocities"]])
