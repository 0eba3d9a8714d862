"""Experiments that can be simulated side by side, as elements of one batch.

They have the same period, inputs, sensors and settings by name, and lengths within a quarter of
the longest. Shorter ones go on with their last inputs; what they read then has no row.
"""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mime.fitting.experiment import Experiment

_SHORTEST = 0.8
"""Of the longest of a group: what is simulated beyond the end of an experiment is lost."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Experiments of one kind."""

    members: tuple[int, ...]
    """Their numbers, in order."""
    intervals: int
    """Of the longest."""


def groups_of(experiments: Sequence[Experiment]) -> tuple[Group, ...]:
    """All experiments, each in one group."""
    longest_first = sorted(range(len(experiments)), key=lambda i: -experiments[i].intervals)
    found: dict[Hashable, list[list[int]]] = {}
    for i in longest_first:
        same = found.setdefault(_kind(experiments[i]), [])
        least = _SHORTEST * experiments[same[-1][0]].intervals if same else np.inf
        if experiments[i].intervals >= least:
            same[-1].append(i)
        else:
            same.append([i])
    groups = [group for same in found.values() for group in same]
    return tuple(
        Group(tuple(sorted(group)), experiments[group[0]].intervals)
        for group in sorted(groups, key=min)
    )


def _kind(e: Experiment) -> Hashable:
    """What experiments of a group share."""
    sensors = tuple((s.field, s.place.node, s.place.name, s.place.index) for s in e.sensors)
    return e.period_s, e.is_uniform, tuple(e.settings), frozenset(e.driven), sensors


def rows_of(experiments: Sequence[Experiment], group: Group) -> list[np.ndarray]:
    """Positions of the rows of each sensor, (members, rows); shorter ones repeat their last."""
    sensors = zip(*(experiments[i].sensors for i in group.members), strict=True)
    return [_padded([s.positions for s in same]) for same in sensors]


def _padded(columns: Sequence[np.ndarray]) -> np.ndarray:
    rows = max(map(len, columns))
    return np.stack([np.pad(column, (0, rows - len(column)), "edge") for column in columns])


def stacked(inputs: Sequence[Any], steps: int) -> dict[str, dict[str, Any]]:
    """Inputs of every step with an axis of experiments in front; shorter ones hold their last."""

    def one(values: Any) -> Any:
        missing = ((0, steps - len(values)), *((0, 0),) * (np.ndim(values) - 1))
        return (jnp if hasattr(values, "aval") else np).pad(values, missing, "edge")

    return {
        node: {
            field: _stack([one(each[node][field]) for each in inputs]) for field in inputs[0][node]
        }
        for node in inputs[0]
    }


def _stack(columns: Sequence[Any]) -> Any:
    is_traced = any(hasattr(column, "aval") for column in columns)
    return (jnp if is_traced else np).stack(columns)
