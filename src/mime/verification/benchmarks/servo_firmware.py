"""MIME-VER-200 and 201: the firmware of a servo, and the swing of the pendulum that it turns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy

from mime import Gear, MotorNode, PendulumLoadNode, ServoNode, Trajectory
from mime.running.graph import GraphManager
from mime.verification.benchmark import Measurement, benchmark, largest, replaced, scaled

MOTOR = {
    "inertia_kg_m2": 2e-8,
    "kt_n_m_per_a": 1.2e-3,
    "r_ohm": 3.4,
    "l_henry": 1e-3,
    "damping_n_m_s": 1e-7,
}
RATIO, OUTPUT_INERTIA = 288.0, 5e-3
FIRMWARE = {
    "kp": 400.0,
    "ki": 300.0,
    "kd": 50.0,
    "duty_per_kp": 2.9e-3,
    "duty_per_ki": 2e-3,
    "duty_per_kd": 1e-4,
    "duty_limit": 0.9,
    "dead_band_rad": 2.5 * 2 * np.pi / 4096,
    "ticks_per_turn": 4096,
    "bridge_resistance_ohm": 0.3,
}


def servo_graph(servo: Any, motor: Any, load: Any = None) -> GraphManager:
    """Servo, motor and, where given, a pendulum at its output shaft, wired; inputs from outside."""
    graph = GraphManager()
    for node in (servo, motor, *(() if load is None else (load,))):
        graph.add_node(node)
    for flux, field in (
        ("terminal_voltage", "commanded_voltage"),
        ("series_resistance", "series_resistance"),
    ):
        graph.add_edge(servo.name, motor.name, flux, field)
    graph.add_edge(motor.name, servo.name, "output_angle", "angle", delay=True)
    if load is not None:
        graph.add_edge(motor.name, load.name, "output_angle", "angle", delay=True)
        graph.add_edge(load.name, motor.name, "load_torque", "load_torque")
    for field in set(servo.boundary_input_spec()) - {"angle"}:
        graph.add_external_input(servo.name, field)
    return graph


@benchmark(
    200,
    "Firmware of a servo",
    ServoNode,
    replaced("a duty that comes one sample later", delay_samples=2),
)
def servo_firmware(
    Servo,
    *,
    motor=MOTOR,
    gear_ratio=RATIO,
    output_inertia_kg_m2=OUTPUT_INERTIA,
    firmware=FIRMWARE,
    delay_samples=1,
    sample_s=2e-3,
    timestep_s=5e-4,
    duration_s=1.2,
    goal_rad=0.8,
    volts=(5.0, 4.4),
    off_s=(0.5, 0.65),
):
    """D = c_p kp e + c_i ki I - c_d kd d(theta)/dt,   |D| <= D_max,   V = D V_supply

    A servo steps to its goal while its supply sags, loses its torque for a while, and goes back.

    Reference: The firmware in plain Python, angles as whole ticks, and SciPy's `expm` of the
        motor's matrix over each sample; without torque no current flows.

    Procedure:
    1. Run servo and motor (exact integrator, four steps per sample) in a graph.
    2. Compare angle and duty of every sample.
    Covers: PID, dead band, duty limit and anti-windup, encoder, delay, supply, bridge on and off,
        a sample that is longer than the motor's step
    Excludes: friction and a weight; a brake in place of an open bridge, which tests have
    """
    steps, ratio = round(duration_s / timestep_s), gear_ratio
    times = timestep_s * np.arange(steps)
    supply = np.linspace(volts[0], volts[1], steps)
    enabled = np.where((times >= off_s[0] - 1e-9) & (times < off_s[1] - 1e-9), 0.0, 1.0)
    gear = Gear(ratio, output_inertia_kg_m2=output_inertia_kg_m2)
    drive = MotorNode(
        "motor", timestep_s, **motor, gear=gear, command_mode="voltage", integrator="exact"
    )
    servo = Servo("servo", sample_s, **firmware, delay_samples=delay_samples)
    inputs = {"goal_angle": goal_rad, "supply_voltage": supply, "torque_enabled": enabled}
    every = round(sample_s / timestep_s)
    run = servo_graph(servo, drive).compile().run(steps=steps, inputs={"servo": inputs})
    angle = np.asarray(run["motor"]["output_angle"])[every - 1 :: every]
    duty = np.asarray(run["servo"]["duty"])[every - 1 :: every]
    samples = slice(None, None, every)
    A, B = motor_matrices(motor, ratio, output_inertia_kg_m2, firmware["bridge_resistance_ohm"])
    reference = plain_servo(
        firmware, delay_samples, sample_s, goal_rad, supply[samples], enabled[samples], A, B, ratio
    )
    yield Measurement(
        "largest difference of the angle",
        largest(angle - reference["angle"]),
        limit=2e-6,
        unit="rad",
        why="0.7 μA through the 1 MΩ of an open bridge, where the reference has none",
    )
    yield Measurement(
        "largest difference of the duty",
        largest(duty - reference["duty"]),
        limit=1e-14,
        why="a few roundings: angles are whole ticks, and the integral begins anew after the leak",
    )


def motor_matrices(
    motor: Mapping[str, float], ratio: float, output_inertia: float, bridge: float
) -> tuple[np.ndarray, np.ndarray]:
    """A and B of d(theta, w, i)/dt = A x + B V, the circuit closed through the bridge."""
    J = motor["inertia_kg_m2"] + output_inertia / ratio**2
    k, b, L = motor["kt_n_m_per_a"], motor["damping_n_m_s"], motor["l_henry"]
    R = motor["r_ohm"] + bridge
    A = np.array([[0.0, 1.0, 0.0], [0.0, -b / J, k / J], [0.0, -k / L, -R / L]])
    return A, np.array([0.0, 0.0, 1.0 / L])


def plain_servo(
    firmware: Mapping[str, float],
    delay: int,
    dt: float,
    goal: float,
    supply: np.ndarray,
    enabled: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    ratio: float,
) -> dict[str, np.ndarray]:
    """Angle after each sample and the duty during it, in ticks and Python's numbers."""
    tick = 2 * np.pi / firmware["ticks_per_turn"]
    closed = scipy.linalg.expm(dt * np.block([[A, B[:, None]], [np.zeros((1, 4))]]))
    coasting = scipy.linalg.expm(dt * A[:2, :2])
    x: np.ndarray = np.zeros(3)
    integral, last, waiting = 0.0, None, [0.0] * delay
    angles, duties = [], []
    limit = firmware["duty_limit"]
    for volts, on in zip(supply, enabled, strict=True):
        ticks = round(x[0] / ratio / tick)
        error = round(goal / tick) - ticks
        error = tick * error if abs(tick * error) > firmware["dead_band_rad"] else 0.0
        rate = 0.0 if last is None else tick * (ticks - last) / dt
        last = ticks
        duty = firmware["duty_per_kp"] * firmware["kp"] * error
        duty -= firmware["duty_per_kd"] * firmware["kd"] * rate
        grown = integral + error * dt
        gain = firmware["duty_per_ki"] * firmware["ki"]
        if abs(duty + gain * grown) <= limit or (duty + gain * grown) * error <= 0:
            integral = grown
        duty = min(max(duty + gain * integral, -limit), limit)
        if on:
            waiting.append(duty)
            applied = waiting.pop(0)
            x = (closed @ np.append(x, applied * volts))[:3]
        else:
            integral, waiting, applied = 0.0, [0.0] * delay, 0.0
            x = np.append(coasting @ x[:2], 0.0)
        angles.append(x[0] / ratio)
        duties.append(applied)
    return {"angle": np.array(angles), "duty": np.array(duties)}


