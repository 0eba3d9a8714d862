"""What is measured: a piece of work that we and others can do, or a single figure of ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Work = Callable[[], Any]
"""Does the work once and returns its result, for comparison."""


def relative_difference(ours: Any, theirs: Any) -> float:
    """max |ours - theirs| / max |theirs|"""
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    if a.shape != b.shape:
        raise ValueError(f"results have shapes {a.shape} and {b.shape}")
    return float(np.max(np.abs(a - b)) / max(float(np.max(np.abs(b))), np.finfo(float).tiny))


@dataclass(frozen=True)
class Peer:
    """Another way to do the work. `build` imports what it needs, so that it may be missing."""

    name: str
    build: Callable[[], Work]
    tolerance: float
    target: float | None = None
    """Largest ours / theirs that is good enough."""
    agree: Callable[[Any, Any], float] = relative_difference


@dataclass(frozen=True)
class Place:
    """Where a case's times stand in a plot."""

    plot: str
    panel: str
    x: float
    x_label: str
    linear: bool = False
    """Ours once more, alone on linear axes: what is proportional to x is a straight line there."""


@dataclass(frozen=True)
class Case:
    """The same work by us and by peers. Times are reported for one of `units` units of work."""

    name: str
    ours: Callable[[], Work]
    peers: tuple[Peer, ...]
    units: float
    unit: str
    repeats: int = 7
    quick: bool = False
    place: Place | None = None


@dataclass(frozen=True)
class Figure:
    """One number of ours, held against a target."""

    name: str
    measure: Callable[[], float]
    unit: str
    target: float | None = None
    at_least: bool = False
    """Whether larger is better."""
    quick: bool = False

    def met(self, value: float) -> bool | None:
        """Whether the target is; None without one."""
        if self.target is None:
            return None
        return value >= self.target if self.at_least else value <= self.target
