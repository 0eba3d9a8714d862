"""What a search has found: the best member, or the front, among all members that it asked for."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mime.core.arguments import whole
from mime.core.printing import cut
from mime.running.precision import precision_of
from mime.running.simulation import Simulation
from mime.running.trajectory import Divergence, Trajectory
from mime.studies.objectives import Aim, Limit, Objective
from mime.studies.result import StudyResult
from mime.studies.store import StudyError
from mime.studies.study import Study

if TYPE_CHECKING:
    import xarray

_MOST_NAMED = 10


class InfeasibleError(StudyError):
    """No member keeps all limits. Those that were run are kept."""


@dataclasses.dataclass(frozen=True, repr=False)
class StudyOptimum:
    """What `optimise_study` returns."""

    study: Study
    """Of all members that were asked for, in the order in which they were."""
    result: StudyResult
    """The same members, as `open_study` gives them."""
    objectives: tuple[Objective, ...]
    limits: tuple[Limit, ...]
    feasible: np.ndarray
    """(member,): whose figures exist, and keep all limits."""
    best: int | None
    """The best feasible member; None with several objectives."""
    front: tuple[int, ...]
    """Feasible members than which none is better in everything; with one objective, the best."""
    method: str
    """How it was searched, in words."""

    @property
    def dataset(self) -> "xarray.Dataset":
        """All members: figures along `member`, what varies as coordinates."""
        return self.result.dataset

    @property
    def computed(self) -> int:
        """Members that this call has run."""
        return self.result.computed

    @property
    def reused(self) -> int:
        """Members that were in the store before."""
        return self.result.reused

    @property
    def diverged(self) -> Mapping[int, Divergence]:
        """Members that left the finite numbers, by number."""
        return self.result.diverged

    @property
    def unfinished(self) -> dict[str, list[int]]:
        """By figure that is asked for, members that do not have it though they did not diverge."""
        found = {}
        for name in Aim(self.objectives, self.limits).figures:
            missing = np.flatnonzero(~np.isfinite(self.dataset[name].values)).tolist()
            if members := [member for member in missing if member not in self.diverged]:
                found[name] = members
        return found

    def parameters(self, member: int | None = None) -> dict[str, Any]:
        """What varies, of the best member or of another."""
        row = self._member(member)
        return {name: column[row] for name, column in self.study.columns.items()}

    def figures(self, member: int | None = None) -> dict[str, float]:
        """The figures that are kept, of the best member or of another."""
        row = self._member(member)
        names = [variable.name for variable in self.study.variables if not variable.shape]
        return {name: float(self.dataset[name].values[row]) for name in names}

    def simulation(self, member: int | None = None) -> Simulation:
        """The graph of the best member or of another, with its parameters.

        Initial states and inputs that vary are no part of a graph: `parameters` has them, and `run`
        takes them.
        """
        row = self._member(member)
        experiment = self.study.experiments[self.study.variant[row]]
        own = {n: v for n, v in self.parameters(row).items() if n in experiment.lanes}
        given = {n: v for n, v in own.items() if experiment.lanes[n].road == "parameter"}
        with precision_of(experiment.simulation):
            return experiment.simulation.with_parameters(experiment.arguments(given)["parameters"])

    def run(self, member: int | None = None) -> Trajectory:
        """Run the best member or another once more, as the study did, with all that it records."""
        return self.study.run(self._member(member))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all members as one NetCDF file; its attribute `optimise` tells what was found."""
        self.result.save(path)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page to look at all members on, as that of a sweep."""
        return self.result.report(path)

    def _member(self, member: int | None) -> int:
        if member is not None:
            return whole("member", member, 0, most=self.study.size - 1)
        if self.best is None:
            front = ", ".join(map(str, self.front[:_MOST_NAMED]))
            raise StudyError(
                f"there are several objectives: say which member of the front ({front})"
            )
        return self.best

    def __repr__(self) -> str:
        wanted = ", ".join(f"{o.direction} {o.figure}" for o in self.objectives)
        ran = f"{self.computed:,} computed, {self.reused:,} there before"
        kept = int(np.count_nonzero(self.feasible))
        lines = [
            f"StudyOptimum {self.study.title!r}: {wanted}",
            f"  {self.study.size:,} members: {ran}; {kept:,} feasible",
            f"  by {self.method}",
            *self._failures(),
        ]
        if self.best is not None:
            return "\n".join([*lines, f"  best: member {self.best}", *self._sheet(self.best)])
        return "\n".join([*lines, f"  front: {len(self.front):,} members", *self._front()])

    def _failures(self) -> list[str]:
        lines = []
        if self.diverged:
            lines.append(f"  diverged: {_members(list(self.diverged))}")
        for name, members in self.unfinished.items():
            lines.append(f"  without {name!r}: {_members(members)}")
        return lines

    def _sheet(self, member: int) -> list[str]:
        """A line for each parameter, objective and limit of a member."""
        figures = self.figures(member)
        rows = [
            (name, _shown(value), self.study.units[name], "")
            for name, value in self.parameters(member).items()
        ]
        rows += [
            (o.figure, f"{figures[o.figure]:.6g}", o.unit, o.direction) for o in self.objectives
        ]
        for limit in self.limits:
            slack = limit.slack(figures[limit.figure])
            words = f"{limit.sense} {limit.bound:g}, slack {slack:.3g}"
            rows.append((limit.figure, f"{figures[limit.figure]:.6g}", limit.unit, words))
        return [f"    {line}" for line in _aligned(rows)]

    def _front(self) -> list[str]:
        """A line for each member of the front, by the first objective."""
        names = [*(o.figure for o in self.objectives), *self.study.columns]
        units = {**self.study.units, **{o.figure: o.unit for o in self.objectives}}
        heads = [f"{name} ({units[name]})" if units[name] else name for name in names]
        first = self.dataset[self.objectives[0].figure].values
        rows = [("member", *heads)]
        for member in sorted(self.front, key=lambda m: self.objectives[0].sign * first[m]):
            values = {**self.parameters(member), **self.figures(member)}
            rows.append((str(member), *(_shown(values[name]) for name in names)))
        return [f"    {line}" for line in cut(_aligned(rows), more=": .front")]


def closest(
    aim: Aim, study: Study, figures: Mapping[str, np.ndarray], allowed: np.ndarray, failed: int
) -> str:
    """In words: that no member is feasible, and which one comes nearest.

    allowed    (member,): which of them keep the constraints between parameters
    """
    member = aim.nearest(figures, allowed)
    if member is None:
        missing = [name for name in aim.figures if not np.isfinite(figures[name]).any()]
        named = f": {', '.join(map(repr, missing))} exists in none" if missing else ""
        return (
            f"no member of {study.size:,} has all figures that are asked for{named} "
            f"({failed:,} left the finite numbers). Look at one by `mime run`, or search elsewhere"
        )
    own = ", ".join(f"{name} = {_shown(c[member])}" for name, c in study.columns.items())
    broken = [
        f"{limit.figure} {figures[limit.figure][member]:.6g} {limit.unit}".rstrip()
        + f", wanted {limit.sense} {limit.bound:g}"
        for limit in aim.limits
        if limit.slack(figures[limit.figure][member]) < 0
    ]
    if not allowed[member]:
        broken.append("parameters that `constraints` of the study leave out")
    return (
        f"no member of {study.size:,} keeps all limits. The nearest, member {member} ({own}), has "
        f"{'; '.join(broken)}. Loosen a limit, widen a range, or raise the budget"
    )


def _members(numbers: Sequence[int]) -> str:
    more = len(numbers) - _MOST_NAMED
    words = ", ".join(map(str, numbers[:_MOST_NAMED]))
    many = "member" if len(numbers) == 1 else "members"
    return f"{many} {words}" + (f" and {more:,} more" if more > 0 else "")


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else str(value)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows]
