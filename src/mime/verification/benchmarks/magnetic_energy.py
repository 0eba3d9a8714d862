"""MIME-VER-190: energy of a motor, its magnet's field and a swimmer's drag."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mime.core.node import Scalar, State, Values
from mime.nodes.actuation.motor import MotorNode
from mime.nodes.magnetics.helical_swimmer import HelicalSwimmerNode
from mime.nodes.magnetics.magnetic_body import MagneticBodyNode
from mime.nodes.magnetics.permanent_magnet import PermanentMagnetNode
from mime.running.graph import GraphManager
from mime.verification.benchmark import Convergence, Finding, Measurement, benchmark
from mime.verification.convergence import order_error

_MOTOR: dict[str, Any] = {
    "kt_n_m_per_a": 0.05,
    "r_ohm": 1.0,
    "l_henry": 1e-3,
    "damping_n_m_s": 1e-4,
}
_SWIMMER: dict[str, Any] = {
    "pitch_m": 4e-3,
    "helix_radius_m": 1e-3,
    "turns": 2.5,
    "filament_radius_m": 1e-4,
}


class _WeakReaction(MagneticBodyNode):
    """The rotor feels 99.9 % of what it does."""

    def compute_boundary_fluxes(
        self, state: State, boundary_inputs: Values, dt: float | Scalar
    ) -> State:
        fluxes = super().compute_boundary_fluxes(state, boundary_inputs, dt)
        return {**fluxes, "load_torque": 0.999 * fluxes["load_torque"]}


@benchmark(190, "Energy of motor, field and drag", MagneticBodyNode, _WeakReaction)
def chain_energy(
    Body: Any,
    *,
    rotor_inertia_kg_m2: float = 1e-5,
    volts: float = 2.6138051,
    standoff_m: float = 0.1,
    turn_s: float = 0.125,
    timesteps_s: tuple[float, ...] = (4e-4, 2e-4),
) -> Iterator[Finding]:
    r"""$\int V i - R i^2 - b\omega^2\,dt = \Delta(\tfrac12 L i^2 + \tfrac12 J\omega^2)
    + \Delta U + \int \mathbf W\cdot\mathbf V\,dt$

    What a motor takes from its supply is heat, its own energy, that of the field, and the work on a
    swimmer that the field turns: nothing is lost on the edges between the nodes, though three of
    them are late by a step.

    Reference: The first law, by the trapezoidal rule in NumPy.
    Procedure:
    1. Let a motor spin a magnet about x; a swimmer lies across the spin axis, where the field is an
       ellipse, so that its lag goes up and down twice a turn.
    2. After two turns add up for two more what the motor takes, and what shaft and swimmer get.
    3. Once more with half of the step.
    Covers: reaction on the rotor, delayed edges, the order of the coupling
    Excludes: the arm (`tests/scenarios/test_helical_drive.py` has it)
    """
    field, motor = [], []
    for dt in timesteps_s:
        run = _run(Body, dt, rotor_inertia_kg_m2, volts, standoff_m, 4.0 * turn_s)
        between = _balances(run, dt, rotor_inertia_kg_m2, volts, 2.0 * turn_s)
        field.append(abs(between[0]))
        motor.append(abs(between[1]))
    why = "of second order; the step is 1/625 of a turn"
    yield Measurement("left of the shaft's work, over the swimmer's", field[-1], 1.2e-5, why=why)
    why = "what a step's delay shifts from turn to turn, in a rate that is not quite even"
    yield Measurement("left of the motor's energy, over the swimmer's", motor[-1], 1.6e-5, why=why)
    yield order_error("order of the coupling", timesteps_s, field, 2, 0.1)
    curves = {"field and swimmer": tuple(field)}
    yield Convergence("timestep (s)", timesteps_s, "energy left, over the work", curves, 2)


def chain(motor: Any, magnet: Any, body: Any, swimmer: Any) -> GraphManager:
    """Motor, magnet, body and swimmer, named so: what the fluid resists comes back a step later."""
    graph = GraphManager()
    for node in (motor, magnet, body, swimmer):
        graph.add_node(node)
    for target in ("magnet", "body"):
        graph.add_edge("motor", target, "rotor_pose_world", "magnet_pose_world")
    for name in ("field_world", "field_gradient_world", "inside"):
        graph.add_edge("magnet", "body", name, name)
    graph.add_edge("body", "swimmer", "wrench_world", "wrench_world")
    graph.add_edge("body", "motor", "load_torque", "load_torque", delay=True)
    graph.add_edge("swimmer", "magnet", "position_world", "points_world", delay=True)
    graph.add_edge("swimmer", "body", "swimmer_pose_world", "body_pose_world", delay=True)
    graph.add_external_input("motor", "commanded_voltage")
    return graph


def _run(
    Body: Any, dt: float, inertia: float, volts: float, standoff: float, duration: float
) -> Any:
    motor = {**_MOTOR, "inertia_kg_m2": inertia, "command_mode": "voltage", "integrator": "exact"}
    axis, across = np.eye(3)[[0, 2]]
    graph = chain(
        MotorNode("motor", dt, **motor, axis_in_parent_frame=axis),
        PermanentMagnetNode("magnet", dt, moment_a_m2=18.89, magnetisation_axis=across),
        Body("body", dt, moment_a_m2=(1e-3, 0.0, 0.0), rotor_axis=axis),
        HelicalSwimmerNode("swimmer", dt, **_SWIMMER, viscosity_pa_s=0.5),
    )
    rate = volts * 0.05 / (0.05**2 + 1e-4)
    half = np.sqrt(0.5)  # its axis along x, its moment towards the magnet
    start: dict[str, Any] = {
        "motor": {"angular_velocity": rate, "current": 1e-4 * rate / 0.05},
        "swimmer": {"pose_world": np.array([0.0, 0.0, -standoff, half, 0.0, half, 0.0])},
    }
    record = {
        "motor": ["current", "angular_velocity"],
        "body": ["load_torque", "wrench_world", "potential_energy"],
        "swimmer": ["twist_world"],
    }
    inputs = {"motor": {"commanded_voltage": volts}}
    return graph.compile().run(duration, inputs=inputs, initial_state=start, record=record)


def _balances(run: Any, dt: float, J: float, volts: float, after: float) -> tuple[float, float]:
    """What is left of the shaft's work and of the motor's energy, over the work on the swimmer."""
    late = run.time > after - 0.5 * dt
    motor, body = ({k: v[late] for k, v in run[name].items()} for name in ("motor", "body"))
    i, w, load = motor["current"], motor["angular_velocity"], body["load_torque"]
    twist = run["swimmer"]["twist_world"]
    # A twist is that of the way from one pose to the next: the mean of two is at the pose.
    at_pose = 0.5 * (twist[late] + twist[np.roll(late, -1)])
    moved = _integral(np.sum(body["wrench_world"] * at_pose, axis=1), dt)
    stored = body["potential_energy"][-1] - body["potential_energy"][0]
    given = _integral(volts * i - i**2 - 1e-4 * w**2, dt)
    kept = np.diff(0.5e-3 * i[[0, -1]] ** 2 + 0.5 * J * w[[0, -1]] ** 2)[0]
    rest = stored + moved
    shaft = _integral(-load * w, dt)
    return float(shaft - rest) / moved, float(given - kept - rest) / moved


def _integral(power: np.ndarray, dt: float) -> float:
    return float(dt * (np.sum(power) - 0.5 * (power[0] + power[-1])))
