"""What a tuning returns: gains, figures and margins before and after, over all plants."""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._text import Travels, nearest, quoted
from mime.reporting.records import read_record, write_record
from mime.running.simulation import Simulation
from mime.tuning.margins import Margin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMAT = "MIME tuning 2"
KEPT = 1e-3
"""The part by which a figure may be beyond its limit and still keep it."""


class TuningError(Travels, ValueError):
    """A file that is no tuning, or a tuning that has no model."""


@dataclasses.dataclass(frozen=True)
class GainRow:
    """One gain."""

    name: str
    address: str
    index: int | None
    unit: str
    before: float
    after: float
    bound: str
    """`lower` or `upper` where it ended at a bound, else nothing."""


@dataclasses.dataclass(frozen=True)
class FigureRow:
    """One figure in every plant, the nominal one first."""

    name: str
    unit: str
    weight: float
    at_least: float | None
    at_most: float | None
    before: np.ndarray
    after: np.ndarray

    def worst(self, values: np.ndarray) -> float:
        """Of all plants: the largest, or the least where that is limited."""
        least = self.at_least is not None and self.at_most is None
        return float(np.min(values) if least else np.max(values))

    @property
    def is_limited(self) -> bool:
        """True when it has limits."""
        return self.at_least is not None or self.at_most is not None

    @property
    def bounds(self) -> str:
        """The limits in words."""
        both = [("at least", self.at_least), ("at most", self.at_most)]
        return " and ".join(f"{sign} {bound:g}" for sign, bound in both if bound is not None)

    def excess(self, values: np.ndarray) -> np.ndarray:
        """By which part each plant is beyond a limit; by infinity if it has no figure."""
        worst: np.ndarray = np.full(len(values), -np.inf)
        for bound, sign in ((self.at_most, 1.0), (self.at_least, -1.0)):
            if bound is not None:
                worst = np.maximum(worst, sign * (values - bound) / (abs(bound) or 1.0))
        return np.where(np.isnan(values), np.inf, worst) if self.is_limited else worst

    def violations(self, values: np.ndarray) -> float:
        """The share of plants that are beyond a limit; one that has no figure is."""
        return float(np.mean(self.excess(values) > KEPT))

    def tightest(self, values: np.ndarray) -> int | None:
        """The plant that is nearest to a limit or furthest beyond it; None without limits."""
        return int(np.argmax(self.excess(values))) if self.is_limited else None


@dataclasses.dataclass(frozen=True)
class MarginRow:
    """One loop in every plant, the nominal one first."""

    loop: str
    before: tuple[Margin, ...]
    after: tuple[Margin, ...]


@dataclasses.dataclass(frozen=True)
class Trace:
    """A field over time, before and after: nominal, and the lowest and highest of all plants."""

    field: str
    time_s: np.ndarray
    before: tuple[np.ndarray, np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Tuning(Mapping[str, GainRow]):
    """`tuning["motor.velocity_kp"].after`; `print(tuning)` tells all of it."""

    gains: tuple[GainRow, ...]
    figures: tuple[FigureRow, ...]
    margins: tuple[MarginRow, ...]
    plants: Mapping[str, np.ndarray]
    """What varies, by address, (plants,); the first plant is the graph's own."""
    parameters: Mapping[str, np.ndarray]
    """The tuned gains by address, for `with_parameters`."""
    starts: tuple[int, int]
    """How many starts ended at this cost, of how many."""
    rounds: int
    """Batches of simulations with their slopes."""
    is_complete: bool
    """False when it was interrupted: the best gains until then."""
    traces: tuple[Trace, ...] = dataclasses.field(default=(), repr=False)
    model: Simulation | None = dataclasses.field(default=None, repr=False)

    def __getitem__(self, name: str) -> GainRow:
        for gain in self.gains:
            if gain.name == name:
                return gain
        names = list(self)
        raise KeyError(f"no gain {name!r}{nearest(name, names)} ({quoted(names)})")

    def __iter__(self) -> Iterator[str]:
        return (gain.name for gain in self.gains)

    def __len__(self) -> int:
        return len(self.gains)

    @property
    def keeps_limits(self) -> bool:
        """True when every plant keeps every limit with the tuned gains."""
        return all(row.violations(row.after) == 0 for row in self.figures)

    @property
    def is_stable(self) -> bool:
        """True when every loop of every plant is stable where the run ends."""
        return all(margin.is_stable for row in self.margins for margin in row.after)

    @property
    def simulation(self) -> Simulation:
        """The graph that was given, with the tuned gains."""
        if self.model is None:
            raise TuningError(
                "a tuning that was loaded has no model; Tuning.load(path, simulation)"
            )
        return self.model.with_parameters(dict(self.parameters))

    def to_toml(self) -> str:
        """The tuned gains as lines of a scenario file."""
        tables: dict[str, list[str]] = {}
        for address, value in self.parameters.items():
            place, _, name = address.rpartition(".")
            numbers = [repr(float(f"{x:.6g}")) for x in np.atleast_1d(value)]
            words = f"[{', '.join(numbers)}]" if np.ndim(value) else numbers[0]
            tables.setdefault(place, []).append(f"{name} = {words}")
        parts = ["\n".join([f"[nodes.{place}]", *lines]) for place, lines in tables.items()]
        return "\n\n".join(parts) + "\n"

    def __str__(self) -> str:
        from mime.tuning.words import words

        return words(self)

    def plot(self) -> "Figure":
        """What the goals look at, before and after; shaded where the plants are."""
        from mime.tuning.picture import picture

        return picture(self)

    def report(self, title: str = "Tuning") -> str:
        """One HTML page with all of it."""
        from mime.tuning.page import report_page

        return report_page(self, title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, whole or not at all."""
        write_record(path, self, _FORMAT, without=("model",))

    @staticmethod
    def load(path: str | os.PathLike[str], simulation: Simulation | None = None) -> "Tuning":
        """Read what `save` wrote; with the graph that was tuned, `simulation` works again."""
        try:
            data = read_record(path, _FORMAT)
            data["gains"] = tuple(GainRow(**row) for row in data["gains"])
            sides = ("before", "after")
            data["figures"] = tuple(
                FigureRow(**{**row, **{side: np.array(row[side]) for side in sides}})
                for row in data["figures"]
            )
            data["margins"] = tuple(
                MarginRow(row["loop"], *(tuple(Margin(**m) for m in row[side]) for side in sides))
                for row in data["margins"]
            )
            data["traces"] = tuple(_trace(entry) for entry in data["traces"])
            for name in ("plants", "parameters"):
                data[name] = {address: np.array(value) for address, value in data[name].items()}
            data["starts"] = tuple(data["starts"])
            return Tuning(**data, model=simulation)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TuningError(
                f"{path}: not a tuning that this version of MIME has saved"
            ) from error


def _trace(entry: Any) -> Trace:
    sides: Any = [tuple(map(np.array, entry[side])) for side in ("before", "after")]
    return Trace(entry["field"], np.array(entry["time_s"]), *sides)
