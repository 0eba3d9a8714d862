"""MIME-VER-106 and 114: the velocity loop, and what a drive's limits do to it."""

from collections.abc import Iterator

import numpy as np
import scipy

from mime.core.node import Scalar, State, Values
from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import (
    Fault,
    Finding,
    Measurement,
    Subject,
    benchmark,
    largest,
    replaced,
)
from mime.verification.benchmarks.motor import REFERENCE, B, J, K, R, run
from mime.verification.benchmarks.motor_steps import KI, KP, closed_loop


@benchmark(
    106,
    "Velocity loop: settling and closed-loop poles",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=replaced("`velocity_ki` of half its default", velocity_ki=KI / 2),
    configuration=REFERENCE
    | {
        "damping_n_m_s": 0.01,
        "velocity_kp": KP,
        "velocity_ki": KI,
        "timestep_s": 1e-3,
        "duration_s": 5.0,
        "commanded_velocity_rad_s": 10.0,
    },
    reference="""The closed loop of rotor and PI, and SciPy's `expm` of its matrix A for the speed:

    J s^2 + (Kp + b) s + Ki = 0
    wn = sqrt(Ki/J),   zeta = (Kp + b) / (2 sqrt(Ki J)),   w(t) = (1, 0) (1 - e^{A t}) x_rest""",
    procedure=(
        "Run 5 s of semi-implicit Euler to 10 rad/s; note the speed at 1 s and at the end, and "
        "when it comes within 1 % for good.",
        "Compare `poles` with the roots, and their sum and product with zeta and wn.",
        "Run 500 exact steps of 10 ms; compare every fiftieth speed with the matrix exponential.",
    ),
    covers=("the PI with its default gains", "`poles`", "the exact integrator in velocity mode"),
    excludes=("limits and the winding-up of the integral (MIME-VER-114)",),
)
def velocity_loop(Motor: Subject) -> Iterator[Finding]:
    """tau = Kp (w_des - w) + Ki int (w_des - w) dt

    A stable but slow loop: the poles are -0.917 and -109 per second.
    """
    b, target = 0.01, 10.0
    parameters, inputs = REFERENCE | {"damping_n_m_s": b}, {"commanded_velocity": target}
    motor = Motor("motor", 1e-3, **parameters)
    omega = run(motor, inputs, 5000)["angular_velocity"]
    outside = np.flatnonzero(np.abs(omega - target) > 0.01 * target)
    settled = 1e-3 * (outside[-1] + 2)
    yield Measurement(
        "error after 5 s", abs(omega[-1] - target), 0.1, "rad/s", why="1 % is what is asked"
    )
    yield Measurement(
        "speed at 1 s, distance from 6.34 rad/s",
        abs(omega[999] - 6.34),
        limit=0.005,
        unit="rad/s",
        why="as printed, three digits",
    )
    yield Measurement(
        "time to 1 %, distance from 4.93 s",
        abs(settled - 4.93),
        limit=0.01,
        unit="s",
        why="as printed, three digits, and Euler's step of 1 ms",
    )
    poles = np.asarray(motor.poles("velocity"))
    yield Measurement(
        "poles, relative distance from -0.917 and -109 per second",
        largest(poles / [-0.917, -109.0] - 1),
        limit=2e-3,
        why="as printed, three digits",
    )
    wn, zeta = np.sqrt(KI / J), (KP + b) / (2 * np.sqrt(KI * J))
    found = np.array([np.prod(poles), -np.sum(poles) / (2 * wn)])
    yield Measurement(
        "relative error of the natural frequency squared and of the damping ratio",
        largest(found / [wn**2, zeta] - 1),
        limit=1e-12,
        why="a few roundings; the poles are 100 apart",
    )
    exact = run(Motor("motor", 1e-2, **parameters, integrator="exact"), inputs, 500)
    A, B_ = closed_loop("velocity")
    A[0, 0] = -(KP + b) / J
    rest = -np.linalg.solve(A, B_ * target)
    t = 1e-2 * np.arange(1, 501)[::50]
    reference = np.array([(rest - scipy.linalg.expm(A * time) @ rest)[0] for time in t])
    yield Measurement(
        "relative error of the speed, exact integrator",
        largest(exact["angular_velocity"][::50] - reference) / target,
        limit=1e-12,
        why="500 roundings of 1e-16",
    )


