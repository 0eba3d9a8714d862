"""Windows of a log: rollouts side by side, each from initial states that are free.

    window k    rows with e_k <= p < e_{k+1}, simulated from e_k - 1 - d to e_{k+1} + d

d is the largest delay of a sensor in rows, so that every row of the log is in one window, whatever
the delay. Windows of a log are equally long, and no longer than was asked for (a tenth of a window
apart).
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from mime.core.arguments import real, wrong
from mime.core.problem import InputError
from mime.fitting.experiment import Experiment, Sensor
from mime.scenarios.fields import Index

Slot = tuple[str, str, Index]
"""Node, field and index of a number of the state."""
AUTOMATIC = "auto"
AUTO = (4.0, 2.0, 1.0, 0.5)
"""Seconds of a window, the longest first."""
FEWEST_ROWS = 10
_TENTH = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """How logs are cut, and what is known of the state at the start of each window."""

    seconds: float
    logs: tuple[Experiment, ...]
    """Whole, in the order of the windows, their sensors with all rows that a window counts."""
    log_of: tuple[int, ...]
    """The number of the log of each window."""
    first: tuple[float, ...]
    """Where a window starts in its log, in periods."""
    slots: tuple[Slot, ...]
    centre: np.ndarray
    """Of the prior, (windows, slots)."""
    width: np.ndarray
    """Of the prior; 0 where the state is not free."""
    starts: np.ndarray
    """The states that windows start from now."""
    carried: Any
    """All other states at the start of each window, `{"nodes": ..., "held": ...}`."""

    @property
    def is_free(self) -> np.ndarray:
        """Which states of which window are looked for."""
        return self.width > 0

    def only(self, members: Sequence[int]) -> "Windows":
        """These windows alone; logs stay."""
        at = np.array(members)
        return dataclasses.replace(
            self,
            log_of=tuple(self.log_of[i] for i in members),
            first=tuple(self.first[i] for i in members),
            centre=self.centre[at],
            width=self.width[at],
            starts=self.starts[at],
            carried=jax.tree.map(lambda x: x[at], self.carried),
        )


@dataclasses.dataclass(frozen=True)
class Piece:
    """A window of a log as an experiment of its own, and where it starts in its log."""

    experiment: Experiment
    first: int


def window_of(given: Any) -> float | None:
    """Seconds; None where they are to be found."""
    if isinstance(given, str):
        if given != AUTOMATIC:
            raise wrong("window", "seconds, or 'auto'", given)
        return None
    return real("window", given, "s", above=0)


def cut(e: Experiment, seconds: float) -> list[Piece]:
    """The windows of a log; one, the log itself, where it is no longer than a window."""
    if seconds < FEWEST_ROWS * e.period_s:
        raise InputError(
            f"window must be {FEWEST_ROWS} rows or more, {FEWEST_ROWS * e.period_s:g} s of the log "
            f"{e.name!r}, got {seconds:g} s",
            place=("window",),
        )
    count = max(1, int(np.ceil(e.positions[-1] * e.period_s / seconds - _TENTH)))
    if count == 1:
        return [Piece(e, 0)]
    edges = np.round(np.linspace(0.0, e.intervals, count + 1)).astype(int)
    delay = max(s.place.channel.delay for s in e.sensors)
    found = []
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        first = int(max(low - 1 - delay, 0))
        last = int(min(high + delay, e.intervals))
        sensors = tuple(_rows_between(e.sensors, low, high, first, k == count - 1))
        if sensors:
            found.append(Piece(_part(e, first, last, sensors), first))
    return found


def _rows_between(
    sensors: Sequence[Sensor], low: float, high: float, first: int, is_last: bool
) -> Iterator[Sensor]:
    for s in sensors:
        at = (s.positions >= low) & ((s.positions < high) | is_last)
        if at.any():
            yield dataclasses.replace(
                s, positions=s.positions[at] - first, measured=s.measured[at], lines=s.lines[at]
            )


def _part(e: Experiment, first: int, last: int, sensors: tuple[Sensor, ...]) -> Experiment:
    """From one position to another; inputs in force at its start hold from there."""
    start = int(np.searchsorted(e.positions, first, side="right")) - 1
    end = int(np.searchsorted(e.positions, last, side="left"))
    inside = np.arange(start + 1, min(end, len(e.positions)))
    at = np.concatenate([[start], inside, inside[-1:] if len(inside) else [start]])
    positions = np.concatenate([[first], e.positions[inside], [last]]) - first
    return dataclasses.replace(
        e,
        intervals=last - first,
        positions=positions,
        driven={key: rows[at] for key, rows in e.driven.items()},
        sensors=sensors,
        starts=e.starts if first == 0 else (),
    )
