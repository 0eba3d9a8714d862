"""MIME-VER-102 to 104: a motor's steady state, its locked rotor, its coasting and braking."""

import numpy as np
import scipy

from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import (
    Convergence,
    Measurement,
    benchmark,
    largest,
    replaced,
    scaled,
)
from mime.verification.benchmarks.motor import LOCKED, REFERENCE, B, J, K, L, R, closed_loop
from mime.verification.convergence import order_error
from mime.verification.programs import final_state, rollout


@benchmark(102, "Steady speed and current under load", MotorNode, scaled("r_ohm", 1.001))
def steady_state(
    Motor,
    *,
    parameters=REFERENCE,
    commanded_voltage_v=6.0,
    load_torque_n_m=-0.01,
    duration_s=3.0,
    exact_timestep_s=1e-3,
    euler_timestep_s=1e-4,
):
    """0 = k i - b w + tau_load,   0 = V - R i - k w

    What a data sheet calls the operating point.

    Reference: Both derivatives zero:

        w = (k V + R tau_load) / (R b + k^2),   i = (b V - k tau_load) / (R b + k^2)

    Procedure:
    1. Run against a load, with exact steps and with those of semi-implicit Euler.
    2. Compare the last speed and current with the closed form.
    Covers: the balance of voltage and of torque at rest; the sign of a load
    Excludes: the way there (MIME-VER-101)
    """
    V, load, D = commanded_voltage_v, load_torque_n_m, R * B + K**2
    inputs = {"commanded_voltage": V, "load_torque": load}
    rest = {"angular_velocity": (K * V + R * load) / D, "current": (B * V - K * load) / D}
    motor = Motor(
        "motor", exact_timestep_s, **parameters, integrator="exact", command_mode="voltage"
    )
    final = final_state(motor, inputs, round(duration_s / exact_timestep_s))
    for what, name in (("speed", "angular_velocity"), ("current", "current")):
        yield Measurement(
            f"relative error of the {what}, exact integrator",
            abs(final[name] / rest[name] - 1),
            limit=1e-12,
            why="3,000 roundings of 1e-16",
        )
    motor = Motor("motor", euler_timestep_s, **parameters, command_mode="voltage")
    final = final_state(motor, inputs, round(duration_s / euler_timestep_s))
    yield Measurement(
        "relative error of the speed, semi-implicit Euler",
        abs(final["angular_velocity"] / rest["angular_velocity"] - 1),
        limit=1e-11,
        why="Euler's rest is exact; 30,000 roundings of 1e-16",
    )


@benchmark(103, "Current of a locked rotor", MotorNode, scaled("l_henry", 0.5))
def locked_rotor(
    Motor,
    *,
    parameters=LOCKED,
    duration_s=5e-3,
    commanded_voltage_v=2.0,
    timesteps_s=(1e-5, 2e-5, 4e-5, 8e-5),
):
    """L di/dt = V - R i

    Without motion there is no back-EMF: the winding's own time constant shows.

    Reference: The winding alone:

        i(t) = V/R (1 - e^{-R t/L})

    Procedure:
    1. Lock the rotor by an inertia of 1e6 kg·m², which turns by less than 1e-9 rad/s.
    2. Run with the shortest timestep and each integrator; compare the current after each step.
    3. Double Euler's step three times and fit the order of the largest error.
    Covers: the electrical path alone, with both integrators
    Excludes: back-EMF (MIME-VER-101)
    """
    V = commanded_voltage_v

    def error(dt, integrator="semi_implicit"):
        motor = Motor("motor", dt, **parameters, integrator=integrator, command_mode="voltage")
        t = dt * np.arange(1, round(duration_s / dt) + 1)
        current = rollout(motor, {"commanded_voltage": V}, len(t))["current"]
        return largest(current - V / R * (1 - np.exp(-R / L * t))) / (V / R)

    euler = tuple(error(dt) for dt in timesteps_s)
    yield Measurement(
        "relative error of the current, exact integrator",
        error(timesteps_s[0], "exact"),
        limit=1e-11,
        why="what a speed below 1e-9 rad/s leaves",
    )
    yield Measurement(
        "relative error of the current, semi-implicit Euler",
        euler[0],
        limit=2e-3,
        why="dt R/L / (2 e) = 1.8e-3 expected",
    )
    why = "the second-order term at the coarsest step, dt = 0.08 L/R"
    yield order_error("order of Euler's error", timesteps_s, euler, 1, limit=0.05, why=why)
    errors = {"semi-implicit Euler": euler}
    yield Convergence("timestep (s)", timesteps_s, "relative error of the current (1)", errors, 1.0)


@benchmark(
    104,
    "Coasting and braking by a short circuit",
    MotorNode,
    replaced("`command_mode` auto, in which zero volts are no command", command_mode="auto"),
)
def coast_and_brake(
    Motor, *, parameters=REFERENCE, timestep_s=1e-4, duration_s=0.1, initial_speed_rad_per_s=99.0
):
    """w(t) = w0 e^{-b t/J} with open terminals

    With closed terminals the back-EMF drives a current that brakes.

    Reference: Open terminals, and SciPy's `expm` for closed ones:

        w(t) = w0 e^{-b t/J};   (w, i)(t) = e^{A t} (w0, 0),   A = [[-b/J, k/J], [-k/L, -R/L]]

    Procedure:
    1. Start in motion without a command in torque mode; compare each speed.
    2. Start in motion with 0 V in voltage mode; compare every hundredth speed.
    3. Start in motion with 0 V in auto mode, in which zero is no command.
    Covers: a start in motion; zero volts that brake in voltage mode and do not in auto mode
    Excludes: dry friction (MIME-VER-110)
    """
    w0, dt, steps = initial_speed_rad_per_s, timestep_s, round(duration_s / timestep_s)
    t = dt * np.arange(1, steps + 1)

    def speeds(inputs, **options):
        motor = Motor("motor", dt, **parameters, **options)
        return rollout(motor, inputs, steps, start={"angular_velocity": w0})["angular_velocity"]

    coast = speeds({}, command_mode="torque", integrator="exact")
    short = {"commanded_voltage": 0.0}
    brake = speeds(short, command_mode="voltage", integrator="exact")
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
    yield Measurement(
        "speed left of one after 0.1 s at 0 V in auto mode",
        float(speeds(short)[-1] / w0),
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
