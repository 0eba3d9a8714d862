"""`tune.toml`: which scenario, which gains, for what, within which limits, for which plants."""

import dataclasses
import os
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mime._text import nearest, quoted
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.result import Fit, FitError
from mime.running.progress import Progress
from mime.scenarios.bundled import scenario_of
from mime.scenarios.scenario import Scenario, load_scenario
from mime.scenarios.source import Source, read_source
from mime.scenarios.validation import validated
from mime.tuning.goal import Goal
from mime.tuning.result import Tuning
from mime.tuning.tune import tune

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0, le=2**32 - 1)]
Pair = Annotated[list[Number], Field(min_length=2, max_length=2)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class GoalTable(_Table):
    """`[[goals]]`: a figure as scenario files have it, or `figure`, the name of one of them."""

    figure: str | None = None
    kind: str | None = None
    field: str | None = None
    reference: str | None = None
    weight: Number | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    after: Number | None = None
    target: Number | None = None
    band: Number | None = None
    lag: Number | None = None
    unit: str | None = None
    name: str = ""

    def goal(self, scenario: Scenario) -> Goal:
        """As `tune` takes it."""
        given = self.model_dump(exclude={"figure"}, exclude_none=True)
        if not self.name:
            given.pop("name")
        if self.figure is None:
            if self.kind is None or self.field is None:
                raise InputError("a goal needs `kind` and `field`, or `figure`", place=("kind",))
            return Goal(**given)
        merits = {merit.name: merit for merit in scenario.tables.figures_of_merit.values()}
        if self.figure not in merits:
            known = f"{nearest(self.figure, merits)} ({quoted(merits)})"
            raise InputError(
                f"the scenario has no figure {self.figure!r}{known}", place=("figure",)
            )
        if others := [key for key in given if key != "weight"]:
            raise InputError(
                f"{quoted(others)} cannot stand beside `figure`: the scenario says them",
                place=(others[0],),
            )
        return Goal.of(merits[self.figure], self.weight)


class TuneTable(_Table):
    """The whole file."""

    title: str = ""
    scenario: str
    gains: list[str] | dict[str, Pair]
    goals: list[GoalTable]
    limits: dict[str, Positive] = {}
    margins: dict[str, Number] = {}
    plants: dict[str, Positive | Pair] = {}
    fit: str | None = None
    """A `fit.json` whose covariance the plants are drawn from."""
    members: Annotated[int, Field(ge=1, le=10_000)] = 8
    starts: Annotated[int, Field(ge=1, le=1000)] = 4
    seed: Whole = 0
    rounds: Annotated[int, Field(ge=1, le=100_000)] = 60


@dataclasses.dataclass(frozen=True)
class TuneFile:
    """What `load_tune` returns: all that `tune` takes."""

    source: Source
    table: TuneTable
    scenario: Scenario

    @property
    def title(self) -> str:
        """What the file calls itself, else its name."""
        return self.table.title or self.source.file.stem

    def run(self, progress: Progress = True) -> Tuning:
        """Tune; what is wrong with the file is told with its line."""
        table = self.table
        goals = []
        for place, entry in enumerate(table.goals):
            try:
                goals.append(entry.goal(self.scenario))
            except InputError as error:
                for problem in error.problems:  # of `Goal` as an argument, or of a key of its table
                    at = problem.place[problem.place[:1] == ("goals",) :]
                    moved = dataclasses.replace(problem, place=("goals", place, *at), label="")
                    self.source.note(moved)
        self.source.stop_if_any()
        gains: Any = table.gains
        if isinstance(gains, dict):
            gains = {address: (ends[0], ends[1]) for address, ends in gains.items()}
        spreads: Any = {
            address: (given[0], given[1]) if isinstance(given, list) else given
            for address, given in table.plants.items()
        }
        try:
            return tune(
                self.scenario,
                gains,
                goals,
                limits=table.limits,
                margins=table.margins,
                plants=self._fit() if table.fit is not None else spreads,
                members=table.members,
                starts=table.starts,
                seed=table.seed,
                rounds=table.rounds,
                progress=progress,
            )
        except InputError as error:
            self.source.refuse_arguments(error)
            raise

    def _fit(self) -> Fit:
        file = self.source.file.parent / str(self.table.fit)
        if self.table.plants:
            raise InputError("give a fit or spreads, not both", place=("fit",), label="plants:")
        try:
            return Fit.load(file)
        except (OSError, FitError) as error:
            words = f"no such file: {file}" if isinstance(error, FileNotFoundError) else f"{error}"
            raise InputError(words, place=("fit",), label="fit:") from None


def load_tune(path: str | os.PathLike[str], *, allow_code: bool = False) -> TuneFile:
    """Read and check a tuning's file and its scenario; a `ScenarioError` tells what is wrong."""
    source = read_source(path_of("path", path))
    table = validated(TuneTable, source.data, source, ())
    source.stop_if_any()
    assert table is not None, "all that was refused is noted"
    scenario = scenario_of(source, table.scenario)
    return TuneFile(source, table, load_scenario(scenario, allow_code=allow_code))
