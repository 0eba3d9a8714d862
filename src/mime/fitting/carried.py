"""What a simulation of a whole log has at every row, where measured states are set at some of them.

At the start of each window the states that the log tells are set to what it tells; all others go on
as they are. So windows know the states that no sensor reads, and controllers keep their memory.
"""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.fitting.experiment import Experiment
from mime.fitting.model import Model, initial_state, record_of
from mime.fitting.parameters import assembled
from mime.fitting.rates import with_timestep
from mime.fitting.sampled import sampled_nodes
from mime.fitting.windows import Slot


@dataclasses.dataclass(frozen=True)
class Resets:
    """At which intervals of a log which states are set, and to what."""

    slots: tuple[Slot, ...]
    is_set: np.ndarray
    values: np.ndarray
    """Both (intervals, slots)."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A log simulated, at the start of every interval; and what its sensors read at the end."""

    nodes: dict[str, dict[str, np.ndarray]]
    held: dict[str, dict[str, np.ndarray]]
    """Of sampled nodes."""
    readings: list[np.ndarray]
    """Of every sensor."""


_programs: dict[Hashable, Any] = {}
_KEPT = 8


def carried(whole: Model, z: np.ndarray, resets: Sequence[Resets]) -> list[Run]:
    """Every log of a model of whole logs, with the states that are set."""
    key = whole.key, resets[0].slots
    if key not in _programs:
        _programs[key] = jax.jit(lambda z, data: _runs(whole, z, data, resets[0].slots))
        while len(_programs) > _KEPT:
            _programs.pop(next(iter(_programs)))
    data = {
        "of": whole.data,
        "is_set": [_stacked(g, [r.is_set for r in resets]) for g in whole.groups],
        "values": [_stacked(g, [r.values for r in resets]) for g in whole.groups],
    }
    made = jax.tree.map(np.asarray, _programs[key](z, data))
    found: list[Any] = [None] * len(whole.experiments)
    for g, of_group in zip(whole.groups, made, strict=True):
        for k, i in enumerate(g.members):
            found[i] = _member(of_group, k, whole.experiments[i].intervals)
    return found


def _member(of_group: Any, number: int, intervals: int) -> Run:
    """One log of a group, as long as it is."""
    return Run(*jax.tree.map(lambda x: x[number, :intervals], of_group))


def _stacked(group: Any, of_each: Sequence[np.ndarray]) -> np.ndarray:
    """Of the members of a group, as long as the longest."""
    chosen = [of_each[i] for i in group.members]
    return np.stack(
        [np.pad(x, ((0, group.intervals - len(x)), *((0, 0),) * (x.ndim - 1))) for x in chosen]
    )


def _runs(whole: Model, z: Any, data: Any, slots: tuple[Slot, ...]) -> list[Any]:
    values = [c.value(z[i]) for i, c in enumerate(whole.coordinates)]
    parameters = assembled(whole.simulation, whole.coordinates, values)
    of = data["of"]
    starts = whole.with_unknown_starts(of["starts"], values)
    found = []
    for number, g in enumerate(whole.groups):
        first = whole.experiments[g.members[0]]

        def run(
            start: Any, inputs: Any, own: Any, is_set: Any, wanted: Any, first: Any = first
        ) -> Any:
            return _run(whole, first, parameters, slots, start, inputs, own, is_set, wanted)

        found.append(
            jax.vmap(run)(
                starts[np.array(g.members)],
                of["inputs"][number],
                of["settings"][number],
                data["is_set"][number],
                data["values"][number],
            )
        )
    return found


def _run(
    whole: Model,
    first: Experiment,
    parameters: Any,
    slots: tuple[Slot, ...],
    start: Any,
    inputs: Any,
    own: Any,
    is_set: Any,
    wanted: Any,
) -> Any:
    steps, kept = whole.fineness, sampled_nodes(whole.simulation)
    simulation = with_timestep(whole.simulation, first.period_s / steps)
    of_log = dict(zip(first.settings, own, strict=True))
    simulation = simulation.with_parameters({**parameters, **of_log})
    record = record_of(first)

    def interval(state: Any, given: Any) -> Any:
        acting, is_now, values = given
        nodes = {name: dict(fields) for name, fields in state.nodes.items()}
        for j, (node, field, index) in enumerate(slots):
            now = nodes[node][field]
            value = jnp.where(is_now[j], values[j], now[index])
            nodes[node][field] = now.at[index].set(value)
        state = dataclasses.replace(state, nodes=nodes)
        after, recorded = simulation.rollout(state, acting, steps=steps, record=record, every=steps)
        held = {name: fields for name, fields in state.held.items() if name in kept}
        readings = [s.place.of(recorded[s.place.node][s.place.name])[0] for s in first.sensors]
        return after, (state.nodes, held, readings)

    by_interval = jax.tree.map(lambda x: x.reshape(-1, steps, *x.shape[1:]), inputs)
    state = simulation.init_state(initial_state(simulation, whole.slots, start))
    return jax.lax.scan(interval, state, (by_interval, is_set, wanted))[1]
