"""Margins that are asked for, as limits of the optimiser with slopes.

    c = 1 - distance / wanted           <= 0 where the margin is kept, 1 at the stability limit
    c = 1 + periods log |lambda|        for a loop that is unstable: what grows over the run

`distance` is the margin itself, or 1 / Ms for the largest sensitivity (`margins.py`). The second is
1 at the stability limit too, so that a start with an unstable loop finds the way back.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.arguments import mapping, real
from mime.core.problem import InputError
from mime.tuning.loop_gain import LoopGain, growth_by_matrix
from mime.tuning.margins import distances

_MOST = 10.0
"""Margins that are wider than this many times what is wanted are as good as any."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A margin that can be asked for."""

    words: str
    unit: str
    above: float | None
    below: float | None
    is_least: bool
    """It must be at least what is said, rather than at most."""

    def distance(self, said: float) -> float:
        """What is said, as a distance from the stability limit."""
        return abs(said) if self.unit else 1.0 / said


KINDS = {
    "gain_db": Kind("gain margin", "dB", 0.0, None, True),
    "gain_down_db": Kind("gain margin downwards", "dB", None, 0.0, False),
    "phase_deg": Kind("phase margin", "°", 0.0, 180.0, True),
    "delay_s": Kind("delay margin", "s", 0.0, None, True),
    "sensitivity": Kind("largest sensitivity", "", 1.0, None, False),
}


def checked(given: Any) -> dict[str, float]:
    """The limits of margins by their keys, as numbers that can be kept."""
    found = {}
    for key, value in mapping("margins", given, "{'phase_deg': 45.0}").items():
        if key not in KINDS:
            raise InputError(
                f"no margin {key!r}{nearest(str(key), KINDS)} ({quoted(KINDS)})",
                place=("margins", key),
                label="margins:",
            )
        kind = KINDS[key]
        try:
            found[key] = real(key, value, kind.unit, above=kind.above, below=kind.below)
        except InputError as error:
            raise InputError(f"{error}", place=("margins", key), label="margins:") from None
    return found


@dataclasses.dataclass(frozen=True)
class MarginLimits:
    """What margins every loop must have in every plant."""

    said: Mapping[str, float]
    period_s: float
    periods: float
    """Of one run."""

    def excess(self, closed: np.ndarray, opened: np.ndarray) -> tuple[np.ndarray, ...]:
        """c of one loop (limits,), and its slopes by A(1) and A(0), (limits, n, n) each."""
        count, size = len(self.said), len(closed)
        nothing = np.zeros((count, size, size))
        if not (np.isfinite(closed).all() and np.isfinite(opened).all()):
            return np.full(count, np.nan), nothing, nothing
        loop = LoopGain(closed, opened)
        if not loop.is_stable:
            growth, slope = growth_by_matrix(closed)
            all_of = np.broadcast_to(self.periods * slope, nothing.shape)
            return np.full(count, 1.0 + self.periods * growth), all_of, nothing
        if not loop.has_gain:
            return np.ones(count), nothing, nothing
        found = distances(loop, self.period_s, self.said)
        values, by_closed, by_opened = np.full(count, 1.0 - _MOST), nothing, nothing.copy()
        for place, (key, said) in enumerate(self.said.items()):
            wanted, distance = KINDS[key].distance(said), found[key]
            if distance.value < _MOST * wanted:
                values[place] = 1.0 - distance.value / wanted
                slopes = loop.by_matrices(distance.angle, -distance.weight / wanted)
                by_closed[place], by_opened[place] = slopes
        return values, by_closed, by_opened

    def excess_of_all(self, closed: np.ndarray, opened: np.ndarray) -> tuple[np.ndarray, ...]:
        """The same of matrices (..., n, n)."""
        outer = closed.shape[:-2]
        each = [self.excess(closed[at], opened[at]) for at in np.ndindex(outer)]
        return tuple(
            np.reshape(part, (*outer, *np.shape(part)[1:])) for part in zip(*each, strict=True)
        )
