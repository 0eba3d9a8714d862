"""What a run records: which fields of which nodes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mime.core.node import Node
from mime.core.spec import InputError
from mime.core.text import nearest, quoted

Recorded = Mapping[str, Sequence[str]] | Iterable[str] | None
"""`None` (all fluxes and observable states), `{"rotor": ["current"]}` or `["rotor.current"]`."""

Selection = tuple[tuple[str, tuple[str, ...]], ...]
"""`(node, fields)` pairs: the checked form, hashable."""

GROUP_FIELDS = {"iterations": "1", "residual": "1"}
"""What is recorded of a coupling group, with units."""


def select(nodes: Mapping[str, Node], groups: Sequence[str], record: Recorded) -> Selection:
    """Check what shall be recorded. A name that nobody has is refused."""
    if record is None:
        defaults = [(name, default_fields(node)) for name, node in nodes.items()]
        return (*defaults, *((group, tuple(GROUP_FIELDS)) for group in groups))
    chosen: dict[str, list[str]] = {}
    if isinstance(record, Mapping):
        chosen = {name: list(fields) for name, fields in record.items()}
    else:
        for entry in record:
            name, _, field = entry.rpartition(".")
            chosen.setdefault(name, []).append(field)
    for name, fields in chosen.items():
        if name not in nodes and name not in groups:
            known = [*nodes, *groups]
            raise InputError(
                f"record: no node {name!r}{nearest(name, known)} ({quoted(known)}); "
                "write 'node.field' or {'node': ['field']}"
            )
        known_fields = [*GROUP_FIELDS] if name in groups else list(field_specs(nodes[name]))
        for field in fields:
            if field not in known_fields:
                raise InputError(
                    f"record: {name!r} has no field {field!r}{nearest(field, known_fields)} "
                    f"({quoted(known_fields)})"
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
    state: Any,
    fluxes: Mapping[str, Mapping[str, Any]],
    inputs: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
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


def labels(
    nodes: Mapping[str, Node], selection: Selection
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Units and descriptions of the recorded fields."""
    units: dict[str, dict[str, str]] = {}
    descriptions: dict[str, dict[str, str]] = {}
    for name, fields in selection:
        if name in nodes:
            specs = field_specs(nodes[name])
            units[name] = {field: specs[field].unit for field in fields}
            descriptions[name] = {field: specs[field].description for field in fields}
        else:
            units[name] = {field: GROUP_FIELDS[field] for field in fields}
            descriptions[name] = {field: f"coupling group: {field}" for field in fields}
    return units, descriptions


def parameter_values(nodes: Mapping[str, Node]) -> dict[str, dict[str, np.ndarray]]:
    """All numeric parameters, by node; those inside a nested module by their dotted name."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, node in nodes.items():
        found[name] = {}
        for parameter, value in node.params.items():
            for path, leaf in jax.tree_util.tree_leaves_with_path(value):
                inside = jax.tree_util.keystr(path, simple=True, separator=".")
                found[name][".".join(filter(None, (parameter, inside)))] = np.asarray(leaf)
    return found


def sample_bytes(nodes: Mapping[str, Node], selection: Selection) -> int:
    """Bytes that one sample takes, for sizing buffers."""
    shapes = [
        field_specs(nodes[name])[field].shape if name in nodes else ()
        for name, fields in selection
        for field in fields
    ]
    return 8 * sum(math.prod(shape) for shape in shapes)


def buffer_capacity(sample_size: int, records: int, size: int, fewest: int, most: int) -> int:
    """Samples of `sample_size` bytes that a chunk of a run of `records` has room for.

    A power of two where the run decides it: runs of similar length share one program. Half of the
    run will do, since the first chunks are short and each of them clears the whole buffer.
    """
    if sample_size == 0:
        return 2**30
    wanted = 2 ** (records // 2).bit_length()
    return max(1, min(max(wanted, fewest), most, size // sample_size))


def sample_times(first: int, every: int, records: int, timestep: float) -> np.ndarray:
    """Seconds of the samples after step `first`, `every` steps apart."""
    times = np.arange(first + every, first + every * records + 1, every, dtype=float)
    times *= timestep
    return times
