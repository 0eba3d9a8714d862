"""A study: a graph, its members, and what is kept of each."""

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mime._text import quoted
from mime.core.arguments import whole
from mime.core.printing import cut
from mime.core.problem import InputError, ProblemError
from mime.running.identity import digest
from mime.running.trajectory import Trajectory
from mime.studies.address import addresses
from mime.studies.experiment import Experiment, Variable

MOST_VARIANTS = 256
"""Graphs of a study; a parameter that is none of the graph's makes one for each of its values."""


class Chunk(NamedTuple):
    """Members that run as one batch."""

    experiment: Experiment
    members: np.ndarray
    """Their indices in the study."""


@dataclasses.dataclass(frozen=True, repr=False)
class Study:
    """What `load_study` returns, and what `sweep` runs."""

    title: str
    columns: Mapping[str, np.ndarray]
    """By name, a value for each member: numbers, or words where the scenario's file has them."""
    units: Mapping[str, str]
    experiments: tuple[Experiment, ...]
    variant: np.ndarray
    """Which experiment each member is of."""
    chunk: int
    """Members that run as one batch, and are stored as one region of a new store."""
    source: str = ""
    """Where it comes from: the scenario, or a graph."""
    logarithmic: frozenset[str] = frozenset()
    """Which columns are spaced or drawn evenly in their logarithm."""
    design: tuple[str, ...] = ()
    """The columns of Saltelli's design, in its order, where the study was drawn so."""
    command: tuple[str, ...] = ()
    """The words that run its scenario; a member adds `--set NAME=VALUE` for what varies."""

    @property
    def size(self) -> int:
        """How many members it has."""
        return len(self.variant)

    @functools.cached_property
    def prints(self) -> list[str]:
        """A digest of each experiment."""
        return [experiment.print() for experiment in self.experiments]

    @functools.cached_property
    def addresses(self) -> np.ndarray:
        """(member, 16) bytes: what each member's result depends on, as a digest."""
        each = np.array(self.prints, dtype=object)[self.variant]
        return addresses(each, self.columns)

    @functools.cached_property
    def variables(self) -> list[Variable]:
        """What is kept of a member."""
        return self.experiments[0].variables()

    @functools.cached_property
    def signature(self) -> str:
        """A digest of what all members have in common: which group of a store they are in.

        Studies that differ only in the values of what varies share it, and their members.
        """
        fixed = [name for name, column in self.columns.items() if column.dtype != object]
        layout = [(v.name, v.shape, str(v.dtype)) for v in self.variables]
        base = self.prints[0] if len(self.experiments) == 1 else self.source
        names = sorted(self.columns), sorted(fixed)
        return digest(json.dumps([base, layout, names, self.experiments[0].versions]))[:16]

    def with_columns(self, columns: Mapping[str, np.ndarray]) -> "Study":
        """The same study of other members, for whoever chooses them one by one (an optimiser): in
        one store with this study's, and checked as these are. Graphs are those of this study.
        """
        if set(columns) != set(self.columns):
            words = f"columns must be numbers for {quoted(self.columns)}, got {quoted(columns)}"
            raise InputError(words, place=("columns",))
        kinds = {name: column.dtype for name, column in self.columns.items()}
        table = {name: np.array(columns[name], dtype=kind) for name, kind in kinds.items()}
        if len({column.shape for column in table.values()}) != 1:
            raise InputError("columns need as many values each", place=("columns",))
        other = dataclasses.replace(self, columns=table, variant=self._variants(table))
        for name in ("prints", "variables", "signature", "graphs"):  # of all members, and slow
            vars(other)[name] = getattr(self, name)
        other.check()
        return other

    @functools.cached_property
    def graphs(self) -> dict[tuple[Any, ...], int]:
        """Which experiment has these values of what makes a graph of its own."""
        return dict(zip(self._keys(self.columns), self.variant.tolist(), strict=True))

    def _keys(self, columns: Mapping[str, np.ndarray]) -> list[tuple[Any, ...]]:
        """Of each row, the values that make a graph of its own; `()` where lanes are all."""
        lanes, size = self.experiments[0].lanes, len(next(iter(columns.values())))
        others = [column.tolist() for name, column in columns.items() if name not in lanes]
        return list(zip(*others, strict=True)) if others else [()] * size

    def _variants(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which experiment each row of the columns is of."""
        keys = self._keys(columns)
        if unknown := [key for key in keys if key not in self.graphs]:
            words = f"no graph of this study has {unknown[0]}"
            raise InputError(f"columns: {words}", place=("columns",))
        return np.array([self.graphs[key] for key in keys], np.int32)

    def chunks(self, members: np.ndarray, size: int) -> Iterator[Chunk]:
        """Some members in batches of `size`: each of one experiment, in the study's order."""
        for index, experiment in enumerate(self.experiments):
            own = members[self.variant[members] == index]
            for first in range(0, len(own), size):
                yield Chunk(experiment, own[first : first + size])

    def rows(self, members: np.ndarray) -> dict[str, np.ndarray]:
        """The columns of some members."""
        return {name: column[members] for name, column in self.columns.items()}

    def lanes(self, chunk: Chunk) -> dict[str, np.ndarray]:
        """The columns that vary inside a chunk's batch."""
        return {
            name: column
            for name, column in self.rows(chunk.members).items()
            if name in chunk.experiment.lanes
        }

    def run(self, member: int) -> Trajectory:
        """Run one member again, with all that a run records by default: for its replay, its plots.

        It is a batch of one, so what is kept of it has the bits that the study has.
        """
        index = whole("member", member, 0, most=self.size - 1)
        experiment = self.experiments[self.variant[index]]
        chunk = Chunk(experiment, np.array([index]))
        return experiment.run_one(self.lanes(chunk))

    def check(self) -> None:
        """Refuse values that no member can have, before the first one runs."""
        for index, experiment in enumerate(self.experiments):
            own = np.flatnonzero(self.variant == index)
            if not len(own):
                continue
            rows = {n: self.columns[n][own] for n in experiment.lanes if n in self.columns}
            try:
                experiment.check(rows)
            except ProblemError as error:
                words = "; ".join(map(str, error.problems))
                hint = "Draw between bounds (between = [...]), or add a constraint"
                named = ".".join(map(str, error.problems[0].place))
                at = ("vary", named) if named in self.columns else ("vary",)
                raise InputError(f"{words}. {hint}", place=at) from error

    def __repr__(self) -> str:
        words = f"Study {self.title!r}: {self.size:,} members of {self.source}"
        lines = [f"  {name} {_span(column)}" for name, column in self.columns.items()]
        kept = ", ".join(variable.name for variable in self.variables)
        return "\n".join([words, *cut(lines, more=": .columns"), f"  keeps {kept}"])


def _span(column: np.ndarray) -> Any:
    if column.dtype == object:
        return ", ".join(map(str, dict.fromkeys(column.tolist())))
    if len(column) == 1:
        return f"{column[0]:g}"
    return f"from {column.min():g} to {column.max():g}"
