"""Cells of two parameters: how many members are in each, and a figure's mean, least and largest.

Which cells there are is decided here, for the page too: a cell for each value where a parameter
has few of them, else even steps of its range, or of its logarithm.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mime.studies.report.table import Column, Table

MOST_VALUES = 24
"""Values that have a cell each."""
_MOST_CELLS, _FEWEST_CELLS = 20, 4
_MOST_NUMBERS = 1_500_000
"""Of all heat maps in a page."""


class Cells(NamedTuple):
    """The cells along one parameter."""

    values: tuple[float, ...]
    """One each; or none, and there are edges."""
    edges: tuple[float, ...]
    is_log: bool = False

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.values) or len(self.edges) - 1

    def of(self, x: np.ndarray) -> np.ndarray:
        """The cell of each number; the last one has both its edges."""
        if self.values:
            return np.searchsorted(np.array(self.values), x)
        inside = np.searchsorted(np.array(self.edges), x, side="right") - 1
        return np.clip(inside, 0, self.number - 1)

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        if self.values:
            return {"values": list(self.values)}
        return {"edges": list(self.edges), "log": self.is_log}


def cells_of(column: Column, most: int = _MOST_CELLS) -> Cells:
    """The cells of a parameter."""
    values = np.unique(column.values)
    if column.words or len(values) <= min(MOST_VALUES, max(most, 2)):
        return Cells(tuple(values.tolist()), ())
    count = int(np.clip(np.sqrt(len(column.values)) / 2, _FEWEST_CELLS, most))
    is_log = column.is_log and bool(values[0] > 0)
    spaced = np.geomspace if is_log else np.linspace
    edges = spaced(values[0], values[-1], count + 1)
    edges[[0, -1]] = values[[0, -1]]  # a logarithm rounds
    return Cells((), tuple(edges.tolist()), is_log)


def all_cells(table: Table, is_part: bool) -> dict[str, Cells]:
    """The cells of all parameters: fewer where the page must hold the maps of many."""
    parameters = table.parameters
    pairs = len(parameters) * (len(parameters) - 1) // 2
    most = _MOST_CELLS
    if is_part and pairs:
        each = _MOST_NUMBERS / (pairs * (1 + 3 * len(table.figures)))
        most = int(np.clip(np.sqrt(each), _FEWEST_CELLS, _MOST_CELLS))
    return {column.name: cells_of(column, most) for column in parameters}


class Map(NamedTuple):
    """Heat maps of two parameters."""

    x: str
    y: str
    members: np.ndarray
    """(y, x) how many."""
    figures: dict[str, np.ndarray]
    """(3, y, x) mean, least and largest; NaN where no member has a value."""


def maps(table: Table, cells: dict[str, Cells]) -> Iterator[Map]:
    """Of every two parameters, over all members."""
    inside = {column.name: cells[column.name].of(column.values) for column in table.parameters}
    names = list(inside)
    for place, x in enumerate(names):
        for y in names[place + 1 :]:
            width, height = cells[x].number, cells[y].number
            cell = inside[y] * width + inside[x]
            shape = height, width
            count = np.bincount(cell, minlength=width * height).reshape(shape)
            found = {
                column.name: reduced(cell, column.values, width * height).reshape(3, *shape)
                for column in table.figures
            }
            yield Map(x, y, count, found)


def reduced(cell: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(3, cell) mean, least and largest of the values that are there."""
    there = ~np.isnan(values)
    at, y = cell[there], values[there]
    number = np.bincount(at, minlength=count)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(at, y, count) / np.where(number, number, np.nan)
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, at, y)
    np.maximum.at(largest, at, y)
    return np.where(number, np.stack([mean, least, largest]), np.nan)
