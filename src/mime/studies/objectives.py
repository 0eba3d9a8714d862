"""What a search looks for: figures to make small or large, and limits that others keep.

    minimise or maximise  f(x)    subject to  figure(x) <= bound,  figure(x) >= bound

A member is feasible when its figures exist and keep all limits. With one objective the best of
these is the answer; with several it is the front: members than which none is better in everything.
"""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mime._text import nearest, quoted
from mime.scenarios.source import Source

Method = Literal["auto", "gradient", "optuna"]
Sampler = Literal["auto", "tpe", "nsga2"]
Figures = Mapping[str, np.ndarray]
"""By name, a number for each member."""
_LIMIT = re.compile(r"(.*?)\s*(<=|>=)\s*([^<>=]*)", re.DOTALL)


class OptimiseTable(BaseModel):
    """`[optimise]`"""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    minimise: str | list[str] = []
    """Figures to make small."""
    maximise: str | list[str] = []
    """Figures to make large."""
    constraints: list[str] = []
    """`"largest current <= 10"`: limits of figures, in their units."""
    budget: Annotated[int, Field(ge=1, le=1_000_000)] = 400
    """Members at most, those that the store has included."""
    method: Method = "auto"
    starts: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Descents that go on at once, by gradient."""
    sampler: Sampler = "auto"
    """Of Optuna: TPE for one objective and NSGA-II for several, unless it is said."""
    batch: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Members that Optuna is asked for at once; with NSGA-II, its population."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


class Objective(NamedTuple):
    """A figure to make small or large."""

    figure: str
    direction: Literal["minimise", "maximise"]
    unit: str

    @property
    def sign(self) -> float:
        """Times the figure: what is to be small."""
        return 1.0 if self.direction == "minimise" else -1.0


class Limit(NamedTuple):
    """A figure that stays at or below a bound, or at or above it."""

    figure: str
    sense: Literal["<=", ">="]
    bound: float
    unit: str

    def slack(self, value: Any) -> Any:
        """How far inside of the bound, in the figure's unit; below 0 outside."""
        return self.bound - value if self.sense == "<=" else value - self.bound

    def excess(self, value: Any) -> Any:
        """By which part of the bound outside; 0.01 is a hundredth."""
        return -self.slack(value) / (abs(self.bound) or 1.0)

    def __str__(self) -> str:
        return f"{self.figure} {self.sense} {self.bound:g} {self.unit}".rstrip()


@dataclasses.dataclass(frozen=True)
class Aim:
    """All objectives and limits of a search."""

    objectives: tuple[Objective, ...]
    limits: tuple[Limit, ...]

    @property
    def figures(self) -> list[str]:
        """All figures that it asks for, each once."""
        names = [*(o.figure for o in self.objectives), *(limit.figure for limit in self.limits)]
        return list(dict.fromkeys(names))

    def costs(self, figures: Figures) -> np.ndarray:
        """(member, objectives), all to be small."""
        return np.stack([o.sign * figures[o.figure] for o in self.objectives], axis=1)

    def excess(self, figures: Figures) -> np.ndarray:
        """(member, limits), at most 0 where a limit is kept; NaN where there is no such figure."""
        size = len(figures[self.objectives[0].figure])
        columns = [limit.excess(figures[limit.figure]) for limit in self.limits]
        return np.stack(columns, axis=1) if columns else np.zeros((size, 0))

    def feasible(self, figures: Figures) -> np.ndarray:
        """(member,): whose figures exist, and keep all limits."""
        kept = (self.excess(figures) <= 0).all(axis=1)
        return kept & np.isfinite(self.costs(figures)).all(axis=1)

    def best(self, figures: Figures, feasible: np.ndarray) -> int | None:
        """The first of the best feasible members; None with several objectives, or without any."""
        if len(self.objectives) > 1 or not feasible.any():
            return None
        return int(np.argmin(np.where(feasible, self.costs(figures)[:, 0], np.inf)))

    def front(self, figures: Figures, feasible: np.ndarray) -> list[int]:
        """Feasible members than which no other is as good in all objectives and better in one; with
        one objective, the best.
        """
        if (best := self.best(figures, feasible)) is not None:
            return [best]
        costs, members = self.costs(figures), np.flatnonzero(feasible)
        members = members[np.lexsort(costs[members].T[::-1])]
        found: list[int] = []
        for member in members.tolist():  # whoever is better comes earlier in this order
            kept = costs[found]
            no_worse = (kept <= costs[member]).all(axis=1)
            if not (no_worse & (kept < costs[member]).any(axis=1)).any():
                found.append(member)
        return sorted(found)

    def nearest(self, figures: Figures, allowed: np.ndarray) -> int | None:
        """The member that breaks its limits by the least, of those that are allowed if there are
        any; None where no member has all figures.
        """
        worst = np.max(self.excess(figures), axis=1, initial=-np.inf)
        sound = np.isfinite(self.costs(figures)).all(axis=1) & ~np.isnan(worst)
        if (sound & allowed).any():
            sound &= allowed
        return int(np.argmin(np.where(sound, worst, np.inf))) if sound.any() else None


def aim_of(table: OptimiseTable, units: Mapping[str, str], source: Source) -> Aim:
    """The aim that a table describes; what is wrong is noted, and stops it.

    units    of the figures that are kept, by name
    """
    objectives: list[Objective] = []
    for direction in ("minimise", "maximise"):
        given: Any = getattr(table, direction)
        names: Sequence[str] = [given] if isinstance(given, str) else given
        for index, name in enumerate(names):
            at = ("optimise", direction, *([] if isinstance(given, str) else [index]))
            if name not in units:
                source.add(at, _unknown(name, units))
            elif name in [known.figure for known in objectives]:
                source.add(at, f"{name!r} is an objective twice")
            else:
                objectives.append(Objective(name, direction, units[name]))
    limits = [
        limit
        for index, text in enumerate(table.constraints)
        if (limit := _limit(text, units, source, ("optimise", "constraints", index))) is not None
    ]
    if not objectives and not source.wrong("optimise"):
        words = "nothing to look for: name a figure by minimise or maximise"
        source.add(("optimise",), f"{words} ({quoted(units)})")
    source.stop_if_any()
    return Aim(tuple(objectives), tuple(limits))


def _limit(
    text: str, units: Mapping[str, str], source: Source, at: tuple[Any, ...]
) -> Limit | None:
    match = _LIMIT.fullmatch(text.strip())
    if match is None:
        source.add(at, f"must be 'figure <= number' or 'figure >= number', got {text!r}")
        return None
    name, sense, number = match.groups()
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        source.add(at, f"{text!r}: must end in a number in the figure's unit, got {number!r}")
    elif name not in units:
        source.add(at, _unknown(name, units))
    else:
        return Limit(name, "<=" if sense == "<=" else ">=", bound, units[name])
    return None


def _unknown(name: str, units: Mapping[str, str]) -> str:
    words = f"no figure {name!r} is kept{nearest(name, units)} (figures: {quoted(units)})"
    return f"{words}. Add it as [[figures_of_merit]], or to keep.figures"
