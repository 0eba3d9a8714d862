"""MIME-VER-105, 107 and 118: a motor's energy, its tool's pose, and its push on what carries it."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from mime.nodes.actuation.motor import MotorNode
from mime.nodes.actuation.motor.friction import acceleration
from mime.verification.benchmark import (
    Convergence,
    Fault,
    Finding,
    Measurement,
    Subject,
    benchmark,
    largest,
    replaced,
)
from mime.verification.benchmarks.motor import REFERENCE, B, J, L, R, back_emf, run
from mime.verification.convergence import order
from mime.verification.programs import QUICK


@benchmark(
    105,
    "Energy balance of a voltage step",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=back_emf(1.001),
    configuration=REFERENCE
    | {
        "timestep_s": 2e-6,
        "duration_s": 0.1,
        "commanded_voltage_v": 5.0,
        "saturation_current_a": "none, and 2",
    },
    reference="""What the supply gives is lost or stored, integrated by SciPy's `simpson`:

    int V i dt = int (R i^2 + b w^2) dt + L i^2/2 + J w^2/2""",
    procedure=(
        "Run 50,000 exact steps at 5 V, and as many of semi-implicit Euler with saturation.",
        "Integrate supplied and lost power by Simpson's rule; add what is stored at the end.",
        "With saturation, double the step twice for the order.",
    ),
    covers=("one constant for torque and back-EMF, with saturation too",),
    excludes=("gear losses and dry friction",),
)
def energy(Motor: Subject) -> Iterator[Finding]:
    """int V i dt = int (R i^2 + b w^2) dt + L i^2/2 + J w^2/2

    kt i w leaves the winding and arrives at the rotor: ke must equal kt.
    """
    exact = Motor("motor", 2e-6, **REFERENCE, command_mode="voltage", integrator="exact")
    yield Measurement(
        "relative imbalance, exact integrator",
        _imbalance(exact),
        limit=1e-12,
        why="quadrature of an exact solution, 50,000 roundings",
    )
    timesteps = (8e-6, 4e-6, 2e-6)
    saturated = {"command_mode": "voltage", "saturation_current_a": 2.0}
    errors = tuple(_imbalance(Motor("motor", dt, **REFERENCE, **saturated)) for dt in timesteps)
    yield Measurement(
        "relative imbalance, semi-implicit Euler with saturation",
        errors[-1],
        limit=1e-5,
        why="first order in dt = 2e-6 s",
    )
    yield Measurement(
        "order of Euler's imbalance, distance from 1",
        abs(order(timesteps, errors) - 1),
        limit=0.05,
        why="the second-order term at the coarsest step",
    )
    curve = {"with saturation": errors}
    yield Convergence("timestep (s)", timesteps, "relative imbalance of the energy (1)", curve, 1.0)


def _imbalance(motor: MotorNode) -> float:
    V, dt = 5.0, motor.timestep
    states = run(motor, {"commanded_voltage": V}, round(0.1 / dt))
    i, w = (np.concatenate([[0.0], states[name]]) for name in ("current", "angular_velocity"))
    supplied = V * scipy.integrate.simpson(i, dx=dt)
    lost = scipy.integrate.simpson(R * i**2 + B * w**2, dx=dt)
    stored = L * i[-1] ** 2 / 2 + J * w[-1] ** 2 / 2
    return float(abs(supplied - lost - stored) / supplied)


@benchmark(
    107,
    "Pose of the tool after a quarter turn",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=replaced("an axis that points the other way", axis_in_parent_frame=(0.0, 0.0, -1.0)),
    configuration=REFERENCE
    | {
        "axis_in_parent_frame": (0, 0, 2),
        "tool_offset_in_rotor_frame": (0.1, 0, 0, 1, 0, 0, 0),
        "angle_rad": np.pi / 2,
        "parent_pose_world": "at (1, 2, 3) m; and rolled by 90 degrees at the origin",
    },
    reference="""By hand: 0.1 m along x turns to 0.1 m along y of the parent, half = sqrt(1/2).

    parent at (1, 2, 3)         tool (1, 2.1, 3,   half, 0, 0, half)
    parent rolled, y is up      tool (0, 0, 0.1,   1/2, 1/2, -1/2, 1/2)""",
    procedure=(
        "Set the rotor's angle to a quarter turn; read `rotor_pose_world` for two parent poses.",
    ),
    covers=("order of the composition, sense of the rotation, axis of any length",),
    excludes=("poses over time, which follow from the angle",),
)
def tool_pose(Motor: Subject) -> Iterator[Finding]:
    """P_tool_world = P_parent_world + R(axis, theta) + P_tool_rotor

    Poses are x, y, z in metres and a unit quaternion, its real part first.
    """
    half = np.sqrt(0.5)
    tool = {"tool_offset_in_rotor_frame": (0.1, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)}
    motor = Motor("motor", 1e-4, **REFERENCE | {"axis_in_parent_frame": (0.0, 0.0, 2.0)} | tool)
    state = motor.initial_state() | {"angle": jnp.asarray(np.pi / 2)}
    for name, parent, expected in (
        ("moved", (1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0), [1, 2.1, 3, half, 0, 0, half]),
        ("rolled", (0.0, 0.0, 0.0, half, half, 0.0, 0.0), [0, 0, 0.1, 0.5, 0.5, -0.5, 0.5]),
    ):
        fluxes = motor.compute_boundary_fluxes(state, {"parent_pose_world": parent}, 1e-4)
        yield Measurement(
            f"largest error of a component, parent {name}",
            largest(np.asarray(fluxes["rotor_pose_world"]) - expected),
            limit=4e-15,
            unit="m or 1",
            why="a few roundings of numbers near 3",
        )


class _ForgetsTheGear(MotorNode):
    """The output's inertia reflected by N^2 in the reaction, where its momentum counts by N."""

    def _reaction_torque(self, theta: Any, w: Any, tau: Any, load: Any) -> Any:
        inertia = self.inertia_kg_m2
        if self.output_inertia_kg_m2 is not None:
            inertia = inertia + self.output_inertia_kg_m2 / self.gear_ratio**2
        return load - inertia * acceleration(self, w, tau, load)


