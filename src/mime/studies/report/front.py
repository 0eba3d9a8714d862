"""Pareto's front: the members that no other one beats in two columns at once.

    m is on the front when no other member has x <= x_m and y <= y_m with one of them smaller

(signs turned where larger is better). Sorted by x, then y, these are the members whose y is below
all of those before, and their equals.
"""

from collections.abc import Iterator

import numpy as np

from mime.studies.report.table import Column, Table

_MOST = 500
"""Members of one front that are kept for a page that holds a part of them."""


def front(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(member,) whether a member is on the front of small x and small y; NaN is not."""
    there = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    order = there[np.lexsort((y[there], x[there]))]
    return _chosen(x, y, order)


def fronts(table: Table) -> np.ndarray:
    """Members on a front of a figure with another column, whichever direction is better; of those
    that may be best.
    """
    eligible = table.eligible
    figures = table.figures
    others = [column for column in table.columns if not column.words]
    found: list[np.ndarray] = [np.empty(0, int)]
    for column in others:
        for order in _sorted(column, eligible):
            for figure in figures:
                if figure is column:
                    continue
                for sign in (1.0, -1.0):
                    y = sign * figure.values
                    own = order[~np.isnan(y[order])]
                    found.append(np.flatnonzero(_first_below(y, own))[:_MOST])
    return np.unique(np.concatenate(found))


def _sorted(column: Column, eligible: np.ndarray) -> Iterator[np.ndarray]:
    """Members by growing and by falling value."""
    there = np.flatnonzero(eligible & ~np.isnan(column.values))
    order = there[np.argsort(column.values[there], kind="stable")]
    yield order
    yield order[::-1]


def _first_below(y: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(member,) whether y is below that of all members before it in an order."""
    least = np.minimum.accumulate(y[order])
    before = np.concatenate([[np.inf], least[:-1]])[: len(order)]
    chosen = np.zeros(len(y), bool)
    chosen[order[y[order] < before]] = True
    return chosen


def _chosen(x: np.ndarray, y: np.ndarray, order: np.ndarray) -> np.ndarray:
    chosen = _first_below(y, order)
    on = np.flatnonzero(chosen[order])
    if len(on):
        last = order[on[np.searchsorted(on, np.arange(len(order)), side="right") - 1]]
        same = (x[order] == x[last]) & (y[order] == y[last])
        chosen[order[same]] = True
    return chosen
