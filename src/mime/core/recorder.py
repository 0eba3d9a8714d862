"""What a run keeps: which fields of which nodes, and how they are read off a step."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from mime._text import nearest, quoted
from mime.core.arguments import texts
from mime.core.monitor import look
from mime.core.node import Node, traced_fluxes
from mime.core.problem import InputError
from mime.core.step import SimulationState
from mime.core.wiring import Wiring

Recorded = Mapping[str, Iterable[str]] | Sequence[str] | None
"""`None` (all fluxes, observable states and inputs that are seen in a picture),
`{"rotor": ["current"]}` or `["rotor.current"]`.
"""

Selection = tuple[tuple[str, tuple[str, ...]], ...]
"""`(node, fields)` pairs: the checked form, hashable."""

Outputs = dict[str, dict[str, Array]]
"""`outputs[node][field]`: the recorded values of one step, or of many along a leading axis."""

StepResult = tuple[SimulationState, dict[str, Any], dict[str, Any]]
"""What `advance` gives: the state after a step, the fluxes and the inputs of every node."""

GROUP_FIELDS = {"iterations": "1", "residual": "1"}
"""What is recorded of a coupling group, with units."""


@dataclasses.dataclass(frozen=True)
class Recorder:
    """How the recorded values of a step are found: at once, or from what the step was given."""

    watched: tuple[str, ...]
    """Nodes of which something is recorded."""
    of_step: Callable[[SimulationState, Any, Any], Outputs]
    """Read them off the state after a step, its fluxes and its inputs."""
    of_inputs: Callable[[SimulationState, Any], Outputs]
    """Compute them from the state and the watched inputs: steps between need no fluxes."""
    watch: Callable[[StepResult], StepResult]
    """Look at the nodes' monitors after a step: the result with what is then seen of them."""

    def keep(self, result: StepResult) -> tuple[SimulationState, dict[str, Any]]:
        """The state, and the inputs that `of_inputs` will ask for."""
        state, _, given = result
        return state, {name: jax.tree.map(jnp.asarray, given[name]) for name in self.watched}

    def no_inputs(
        self, step: Callable[[SimulationState], StepResult], state: SimulationState
    ) -> dict[str, Any]:
        """Zeros in the structure of the watched inputs, to start a loop with."""
        shapes = jax.eval_shape(lambda s: self.keep(step(s))[1], state)
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def recorder(nodes: Mapping[str, Node], wiring: Wiring, selection: Selection) -> Recorder:
    """The recorder of one graph."""
    watched = tuple(name for name, _ in selection if name in nodes)

    def of_step(state: SimulationState, fluxes: Any, inputs: Any) -> Outputs:
        return observe(nodes, selection, state, fluxes, inputs)

    def of_inputs(state: SimulationState, inputs: Any) -> Outputs:
        fluxes = {}
        for name in watched:
            node = nodes[name]
            slow = wiring.period(name) > 1
            fluxes[name] = (
                state.held[name]
                if slow
                else traced_fluxes(node, state.nodes[name], inputs[name], node.timestep)
            )
        return observe(nodes, selection, state, fluxes, inputs)

    def watch(result: StepResult) -> StepResult:
        state, fluxes, inputs = result
        if not state.seen:
            return result
        seen = look(nodes, state.seen, state.nodes, inputs, state.step)
        return dataclasses.replace(state, seen=seen), fluxes, inputs

    return Recorder(watched, of_step, of_inputs, watch)


def select(
    nodes: Mapping[str, Node],
    groups: Sequence[str],
    record: Recorded,
    seen: Sequence[tuple[str, str]] = (),
) -> Selection:
    """Check what shall be recorded. A name that nobody has is refused.

    `seen`: inputs that are recorded by default too.
    """
    if record is None:
        inputs = {name: [field for at, field in seen if at == name] for name in nodes}
        defaults = [(name, (*default_fields(node), *inputs[name])) for name, node in nodes.items()]
        return (*defaults, *((group, tuple(GROUP_FIELDS)) for group in groups))
    chosen: dict[str, list[str]] = {}
    if isinstance(record, Mapping):
        chosen = {str(name): texts(f"record[{name!r}]", fields) for name, fields in record.items()}
    else:
        for entry in texts("record", record):
            name, _, field = entry.rpartition(".")
            chosen.setdefault(name, []).append(field)
    for name, fields in chosen.items():
        if name not in nodes and name not in groups:
            known = [*nodes, *groups]
            raise InputError(
                f"record: no node {name!r}{nearest(name, known)} ({quoted(known)}); "
                "write 'node.field' or {'node': ['field']}",
                place=("record", name),
            )
        known_fields = [*GROUP_FIELDS] if name in groups else list(field_specs(nodes[name]))
        for field in fields:
            if field not in known_fields:
                raise InputError(
                    f"record: {name!r} has no field {field!r}{nearest(field, known_fields)} "
                    f"({quoted(known_fields)})",
                    place=("record", name, field),
                )
    return tuple((name, tuple(dict.fromkeys(fields))) for name, fields in sorted(chosen.items()))


def default_fields(node: Node) -> tuple[str, ...]:
    """All fluxes, then the observable states that are not among them."""
    return tuple(dict.fromkeys([*node.boundary_flux_spec(), *node.observable_fields()]))


def field_specs(node: Node) -> dict[str, Any]:
    """Everything recordable of a node: fluxes, then states, then inputs, where a name is shared."""
    return {**node.boundary_input_spec(), **node.state_spec(), **node.boundary_flux_spec()}


def observe(
    nodes: Mapping[str, Node],
    selection: Selection,
    state: SimulationState,
    fluxes: Mapping[str, Mapping[str, Any]],
    inputs: Mapping[str, Mapping[str, Any]],
) -> Outputs:
    """The recorded values after a step."""
    recorded: dict[str, dict[str, Any]] = {}
    for name, fields in selection:
        if name in nodes:
            values = {**state.nodes[name], **fluxes.get(name, {})}
            wanted = [field for field in fields if field not in values]
            if wanted:
                complete = nodes[name].complete_inputs(inputs.get(name, {}))
                values = {**complete, **values}
        else:
            report = state.coupling[name]
            values = {"iterations": report.iterations, "residual": report.residual}
        recorded[name] = {field: values[field] for field in fields}
    return recorded
