"""Figures of merit of a batch: one number a member of all its samples, as those of a run are.

A few members at a time, on as many threads as there are cores: what is computed on the way then
stays in the processor's cache. A member's figure has the same bits for any block and any number of
threads, since it is made of its own samples alone.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mime.running.trajectory import Trajectory
from mime.scenarios.fields import split_field
from mime.scenarios.merits import Merit, of_members

_BLOCK_BYTES = 2**20
"""Of one field: with a copy of it, it fits in the cache of one core."""


def figures(
    merits: Sequence[Merit], batch: Trajectory, threads: int | None
) -> dict[str, np.ndarray]:
    """(member,) each, by name; NaN of a member that left the finite numbers."""
    size = batch.batch_size or 1
    rows = max(_BLOCK_BYTES // (8 * max(len(batch.time), 1)), 1)
    units = [batch.units[node][field] for node, field, _ in (split_field(m.field) for m in merits)]
    found = {merit.name: np.empty(size) for merit in merits}

    def take(first: int) -> None:
        part = slice(first, first + rows)
        fields = {
            node: {field: values[part] for field, values in given.items()}
            for node, given in batch.fields.items()
        }
        for merit, unit in zip(merits, units, strict=True):
            found[merit.name][part] = of_members(merit, batch.time, fields, unit)

    firsts, most = range(0, size, rows), threads or os.cpu_count() or 1
    if min(len(firsts), most) == 1:
        for first in firsts:
            take(first)
    else:
        with ThreadPoolExecutor(most) as pool:
            list(pool.map(take, firsts))
    for values in found.values():
        values[list(batch.diverged)] = np.nan
    return found
