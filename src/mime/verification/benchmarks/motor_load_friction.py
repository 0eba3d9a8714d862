"""MIME-VER-198: friction of a motor that grows with its load."""

from typing import Any

import numpy as np
import scipy

from mime import LoadFriction, MotorNode
from mime.core.node import Scalar, State, Values
from mime.core.parameters import with_fields
from mime.nodes.actuation.friction import Load
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest
from mime.verification.benchmarks.motor import REFERENCE, B, J
from mime.verification.benchmarks.motor_effects import speeds
from mime.verification.convergence import order_error


class OfMotorOnly(LoadFriction):
    """Friction that does not feel the external torque."""

    def largest(self, omega: Any, way: Any, load: Load) -> Any:
        return super().largest(omega, way, load._replace(external=0.0 * load.external))


class _FrictionOfMotorOnly(MotorNode):
    """friction that does not feel the external torque"""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        blind = with_fields(self, friction=OfMotorOnly(**self.friction.params))  # type: ignore[union-attr]
        return MotorNode.update(blind, state, boundary_inputs, dt)


@benchmark(198, "Friction by load stops a motor and holds it", MotorNode, _FrictionOfMotorOnly)
def load_friction(
    Motor,
    *,
    parameters=REFERENCE,
    coulomb_torque_n_m=0.004,
    motor_load=0.2,
    external_load=0.1,
    stribeck_torque_n_m=0.001,
    stribeck_motor_load=0.1,
    stribeck_external_load=0.15,
    stribeck_velocity_rad_per_s=3.0,
    exponent=1.5,
    motor_torque_n_m=0.012,
    load_torque_n_m=0.006,
    frequency_hz=(4.0, 7.0),
    duration_s=0.4,
    initial_speed_rad_per_s=5.0,
    timesteps_s=(8e-5, 4e-5, 2e-5, 1e-5),
):
    """J dw/dt = tau_m + tau_e - b w - tau_f sign(w)

    tau_f = tau_c + |k_e tau_e - k_m tau_m| + s (tau_s + |s_e tau_e - s_m tau_m|)
    s = e^{-|w/w_s|^a}

    A gearbox rubs the more the more torque it passes on, from the motor or from the load.

    Reference: The balance of torques for a weight that rises, stands and sinks:

        tau_lift (1 - k_m) = tau_e (1 + k_e) + tau_c,   tau_sink (1 + k_m) = tau_e (1 - k_e) - tau_c

    and SciPy's `solve_ivp` to 1e-10 with events at each stop, reversal and breakaway.
    Procedure:
    1. Hold a weight with 0.1 % less than tau_lift and 0.1 % more than tau_sink; then push it with
       0.1 % more and less.
    2. Let motor torque and load swing at two frequencies, so that the motor slides, stops, stands
       and reverses; compare the speed at all times, and halve the step for the order.
    3. Count the steps in which this motor moves while SciPy's stands, from three steps after each
       stop to three before the motor breaks away.
    Covers: load of motor and from outside, driving and driven; sticking, reversal and breakaway
    Excludes: the quadratic terms and the difference of driving and braking, compared with the
    published models in tests/nodes/actuation/test_load_friction.py
    """
    tau_c, k_m, k_e = coulomb_torque_n_m, motor_load, external_load
    values = parameters | {"command_mode": "torque"}
    weight = load_torque_n_m
    plain = Motor("motor", 1e-4, **values, friction=LoadFriction(tau_c, k_m, k_e))
    lift = (weight * (1 + k_e) + tau_c) / (1 - k_m)
    sink = (weight * (1 - k_e) - tau_c) / (1 + k_m)
    held = [
        speeds(plain, {"commanded_torque": tau, "load_torque": -weight}, 1000)
        for tau in (0.999 * lift, 1.001 * sink)
    ]
    yield Measurement(
        "largest speed of a weight that friction holds",
        largest(held),
        0.0,
        "rad/s",
        why="it sticks",
    )
    up, down = (
        speeds(plain, {"commanded_torque": tau, "load_torque": -weight}, 1000)
        for tau in (1.001 * lift, 0.999 * sink)
    )
    yield Measurement(
        "steps in which the weight does not rise or sink beyond these torques",
        float(np.sum(up <= 0) + np.sum(down >= 0)),
        limit=0.0,
        why="it breaks away at once",
    )

    law = {
        "coulomb_torque_n_m": tau_c,
        "motor_load": k_m,
        "external_load": k_e,
        "stribeck_torque_n_m": stribeck_torque_n_m,
        "stribeck_motor_load": stribeck_motor_load,
        "stribeck_external_load": stribeck_external_load,
        "velocity_rad_per_s": stribeck_velocity_rad_per_s,
        "exponent": exponent,
    }
    turning = 2 * np.pi * np.asarray(frequency_hz)

    def torques(t: Any) -> tuple[Any, Any]:
        return motor_torque_n_m * np.sin(turning[0] * t), weight * np.cos(turning[1] * t)

    w0, end = initial_speed_rad_per_s, duration_s
    reference, rests = _by_events(law, torques, w0, end)
    errors = []
    for dt in timesteps_s:
        motor = Motor("motor", dt, **values, friction=LoadFriction(**law))
        t = dt * np.arange(1, round(end / dt) + 1)
        tau_m, tau_e = torques(
            t
        )  # a step's torques are those at its end: Euler's order all the same
        omega = speeds(motor, {"commanded_torque": tau_m, "load_torque": tau_e}, len(t), w0)
        errors.append(largest(omega - reference(t)) / largest(reference(t)))
    yield Measurement(
        "largest relative error of the speed, through stops and reversals",
        errors[-1],
        limit=1e-3,
        why="first order at dt = 1e-5 s",
    )
    yield order_error("order of that error", timesteps_s, tuple(errors), 1, limit=0.1)
    inside = np.zeros(len(t), dtype=bool)
    for begin, over in rests:
        inside |= (t > begin + 3 * dt) & (t < over - 3 * dt)
    yield Measurement(
        "share of the steps at rest in which the motor moves",
        float(np.mean(omega[inside] != 0)) if inside.any() else 1.0,
        limit=0.0,
        why="it stands at a speed of exactly zero",
    )
    curve = {"swinging torques": tuple(errors)}
    yield Convergence("timestep (s)", timesteps_s, "relative error of the speed (1)", curve, 1.0)


