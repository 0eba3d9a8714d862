"""Steps of a fit: physics goes as finely as the log asks, what is sampled keeps its own rate.

A motor's equations hold at any step, so a finer one is only more exact. A controller that computes
once a millisecond and holds its command is another controller at a quarter of that: such nodes say
`is_sampled`, and fire at their own timestep while the physics between them takes finer steps.
"""

import dataclasses
import math
from collections.abc import Sequence

import jax
import numpy as np

from mime.core.problem import InputError
from mime.fitting.experiment import Experiment
from mime.fitting.sampled import FINEST as FINEST
from mime.fitting.sampled import KEPT as KEPT
from mime.fitting.sampled import SAMPLES as SAMPLES
from mime.fitting.sampled import is_whole
from mime.fitting.sampled import kept_every as kept_every
from mime.fitting.sampled import sampled_nodes as sampled_nodes
from mime.running.simulation import Simulation

COARSEST = 1000
"""Steps between two rows, at which a log is refused: its time is in another unit, most likely."""

STEP_ERROR = 0.03
"""What halving the steps may change, over the noise, before the fit takes finer ones; beyond the
finest the readings are extrapolated, if that halves the error at least."""


def undeclared_nodes(simulation: Simulation, timestep: float) -> tuple[str, ...]:
    """Nodes that do not say whether they are sampled, and would be stepped otherwise."""
    if np.isclose(timestep, simulation.timestep, rtol=1e-9, atol=0.0):
        return ()
    kept = sampled_nodes(simulation)
    nodes = simulation.nodes.items()
    return tuple(n for n, node in nodes if node.is_sampled is None and n not in kept)


def with_timestep(simulation: Simulation, timestep: float) -> Simulation:
    """The same graph, its physics in steps of another length; what is sampled keeps its rate."""
    if np.isclose(timestep, simulation.timestep, rtol=1e-9, atol=0.0):
        return simulation
    kept = sampled_nodes(simulation)
    _refuse_late_commands(simulation, kept, timestep)
    nodes, periods = {}, []
    for name, node in simulation.nodes.items():
        leaves, structure = jax.tree.flatten(node)
        nodes[name] = jax.tree.unflatten(structure, leaves)
        if name in kept:
            periods.append((name, round(node.timestep / timestep)))
        else:
            object.__setattr__(nodes[name], "timestep", timestep)
            periods.append((name, 1))
    wiring = dataclasses.replace(
        simulation.wiring, timestep=timestep, periods=tuple(sorted(periods))
    )
    return dataclasses.replace(simulation, nodes=nodes, wiring=wiring)


def first_fineness(simulation: Simulation, experiments: Sequence[Experiment]) -> int:
    """The fewest steps of an interval: a multiple of `SAMPLES`, no longer than the graph's own.

    Where all physics is one node with an exact integrator, as many as are kept: shorter ones would
    change nothing.

    Steps must divide the periods of what is sampled, too; an `InputError` says where none do, and
    where a row takes so many steps that the log's time must be meant otherwise.
    """
    longest = max(e.period_s for e in experiments)
    if round(longest / simulation.timestep) >= COARSEST:
        raise InputError(
            f"the log has a row every {longest:g} s, {longest / simulation.timestep:,.0f} steps of "
            f"the model ({simulation.timestep:g} s). Is its time in another unit (time_unit = "
            '"ms")? Else give the model a longer timestep'
        )
    fewest = SAMPLES * max(1, math.ceil(longest / simulation.timestep / SAMPLES - 1e-6))
    own = {name: simulation.nodes[name].timestep for name in sampled_nodes(simulation)}
    physics = [node for name, node in simulation.nodes.items() if name not in own]
    if len(physics) == 1 and getattr(physics[0], "integrator", None) == "exact":
        fewest = min(fewest, KEPT)
    for fineness in range(fewest, max(FINEST, fewest) + 1, SAMPLES):
        if all(is_whole(t * fineness / e.period_s) for t in own.values() for e in experiments):
            return fineness
    told = ", ".join(f"{name!r} every {step:g} s" for name, step in own.items())
    raise InputError(
        f"the log has a row every {longest:g} s, and what is sampled keeps its own rate ({told}): "
        f"no step divides both within {FINEST} steps a row. Resample the log, or give those nodes "
        "timesteps that are a multiple or a part of its period"
    )


def _refuse_late_commands(simulation: Simulation, kept: Sequence[str], timestep: float) -> None:
    """One step late is one sample in the graph as it is, and less with finer steps around it."""
    hint = (
        "wire what it reads with delay=True and what it commands without, as a controller that "
        f"runs first in each sample; or give the physics around it steps of {timestep:g} s yourself"
    )
    for group in simulation.wiring.groups:
        if inside := [name for name in group.members if name in kept]:
            raise InputError(
                f"{inside[0]!r} is sampled and iterated in the group {group.name!r}; a fit cannot "
                "step the others more finely. Take it out of the group"
            )
    for edge in simulation.wiring.edges:
        into, out = edge.target in kept, edge.source in kept
        if into and not out and not edge.delay:
            raise InputError(
                f"{edge.target!r} is sampled, and reads {edge.source}.{edge.source_field} at the "
                f"end of the step: with finer steps around it that is another time. For a fit "
                f"{hint}"
            )
        if out and not into and edge.delay:
            raise InputError(
                f"{edge.source!r} is sampled, and {edge.target}.{edge.target_field} gets its value "
                f"one step late: with finer steps around it that is less than a sample. For a fit "
                f"{hint}"
            )
