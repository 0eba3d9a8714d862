"""What a trajectory says of its run: units, times and parameters; and how large its buffers are."""

import math
import os
from collections.abc import Mapping

import jax
import numpy as np

from mime.core.node import Node
from mime.core.problem import InputError
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


def check_memory(records: int, sample: int, members: int = 1) -> None:
    """Refuse a run whose samples do not fit in the memory that is free, before it starts."""
    needed = records * sample * members
    if needed > _SURELY_THERE and needed > (free := _free_bytes()):
        times = math.ceil(needed / (0.5 * free))
        raise InputError(
            f"record: {records:,} samples of {sample * members:,} bytes take {needed / 1e9:.3g} "
            f"GB, and {free / 1e9:.3g} GB of memory are free. Record every {times}-th step "
            f"(every={times}), or name fewer fields (record=['node.field'], or record=() for the "
            "final state alone)",
            place=("record",),
        )


_SURELY_THERE = 2**26
"""Bytes below which nobody asks the operating system."""


def _free_bytes() -> float:
    """Memory that could be had now; infinite where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            entries = dict(line.split(":", 1) for line in file)
        return 1024.0 * int(entries["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return math.inf


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
