"""Motors with dry friction or a limited current in a fit: stepped from one event to the next.

A step of first order meets a stop up to a step late, and a cost is rough at the scale of these
lags: its minimum is known no better, however fine the steps. `integrator="exact"` finds stops
within its steps, so that the cost is smooth and steps may be as long as the log's; with Stribeck
friction, which it takes as linear in each, they are of second order.
"""

import dataclasses

from mime.core.node import Node
from mime.core.parameters import with_fields
from mime.nodes.actuation.friction import Coulomb, Stribeck
from mime.nodes.actuation.motor import MotorNode
from mime.running.simulation import Simulation


def with_exact_motors(simulation: Simulation) -> tuple[Simulation, tuple[str, ...]]:
    """The graph with exact integrators where its motors have such effects, and their names.

    Motors whose other effects are not linear keep their integrator.
    """
    nodes, changed = dict(simulation.nodes), []
    for name, node in nodes.items():
        if isinstance(node, MotorNode) and (exact := _exact(node)) is not None:
            nodes[name] = exact
            changed.append(name)
    if not changed:
        return simulation, ()
    return dataclasses.replace(simulation, nodes=nodes), tuple(changed)


def note(names: tuple[str, ...]) -> tuple[str, ...]:
    """What the fit says of them."""
    if not names:
        return ()
    return (
        f"stepped from one stop or limit of current to the next: {', '.join(names)} "
        "(integrator 'exact' is taken there)",
    )


def _exact(motor: MotorNode) -> Node | None:
    """The motor with the exact integrator, None where it has it, needs it not or cannot have it."""
    if motor.integrator == "exact" or not (_has_stops(motor) or _has_limit(motor)):
        return None
    other = with_fields(motor, integrator="exact")
    return None if any(True for _ in other.value_problems()) else other


def _has_stops(motor: MotorNode) -> bool:
    return isinstance(motor.friction, Coulomb | Stribeck)


def _has_limit(motor: MotorNode) -> bool:
    limits = motor.limits
    given = limits is not None and (limits.current_a, limits.torque_n_m) != (None, None)
    return given and motor.friction is None
