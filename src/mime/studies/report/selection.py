"""Which members a page holds. All, up to ten thousand; of more, a part that is told in words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mime.studies.report.front import fronts
from mime.studies.report.table import Table

MOST = 10_000
"""Members of a page: as many as it can brush while a finger moves."""
_MOST_DIVERGED = 500


class Selection(NamedTuple):
    """The members of a page."""

    members: np.ndarray
    """Their indices, sorted."""
    words: str
    """How they were chosen; nothing when they are all."""


def select(table: Table, wanted: Sequence[int] = (), most: int = MOST) -> Selection:
    """All members, or: those that are wanted, the ends of all columns, all fronts of two columns
    and diverged ones; then those at even steps of rank of each figure; then random ones.
    """
    size = table.size
    if size <= most:
        return Selection(np.arange(size), "")
    ends = [
        int(find(column.values))
        for column in table.columns
        if not np.isnan(column.values).all()
        for find in (np.nanargmin, np.nanargmax)
    ]
    named = np.array([*wanted, *ends, *list(table.diverged)[:_MOST_DIVERGED]], int)
    named = np.unique(np.concatenate([named, fronts(table)]))
    left = max(most - len(named), 0)
    ranked = [named]
    for column in table.figures:
        order = np.argsort(column.values, kind="stable")
        steps = np.linspace(0, size - 1, max(left // (2 * len(table.figures)), 1))
        ranked.append(order[steps.round().astype(int)])
    even = np.unique(np.concatenate(ranked))
    others = np.setdiff1d(np.arange(size), even, assume_unique=True)
    random = np.random.default_rng(0)
    drawn = random.choice(others, max(most - len(even), 0), replace=False)
    members = np.union1d(even, drawn)
    words = (
        f"{len(members):,} of {size:,} members are shown: the ends of all columns, all Pareto "
        f"fronts of a figure with another column, members at even steps of rank of each figure, "
        f"and {len(drawn):,} drawn at random. Counts, sensitivities, the heat maps of an unbrushed "
        "page and the CSV file are of all members"
    )
    return Selection(members, words)
