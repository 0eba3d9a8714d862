"""The motor under test: the parameters that its benchmarks share, and its matrices."""

from typing import Any

import numpy as np

from mime.verification.benchmark import Fault, Subject

REFERENCE = {
    "inertia_kg_m2": 1e-4,
    "kt_n_m_per_a": 0.05,
    "r_ohm": 1.0,
    "l_henry": 1e-3,
    "damping_n_m_s": 5e-4,
}
LOCKED = REFERENCE | {"inertia_kg_m2": 1e6}
"""Turns by less than 1e-9 rad/s."""
SMARTMOUSE = {
    "inertia_kg_m2": 6.58e-4,
    "kt_n_m_per_a": 0.0787,
    "r_ohm": 5.0,
    "l_henry": 0.58,
    "damping_n_m_s": 1.2615e-6,
}
J, K, R, L, B = REFERENCE.values()
"""Parameters of the reference motor; kt and ke are one constant K."""
GAINS = {"velocity_kp": 1e-3, "velocity_ki": 1e-2}
"""What a motor has when it is given none."""
KP, KI = GAINS.values()


def closed_loop(mode: str) -> tuple[np.ndarray, np.ndarray]:
    """A and b of x' = A x + b u, the speed first, of the reference motor in a mode."""
    if mode == "torque":
        return np.array([[-B / J]]), np.array([1 / J])
    if mode == "voltage":
        return np.array([[-B / J, K / J], [-K / L, -R / L]]), np.array([0, 1 / L])
    return np.array([[-(KP + B) / J, KI / J], [-1, 0]]), np.array([KP / J, 1])


def back_emf(factor: float) -> Fault:
    """A motor whose ke is `factor` times its kt, so that energy is not conserved."""

    def apply(subject: Subject) -> Subject:
        def build(*args: Any, **parameters: Any) -> Any:
            ke = factor * parameters["kt_n_m_per_a"]
            return subject(*args, **parameters, ke_v_s_per_rad=ke, allow_ke_kt_mismatch=True)

        return build

    return Fault(f"a back-EMF constant {factor:g} times the torque constant", apply)
