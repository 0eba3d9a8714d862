"""MIME-VER-109 to 111: gear, dry friction and cogging of a motor."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import scipy

from mime import Cogging, Coulomb, Gear, MotorNode, Stribeck
from mime.core.node import Scalar, State, Values
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, scaled
from mime.verification.benchmarks.motor import REFERENCE, B, J
from mime.verification.convergence import order_error
from mime.verification.programs import final_state, rollout


def speeds(motor, inputs, steps, w0=0.0):
    """The speed after each step, from w0."""
    return rollout(motor, inputs, steps, start={"angular_velocity": w0})["angular_velocity"]


@benchmark(
    109,
    "A gear reflects inertia and loses power",
    MotorNode,
    scaled("gear.output_inertia_kg_m2", 20.0),
)
def gear(
    Motor,
    *,
    parameters=REFERENCE,
    gear_ratio=20.0,
    output_inertia_kg_m2=0.02,
    gear_efficiency=(1.0, 0.7),
    timestep_s=1e-4,
    steps=2000,
    commanded_torque_n_m=0.01,
    load_torque_n_m=-0.5,
    speed_under_load_rad_per_s=50.0,
):
    """J' = J + Jo/(N^2 eta)

    Inertia behind a gear counts less by the ratio squared; what the gear loses acts as friction.

    Reference: The rotor with the reflected inertia after n steps, and the torque that moves a load
    at constant speed:

        w_n = tau/b (1 - (1 + b dt/J')^-n),   J' = J + Jo/(N^2 eta)
        tau_lift = tau_load/(N eta),   tau_lower = tau_load eta/N

    Procedure:
    1. Spin up with an ideal gear and with a lossy one; compare speeds.
    2. Lift and lower the load at constant speed with the torque of the closed form.
    3. Hold the load with a torque between the two; note the speed once it stands.
    Covers: reflected inertia; losses in both directions; a load that the gear holds
    Excludes: backlash and elasticity (the elastic joint has them)
    """
    N, Jo, tau = gear_ratio, output_inertia_kg_m2, commanded_torque_n_m
    dt, load = timestep_s, -load_torque_n_m
    n = np.arange(1, steps + 1, dtype=float)
    for eta in gear_efficiency:
        gear = Gear(N, efficiency=None if eta == 1.0 else eta, output_inertia_kg_m2=Jo)
        motor = Motor("motor", dt, **parameters, gear=gear, command_mode="torque")
        inertia = J + Jo / (N**2 * eta)
        reference = tau / B * (1 - (1 + B * dt / inertia) ** -n)
        yield Measurement(
            f"relative error of the speed, efficiency {eta:g}",
            largest(speeds(motor, {"commanded_torque": tau}, steps) - reference) / reference[-1],
            limit=1e-12,
            why="2,000 roundings of 1e-16",
        )
    w0 = speed_under_load_rad_per_s
    for what, w, needed in (("lift", w0, load / (N * eta)), ("lower", -w0, load * eta / N)):
        inputs = {"commanded_torque": needed + B * w, "load_torque": -load}
        yield Measurement(
            f"relative change of a speed that should be constant, {what}",
            largest(speeds(motor, inputs, 100, w) / w - 1),
            limit=1e-12,
            why="100 roundings of 1e-16",
        )
    inputs = {"commanded_torque": load / N, "load_torque": -load}
    yield Measurement(
        "largest speed of a load that the gear holds",
        largest(speeds(motor, inputs, 200, -0.01)[-100:]),
        limit=0.0,
        unit="rad/s",
        why="friction holds exactly",
    )


class _ExplicitFriction(MotorNode):
    """friction as an explicit -tau_c sign(w)"""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        tau_c = self.friction.torque(jnp.inf)  # type: ignore[union-attr]
        tau = boundary_inputs["commanded_torque"] - tau_c * jnp.sign(state["angular_velocity"])
        smooth = dataclasses.replace(self, friction=None)
        return MotorNode.update(smooth, state, {**boundary_inputs, "commanded_torque": tau}, dt)


@benchmark(110, "Dry friction stops a motor and holds it", MotorNode, _ExplicitFriction)
def dry_friction(
    Motor,
    *,
    parameters=REFERENCE,
    coulomb_torque_n_m=0.003,
    static_torque_n_m=0.005,
    stribeck_velocity_rad_per_s=2.0,
    initial_speed_rad_per_s=50.0,
    timestep_s=1e-5,
    coarse_timestep_s=0.05,
    commanded_torque_n_m=0.006,
    timesteps_s=(8e-5, 4e-5, 2e-5, 1e-5),
):
    """J dw/dt = tau - b w - tau_f(w) sign(w),   tau_f = tau_c + (tau_s - tau_c) e^{-(w/w_s)^2}

    Friction takes the speed to zero and no further.

    Reference: The time to stop, J/b ln(1 + b w0/tau_c); for sliding, SciPy's `solve_ivp` to 1e-10.
    Procedure:
    1. Let a motor with Coulomb friction coast; note when its speed is zero, and whether it stays
       zero.
    2. The same with coarse steps, in each of which friction could turn the speed around.
    3. Push a motor with Stribeck friction with 0.2 % less and more than the static torque.
    4. Push it with the commanded torque for 0.2 s; compare the speed, and halve the step for the
       order.
    Covers: Coulomb and Stribeck friction, sticking and sliding
    Excludes: presliding and bristles, which are not modelled
    """
    w0, dt, tau = initial_speed_rad_per_s, timestep_s, commanded_torque_n_m
    tau_c, tau_s, w_s = coulomb_torque_n_m, static_torque_n_m, stribeck_velocity_rad_per_s
    values = parameters | {"command_mode": "torque"}
    omega = speeds(Motor("motor", dt, **values, friction=Coulomb(tau_c)), {}, 60_000, w0)
    stands = np.flatnonzero(omega == 0)
    first = stands[0] if stands.size else len(omega)
    yield Measurement(
        "error of the time to stop",
        abs((first + 1) * dt - J / B * np.log(1 + B * w0 / tau_c)),
        limit=2 * dt,
        unit="s",
        why="the stop falls on a step, and Euler's error is another one",
    )
    yield Measurement(
        "largest speed after the stop", largest([0.0, *omega[first:]]), 0.0, "rad/s", why="it stays"
    )
    motor = Motor("motor", coarse_timestep_s, **values, friction=Coulomb(tau_c))
    coarse = speeds(motor, {}, 100, w0)
    yield Measurement(
        "least speed with steps of 50 ms", float(np.min(coarse)), 0.0, "rad/s", True, "no reversal"
    )
    yield Measurement(
        "last speed with steps of 50 ms", largest(coarse[-1]), 0.0, "rad/s", why="it stops as well"
    )
    motor = Motor("motor", dt, **values, friction=Stribeck(tau_c, tau_s, w_s))
    below, above = (
        speeds(motor, {"commanded_torque": share * tau_s}, 20_000) for share in (0.998, 1.002)
    )
    yield Measurement(
        "largest speed just below the static torque", largest(below), 0.0, "rad/s", why="it sticks"
    )
    yield Measurement(
        "steps without motion just above the static torque",
        float(np.sum(above <= 0)),
        limit=0.0,
        why="it breaks away at once",
    )

    def slope(_: float, w: np.ndarray) -> np.ndarray:
        return (tau - B * w - tau_c - (tau_s - tau_c) * np.exp(-((w / w_s) ** 2))) / J

    reference = scipy.integrate.solve_ivp(slope, (0, 0.2), [0.0], rtol=1e-10, atol=1e-12).y[0, -1]
    ends = (
        final_state(motor, {"commanded_torque": tau}, round(0.2 / h), dt=h) for h in timesteps_s
    )
    errors = tuple(abs(end["angular_velocity"] / reference - 1) for end in ends)
    yield Measurement(
        "relative error of the speed while sliding",
        errors[-1],
        limit=1e-4,
        why="first order at dt = 1e-5 s",
    )
    yield order_error("order of the error while sliding", timesteps_s, errors, 1, limit=0.02)
    curve = {"Stribeck friction": errors}
    yield Convergence("timestep (s)", timesteps_s, "relative error of the speed (1)", curve, 1.0)


class _OldSpeed(MotorNode):
    """an angle advanced with the speed before the step"""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        new = super().update(state, boundary_inputs, dt)
        return new | {"angle": state["angle"] + state["angular_velocity"] * dt}


@benchmark(111, "Cogging swings at a pendulum's period", MotorNode, _OldSpeed)
def cogging(
    Motor,
    *,
    parameters=REFERENCE | {"damping_n_m_s": 0.0},
    cogging_torque_n_m=0.002,
    cogging_periods_per_turn=7.0,
    cogging_phase_rad=np.pi,
    initial_angle_deg=(0.01, 20.0),
    timestep_s=1e-5,
    timesteps_s=(4e-4, 2e-4, 1e-4),
    duration_s=3.0,
):
    """J theta'' = A sin(n theta + phase)

    With the phase at pi the rotor hangs in a detent like a pendulum.

    Reference: A pendulum in n theta, whose period has SciPy's complete elliptic integral K:

        J theta'' = -A sin(n theta)
        T = 4 K(m) / sqrt(A n/J),   m = sin^2(n theta_0/2)

    Procedure:
    1. Let the rotor swing without damping from both angles.
    2. Take the mean time between downward crossings of zero, interpolated in the step.
    3. Note the largest angle of all; from the larger one, halve the step twice for the order.
    Covers: cogging, its phase, far into its non-linear part; no drift of the energy
    Excludes: cogging with the exact integrator, which holds it over a step
    """
    A, n = cogging_torque_n_m, cogging_periods_per_turn
    magnets = Cogging(A, n, cogging_phase_rad)
    motor = Motor("motor", timestep_s, **parameters, cogging=magnets, command_mode="torque")

    def angles(theta0, dt):
        return rollout(motor, {}, round(duration_s / dt), dt=dt, start={"angle": theta0})["angle"]

    for degrees in initial_angle_deg:
        theta0 = np.deg2rad(degrees)
        expected = 4 * scipy.special.ellipk(np.sin(0.5 * n * theta0) ** 2) / np.sqrt(A * n / J)
        theta = angles(theta0, timestep_s)
        yield Measurement(
            f"relative error of the period from {degrees:g} degrees",
            abs(_period(theta, timestep_s) / expected - 1),
            limit=1e-8,
            why="second order: (w dt)^2/24 = 6e-10, and the crossings' interpolation",
        )
        yield Measurement(
            f"relative growth of the largest angle from {degrees:g} degrees",
            abs(largest(theta) / theta0 - 1),
            limit=1e-3,
            why="symplectic: it oscillates by w dt/2 = 6e-5 and does not drift",
        )
    errors = tuple(abs(_period(angles(theta0, dt), dt) / expected - 1) for dt in timesteps_s)
    why = "the fourth-order term, and the interpolation of the crossings"
    yield order_error("order of the period's error", timesteps_s, errors, 2, limit=0.05, why=why)
    curve = {"from 20 degrees": errors}
    yield Convergence("timestep (s)", timesteps_s, "relative error of the period (1)", curve, 2.0)


def _period(theta: np.ndarray, dt: float) -> float:
    crossings = np.flatnonzero((theta[:-1] > 0) & (theta[1:] <= 0))
    within = theta[crossings] / (theta[crossings] - theta[crossings + 1])
    return float(dt * np.mean(np.diff(crossings + within)))
