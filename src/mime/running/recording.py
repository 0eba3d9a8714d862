"""What a trajectory says of its run: units, times and parameters; and how large its buffers are."""

import math
from collections.abc import Mapping

import jax
import numpy as np

from mime.core.node import Node
from mime.core.recorder import GROUP_FIELDS, Selection, field_specs


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
    """All numeric parameters, by node; those of effects and nested modules by dotted name."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, node in nodes.items():
        found[name] = {}
        effects = {effect: getattr(node, effect) for effect in node.effect_types()}
        for parameter, value in {**node.params, **effects}.items():
            for path, leaf in jax.tree_util.tree_leaves_with_path(value):
                inside = jax.tree_util.keystr(path, simple=True, separator=".")
                found[name][".".join(filter(None, (parameter, inside)))] = np.asarray(leaf)
    return found


def sample_bytes(nodes: Mapping[str, Node], selection: Selection) -> int:
    """Bytes that one sample takes, for sizing buffers."""
    entries = 0
    for name, fields in selection:
        specs = field_specs(nodes[name]) if name in nodes else {}
        entries += sum(math.prod(specs[field].shape) if specs else 1 for field in fields)
    return 8 * entries


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
