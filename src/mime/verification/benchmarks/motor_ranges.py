"""MIME-VER-119: the corners of the ranges that the motor's metadata declares."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from mime.nodes.actuation.motor import MotorNode
from mime.nodes.actuation.motor.parameters import MOTOR_META
from mime.verification.benchmark import Measurement, benchmark, scaled
from mime.verification.benchmarks.motor import KI, KP, L, R
from mime.verification.programs import rollout

RANGES = {entry.quantity: (entry.low, entry.high) for entry in MOTOR_META.validated_ranges}
VOLTS = 5.0
MODES = ("voltage", "velocity")


def _corners(dampings: tuple[float, ...]) -> Iterator[tuple[float, float, float]]:
    """J, kt and b."""
    return product(RANGES["inertia_kg_m2"], RANGES["kt_n_m_per_a"], dampings)


def _command(mode: str) -> float:
    return VOLTS if mode == "voltage" else RANGES["commanded_velocity"][1]


def _speeds(mode: str, j: float, k: float, b: float, times: np.ndarray) -> tuple[Any, float]:
    """w(t) from rest and w(∞) by the two poles; only their own roundings are in it."""
    command = _command(mode)
    if mode == "voltage":
        sum_, product_ = b / j + R / L, (R * b + k**2) / (j * L)
        rest = k * command / (R * b + k**2)
        begin, slope = -rest, 0.0
    else:
        sum_, product_ = (KP + b) / j, KI / j
        rest = command
        begin, slope = -rest, KP * command / j
    fast = -sum_ / 2 - np.sqrt(complex(sum_**2 / 4 - product_))
    slow = product_ / fast
    c = (slope - slow * begin) / (fast - slow), (fast * begin - slope) / (fast - slow)
    return rest + np.real(c[0] * np.exp(fast * times) + c[1] * np.exp(slow * times)), rest


def _longest_step(mode: str, j: float, k: float, b: float) -> float:
    """Where the spectral radius of a semi-implicit step's matrix reaches 1, by bisection."""

    def radius(dt: float) -> float:
        m = j + dt * b
        if mode == "voltage":  # the rows are i, then w with the new i
            i = np.array([1.0, -dt * k / L]) / (1 + dt * R / L)
            step = np.array([i, dt * k / m * i + [0, j / m]])
        else:  # the integral, then w with the new integral
            integral = np.array([1.0, -dt])
            step = np.array([integral, dt * KI / m * integral + [0, (j - dt * KP) / m]])
        return float(np.max(np.abs(np.linalg.eigvals(step))))

    low, high = 1e-9, 1e6
    if radius(high) <= 1:
        return np.inf
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if radius(middle) <= 1 else (low, middle)
    return float(low)


def _run(motor: Any, mode: str, dt: float, steps: int) -> np.ndarray:
    states = rollout(motor, {f"commanded_{mode}": _command(mode)}, steps, dt=dt)
    return states["angular_velocity"]


@benchmark(119, "Corners of the motor's validated ranges", MotorNode, scaled("inertia_kg_m2", 0.5))
def corners(
    Motor,
    *,
    ranges=RANGES,
    commanded_voltage_v=VOLTS,
    r_ohm=R,
    l_henry=L,
    dampings_n_m_s=(0.0, 5e-4),
    steps=1000,
):
    """dt² kt ke < (2 L + R dt)(2 J + b dt) (voltage),   dt² Ki + 2 dt (Kp - b) < 4 J (velocity)

    A range in a node's metadata is one that was run: every corner of it, in the modes that have
    poles of their own, with the PI's default gains.

    Reference: The two-pole closed form of the speed from rest; for semi-implicit Euler the largest
    step whose matrix has no eigenvalue beyond the unit circle, by NumPy and bisection.
    Procedure:
    1. Exact integrator: run every corner of inertia, torque constant and timestep, with and without
       damping, and compare the speed after each step.
    2. Semi-implicit Euler: compare `largest_stable_timestep` with the reference.
    3. Run at 0.95 of that step (at most 1 ms) and at 1.05 of it; look at the largest speed.
    Covers: all corners of the declared ranges; the stable step of the default integrator
    Excludes: effects (gear, dry friction, limits), which change the stable step
    """
    for mode in MODES:
        exact, stable, kept, grown = [], [], [], []
        for j, k, b in _corners(dampings_n_m_s):
            options: dict[str, Any] = {"inertia_kg_m2": j, "kt_n_m_per_a": k, "damping_n_m_s": b}
            options |= {"r_ohm": r_ohm, "l_henry": l_henry, "command_mode": mode}
            motor = Motor("motor", 1e-9, integrator="exact", **options)
            for dt in RANGES["timestep"]:
                truth, rest = _speeds(mode, j, k, b, dt * np.arange(1, steps + 1))
                exact.append(np.max(np.abs(_run(motor, mode, dt, steps) - truth)) / rest)
            motor = Motor("motor", 1e-9, **options)
            longest, found = _longest_step(mode, j, k, b), motor.largest_stable_timestep(mode)
            stable.append(abs(found / longest - 1) if np.isfinite(longest) else 1 / found)
            below = _run(motor, mode, min(0.95 * longest, 1e-3), steps)
            kept.append(np.max(np.abs(below)) / rest)
            if np.isfinite(longest):
                above = _run(motor, mode, 1.05 * longest, steps)
                grown.append(np.max(np.abs(above)) / rest)
        yield Measurement(
            f"error of exact steps over the final speed, {mode} mode",
            float(np.max(exact)),
            limit=1e-12,
            why="a thousand steps with a few roundings each",
        )
        yield Measurement(
            f"relative error of the largest stable step, {mode} mode",
            float(np.max(stable)),
            limit=1e-6,
            why="the eigenvalues' own roundings where two of them meet",
        )
        yield Measurement(
            f"largest speed over the final one, 5 % below that step, {mode} mode",
            float(np.max(kept)),
            limit=5.0,
            why="bounded: a swing overshoots by 1 at most, and coarse steps by some more",
        )
        yield Measurement(
            f"the same 5 % above it, {mode} mode",
            min(float(np.min(grown)), 1e6),
            limit=1e3,
            at_least=True,
            why="it grows without bound; cut at 1e6",
        )
