"""MIME-VER-102 to 104: a motor's steady state, its locked rotor, its coasting and braking."""

from collections.abc import Iterator

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
    replaced,
    scaled,
)
from mime.verification.benchmarks.motor import REFERENCE, B, J, K, L, R, after, run
from mime.verification.benchmarks.motor_steps import closed_loop
from mime.verification.convergence import order


@benchmark(
    102,
    "Steady speed and current under load",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=scaled("r_ohm", 1.001),
    configuration=REFERENCE
    | {"commanded_voltage_v": 6.0, "load_torque_n_m": -0.01, "duration_s": 3.0},
    reference="""Both derivatives zero:

    w = (k V + R tau_load) / (R b + k^2),   i = (b V - k tau_load) / (R b + k^2)""",
    procedure=(
        "Run 3 s at 6 V against a load, 3,000 exact steps and 30,000 of semi-implicit Euler.",
        "Compare the last speed and current with the closed form.",
    ),
    covers=("the balance of voltage and of torque at rest", "the sign of a load"),
    excludes=("the way there (MIME-VER-101)",),
)
def steady_state(Motor: Subject) -> Iterator[Finding]:
    """0 = k i - b w + tau_load,   0 = V - R i - k w

    What a data sheet calls the operating point.
    """
    V, load = 6.0, -0.01
    inputs = {"commanded_voltage": V, "load_torque": load}
    D = R * B + K**2
    omega, current = (K * V + R * load) / D, (B * V - K * load) / D
    exact = Motor("motor", 1e-3, **REFERENCE, integrator="exact", command_mode="voltage")
    final = after(exact, inputs, 3000)
    for name, found, expected in (
        ("speed", final["angular_velocity"], omega),
        ("current", final["current"], current),
    ):
        yield Measurement(
            f"relative error of the {name}, exact integrator",
            abs(found / expected - 1),
            limit=1e-12,
            why="3,000 roundings of 1e-16",
        )
    euler = after(Motor("motor", 1e-4, **REFERENCE, command_mode="voltage"), inputs, 30_000)
    yield Measurement(
        "relative error of the speed, semi-implicit Euler",
        abs(euler["angular_velocity"] / omega - 1),
        limit=1e-11,
        why="Euler's rest is exact; 30,000 roundings of 1e-16",
    )


@benchmark(
    103,
    "Current of a locked rotor",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=halved("l_henry"),
    configuration=REFERENCE
    | {"inertia_kg_m2": 1e6, "timestep_s": 1e-5, "duration_s": 5e-3, "commanded_voltage_v": 2.0},
    reference="""The winding alone:

    i(t) = V/R (1 - e^{-R t/L})""",
    procedure=(
        "Lock the rotor by an inertia of 1e6 kg·m², which turns by less than 1e-9 rad/s.",
        "Run 500 steps at 2 V with each integrator; compare the current after each step.",
        "Double Euler's step three times and fit the order of the largest error.",
    ),
    covers=("the electrical path alone, with both integrators",),
    excludes=("back-EMF (MIME-VER-101)",),
)
def locked_rotor(Motor: Subject) -> Iterator[Finding]:
    """L di/dt = V - R i

    Without motion there is no back-EMF: the winding's own time constant shows.
    """
    timesteps = (1e-5, 2e-5, 4e-5, 8e-5)
    euler = tuple(_current_error(Motor, dt, "semi_implicit") for dt in timesteps)
    yield Measurement(
        "relative error of the current, exact integrator",
        _current_error(Motor, 1e-5, "exact"),
        limit=1e-11,
        why="what a speed below 1e-9 rad/s leaves",
    )
    yield Measurement(
        "relative error of the current, semi-implicit Euler",
        euler[0],
        limit=2e-3,
        why="dt R/L / (2 e) = 1.8e-3 expected",
    )
    yield Measurement(
        "order of Euler's error, distance from 1",
        abs(order(timesteps, euler) - 1),
        limit=0.05,
        why="the second-order term at the coarsest step, dt = 0.08 L/R",
    )
    errors = {"semi-implicit Euler": euler}
    yield Convergence("timestep (s)", timesteps, "relative error of the current (1)", errors, 1.0)


def _current_error(Motor: Subject, dt: float, integrator: str) -> float:
    heavy = REFERENCE | {"inertia_kg_m2": 1e6}
    motor = Motor("motor", dt, **heavy, integrator=integrator, command_mode="voltage")
    t = dt * np.arange(1, round(5e-3 / dt) + 1)
    current = run(motor, {"commanded_voltage": 2.0}, len(t))["current"]
    return largest(current - 2.0 / R * (1 - np.exp(-R / L * t))) / (2.0 / R)


@benchmark(
    104,
    "Coasting and braking by a short circuit",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=replaced("`command_mode` auto, in which zero volts are no command", command_mode="auto"),
    configuration=REFERENCE | {"timestep_s": 1e-4, "duration_s": 0.1, "initial_speed_rad_s": 99.0},
    reference="""Open terminals, and SciPy's `expm` for closed ones:

    w(t) = w0 e^{-b t/J};   (w, i)(t) = e^{A t} (w0, 0),   A = [[-b/J, k/J], [-k/L, -R/L]]""",
    procedure=(
        "Start at 99 rad/s without a command in torque mode; compare each speed.",
        "Start at 99 rad/s with 0 V in voltage mode; compare every hundredth speed.",
        "Start at 99 rad/s with 0 V in auto mode, in which zero is no command.",
    ),
    covers=("a start in motion", "zero volts that brake in voltage mode and do not in auto mode"),
    excludes=("dry friction (MIME-VER-110)",),
)
def coast_and_brake(Motor: Subject) -> Iterator[Finding]:
    """w(t) = w0 e^{-b t/J} with open terminals

    With closed terminals the back-EMF drives a current that brakes.
    """
    w0, dt, steps = 99.0, 1e-4, 1000
    t = dt * np.arange(1, steps + 1)
    coasting = Motor("motor", dt, **REFERENCE, **{"command_mode": "torque", "integrator": "exact"})
    coast = run(coasting, {}, steps, angular_velocity=w0)["angular_velocity"]
    braking = Motor("motor", dt, **REFERENCE, **{"command_mode": "voltage", "integrator": "exact"})
    short = {"commanded_voltage": 0.0}
    brake = run(braking, short, steps, angular_velocity=w0)["angular_velocity"]
    A, _ = closed_loop("voltage")
    reference = np.array([(scipy.linalg.expm(A * time) @ [w0, 0.0])[0] for time in t[::100]])
    errors = {"coasting": coast - w0 * np.exp(-B / J * t), "braking": brake[::100] - reference}
    for name, error in errors.items():
        yield Measurement(
            f"relative error of the speed, {name}",
            largest(error) / w0,
            limit=1e-12,
            why="1,000 roundings of 1e-16",
        )
    auto = after(Motor("motor", dt, **REFERENCE), short, steps, angular_velocity=w0)
    yield Measurement(
        "speed left of one after 0.1 s at 0 V in auto mode",
        auto["angular_velocity"] / w0,
        limit=0.6,
        at_least=True,
        why="it coasts: e^-0.5 = 0.61",
    )
    yield Measurement(
        "speed left of one after 0.1 s at 0 V in voltage mode",
        float(brake[-1] / w0),
        limit=0.1,
        why="it brakes: the slow pole is about -(k^2 + R b)/(J R) = -30 per second",
    )
