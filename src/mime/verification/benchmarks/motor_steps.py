"""MIME-VER-100 and 101: the speed of a motor after a step of torque and of voltage."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import (
    Convergence,
    Finding,
    Measurement,
    Subject,
    benchmark,
    halved,
    largest,
)
from mime.verification.benchmarks.motor import REFERENCE, B, J, K, L, R, after, back_emf, run
from mime.verification.convergence import order
from mime.verification.programs import QUICK

SMARTMOUSE = {
    "inertia_kg_m2": 6.58e-4,
    "kt_n_m_per_a": 0.0787,
    "r_ohm": 5.0,
    "l_henry": 0.58,
    "damping_n_m_s": 1.2615e-6,
}
COMMANDS = {"torque": 0.01, "voltage": 2.0, "velocity": 10.0}
KP, KI = 1e-3, 1e-2
"""The gains that a motor has when it is given none."""


def closed_loop(mode: str) -> tuple[np.ndarray, np.ndarray]:
    """A and b of x' = A x + b u, the speed first, of the reference motor in a mode."""
    if mode == "torque":
        return np.array([[-B / J]]), np.array([1 / J])
    if mode == "voltage":
        return np.array([[-B / J, K / J], [-K / L, -R / L]]), np.array([0, 1 / L])
    return np.array([[-(KP + B) / J, KI / J], [-1, 0]]), np.array([KP / J, 1])


def step_of(A: np.ndarray, b: np.ndarray, u: float, t: float) -> np.ndarray:
    """x(t) = (e^{A t} - 1) A^-1 b u, from rest."""
    return (scipy.linalg.expm(A * t) - np.eye(len(A))) @ np.linalg.solve(A, b * u)


@benchmark(
    100,
    "Speed after a torque step",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=halved("inertia_kg_m2"),
    configuration=REFERENCE | {"timestep_s": 1e-4, "duration_s": 1.0, "commanded_torque_n_m": 0.01},
    reference="""A damped rotor from rest, in NumPy, and the same after n steps of the scheme:

    w(t) = tau/b (1 - e^{-b t/J})
    w_n  = tau/b (1 - (1 + b dt/J)^-n)

For the order in voltage and velocity mode, SciPy's `expm` of the mode's matrix.""",
    procedure=(
        "Run 10,000 steps of semi-implicit Euler in one scan with a constant torque.",
        "Compare the speed after each step with the closed form at the same time.",
        "Compare it with the closed form of the discretisation.",
        "In each mode, halve the step three times and fit the order of the error at 50 ms.",
    ),
    covers=("the mechanical path of torque mode", "the order of semi-implicit Euler in all modes"),
    excludes=("the winding (MIME-VER-101)", "friction other than viscous (MIME-VER-110)"),
)
def torque_step(Motor: Subject) -> Iterator[Finding]:
    """J dw/dt = tau - b w,   w(t) = tau/b (1 - e^{-b t/J})

    The simplest motion that a motor can make: torque in, viscous friction, no load.
    """
    tau, dt, steps = 0.01, 1e-4, 10_000
    motor = Motor("motor", dt, **REFERENCE)
    omega = run(motor, {"commanded_torque": tau}, steps)["angular_velocity"]
    n = np.arange(1, steps + 1)  # the trajectory holds the speed after each step
    exact = tau / B * (1 - np.exp(-B * n * dt / J))
    yield Measurement(
        "relative rms error of the speed",
        float(np.sqrt(np.mean((omega - exact) ** 2)) / (tau / B)),
        limit=6e-5,
        why="5.58e-5 expected: half of dt b/J times the rms of (t/T) e^{-t/T}",
    )
    discrete = tau / B * (1 - (1 + B * dt / J) ** -n.astype(float))
    yield Measurement(
        "relative error of the speed against the discrete closed form",
        largest((omega - discrete) / discrete),
        limit=1e-12,
        why="10,000 roundings of 1e-16",
    )
    timesteps, errors = (1e-4, 5e-5, 2.5e-5, 1.25e-5), {}
    for mode, command in COMMANDS.items():
        at_50_ms = step_of(*closed_loop(mode), command, 0.05)[0]
        errors[mode] = tuple(
            abs(_speed_at_50_ms(Motor, dt, mode, command) - at_50_ms) for dt in timesteps
        )
        yield Measurement(
            f"order of the error in {mode} mode, distance from 1",
            abs(order(timesteps, errors[mode]) - 1),
            limit=0.02,
            why="the second-order term at the coarsest step",
        )
    yield Convergence("timestep (s)", timesteps, "error of the speed at 50 ms (rad/s)", errors, 1.0)


def _speed_at_50_ms(Motor: Subject, dt: float, mode: str, command: float) -> float:
    motor = Motor("motor", dt, **REFERENCE)
    return after(motor, {f"commanded_{mode}": command}, round(0.05 / dt))["angular_velocity"]


@benchmark(
    101,
    "Speed after a voltage step",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=back_emf(0.99),
    configuration=REFERENCE
    | {
        "timestep_s": 1e-3,
        "duration_s": 1.0,
        "commanded_voltage_v": 5.0,
        "integrator": "exact",
        "second motor": "Smartmouse's, of MIME-VER-108",
        "third motor": "the first with 0.2 H: complex poles",
    },
    reference="""Both poles in closed form, real or complex, in NumPy:

    J L s^2 + (J R + L b) s + R b + k^2 = 0
    w(t) = k V/(k^2 + R b) [1 + (s2 e^{s1 t} - s1 e^{s2 t}) / (s1 - s2)]""",
    procedure=(
        "Run 1,000 steps of the exact integrator at 5 V for each of three motors.",
        "Compare the speed after each step, and `step_response` at the same times.",
    ),
    covers=("winding and back-EMF", "the exact integrator at real and at complex poles"),
    excludes=("semi-implicit Euler in voltage mode (its order is in MIME-VER-100)", "loads"),
)
def voltage_step(Motor: Subject) -> Iterator[Finding]:
    """J dw/dt = k i - b w,   L di/dt = V - R i - k w

    Two coupled first-order systems, the winding and the rotor.
    """
    V, dt, steps = 5.0, 1e-3, 1000
    t = dt * np.arange(1, steps + 1)
    motors = {
        "reference motor": REFERENCE,
        "Smartmouse's motor": SMARTMOUSE,
        "complex poles": REFERENCE | {"l_henry": 0.2},
    }
    for name, parameters in motors.items():
        exact = _two_poles(parameters, V, t)
        motor = Motor("motor", dt, **parameters, integrator="exact", command_mode="voltage")
        omega = run(motor, {"commanded_voltage": V}, steps)["angular_velocity"]
        response = np.asarray(_step_response(motor, jnp.asarray(t), V))
        for what, speeds in (("speed", omega), ("step_response", response)):
            yield Measurement(
                f"relative error, {what}, {name}",
                largest(speeds - exact) / largest(exact),
                limit=1e-12,
                why="1,000 roundings of 1e-16, and those of the closed form",
            )


@partial(jax.jit, static_argnames="V", compiler_options=QUICK)
def _step_response(motor: MotorNode, t: jax.Array, V: float) -> jax.Array:
    return motor.step_response(t, amplitude=V)


def _two_poles(parameters: dict[str, float], V: float, t: np.ndarray) -> np.ndarray:
    J, k, R, L, b = parameters.values()
    s1, s2 = np.roots([J * L, J * R + L * b, R * b + k * k]).astype(complex)
    w_inf = k * V / (k * k + R * b)
    return np.real(w_inf * (1 + (s2 * np.exp(s1 * t) - s1 * np.exp(s2 * t)) / (s1 - s2)))
