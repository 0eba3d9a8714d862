"""MIME-VER-112, 113 and 115: a winding's temperature and saturation, and the ripple of a drive."""

import jax
import jax.numpy as jnp
import numpy as np

from mime import MotorNode, PwmDriveNode, Saturation, Winding
from mime.verification.benchmark import Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.motor import LOCKED, REFERENCE, K, L, R
from mime.verification.programs import final_state, quick_jit, rollout


def _cold_copper(Motor):
    """a resistance that does not rise with heat"""
    return scaled("winding.copper_coefficient_per_k", 0.0).apply(Motor)


@benchmark(112, "Temperature of a winding at constant current", MotorNode, _cold_copper)
def winding_temperature(
    Motor,
    *,
    parameters=REFERENCE,
    thermal_resistance_k_per_w=10.0,
    thermal_capacitance_j_per_k=3.0,
    copper_coefficient_per_k=0.00393,
    max_winding_temperature_c=60.0,
    timestep_s=0.5,
    steps=200,
    commanded_torque_n_m=0.1,
):
    """Cth dT/dt = R (1 + alpha (T - T_ref)) i^2 - (T - T_a)/Rth

    A hot winding resists more, which heats it more.

    Reference: Linear in T at a constant current, hence an exponential:

        s = (1/Rth - R alpha i^2)/Cth,   T(t) = T_a + R i^2/(Cth s) (1 - e^{-s t})

    Procedure:
    1. Hold the torque, that is 2 A; compare the temperature after each step.
    2. Read resistance and overload 0.1 K below and above the largest temperature.
    Covers: heating by R(T) i^2, cooling to ambient, R(T); the overload flag
    Excludes: the housing's own temperature, which is not modelled
    """
    Rth, Cth = thermal_resistance_k_per_w, thermal_capacitance_j_per_k
    alpha, T_max, dt = copper_coefficient_per_k, max_winding_temperature_c, timestep_s
    copper = Winding(Rth, Cth, copper_coefficient_per_k=alpha, max_temperature_c=T_max)
    motor = Motor("motor", dt, **parameters, winding=copper, command_mode="torque")
    T = rollout(motor, {"commanded_torque": commanded_torque_n_m}, steps)["winding_temperature"]
    i = commanded_torque_n_m / K
    s = (1 / Rth - R * alpha * i**2) / Cth
    reference = 25.0 + R * i**2 / Cth / s * (1 - np.exp(-s * dt * np.arange(1, steps + 1)))
    yield Measurement(
        "error of the temperature",
        largest(T - reference),
        limit=1e-11,
        unit="K",
        why="200 roundings of 100 K times 1e-16",
    )
    wrong, errors = 0, []
    for temperature, overload in ((T_max - 0.1, 0.0), (T_max + 0.1, 1.0)):
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
    113, "Torque of a saturated motor at stall", MotorNode, scaled("saturation.current_a", 1.01)
)
def saturation(
    Motor,
    *,
    parameters=LOCKED,
    saturation_current_a=2.0,
    saturation_current_never_reached_a=1e6,
    timestep_s=1e-4,
    steps=500,
    commanded_voltage_v=6.0,
):
    """tau = kt(i) i,   kt(i) = kt tanh(i/i_s)/(i/i_s)

    Iron carries only so much flux: three times the saturation current gives 0.995 of all torque.

    Reference: The locked winding's final current V/R in the saturated constant:

        tau = kt i_s tanh(V/(R i_s))

    and for a saturation current that is never reached, the motor without saturation.
    Procedure:
    1. Hold the rotor by its inertia for 50 L/R; compare the torque.
    2. Run a free motor, of 1e-4 kg·m², that never saturates and one without saturation; compare
       speeds.
    Covers: kt that falls with the current; the series near zero current
    Excludes: energy with saturation (MIME-VER-105)
    """
    i_s, V, dt = saturation_current_a, commanded_voltage_v, timestep_s
    inputs, by_voltage = {"commanded_voltage": V}, {"command_mode": "voltage"}
    motor = Motor("motor", dt, **parameters, **by_voltage, saturation=Saturation(i_s))
    final = final_state(motor, inputs, steps)
    torque = float(motor.compute_boundary_fluxes(final, inputs, dt)["motor_torque"])
    yield Measurement(
        "relative error of the stall torque",
        abs(torque / (K * i_s * np.tanh(V / (R * i_s))) - 1),
        limit=1e-9,
        why="the motion that 1e6 kg·m² lets through; (1 + dt R/L)^-500 = e^-48 is still to come",
    )
    weak, plain = (
        rollout(Motor("motor", dt, **REFERENCE, **by_voltage, saturation=iron), inputs, steps)
        for iron in (Saturation(saturation_current_never_reached_a), None)
    )
    yield Measurement(
        "relative difference of speeds far from saturation and without it",
        largest(weak["angular_velocity"] / plain["angular_velocity"] - 1),
        limit=1e-11,
        why="(i/i_s)^2/3 = 1e-11 at 6 A",
    )


@benchmark(115, "Current ripple of a PWM drive", PwmDriveNode, scaled("frequency_hz", 0.5))
def pwm_ripple(
    Drive,
    *,
    parameters=LOCKED,
    supply_voltage_v=24.0,
    frequency_hz=20e3,
    duty=0.25,
    steps_per_period=40,
    periods=600,
):
    """di = swing/R (1 - e^{-D T/tau})(1 - e^{-(1-D) T/tau})/(1 - e^{-T/tau}),   tau = L/R

    The winding smooths what the bridge switches.

    Reference: The steady cycle of a winding, with a swing of V unipolar and 2 V bipolar.
    Procedure:
    1. Drive a locked motor (exact integrator) in both switchings.
    2. Compare the swing of the current over the last 10 periods, and the mean voltage.
    Covers: both switchings, edges, the mean over a period
    Excludes: dead time and losses, which are not modelled; edges inside a step
    """
    V, tau, T, on = supply_voltage_v, L / R, 1 / frequency_hz, duty
    dt, steps = T / steps_per_period, steps_per_period * periods
    motor = MotorNode("motor", dt, **parameters, integrator="exact", command_mode="voltage")
    e_on, e_off, e_all = (np.exp(-part * T / tau) for part in (on, 1 - on, 1.0))
    for switching, swing, command in (("unipolar", V, on), ("bipolar", 2 * V, 2 * on - 1)):
        drive = Drive("drive", dt, supply_voltage_v=V, frequency_hz=1 / T, switching=switching)
        inputs = {"commanded_duty": jnp.asarray(command)}
        voltage = np.asarray(_voltages(drive, rollout(drive, inputs, steps), inputs))
        current = rollout(motor, {"commanded_voltage": voltage}, steps)["current"]
        expected = swing / R * (1 - e_on) * (1 - e_off) / (1 - e_all)
        last = slice(-10 * steps_per_period, None)
        yield Measurement(
            f"relative error of the ripple, {switching}",
            abs(float(np.ptp(current[last])) / expected - 1),
            limit=1e-8,
            why="the phase adds up 24,000 roundings, which shift the edges",
        )
        yield Measurement(
            f"relative error of the mean voltage, {switching}",
            abs(float(np.mean(voltage[last])) / (command * V) - 1),
            limit=1e-9,
            why="as above, over ten periods",
        )


@quick_jit
def _voltages(drive: PwmDriveNode, states: dict, inputs: dict) -> jax.Array:
    def at(state: dict) -> jax.Array:
        return drive.compute_boundary_fluxes(state, inputs, drive.timestep)["terminal_voltage"]

    return jax.vmap(at)(states)
