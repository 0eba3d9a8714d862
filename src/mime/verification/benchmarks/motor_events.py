"""MIME-VER-202: dry friction within exact steps, held to SciPy's events."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy

from mime import Coulomb, MotorNode, Stribeck
from mime.verification.benchmark import Measurement, benchmark, replaced
from mime.verification.convergence import order_error
from mime.verification.programs import final_state

SMALL = {
    "inertia_kg_m2": 1.8e-6,
    "kt_n_m_per_a": 0.0234,
    "r_ohm": 2.32,
    "l_henry": 4e-4,
    "damping_n_m_s": 1.2e-6,
    "velocity_kp": 5e-5,
    "velocity_ki": 1e-3,
}
"""A coreless motor of 20 W, with a PI whose poles are complex."""
SCALES = {"torque": 5e-4, "voltage": 0.3, "velocity": 60.0}
"""Commands that hold, move and turn back this motor about equally often."""


def with_events(
    values: Mapping[str, float],
    friction_n_m: float | Callable[[float], float],
    mode: str,
    command: float,
    load: float,
    start: np.ndarray,
    duration: float,
) -> tuple[np.ndarray, int]:
    """Angle, speed and current (or the PI's integral) by SciPy, and how often the motion changed.

    `solve_ivp` integrates sliding and sticking apart, and its events find the ends of both.
    Friction is a number, or a function of the speed.
    """
    J, kt, R, L, b, Kp, Ki = values.values()

    def friction(w: float) -> float:
        return friction_n_m(w) if callable(friction_n_m) else friction_n_m

    def torque(x: np.ndarray) -> float:
        if mode == "voltage":
            return float(kt * x[2] + load)
        return command + load if mode == "torque" else Kp * (command - x[1]) + Ki * x[2] + load

    def second(x: np.ndarray) -> float:
        if mode == "voltage":
            return float((command - R * x[2] - kt * x[1]) / L)
        return 0.0 if mode == "torque" else command - x[1]

    def way_from_rest(x: np.ndarray) -> float:
        return float(np.sign(torque(x))) if abs(torque(x)) > friction(0.0) else 0.0

    t, x, changes = 0.0, np.array(start, float), 0
    way = float(np.sign(x[1])) if x[1] else way_from_rest(x)
    while t < duration:

        def slope(t: float, x: np.ndarray, way: float = way) -> list[float]:
            if way == 0:
                return [0.0, 0.0, second(x)]
            net = torque(x) - way * friction(x[1]) - b * x[1]
            return [x[1], net / J, second(x)]

        def margin(t: float, x: np.ndarray, way: float = way) -> float:
            return float(way * x[1]) if way else friction(0.0) - abs(torque(x))

        margin.direction, margin.terminal = -1, True  # type: ignore[attr-defined]
        part = scipy.integrate.solve_ivp(
            slope,
            (t, duration),
            x,
            "DOP853",
            events=margin,
            rtol=1e-12,
            atol=1e-13,
            first_step=min(1e-7, duration - t),  # an event right at the start must not hide another
        )
        t, x = part.t[-1], part.y[:, -1].copy()
        if part.status == 1:
            changes += 1
            was_sliding, x[1] = way != 0, 0.0
            way = way_from_rest(x) if was_sliding else float(np.sign(torque(x)))
    return x, changes


@benchmark(
    202,
    "Dry friction within exact steps",
    MotorNode,
    replaced("semi-implicit Euler in its place", integrator="semi_implicit"),
)
def friction_events(
    Motor,
    *,
    parameters=SMALL,
    coulomb_torque_n_m=8e-4,
    integrator="exact",
    timesteps_s=(1e-3, 1e-2, 0.1),
    cases=16,
    seed=0,
    static_torque_n_m=1.6e-3,
    stribeck_velocity_rad_per_s=25.0,
    stribeck_timesteps_s=(1e-3, 5e-4, 2.5e-4),
):
    """J dw/dt = tau - b w - s tau_f(w),   s = sign w;   w = 0 while |tau| <= tau_f(0)

    With Coulomb friction the flow is linear between stops, breakaways and reversals, and the step
    finds these. Stribeck friction is taken as linear about the speed at the start of each part.

    Reference: SciPy's `solve_ivp` (DOP853, 1e-12), which integrates each sliding and sticking part
    alone and finds their ends by its events.
    Procedure:
    1. In each mode draw speeds (some zero), currents or integrals, commands and loads.
    2. Make one step of each length from there; compare angle, speed and current or integral with
       the reference, over 1 rad, 10 rad/s, 0.1 A and 1 rad.
    3. Count the cases in which the motion changes within the step: they must be there.
    4. With Stribeck friction drive the motor forward, let it stop, and turn it back; halve the step
       for the order of the angle's error.
    Covers: stops, breakaways and reversals within a step in all three modes; complex poles
    Excludes: friction by load, which the exact step refuses
    """
    random = np.random.default_rng(seed)
    for mode, scale in SCALES.items():
        motor = Motor(
            "motor",
            1e-6,  # a step that semi-implicit Euler is stable with
            **parameters,
            friction=Coulomb(coulomb_torque_n_m),
            integrator=integrator,
            command_mode=mode,
        )
        last = "velocity_integral_error" if mode == "velocity" else "current"
        unit = np.array([1.0, 10.0, 1.0 if mode == "velocity" else 0.1])
        worst, changed = 0.0, 0
        for dt in timesteps_s:
            for _ in range(cases):
                command, load = scale * random.normal(), 5e-4 * random.normal()
                omega = random.normal(0.0, 30.0) * random.integers(2)
                x = (
                    0.0
                    if mode == "torque"
                    else random.normal(0.0, 1.0 if mode == "velocity" else 0.3)
                )
                inputs = {f"commanded_{mode}": command, "load_torque": load}
                start = {"angular_velocity": omega, last: x}
                end = final_state(motor, inputs, 1, dt=dt, start=start)
                found = np.array([end[name] for name in ("angle", "angular_velocity", last)])
                wanted, changes = with_events(
                    parameters, coulomb_torque_n_m, mode, command, load,
                    np.array([0.0, omega, x]), dt,
                )  # fmt: skip
                worst = max(worst, float(np.max(np.abs(found - wanted) / unit)))
                changed += int(changes > 0)
        yield Measurement(
            f"largest error of a state, {mode} mode",
            worst,
            limit=1e-8,
            why="the reference: its events are found in a polynomial between its steps",
        )
        yield Measurement(
            f"cases whose motion changes within the step, {mode} mode",
            changed,
            limit=cases // 3,
            at_least=True,
            why="one in nine at least, or nothing is tested",
        )
    tau_c, tau_s, w_s = coulomb_torque_n_m, static_torque_n_m, stribeck_velocity_rad_per_s

    def tau_f(w: float) -> float:
        return tau_c + (tau_s - tau_c) * float(np.exp(-((w / w_s) ** 2)))

    volts, reached, changes = (4.0, 0.0, -2.0), np.zeros(3), 0
    for V in volts:
        reached, more = with_events(parameters, tau_f, "voltage", V, 0.0, reached, 0.04)
        changes += more
    errors = []
    for dt in stribeck_timesteps_s:
        motor = Motor(
            "motor",
            dt,
            **parameters,
            friction=Stribeck(tau_c, tau_s, w_s),
            integrator=integrator,
            command_mode="voltage",
        )
        state: dict[str, Any] = {}
        for V in volts:
            inputs = {"commanded_voltage": V}
            state = final_state(motor, inputs, round(0.04 / dt), start=state)
        errors.append(abs(float(state["angle"]) - reached[0]))
    yield Measurement(
        "changes of the motion, Stribeck friction",
        changes,
        limit=3,
        at_least=True,
        why="it breaks away, stops and breaks away again",
    )
    yield Measurement(
        "error of the angle in steps of 0.25 ms, Stribeck friction",
        errors[-1],
        limit=1e-4,
        unit="rad",
        why="of some 10 rad; semi-implicit Euler misses it by 0.1",
    )
    yield order_error(
        "order of the angle's error, Stribeck friction",
        stribeck_timesteps_s,
        tuple(errors),
        2,
        limit=0.5,
    )
