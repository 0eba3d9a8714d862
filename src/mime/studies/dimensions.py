"""Where a search looks: a number for each dimension, from the axes of a study.

    range    {uniform = [a, b]}, {loguniform = [a, b]}, triangular, normal between two ends
    whole    {integers = [a, b]}
    entries  a list, a grid, {choice = [...]}, lists that are zipped: one entry of them

A point has a value for each dimension; its columns are those of a member, with what follows from
others (`equals`).
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from mime.core.problem import InputError
from mime.studies.axes import AnyAxis, Draw, Equals, column_of
from mime.studies.expression import names_in, traced
from mime.studies.space import Columns, allowed, followed, zipped_groups

Kind = Literal["linear", "log", "whole", "entries"]


@dataclasses.dataclass(frozen=True)
class Dimension:
    """One direction of a search."""

    names: tuple[str, ...]
    """The parameter; several where lists are zipped."""
    kind: Kind
    low: float
    high: float
    """Ends, both included; of entries, the places of the first and the last."""
    entries: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @property
    def size(self) -> float:
        """How many values it has."""
        discrete = self.kind in ("whole", "entries")
        return self.high - self.low + 1 if discrete else math.inf

    @property
    def is_ordered(self) -> bool:
        """False for words, and for lists side by side: a neighbour says nothing."""
        columns = list(self.entries.values())
        return len(columns) < 2 and all(column.dtype != object for column in columns)

    def columns(self, values: np.ndarray) -> Columns:
        """The parameters at some values."""
        if self.kind != "entries":
            return {self.names[0]: np.asarray(values, float)}
        places = np.asarray(values).astype(int)
        return {name: column[places] for name, column in self.entries.items()}

    def at(self, u: np.ndarray) -> np.ndarray:
        """Values from coordinates between 0 and 1: straight, or along the logarithm."""
        if self.kind == "log":
            values = self.low * np.exp(u * math.log(self.high / self.low))
        else:
            values = self.low + u * (self.high - self.low)
        return np.clip(values, self.low, self.high)

    def slope(self, values: np.ndarray) -> np.ndarray:
        """dx/du"""
        if self.kind == "log":
            return values * math.log(self.high / self.low)
        return np.full_like(values, self.high - self.low)


@dataclasses.dataclass(frozen=True)
class Space:
    """All dimensions, and what is between them."""

    dimensions: tuple[Dimension, ...]
    axes: Mapping[str, AnyAxis]
    constraints: tuple[str, ...]

    @property
    def size(self) -> float:
        """How many members there are in all, those that constraints leave out included."""
        return math.prod(dimension.size for dimension in self.dimensions)

    @property
    def free(self) -> list[int]:
        """The places of dimensions with more than one value."""
        return [place for place, d in enumerate(self.dimensions) if d.size > 1]

    def columns(self, points: np.ndarray) -> Columns:
        """The members at (member, dimensions) values."""
        found: Columns = {}
        for dimension, values in zip(self.dimensions, points.T, strict=True):
            found |= dimension.columns(values)
        found = followed(found, self.axes)
        return {name: found[name] for name in self.axes}

    def traced(self, point: Any) -> dict[str, Any]:
        """Numbers of one member at a point that JAX traces; entries stay where they are."""
        found: dict[str, Any] = {}
        for place, dimension in enumerate(self.dimensions):
            if dimension.kind == "entries":
                found |= {name: column[0] for name, column in dimension.entries.items()}
            else:
                found[dimension.names[0]] = point[place]
        left = {name: axis.equals for name, axis in self.axes.items() if isinstance(axis, Equals)}
        while left:
            name = next(n for n, text in left.items() if not names_in(text) & left.keys())
            found[name] = traced(left.pop(name), found)
        return found

    def allowed(self, columns: Columns) -> np.ndarray:
        """(member,): which of them the constraints between parameters leave in."""
        return allowed(columns, self.constraints)

    def middle(self) -> np.ndarray:
        """A point in the middle of all ranges, at the first of all entries."""
        half = np.array(0.5)
        return np.array(
            [
                d.low
                if d.kind == "entries"
                else round(0.5 * (d.low + d.high))
                if d.kind == "whole"
                else float(d.at(half))
                for d in self.dimensions
            ]
        )

    def corners(self) -> np.ndarray:
        """The middle, with each dimension at its ends in turn."""
        points = []
        for place, dimension in enumerate(self.dimensions):
            for end in (dimension.low, dimension.high):
                point = self.middle()
                point[place] = end
                points.append(point)
        return np.array(points)

    def every(self, places: Sequence[int]) -> np.ndarray:
        """All points of some dimensions that have finitely many, the others in the middle."""
        lists = []
        for place, dimension in enumerate(self.dimensions):
            one = [float(self.middle()[place])]
            whole = np.arange(dimension.low, dimension.high + 1) if place in places else one
            lists.append(list(whole))
        return np.array(list(itertools.product(*lists)))


def space_of(
    axes: Mapping[str, AnyAxis], zipped: Sequence[Sequence[str]], constraints: Sequence[str]
) -> Space:
    """Dimensions of axes; an `InputError` for one without a range."""
    group_of = zipped_groups(axes, zipped)
    found: dict[tuple[str, ...], Dimension] = {}
    for name, axis in axes.items():
        if isinstance(axis, Equals):
            continue
        if isinstance(axis, Draw):
            found[(name,)] = _drawn(name, axis)
            continue
        names, column = group_of.get(name, (name,)), axis.column()
        entries = {**(found[names].entries if names in found else {}), name: column}
        if len({len(one) for one in entries.values()}) > 1:
            counts = ", ".join(f"{n}: {len(one)}" for n, one in entries.items())
            words = f"zipped parameters need as many values each ({counts})"
            raise InputError(words, place=("zip",))
        found[names] = Dimension(names, "entries", 0, len(column) - 1, entries)
    if not found:
        raise InputError("nothing varies: name a parameter", place=("vary",))
    return Space(tuple(found.values()), axes, tuple(constraints))


def _drawn(name: str, axis: Draw) -> Dimension:
    """The range of a distribution."""
    if axis.integers is not None:
        first, last = axis.integers
        return Dimension((name,), "whole", first, last)
    if axis.choice is not None:
        column = column_of(axis.choice)
        return Dimension((name,), "entries", 0, len(column) - 1, {name: column})
    log = axis.loguniform is not None or axis.lognormal is not None
    ends = axis.uniform or axis.loguniform or axis.triangular or axis.between
    if ends is None or (log and not ends[0] > 0):
        kind = "normal" if axis.normal is not None else "lognormal"
        raise InputError(
            f"{kind} has no range to search: the optimiser looks between two ends"
            f"{', both above 0' if log else ''}. Add between = [low, high], or write uniform or "
            "loguniform",
            place=("vary", name),
        )
    return Dimension((name,), "log" if log else "linear", ends[0], ends[-1])
