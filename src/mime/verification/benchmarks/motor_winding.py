"""MIME-VER-112, 113 and 115: a winding's temperature and saturation, and the ripple of a drive."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.nodes.actuation.motor import MotorNode
from mime.nodes.actuation.pwm_drive import PwmDriveNode
from mime.verification.benchmark import (
    Finding,
    Measurement,
    Subject,
    benchmark,
    halved,
    largest,
    replaced,
    scaled,
)
from mime.verification.benchmarks.motor import REFERENCE, K, L, R, after, run
from mime.verification.programs import QUICK


@benchmark(
    112,
    "Temperature of a winding at constant current",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=replaced("a resistance that does not rise with heat", copper_coefficient_per_k=0.0),
    configuration=REFERENCE
    | {
        "thermal_resistance_k_per_w": 10.0,
        "thermal_capacitance_j_per_k": 3.0,
        "copper_coefficient_per_k": 0.00393,
        "max_winding_temperature_c": 60.0,
        "timestep_s": 0.5,
        "duration_s": 100.0,
        "commanded_torque_n_m": 0.1,
    },
    reference="""Linear in T at a constant current, hence an exponential:

    s = (1/Rth - R alpha i^2)/Cth,   T(t) = T_a + R i^2/(Cth s) (1 - e^{-s t})""",
    procedure=(
        "Hold 0.1 N·m, that is 2 A, for 200 steps of 0.5 s; compare each temperature.",
        "Read resistance and overload 0.1 K below and above the largest temperature.",
    ),
    covers=("heating by R(T) i^2, cooling to ambient, R(T)", "the overload flag"),
    excludes=("the housing's own temperature, which is not modelled",),
)
def winding_temperature(Motor: Subject) -> Iterator[Finding]:
    """Cth dT/dt = R (1 + alpha (T - T_ref)) i^2 - (T - T_a)/Rth

    A hot winding resists more, which heats it more.
    """
    tau, alpha, Rth, Cth, dt = 0.1, 0.00393, 10.0, 3.0, 0.5
    thermal = {"thermal_resistance_k_per_w": Rth, "thermal_capacitance_j_per_k": Cth}
    thermal |= {"max_winding_temperature_c": 60.0}
    motor = Motor("motor", dt, **REFERENCE, **thermal, command_mode="torque")
    T = run(motor, {"commanded_torque": tau}, 200)["winding_temperature"]
    i = tau / K
    s = (1 / Rth - R * alpha * i**2) / Cth
    reference = 25.0 + R * i**2 / Cth / s * (1 - np.exp(-s * dt * np.arange(1, 201)))
    yield Measurement(
        "error of the temperature",
        largest(T - reference),
        limit=1e-11,
        unit="K",
        why="200 roundings of 100 K times 1e-16",
    )
    wrong, errors = 0, []
    for temperature, overload in ((59.9, 0.0), (60.1, 1.0)):
        hot = motor.initial_state() | {"winding_temperature": jnp.asarray(temperature)}
        fluxes = motor.compute_boundary_fluxes(hot, {}, dt)
        wrong += float(fluxes["overload"]) != overload
        resistance = R * (1 + alpha * (temperature - 25))
        errors.append(float(fluxes["winding_resistance"]) / resistance - 1)
    yield Measurement(
        "wrong overload flags of two", float(wrong), limit=0.0, why="a comparison is exact"
    )
    yield Measurement(
        "relative error of the resistance", largest(errors), limit=4e-15, why="a few roundings"
    )


@benchmark(
    113,
    "Torque of a saturated motor at stall",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=scaled("saturation_current_a", 1.01),
    configuration=REFERENCE
    | {
        "saturation_current_a": 2.0,
        "inertia_kg_m2": 1e6,
        "timestep_s": 1e-4,
        "duration_s": 0.05,
        "commanded_voltage_v": 6.0,
    },
    reference="""The locked winding's final current V/R in the saturated constant:

    tau = kt i_s tanh(V/(R i_s))

