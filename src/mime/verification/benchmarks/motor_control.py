"""MIME-VER-106 and 114: the velocity loop, and what a drive's limits do to it."""

import numpy as np
import scipy

from mime import Limits, MotorNode
from mime.core.node import Scalar, State, Values
from mime.verification.benchmark import Measurement, benchmark, largest, replaced
from mime.verification.benchmarks.motor import GAINS, KI, KP, REFERENCE, B, J, K, R, closed_loop
from mime.verification.programs import rollout


@benchmark(
    106,
    "Velocity loop: settling and closed-loop poles",
    MotorNode,
    replaced("`velocity_ki` of half its default", velocity_ki=KI / 2),
)
def velocity_loop(
    Motor,
    *,
    parameters=REFERENCE | {"damping_n_m_s": 0.01},
    default_gains=GAINS,
    timestep_s=1e-3,
    exact_timestep_s=1e-2,
    duration_s=5.0,
    commanded_velocity_rad_per_s=10.0,
):
    """tau = Kp (w_des - w) + Ki int (w_des - w) dt

    A stable but slow loop: the poles are -0.917 and -109 per second.

    Reference: The closed loop of rotor and PI, and SciPy's `expm` of its matrix A for the speed:

        J s^2 + (Kp + b) s + Ki = 0
        wn = sqrt(Ki/J),   zeta = (Kp + b) / (2 sqrt(Ki J)),   w(t) = (1, 0) (1 - e^{A t}) x_rest

    Procedure:
    1. Run semi-implicit Euler with the default gains; note the speed at 1 s and at the end, and
       when it comes within 1 % for good.
    2. Compare `poles` with the roots, and their sum and product with zeta and wn.
    3. Run exact steps; compare every fiftieth speed with the matrix exponential.
    Covers: the PI with its default gains; `poles`; the exact integrator in velocity mode
    Excludes: limits and the winding-up of the integral (MIME-VER-114)
    """
    b, target, dt = parameters["damping_n_m_s"], commanded_velocity_rad_per_s, timestep_s
    inputs = {"commanded_velocity": target}
    motor = Motor("motor", dt, **parameters)
    omega = rollout(motor, inputs, round(duration_s / dt))["angular_velocity"]
    outside = np.flatnonzero(np.abs(omega - target) > 0.01 * target)
    settled = dt * (outside[-1] + 2)
    yield Measurement(
        "error after 5 s", abs(omega[-1] - target), 0.1, "rad/s", why="1 % is what is asked"
    )
    yield Measurement(
        "speed at 1 s, distance from 6.34 rad/s",
        abs(omega[round(1 / dt) - 1] - 6.34),
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
    motor = Motor("motor", exact_timestep_s, **parameters, integrator="exact")
    exact = rollout(motor, inputs, round(duration_s / exact_timestep_s))["angular_velocity"]
    A, B_ = closed_loop("velocity")
    A[0, 0] = -(KP + b) / J
    rest = -np.linalg.solve(A, B_ * target)
    t = exact_timestep_s * np.arange(1, len(exact) + 1)[::50]
    reference = np.array([(rest - scipy.linalg.expm(A * time) @ rest)[0] for time in t])
    yield Measurement(
        "relative error of the speed, exact integrator",
        largest(exact[::50] - reference) / target,
        limit=1e-12,
        why="500 roundings of 1e-16",
    )


class _WindingUp(MotorNode):
    """an integral that goes on while the torque is limited"""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        new = super().update(state, boundary_inputs, dt)
        error = boundary_inputs["commanded_velocity"] - state["angular_velocity"]
        return new | {"velocity_integral_error": state["velocity_integral_error"] + error * dt}


@benchmark(114, "Limits hold and the integral does not wind up", MotorNode, _WindingUp)
def limits(
    Motor,
    *,
    parameters=REFERENCE,
    supply_voltage_v=3.0,
    current_limit_a=1.5,
    torque_limit_n_m=0.02,
    commanded_velocity_rad_per_s=20.0,
    velocity_kp=5e-3,
    velocity_ki=0.2,
    timestep_s=1e-3,
    supply_timesteps_s=(1e-4, 1e-2, 0.2),
):
    """w = k V_s/(k^2 + R b),   dw/dt <= tau_max/J

    A drive gives no more than it can, and its controller knows.

    Reference: Speed and acceleration at the limits:

        w = k V_s/(k^2 + R b),   i <= i_max,   dw/dt <= tau_max/J

    and for the overshoot the same loop without a limit.
    Procedure:
    1. Command 50 V from the supply with a current limit: note the largest current and the last
       speed.
    2. Command 10 N·m from the same supply at three timesteps, the last beyond J R/k^2 = 40 ms: note
       the last speed and any fall of the speed on the way.
    3. Command a speed with a torque limit and without: compare the overshoots, and the acceleration
       with the limit's.
    Covers: supply, current and torque limit; anti-windup
    Excludes: limits with the exact integrator outside voltage mode, which are refused
    """
    dt, limits = supply_timesteps_s[0], Limits(supply_voltage_v, current_limit_a)
    motor = Motor("motor", dt, **parameters, limits=limits, command_mode="voltage")
    states = rollout(motor, {"commanded_voltage": 50.0}, round(3 / dt))
    yield Measurement(
        "largest current, distance from its limit of 1.5 A",
        abs(float(np.max(states["current"])) - current_limit_a),
        limit=0.0,
        unit="A",
        why="a clip is exact",
    )
    top = K * supply_voltage_v / (B * R + K**2)
    motor = Motor("motor", dt, **parameters, limits=Limits(supply_voltage_v), command_mode="torque")
    in_torque_mode = [
        rollout(motor, {"commanded_torque": 10.0}, int(6 / dt), dt=dt)["angular_velocity"]
        for dt in supply_timesteps_s
    ]
    last = [omega[-1] for omega in (states["angular_velocity"], *in_torque_mode)]
    yield Measurement(
        "relative error of the last speed from a supply of 3 V",
        largest(np.array(last) / top - 1),
        limit=1e-9,
        why="e^-90 is still to come after 3 s; the rest is round-off",
    )
    yield Measurement(
        "largest fall of the speed on the way in torque mode",
        max(float(np.max(-np.diff(omega))) for omega in in_torque_mode),
        limit=1e-12,
        unit="rad/s",
        why="round-off at 50 rad/s: the line is met without oscillation at any step",
    )
    target, dt = commanded_velocity_rad_per_s, timestep_s
    gains = {"velocity_kp": velocity_kp, "velocity_ki": velocity_ki, "command_mode": "velocity"}

    def speeds(limits=None):
        motor = Motor("motor", dt, **parameters, **gains, limits=limits)
        return rollout(motor, {"commanded_velocity": target}, round(2 / dt))["angular_velocity"]

    limited, free = speeds(Limits(torque_n_m=torque_limit_n_m)), speeds()
    yield Measurement(
        "overshoot with a torque limit",
        float(limited.max() / target - 1),
        limit=float(free.max() / target - 1),
        why="the overshoot without a limit; winding up makes it several times larger",
    )
    yield Measurement(
        "largest acceleration over tau_max/J, less one",
        float(np.max(np.diff(limited)) / (torque_limit_n_m / J * dt) - 1),
        limit=1e-9,
        why="round-off; viscous friction only takes away",
    )
    yield Measurement(
        "relative error of the last speed with a torque limit",
        abs(float(limited[-1]) / target - 1),
        limit=1e-6,
        why="the slowest pole after 2 s",
    )
