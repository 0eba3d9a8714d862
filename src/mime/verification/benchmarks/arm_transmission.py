"""MIME-VER-197: two motors on two joints of an arm, against rotors as bodies of their own."""

from typing import Any

import numpy as np
import scipy

from mime.nodes.actuation.friction import Coulomb
from mime.nodes.actuation.robot_arm import RobotArmNode
from mime.verification.benchmark import Measurement, benchmark, largest
from mime.verification.benchmarks.robot_arm import FREE, SETUP, planar, plane
from mime.verification.programs import final_state, rollout

DIFFERENTIAL = ((40.0, 0.0, 0.0), (0.0, 50.0, 25.0), (0.0, 50.0, -25.0))
"""Turns of the motors (rows) for one of each joint."""


def _uncoupled(Arm: Any) -> Any:
    """the terms off the diagonal of Tᵀ J T left out, and friction at the joints"""

    def arm(*given: Any, transmission: Any, **options: Any) -> Any:
        gears = np.sqrt(np.sum(np.square(transmission), axis=0))
        return Arm(*given, gear_ratio=gears, **options)

    return arm


@benchmark(197, "Two motors on two joints", RobotArmNode, _uncoupled)
def differential(
    Arm,
    *,
    setup=SETUP,
    transmission=DIFFERENTIAL,
    rotor_inertia_kg_m2=2e-5,
    drive_friction_n_m_s=(0.3, 0.2, 0.1),
    dry_friction_n_m=(0.5, 0.4, 0.3),
    start_rad=(0.5, 0.3, 0.2),
    timestep_s=1e-3,
    duration_s=0.3,
    energy_steps=20_000,
):
    """theta = T q,   M q̈ + c + g = Tᵀ tau,   J theta̋ = -f_motor thetȧ - tau

    Reference: The plane's equation of motion in closed form and each rotor as a body of its own,
    with the tau that keep T q̈ = theta̋, as one linear system; integrated by SciPy (DOP853) to 1e-12.
    T is multiplied nowhere. And E = q̇ᵀ M q̇ / 2 + Σ J thetȧ² / 2 + Σ m_i g z_i, which is constant
    without friction.
    Procedure:
    1. Let the arm swing with friction of its drives, and compare its angles at the end.
    2. Let it swing without friction for 20 s; look at E every 100 steps, over the largest kinetic
       energy.
    3. Push each drive with 0.99 and with 1.01 of its dry friction, from rest and without gravity.
    Covers: rotor inertia, viscous and dry friction of drives that move two joints
    Excludes: servos and limits of the drives (tests)
    """
    T, J = np.array(transmission), np.full(3, rotor_inertia_kg_m2)
    gears = np.diag(T)
    f_motor = np.array(drive_friction_n_m_s) / gears**2

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        q, qd = np.split(x, 2)
        bars, none, one = plane(q, qd), np.zeros((3, 3)), np.eye(3)
        # q̈, theta̋, tau; the rows are scaled by the rotors, which are light
        system = np.block([[bars.M, none, -T.T], [none, np.diag(J), one], [T, -one, none]])
        right = np.concatenate([-bars.c - bars.g, -f_motor * (T @ qd), np.zeros(3)])
        return np.concatenate([qd, np.linalg.solve(system, right)[:3]])

    steps = round(duration_s / timestep_s)
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
    start = np.concatenate([start_rad, np.zeros(3)])
    truth = scipy.integrate.solve_ivp(slope, (0, duration_s), start, **options).y[:, -1]

    def arm(**options: Any) -> Any:
        return Arm(
            "arm", timestep_s, planar(), "link_3", rotor_inertia_kg_m2=J, transmission=T,
            joint_limit_override=FREE, **options,
        )  # fmt: skip

    rubbed = arm(integrator="gauss4", joint_friction_n_m_s=np.array(drive_friction_n_m_s))
    end = final_state(rubbed, {}, steps, start={"joint_angles": np.array(start_rad)})
    why = "the reference's 1e-12 over the swing; gauss4 at 1 ms is as near"
    error = largest(np.asarray(end["joint_angles"]) - truth[:3])
    yield Measurement("error of the angles", error, limit=1e-11, unit="rad", why=why)

    free = arm(integrator="gauss4", joint_friction_n_m_s=np.zeros(3))
    states = rollout(
        free, {}, energy_steps // 100, every=100, start={"joint_angles": np.array(start_rad)}
    )
    q, qd = states["joint_angles"], states["joint_velocities"]
    bars = plane(q, qd)
    kinetic = 0.5 * np.einsum("ti,tij,tj->t", qd, bars.M, qd) + 0.5 * (qd @ T.T) ** 2 @ J
    error = largest(kinetic + bars.V - plane(np.array([start_rad]), np.zeros((1, 3))).V)
    yield Measurement(
        "error of the energy over its scale, up to a power of ten",
        float(10.0 ** np.ceil(np.log10(max(error, 1e-300) / kinetic.max()))),
        limit=1e-9,
        why="bounded, of fourth order: slower than the arm of MIME-VER-163, which has no rotors",
    )

    dry = np.array(dry_friction_n_m)
    still = arm(friction=Coulomb(dry), joint_friction_n_m_s=np.zeros(3), gravity_world=np.zeros(3))
    C, moved = T / gears[:, None], []
    for part in (0.99, 1.01):
        pushed = {"commanded_joint_torques": C.T @ (part * dry)}
        speeds = np.asarray(final_state(still, pushed, 10)["joint_velocities"])
        moved.append(C @ speeds)
    why = "a drive below its friction stands, exactly"
    yield Measurement("speed below dry friction", largest(moved[0]), 0.0, unit="rad/s", why=why)
    ready = "every drive beyond its friction turns"
    yield Measurement("drives that stand beyond it", float(np.sum(moved[1] <= 0)), 0.0, why=ready)