and for a saturation current that is never reached, the motor without saturation.""",
    procedure=(
        "Hold the rotor by an inertia of 1e6 kg·m² for 50 L/R at 6 V; compare the torque.",
        "Run a free motor with a saturation current of 1e6 A and one without; compare speeds.",
    ),
    covers=("kt that falls with the current", "the series near zero current"),
    excludes=("energy with saturation (MIME-VER-105)",),
)
def saturation(Motor: Subject) -> Iterator[Finding]:
    """tau = kt(i) i,   kt(i) = kt tanh(i/i_s)/(i/i_s)

    Iron carries only so much flux: three times the saturation current gives 0.995 of all torque.
    """
    i_s, V, dt = 2.0, 6.0, 1e-4
    inputs = {"commanded_voltage": V}
    heavy = REFERENCE | {"inertia_kg_m2": 1e6, "command_mode": "voltage"}
    motor = Motor("motor", dt, **heavy, saturation_current_a=i_s)
    final = {name: jnp.asarray(value) for name, value in after(motor, inputs, 500).items()}
    torque = float(motor.compute_boundary_fluxes(final, inputs, dt)["motor_torque"])
    yield Measurement(
        "relative error of the stall torque",
        abs(torque / (K * i_s * np.tanh(V / (R * i_s))) - 1),
        limit=1e-9,
        why="the motion that 1e6 kg·m² lets through; (1 + dt R/L)^-500 = e^-48 is still to come",
    )
    light = REFERENCE | {"command_mode": "voltage"}
    weak = run(Motor("motor", dt, **light, saturation_current_a=1e6), inputs, 500)
    plain = run(Motor("motor", dt, **light), inputs, 500)
    yield Measurement(
        "relative difference of speeds far from saturation and without it",
        largest(weak["angular_velocity"] / plain["angular_velocity"] - 1),
        limit=1e-11,
        why="(i/i_s)^2/3 = 1e-11 at 6 A",
    )


@benchmark(
    115,
    "Current ripple of a PWM drive",
    subject=PwmDriveNode,
    node_id="MIME-NODE-110",
    fault=halved("frequency_hz"),
    configuration=REFERENCE
    | {
        "inertia_kg_m2": 1e6,
        "supply_voltage_v": 24.0,
        "frequency_hz": 20e3,
        "duty": 0.25,
        "timestep_s": 1.25e-6,
        "duration_s": 0.03,
    },
    reference="""The steady cycle of a winding, with a swing of V unipolar and 2 V bipolar:

    di = swing/R (1 - e^{-D T/tau})(1 - e^{-(1-D) T/tau})/(1 - e^{-T/tau}),   tau = L/R""",
    procedure=(
        "Drive a locked motor (exact integrator) for 600 periods of 40 steps, in both switchings.",
        "Compare the swing of the current over the last 10 periods, and the mean voltage.",
    ),
    covers=("both switchings, edges, the mean over a period",),
    excludes=("dead time and losses, which are not modelled", "edges inside a step"),
)
def pwm_ripple(Drive: Subject) -> Iterator[Finding]:
    """di = swing/R (1 - e^{-D T/tau})(1 - e^{-(1-D) T/tau})/(1 - e^{-T/tau})

    The winding smooths what the bridge switches.
    """
    V, tau, T, on = 24.0, L / R, 5e-5, 0.25
    dt = T / 40
    heavy: Any = REFERENCE | {"inertia_kg_m2": 1e6}
    motor = MotorNode("motor", dt, **heavy, integrator="exact", command_mode="voltage")
    e_on, e_off, e_all = (np.exp(-part * T / tau) for part in (on, 1 - on, 1.0))
    for switching, swing, duty in (("unipolar", V, on), ("bipolar", 2 * V, 2 * on - 1)):
        drive = Drive("drive", dt, supply_voltage_v=V, frequency_hz=1 / T, switching=switching)
        current, voltage = _driven(drive, motor, jnp.asarray(duty), jnp.asarray(dt))
        expected = swing / R * (1 - e_on) * (1 - e_off) / (1 - e_all)
        yield Measurement(
            f"relative error of the ripple, {switching}",
            abs(float(np.ptp(current[-400:])) / expected - 1),
            limit=1e-8,
            why="the phase adds up 24,000 roundings, which shift the edges",
        )
        yield Measurement(
            f"relative error of the mean voltage, {switching}",
            abs(float(np.mean(voltage[-400:])) / (duty * V) - 1),
            limit=1e-9,
            why="as above, over ten periods",
        )


@partial(jax.jit, compiler_options=QUICK)
def _driven(
    drive: PwmDriveNode, motor: MotorNode, duty: jax.Array, dt: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Current and voltage over 600 periods of 40 steps."""
    inputs = {"commanded_duty": duty}

    def step(carry: tuple, _: None) -> tuple[tuple, tuple]:
        phase, state = carry
        phase = drive.update(phase, inputs, dt)
        V = drive.compute_boundary_fluxes(phase, inputs, dt)["terminal_voltage"]
        state = motor.update(state, {"commanded_voltage": V}, dt)
        return (phase, state), (state["current"], V)

    start = drive.initial_state(), motor.initial_state()
    return jax.lax.scan(step, start, length=40 * 600)[1]