@benchmark(
    118,
    "Reaction on the parent balances momentum",
    subject=MotorNode,
    node_id="MIME-NODE-100",
    fault=Fault("Jo/N^2 for Jo/N in the reaction", lambda _: _ForgetsTheGear),
    configuration=REFERENCE
    | {
        "gear_ratio": "none, and 20",
        "output_inertia_kg_m2": "none, and 0.02",
        "timestep_s": 1e-3,
        "duration_s": 0.5,
        "commanded_torque_n_m": 0.01,
        "commanded_voltage_v": 2.0,
        "load_torque_n_m": 0.004,
    },
    reference="""Angular momentum of rotor and output shaft about the common axis:

    sum (tau_load - tau_reaction) dt = (J + Jo/N) w""",
    procedure=(
        "Run 500 steps from rest in torque and in voltage mode, with and without a gear.",
        "Compare the impulse of load less reaction with the momentum at the end.",
        "Compare the moment in `reaction_wrench_world` with `reaction_torque`.",
    ),
    covers=("Newton's third law between motor and parent, through a gear too",),
    excludes=("velocity mode, whose reaction is that of the end of the step",),
)
def reaction(Motor: Subject) -> Iterator[Finding]:
    """sum (tau_load - tau_reaction) dt = (J + Jo/N) w

    What turns the rotor one way pushes its parent the other way.
    """
    dt, load = 1e-3, 0.004
    gear = {"gear_ratio": 20.0, "output_inertia_kg_m2": 0.02}
    apart = 0.0
    for mode, command in (("torque", 0.01), ("voltage", 2.0)):
        for name, geared in (("no gear", {}), ("gear", gear)):
            motor = Motor("motor", dt, **REFERENCE, **geared, command_mode=mode)
            inputs = {f"commanded_{mode}": command, "load_torque": load}
            states = run(motor, inputs, 500)
            torque, moment = (np.asarray(flux) for flux in _reactions(motor, states, inputs))
            inertia = J + (0.02 / 20.0 if geared else 0.0)
            impulse, momentum = dt * np.sum(load - torque), inertia * states["angular_velocity"][-1]
            yield Measurement(
                f"relative error of the impulse, {mode} mode, {name}",
                abs(float(impulse / momentum) - 1),
                limit=1e-12,
                why="500 roundings of 1e-16, through differences",
            )
            apart = max(apart, largest(moment / torque - 1))
    yield Measurement(
        "relative difference of wrench and torque", apart, limit=1e-15, why="one rounding"
    )


@partial(jax.jit, compiler_options=QUICK)
def _reactions(motor: MotorNode, states: dict, inputs: dict) -> tuple[jax.Array, jax.Array]:
    def at(state: dict) -> tuple[jax.Array, jax.Array]:
        fluxes = motor.compute_boundary_fluxes(state, inputs, motor.timestep)
        return fluxes["reaction_torque"], fluxes["reaction_wrench_world"][5]

    return jax.vmap(at)(states)
