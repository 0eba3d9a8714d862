"""MIME-VER-109 to 111: gear, dry friction and cogging of a motor."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
import scipy

from mime.core.node import Scalar, State, Values
from mime.nodes.actuation.motor import MotorNode
from mime.verification.benchmark import (
    Convergence,
    Fault,
    Finding,
    Measurement,
    Subject,
    benchmark,
    largest,
    scaled,
)
from mime.verification.benchmarks.motor import REFERENCE, B, J, after, run
from mime.verification.convergence import order

TORQUE = REFERENCE | {"command_mode": "torque"}


@benchmark(
    109,
    "A gear reflects inertia and loses power",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=scaled("output_inertia_kg_m2", 20.0),
    configuration=REFERENCE
    | {
        "gear_ratio": 20.0,
        "output_inertia_kg_m2": 0.02,
        "gear_efficiency": "1 and 0.7",
        "timestep_s": 1e-4,
        "commanded_torque_n_m": 0.01,
        "load_torque_n_m": -0.5,
    },
    reference="""The rotor with the reflected inertia after n steps, and the torque that moves a
load at constant speed:

    w_n = tau/b (1 - (1 + b dt/J')^-n),   J' = J + Jo/(N^2 eta)
    tau_lift = tau_load/(N eta),   tau_lower = tau_load eta/N""",
    procedure=(
        "Spin up 2,000 steps with an ideal gear and with one of efficiency 0.7; compare speeds.",
        "Lift and lower 0.5 N·m at 50 rad/s with the torque of the closed form.",
        "Hold the load with a torque between the two; note the speed once it stands.",
    ),
    covers=("reflected inertia", "losses in both directions", "a load that the gear holds"),
    excludes=("backlash and elasticity (the elastic joint has them)",),
)
def gear(Motor: Subject) -> Iterator[Finding]:
    """J' = J + Jo/(N^2 eta)

    Inertia behind a gear counts less by the ratio squared; what the gear loses acts as friction.
    """
    N, Jo, tau, dt, steps, load = 20.0, 0.02, 0.01, 1e-4, 2000, 0.5
    n = np.arange(1, steps + 1, dtype=float)
    for eta in (1.0, 0.7):
        lossy = {} if eta == 1.0 else {"gear_efficiency": eta}
        motor = Motor("motor", dt, **TORQUE, gear_ratio=N, output_inertia_kg_m2=Jo, **lossy)
        omega = run(motor, {"commanded_torque": tau}, steps)["angular_velocity"]
        inertia = J + Jo / (N**2 * eta)
        reference = tau / B * (1 - (1 + B * dt / inertia) ** -n)
        yield Measurement(
            f"relative error of the speed, efficiency {eta:g}",
            largest(omega - reference) / reference[-1],
            limit=1e-12,
            why="2,000 roundings of 1e-16",
        )
    for what, w0, needed in (("lift", 50.0, load / (N * eta)), ("lower", -50.0, load * eta / N)):
        inputs = {"commanded_torque": needed + B * w0, "load_torque": -load}
        held = run(motor, inputs, 100, angular_velocity=w0)["angular_velocity"]
        yield Measurement(
            f"relative change of a speed that should be constant, {what}",
            largest(held / w0 - 1),
            limit=1e-12,
            why="100 roundings of 1e-16",
        )
    inputs = {"commanded_torque": load / N, "load_torque": -load}
    stuck = run(motor, inputs, 200, angular_velocity=-0.01)["angular_velocity"]
    yield Measurement(
        "largest speed of a load that the gear holds",
        largest(stuck[-100:]),
        limit=0.0,
        unit="rad/s",
        why="friction holds exactly",
    )


class _ExplicitFriction(MotorNode):
    """tau = -tau_c sign(w) as a torque like any other: it chatters and never stops."""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        tau = -self.coulomb_torque_n_m * jnp.sign(state["angular_velocity"])
        without = {"coulomb_torque_n_m": 0.0}
        if self.static_torque_n_m is not None:
            without["static_torque_n_m"] = 0.0
        commanded = boundary_inputs["commanded_torque"] + tau
        inputs = {**boundary_inputs, "commanded_torque": commanded}
        smooth = self.with_params(**without)
        return MotorNode.update(smooth, state, inputs, dt)  # type: ignore[arg-type]


@benchmark(
    110,
    "Dry friction stops a motor and holds it",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=Fault("friction as an explicit -tau_c sign(w)", lambda _: _ExplicitFriction),
    configuration=REFERENCE
    | {
        "coulomb_torque_n_m": 0.003,
        "static_torque_n_m": 0.005,
        "stribeck_velocity_rad_s": 2.0,
        "initial_speed_rad_s": 50.0,
        "timestep_s": 1e-5,
        "coarse_timestep_s": 0.05,
    },
    reference="""The time to stop in closed form; for sliding, SciPy's `solve_ivp` to 1e-10:

    t_stop = J/b ln(1 + b w0/tau_c)
    J dw/dt = tau - b w - tau_c - (tau_s - tau_c) e^{-(w/w_s)^2}""",
    procedure=(
        "Let a motor with Coulomb friction coast from 50 rad/s; note when its speed is zero, and "
        "whether it stays zero.",
        "The same with steps of 50 ms, in each of which friction could turn the speed around.",
        "Push a motor with Stribeck friction with 0.2 % less and more than the static torque.",
        "Push it with 6 mN·m for 0.2 s; compare the speed, and halve the step for the order.",
    ),
    covers=("Coulomb and Stribeck friction, sticking and sliding",),
    excludes=("presliding and bristles, which are not modelled",),
)
def dry_friction(Motor: Subject) -> Iterator[Finding]:
    """J dw/dt = tau - b w - tau_f(w) sign(w),   tau_f = tau_c + (tau_s - tau_c) e^{-(w/w_s)^2}

    Friction takes the speed to zero and no further.
    """
    w0, dt = 50.0, 1e-5
    tau_c, tau_s, w_s = 0.003, 0.005, 2.0
    motor = Motor("motor", dt, **TORQUE, coulomb_torque_n_m=tau_c)
    omega = run(motor, {}, 60_000, angular_velocity=w0)["angular_velocity"]
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
    slow = Motor("motor", 0.05, **TORQUE, coulomb_torque_n_m=tau_c)
    coarse = run(slow, {}, 100, angular_velocity=w0)["angular_velocity"]
    yield Measurement(
        "least speed with steps of 50 ms", float(np.min(coarse)), 0.0, "rad/s", True, "no reversal"
    )
    yield Measurement(
        "last speed with steps of 50 ms", largest(coarse[-1]), 0.0, "rad/s", why="it stops as well"
    )
    stribeck = {"coulomb_torque_n_m": tau_c, "static_torque_n_m": tau_s}
    stribeck |= {"stribeck_velocity_rad_s": w_s}
    motor = Motor("motor", dt, **TORQUE, **stribeck)
    below, above = (
        run(motor, {"commanded_torque": tau}, 20_000)["angular_velocity"]
        for tau in (0.998 * tau_s, 1.002 * tau_s)
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
        return (0.006 - B * w - tau_c - (tau_s - tau_c) * np.exp(-((w / w_s) ** 2))) / J

    reference = scipy.integrate.solve_ivp(slope, (0, 0.2), [0.0], rtol=1e-10, atol=1e-12).y[0, -1]
    timesteps = (8e-5, 4e-5, 2e-5, 1e-5)
    errors = []
    for h in timesteps:
        sliding = Motor("motor", h, **TORQUE, **stribeck)
        speed = after(sliding, {"commanded_torque": 0.006}, round(0.2 / h))["angular_velocity"]
        errors.append(abs(speed / reference - 1))
    yield Measurement(
        "relative error of the speed while sliding",
        errors[-1],
        limit=1e-4,
        why="first order at dt = 1e-5 s",
    )
    yield Measurement(
        "order of the error while sliding, distance from 1",
        abs(order(timesteps, errors) - 1),
        limit=0.02,
        why="the second-order term at the coarsest step",
    )
    curve = {"Stribeck friction": tuple(errors)}
    yield Convergence("timestep (s)", timesteps, "relative error of the speed (1)", curve, 1.0)


class _OldSpeed(MotorNode):
    """theta' = theta + w dt with the speed before the step: explicit Euler, which gains energy."""

    def update(self, state: State, boundary_inputs: Values, dt: float | Scalar) -> State:
        new = super().update(state, boundary_inputs, dt)
        return new | {"angle": state["angle"] + state["angular_velocity"] * dt}


@benchmark(
    111,
    "Cogging swings at a pendulum's period",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=Fault("an angle advanced with the speed before the step", lambda _: _OldSpeed),
    configuration=REFERENCE
    | {
        "damping_n_m_s": 0.0,
        "cogging_torque_n_m": 0.002,
        "cogging_periods_per_turn": 7.0,
        "cogging_phase_rad": np.pi,
        "initial_angle_deg": "0.01 and 20",
        "timestep_s": 1e-5,
        "duration_s": 3.0,
    },
    reference="""A pendulum in n theta, whose period has SciPy's complete elliptic integral K:

    J theta'' = -A sin(n theta)
    T = 4 K(m) / sqrt(A n/J),   m = sin^2(n theta_0/2)""",
    procedure=(
        "Let the rotor swing without damping from 0.01 and from 20 degrees for 300,000 steps.",
        "Take the mean time between downward crossings of zero, interpolated in the step.",
        "Note the largest angle of all; from 20 degrees, halve the step twice for the order.",
    ),
    covers=("cogging, its phase, far into its non-linear part", "no drift of the energy"),
    excludes=("cogging with the exact integrator, which holds it over a step",),
)
def cogging(Motor: Subject) -> Iterator[Finding]:
    """J theta'' = A sin(n theta + phase)

    With the phase at pi the rotor hangs in a detent like a pendulum.
    """
    A, n = 0.002, 7.0
    coggy = {"damping_n_m_s": 0.0, "cogging_torque_n_m": A, "cogging_phase_rad": np.pi}
    parameters = TORQUE | coggy | {"cogging_periods_per_turn": n}
    for degrees in (0.01, 20.0):
        theta0 = np.deg2rad(degrees)
        expected = 4 * scipy.special.ellipk(np.sin(0.5 * n * theta0) ** 2) / np.sqrt(A * n / J)
        theta = run(Motor("motor", 1e-5, **parameters), {}, 300_000, angle=theta0)["angle"]
        yield Measurement(
            f"relative error of the period from {degrees:g} degrees",
            abs(_period(theta, 1e-5) / expected - 1),
            limit=1e-8,
            why="second order: (w dt)^2/24 = 6e-10, and the crossings' interpolation",
        )
        yield Measurement(
            f"relative growth of the largest angle from {degrees:g} degrees",
            abs(largest(theta) / theta0 - 1),
            limit=1e-3,
            why="symplectic: it oscillates by w dt/2 = 6e-5 and does not drift",
        )
    timesteps = (4e-4, 2e-4, 1e-4)
    errors = []
    for dt in timesteps:
        motor = Motor("motor", dt, **parameters)
        theta = run(motor, {}, round(3 / dt), angle=theta0)["angle"]
        errors.append(abs(_period(theta, dt) / expected - 1))
    yield Measurement(
        "order of the period's error, distance from 2",
        abs(order(timesteps, errors) - 2),
        limit=0.05,
        why="the fourth-order term, and the interpolation of the crossings",
    )
    curve = {"from 20 degrees": tuple(errors)}
    yield Convergence("timestep (s)", timesteps, "relative error of the period (1)", curve, 2.0)


def _period(theta: np.ndarray, dt: float) -> float:
    crossings = np.flatnonzero((theta[:-1] > 0) & (theta[1:] <= 0))
    within = theta[crossings] / (theta[crossings] - theta[crossings + 1])
    return float(dt * np.mean(np.diff(crossings + within)))
