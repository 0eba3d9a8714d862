"""Limits that a run keeps an eye on, whatever is recorded: how far beyond, and when first.

A node says by `monitors()` which of its values should stay within which limits. A run carries what
it has seen of them in the simulation's state, so that checkpoints and batches carry it too; where
no node has a monitor, nothing of this is in the program.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

ROUNDING = 1e-6
"""Of a limit: a value that is held at its limit may pass it by its own rounding."""


@dataclasses.dataclass(frozen=True)
class Monitor:
    """A value that should stay below its limit."""

    read: Callable[[Any, Any], Array]
    """The value, (n,) or a scalar, from the state after a step and the inputs of the step."""
    limit: Any
    unit: str
    what: str
    """In words: "velocity"."""
    entries: tuple[str, ...] = ()
    """What each of the n values belongs to: "joint 'elbow'"; nothing for a scalar."""
    sign: int = 1
    """-1 for a lower limit: `read` and `limit` are then minus what is told."""


class Seen(NamedTuple):
    """What a run has seen of a monitor, an entry each."""

    peak: Any
    """The largest value after the steps that left some value beyond its limit."""
    first: Any
    """The first step after which it was beyond its limit; -1 when none was."""


SeenByNode = dict[str, dict[str, Seen]]


@dataclasses.dataclass(frozen=True)
class LimitExceeded:
    """A value went beyond its limit in a run."""

    node: str
    what: str
    entry: str
    value: float
    """The worst one."""
    limit: float
    unit: str
    time_s: float
    """Seconds, of the first step after which it was beyond."""
    member: int | None = None
    """Of a batch."""

    def __str__(self) -> str:
        where = f" of {self.entry}" if self.entry else ""
        who = "" if self.member is None else f"member {self.member}: "
        meant = math.radians(self.value)
        turns = self.unit == "rad" and abs(self.value) > 2 * math.pi
        degrees = f". If {self.value:g} is in degrees, write {meant:.5g} rad" if turns else ""
        return (
            f"{who}{self.node}: the {self.what}{where} reaches {self.value:.4g} {self.unit}, its "
            f"limit is {self.limit:.4g} {self.unit}; first beyond it at t = {self.time_s:g} s"
            f"{degrees}"
        )


def unseen(nodes: Mapping[str, Any]) -> SeenByNode:
    """What a run has seen before its first step."""
    found: SeenByNode = {}
    dtype = jnp.result_type(float)
    for name, node in nodes.items():
        for key, monitor in node.monitors().items():
            shape = (len(monitor.entries),) if monitor.entries else ()
            peak = np.full(shape, -np.inf, dtype)
            first = np.full(shape, -1, np.int32)
            found.setdefault(name, {})[key] = Seen(peak, first)
    return found


def look(nodes: Mapping[str, Any], seen: SeenByNode, states: Any, inputs: Any, step: Any) -> Any:
    """What has been seen after one more step; traced.

    A step in which all keep their limits costs one comparison for each value, and one branch.
    """
    values: dict[str, dict[str, Array]] = {}
    beyond: dict[str, dict[str, Array]] = {}
    for name, earlier in seen.items():
        monitors = nodes[name].monitors()
        given = nodes[name].complete_inputs(inputs[name])
        for key, old in earlier.items():
            x = jnp.asarray(monitors[key].read(states[name], given), old.peak.dtype)
            values.setdefault(name, {})[key] = x
            beyond.setdefault(name, {})[key] = x > _least_excess(monitors[key], x.dtype)

    def note() -> SeenByNode:
        return {
            name: {key: _noted(old, values[name][key], beyond[name][key], step)
                   for key, old in earlier.items()}
            for name, earlier in seen.items()
        }  # fmt: skip

    somewhere = jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(beyond)]).any()
    return jax.lax.cond(somewhere, note, lambda: jax.tree.map(jnp.asarray, seen))


def _noted(old: Seen, value: Any, beyond: Any, step: Any) -> Seen:
    first = jnp.where((old.first < 0) & beyond, step, old.first)
    return Seen(jnp.maximum(old.peak, value), first)


def _least_excess(monitor: Monitor, dtype: Any) -> Any:
    limit = monitor.limit
    if isinstance(limit, np.ndarray | float):
        return np.asarray(limit + ROUNDING * np.abs(limit), dtype)
    return jnp.asarray(limit + ROUNDING * jnp.abs(limit), dtype)


def exceeded(
    nodes: Mapping[str, Any], seen: SeenByNode, timestep: float
) -> Iterator[LimitExceeded]:
    """Every limit that was passed; a batch has its members first in every array."""
    for name, found in seen.items():
        if not any((np.asarray(its.first) >= 0).any() for its in found.values()):
            continue
        for key, monitor in nodes[name].monitors().items():
            arrays = [np.asarray(x) for x in found[key]]
            single = arrays[0].ndim == (1 if monitor.entries else 0)
            limits = np.ravel(monitor.limit)
            peak, first = (x.reshape(1 if single else len(x), -1) for x in arrays)
            for member, i in zip(*np.nonzero(first >= 0), strict=True):
                yield LimitExceeded(
                    name,
                    monitor.what,
                    monitor.entries[i] if monitor.entries else "",
                    monitor.sign * float(peak[member, i]),
                    monitor.sign * float(limits[i]),
                    monitor.unit,
                    float(first[member, i]) * timestep,
                    None if single else int(member),
                )
