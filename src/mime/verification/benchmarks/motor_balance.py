"""MIME-VER-105, 107 and 118: a motor's energy, its tool's pose, and its push on what carries it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from mime import Gear, MotorNode, Saturation
from mime.nodes.actuation.motor import rotor
from mime.verification.benchmark import Convergence, Measurement, benchmark, largest, replaced
from mime.verification.benchmarks.motor import REFERENCE, B, J, L, R, back_emf
from mime.verification.convergence import order_error
from mime.verification.programs import quick_jit, rollout


@benchmark(105, "Energy balance of a voltage step", MotorNode, back_emf(1.001))
def energy(
    Motor,
    *,
    parameters=REFERENCE,
    timestep_s=2e-6,
    euler_timesteps_s=(8e-6, 4e-6, 2e-6),
    duration_s=0.1,
    commanded_voltage_v=5.0,
    saturation_current_a=2.0,
):
    """int V i dt = int (R i^2 + b w^2) dt + L i^2/2 + J w^2/2

    kt i w leaves the winding and arrives at the rotor: ke must equal kt.

    Reference: What the supply gives is lost or stored, integrated by SciPy's `simpson`.
    Procedure:
    1. Run exact steps, and as many of semi-implicit Euler with saturation.
    2. Integrate supplied and lost power by Simpson's rule; add what is stored at the end.
    3. With saturation, double the step twice for the order.
    Covers: one constant for torque and back-EMF, with saturation too
    Excludes: gear losses and dry friction
    """
    V = commanded_voltage_v

    def imbalance(dt, **options):
        motor = Motor("motor", dt, **parameters, command_mode="voltage", **options)
        states = rollout(motor, {"commanded_voltage": V}, round(duration_s / dt))
        i, w = (np.concatenate([[0.0], states[name]]) for name in ("current", "angular_velocity"))
        supplied = V * scipy.integrate.simpson(i, dx=dt)
        lost = scipy.integrate.simpson(R * i**2 + B * w**2, dx=dt)
        stored = L * i[-1] ** 2 / 2 + J * w[-1] ** 2 / 2
        return float(abs(supplied - lost - stored) / supplied)

    yield Measurement(
        "relative imbalance, exact integrator",
        imbalance(timestep_s, integrator="exact"),
        limit=1e-12,
        why="quadrature of an exact solution, 50,000 roundings",
    )
    errors = tuple(
        imbalance(dt, saturation=Saturation(saturation_current_a)) for dt in euler_timesteps_s
    )
    yield Measurement(
        "relative imbalance, semi-implicit Euler with saturation",
        errors[-1],
        limit=1e-5,
        why="first order in dt = 2e-6 s",
    )
    yield order_error("order of Euler's imbalance", euler_timesteps_s, errors, 1, limit=0.05)
    curve, what = {"with saturation": errors}, "relative imbalance of the energy (1)"
    yield Convergence("timestep (s)", euler_timesteps_s, what, curve, 1.0)


@benchmark(
    107,
    "Pose of the tool after a quarter turn",
    MotorNode,
    replaced("an axis that points the other way", axis_in_parent_frame=(0.0, 0.0, -1.0)),
)
def tool_pose(
    Motor,
    *,
    parameters=REFERENCE,
    axis_in_parent_frame=(0.0, 0.0, 2.0),
    tool_offset_in_rotor_frame=(0.1, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    angle_rad=np.pi / 2,
    moved_parent_m=(1.0, 2.0, 3.0),
    roll_of_the_other_parent_rad=np.pi / 2,
):
    """P_tool_world = P_parent_world + R(axis, theta) + P_tool_rotor

    Poses are x, y, z in metres and a unit quaternion, its real part first.

    Reference: By hand: 0.1 m along x turns to 0.1 m along y of the parent, half = sqrt(1/2).

        parent at (1, 2, 3)         tool (1, 2.1, 3,   half, 0, 0, half)
        parent rolled, y is up      tool (0, 0, 0.1,   1/2, 1/2, -1/2, 1/2)

    Procedure: Set the rotor's angle to a quarter turn; read `rotor_pose_world` for a parent that is
    moved, and for one at the origin that is rolled.
    Covers: order of the composition, sense of the rotation, axis of any length
    Excludes: poses over time, which follow from the angle
    """
    half, roll = np.sqrt(0.5), roll_of_the_other_parent_rad / 2
    values = parameters | {"axis_in_parent_frame": axis_in_parent_frame}
    motor = Motor("motor", 1e-4, **values, tool_offset_in_rotor_frame=tool_offset_in_rotor_frame)
    state = motor.initial_state() | {"angle": jnp.asarray(angle_rad)}
    moved, rolled = (*moved_parent_m, 1, 0, 0, 0), (0, 0, 0, np.cos(roll), np.sin(roll), 0, 0)
    for name, parent, expected in (
        ("moved", moved, [1, 2.1, 3, half, 0, 0, half]),
        ("rolled", rolled, [0, 0, 0.1, 0.5, 0.5, -0.5, 0.5]),
    ):
        inputs = {"parent_pose_world": jnp.asarray(parent, float)}
        pose = motor.compute_boundary_fluxes(state, inputs, 1e-4)["rotor_pose_world"]
        yield Measurement(
            f"largest error of a component, parent {name}",
            largest(np.asarray(pose) - expected),
            limit=4e-15,
            unit="m or 1",
            why="a few roundings of numbers near 3",
        )


class _ForgetsTheGear(MotorNode):
    """Jo/N^2 for Jo/N in the reaction"""

    def _reaction_torque(self, theta: Any, w: Any, tau: Any, load: Any) -> Any:
        Jo = 0.0 if self.gear is None else self.gear.output_inertia_on_rotor()
        return load - (self.inertia_kg_m2 + Jo) * rotor.acceleration(self, w, tau, load)


@benchmark(118, "Reaction on the parent balances momentum", MotorNode, _ForgetsTheGear)
def reaction(
    Motor,
    *,
    parameters=REFERENCE,
    gear_ratio=20.0,
    output_inertia_kg_m2=0.02,
    timestep_s=1e-3,
    steps=500,
    commanded_torque_n_m=0.01,
    commanded_voltage_v=2.0,
    load_torque_n_m=0.004,
):
    """sum (tau_load - tau_reaction) dt = (J + Jo/N) w

    What turns the rotor one way pushes its parent the other way.

    Reference: Angular momentum of rotor and output shaft about the common axis.
    Procedure:
    1. Run from rest in torque and in voltage mode, with and without a gear.
    2. Compare the impulse of load less reaction with the momentum at the end.
    3. Compare the moment in `reaction_wrench_world` with `reaction_torque`.
    Covers: Newton's third law between motor and parent, through a gear too
    Excludes: velocity mode, whose reaction is that of the end of the step
    """
    N, Jo, load = gear_ratio, output_inertia_kg_m2, load_torque_n_m
    geared, apart = Gear(N, output_inertia_kg_m2=Jo), 0.0
    for mode, command in (("torque", commanded_torque_n_m), ("voltage", commanded_voltage_v)):
        for name, gear, inertia in (("no gear", None, J), ("gear", geared, J + Jo / N)):
            motor = Motor("motor", timestep_s, **parameters, gear=gear, command_mode=mode)
            inputs = {f"commanded_{mode}": command, "load_torque": load}
            states = rollout(motor, inputs, steps)
            torque, moment = (np.asarray(flux) for flux in _reactions(motor, states, inputs))
            momentum = inertia * states["angular_velocity"][-1]
            yield Measurement(
                f"relative error of the impulse, {mode} mode, {name}",
                abs(float(timestep_s * np.sum(load - torque) / momentum) - 1),
                limit=1e-12,
                why="500 roundings of 1e-16, through differences",
            )
            apart = max(apart, largest(moment / torque - 1))
    yield Measurement(
        "relative difference of wrench and torque", apart, limit=1e-15, why="one rounding"
    )


@quick_jit
def _reactions(motor: MotorNode, states: dict, inputs: dict) -> tuple[jax.Array, jax.Array]:
    def at(state: dict) -> tuple[jax.Array, jax.Array]:
        fluxes = motor.compute_boundary_fluxes(state, inputs, motor.timestep)
        return fluxes["reaction_torque"], fluxes["reaction_wrench_world"][5]

    return jax.vmap(at)(states)