@benchmark(
    201,
    "Period of a pendulum on a motor's shaft",
    PendulumLoadNode,
    scaled("gravity_m_per_s2", 1.001),
)
def pendulum_period(
    Pendulum,
    *,
    mass_kg=0.5,
    length_m=0.1,
    gravity_m_per_s2=9.80665,
    amplitude_rad=2.0,
    timestep_s=5e-4,
    duration_s=5.0,
):
    """T = 4 K(sin²(a/2)) / w_0,   w_0² = g / l

    A point mass swings on the shaft of a motor that nothing drives, by symplectic Euler.

    Reference: The complete elliptic integral of SciPy; energy, which a pendulum keeps.

    Procedure:
    1. Release the pendulum at its amplitude; find its passages through the lowest point.
    2. Compare the mean time between them with half a period, and the last amplitude with the first.
    Covers: the torque of the weight; motor and load in a graph, one edge delayed
    Excludes: a rest angle other than zero, which tests have
    """
    m, length, g, dt = mass_kg, length_m, gravity_m_per_s2, timestep_s
    load = Pendulum("load", dt, mass_kg=m, length_m=length, gravity_m_per_s2=g)
    motor = MotorNode("motor", dt, m * length**2, 0.05, 1.0, 1e-3, 0.0, command_mode="torque")
    run = _swing(motor, load, amplitude_rad, round(duration_s / dt))
    angle = np.asarray(run["motor"]["rotor_angle"])
    at = np.flatnonzero(np.diff(np.sign(angle)))
    passages = dt * (at + angle[at] / (angle[at] - angle[at + 1]))
    period = 2 * float(np.mean(np.diff(passages)))
    w_0 = np.sqrt(g / length)
    exact = 4 * scipy.special.ellipk(np.sin(amplitude_rad / 2) ** 2) / w_0
    yield Measurement(
        "relative error of the period",
        abs(period / exact - 1),
        limit=(w_0 * dt) ** 2 / 24,
        why="(w_0 dt)²/24 of small swings; it is less at large ones",
    )
    last = angle[round(-exact / dt) :]
    yield Measurement(
        "change of the amplitude over the run",
        abs(float(np.max(np.abs(last))) - amplitude_rad),
        limit=(w_0 * dt) ** 2 / 8,
        unit="rad",
        why="the turning point may lie between two steps: a/8 dt², with a = w_0² sin 2 there",
    )


def _swing(motor: Any, load: Any, amplitude: float, steps: int) -> Trajectory:
    graph = GraphManager()
    graph.add_node(load)
    graph.add_node(motor)
    graph.add_edge("motor", "load", "rotor_angle", "angle", delay=True)
    graph.add_edge("load", "motor", "load_torque", "load_torque")
    start = {"motor": {"angle": amplitude}}
    return graph.compile().run(steps=steps, initial_state=start)
