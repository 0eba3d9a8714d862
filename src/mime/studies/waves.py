"""Inputs over time whose numbers vary from member to member, as lanes of one batch.

    u_m(t) = u(t; a_m, f_m, ...)

A waveform is a function of time whose numbers are arguments of the compiled program, so members
differ in these alone.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.problem import InputError
from mime.core.signals import OfMembers
from mime.running.simulation import Simulation
from mime.scenarios.validation import first_problem
from mime.scenarios.waveforms import Waveform


def of_members(waveform: Waveform, base: Any, numbers: Mapping[str, Any]) -> Any:
    """The waveform with columns of numbers by key, a function of time for each member; or with
    numbers of one member, which may be traced.

    base    the waveform's own function of time: its shape and precision
    """
    with jax.enable_x64(True):  # whatever the precision of its numbers
        size = jax.eval_shape(base, 0.0).shape
    if not any(np.ndim(column) for column in numbers.values()):
        return waveform.with_numbers(numbers, size)
    with jax.enable_x64(True):  # as a single table's numbers are computed, and then rounded
        exact = jax.vmap(lambda own: waveform.with_numbers(own, size))(
            {key: jnp.asarray(column, float) for key, column in numbers.items()}
        )
        return OfMembers(jax.tree.map(lambda x, like: x.astype(like.dtype), exact, base))


def spread(column: Any, size: tuple[int, ...]) -> Any:
    """Numbers of members, (member,), or one, for all components of an input."""
    if not size:
        return column
    if not np.ndim(column):
        return jnp.broadcast_to(column, size)
    return np.broadcast_to(np.reshape(column, (-1, *[1] * len(size))), (len(column), *size))


def check(
    waveform: Waveform,
    node: str,
    field: str,
    numbers: Mapping[str, np.ndarray],
    simulation: Simulation,
) -> None:
    """Refuse numbers that the waveform's table would not take, or that lead to where what the input
    is meant for cannot go.
    """
    size = simulation.nodes[node].boundary_input_spec()[field].shape
    for member in telling(list(numbers.values())):
        own = {key: float(column[member]) for key, column in numbers.items()}
        table = {**waveform.model_dump(), **own}
        if (found := first_problem(type(waveform), table)) is not None:
            place, words = found
            at = ("inputs", node, field, *place)
            words = f"{'.'.join(map(str, at))} {words} for member {member}"
            raise InputError(words, place=at)
        for values in waveform.model_copy(update=own).extremes(size).values():
            simulation.check_goal(node, field, values, f" of member {member}")


def telling(columns: list[np.ndarray]) -> list[int]:
    """Members that break what any does: limits of a column, and of two columns' sum or difference.

    They are where each of these is least and largest.
    """
    pairs = list(itertools.combinations(columns, 2))
    sums = [*columns, *(a + b for a, b in pairs), *(a - b for a, b in pairs)]
    ends = [(int(np.argmin(each)), int(np.argmax(each))) for each in sums]
    return sorted({member for both in ends for member in both})