def _by_events(law: dict[str, float], torques: Any, w0: float, end: float) -> tuple[Any, list]:
    """The speed at any time and the intervals of rest, piece by piece between events."""

    def friction(t: float, speed: float) -> float:
        tau_m, tau_e = torques(t)
        s = np.exp(-((speed / law["velocity_rad_per_s"]) ** law["exponent"]))
        at_rest = law["stribeck_torque_n_m"] + abs(
            law["stribeck_external_load"] * tau_e - law["stribeck_motor_load"] * tau_m
        )
        rubbing = abs(law["external_load"] * tau_e - law["motor_load"] * tau_m)
        return law["coulomb_torque_n_m"] + rubbing + s * at_rest

    def spare(t: float, _: Any) -> float:
        """How far the net torque is below the largest friction at rest."""
        return friction(t, 0.0) - abs(sum(torques(t)))

    spare.terminal, spare.direction = True, -1  # type: ignore[attr-defined]
    t, w, pieces, rests, breaks_away = 0.0, w0, [], [], False
    while t < end:
        if w == 0.0 and spare(t, None) > 0 and not breaks_away:
            found = scipy.integrate.solve_ivp(
                lambda *_: [0.0], (t, end), [0.0], events=spare, max_step=1e-3
            )
            rests.append((t, found.t[-1]))
            breaks_away = True
        else:
            way = np.sign(w) if w else np.sign(sum(torques(t)))

            def slope(t: float, w: np.ndarray, way: float = way) -> Any:
                return (sum(torques(t)) - B * w - way * friction(t, abs(w[0]))) / J

            def stop(_: float, w: np.ndarray) -> Any:
                return w[0]

            stop.terminal, stop.direction = True, -way  # type: ignore[attr-defined]
            found = scipy.integrate.solve_ivp(
                slope, (t, end), [w], events=stop, rtol=1e-10, atol=1e-12, max_step=1e-3,
                dense_output=True,
            )  # fmt: skip
            pieces.append((t, found.t[-1], found.sol))
            breaks_away = False
        w = 0.0 if found.status == 1 else found.y[0, -1]
        t = found.t[-1]

    def speed(times: Any) -> Any:
        omega = np.zeros(len(times))
        for begin, over, solution in pieces:
            at = (times > begin) & (times <= over)
            if at.any():
                omega[at] = solution(times[at])[0]
        return omega

    return speed, rests