class _WindingUp(MotorNode):
    """A motor whose integral goes on while its torque is limited."""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        new = super().update(state, boundary_inputs, dt)
        error = boundary_inputs["commanded_velocity"] - state["angular_velocity"]
        return new | {"velocity_integral_error": state["velocity_integral_error"] + error * dt}


@benchmark(
    114,
    "Limits hold and the integral does not wind up",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=Fault("an integral that goes on while the torque is limited", lambda _: _WindingUp),
    configuration=REFERENCE
    | {
        "supply_voltage_v": 3.0,
        "current_limit_a": 1.5,
        "torque_limit_n_m": 0.02,
        "velocity_kp": 5e-3,
        "velocity_ki": 0.2,
        "timesteps_s": (1e-4, 1e-3, 1e-2, 0.2),
    },
    reference="""Speed and acceleration at the limits:

    w = k V_s/(k^2 + R b),   i <= i_max,   dw/dt <= tau_max/J

and for the overshoot the same loop without a limit.""",
    procedure=(
        "Command 50 V from a supply of 3 V with a current limit: note the largest current and "
        "the last speed.",
        "Command 10 N·m from the same supply at steps of 0.1, 10 and 200 ms, the last beyond "
        "J R/k^2 = 40 ms: note the last speed and any fall of the speed on the way.",
        "Command 20 rad/s with a torque limit and without: compare the overshoots, and the "
        "acceleration with the limit's.",
    ),
    covers=("supply, current and torque limit", "anti-windup"),
    excludes=("limits with the exact integrator outside voltage mode, which are refused",),
)
def limits(Motor: Subject) -> Iterator[Finding]:
    """w = k V_s/(k^2 + R b),   dw/dt <= tau_max/J

    A drive gives no more than it can, and its controller knows.
    """
    limit = {"supply_voltage_v": 3.0, "command_mode": "voltage", "current_limit_a": 1.5}
    states = run(Motor("motor", 1e-4, **REFERENCE, **limit), {"commanded_voltage": 50.0}, 30_000)
    yield Measurement(
        "largest current, distance from its limit of 1.5 A",
        abs(float(np.max(states["current"])) - 1.5),
        limit=0.0,
        unit="A",
        why="a clip is exact",
    )
    top = K * 3.0 / (B * R + K**2)
    speeds = {"voltage mode": states["angular_velocity"]}
    for dt in (1e-4, 1e-2, 0.2):
        motor = Motor("motor", dt, **REFERENCE, command_mode="torque", supply_voltage_v=3.0)
        omega = run(motor, {"commanded_torque": 10.0}, int(6 / dt))["angular_velocity"]
        speeds[f"torque mode, dt = {dt:g} s"] = omega
    yield Measurement(
        "relative error of the last speed from a supply of 3 V",
        max(abs(float(omega[-1]) / top - 1) for omega in speeds.values()),
        limit=1e-9,
        why="e^-90 is still to come after 3 s; the rest is round-off",
    )
    yield Measurement(
        "largest fall of the speed on the way in torque mode",
        max(float(np.max(-np.diff(omega))) for omega in list(speeds.values())[1:]),
        limit=1e-12,
        unit="rad/s",
        why="round-off at 50 rad/s: the line is met without oscillation at any step",
    )
    gains = {"velocity_kp": 5e-3, "velocity_ki": 0.2, "command_mode": "velocity"}
    target = {"commanded_velocity": 20.0}
    motors = (
        Motor("motor", 1e-3, **REFERENCE, **gains, **more)
        for more in ({"torque_limit_n_m": 0.02}, {})
    )
    limited, free = (run(motor, target, 2000)["angular_velocity"] for motor in motors)
    yield Measurement(
        "overshoot with a torque limit",
        float(limited.max() / 20 - 1),
        limit=float(free.max() / 20 - 1),
        why="the overshoot without a limit; winding up makes it several times larger",
    )
    yield Measurement(
        "largest acceleration over tau_max/J, less one",
        float(np.max(np.diff(limited)) / (0.02 / J * 1e-3) - 1),
        limit=1e-9,
        why="round-off; viscous friction only takes away",
    )
    yield Measurement(
        "relative error of the last speed with a torque limit",
        abs(float(limited[-1]) / 20 - 1),
        limit=1e-6,
        why="the slowest pole after 2 s",
    )
