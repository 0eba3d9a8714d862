"""`fit.toml`: which scenario, which logs, which columns are which fields, what is unknown."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mime.core.arguments import path as path_of
from mime.core.problem import InputError, Place
from mime.fitting.channel import Channel, fields_of
from mime.fitting.fit import fit
from mime.fitting.from_scenario import constants_of, start_of
from mime.fitting.log import Log, LogError, files_of
from mime.fitting.result import Fit
from mime.fitting.unknown import Unknown
from mime.running.progress import Progress
from mime.scenarios.bundled import scenario_of
from mime.scenarios.scenario import Scenario, load_scenario
from mime.scenarios.source import Source, read_source
from mime.scenarios.validation import validated

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0, le=2**32 - 1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class UnknownTable(_Table):
    """`[unknowns."node.parameter"]`, or a start that is not known."""

    start: Number | None = None
    between: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    std: Positive | None = None
    prior: bool = True

    def unknown(self) -> Unknown:
        """As `fit` takes it."""
        between = None if self.between is None else (self.between[0], self.between[1])
        return Unknown(self.start, between, self.std, self.prior)


class ColumnTable(_Table):
    """`[columns.NAME]`"""

    field: str = ""
    unit: str | None = None
    delay: Annotated[int, Field(ge=0, le=1000)] = 3
    offset: bool | Number = False
    gain: bool | Number = False
    noise: Positive | None = None
    counts_per_turn: Positive | None = None
    wraps_at_bits: Annotated[int, Field(ge=2, le=52)] | None = None
    mix: dict[str, Number] | None = None


class LogTable(_Table):
    """`[logs.NAME]`"""

    file: str | list[str] | dict[str, str]
    time: str = "time"
    time_unit: Literal["s", "ms", "us", "µs", "ns"] = "s"
    inputs: Literal["", "from", "until"] = ""
    held_out: bool = False
    initial: dict[str, Number | UnknownTable] = {}
    rate_hz: Positive | None = None
    rows: str = ""
    names: list[str] | dict[str, list[str]] = []
    set: dict[str, Number | str] = {}
    span: list[Number] | None = None
    columns: dict[str, str | ColumnTable] = {}


class FitTable(_Table):
    """The whole file."""

    title: str = ""
    scenario: str
    columns: dict[str, str | ColumnTable]
    unknowns: list[str] | dict[str, UnknownTable]
    logs: dict[str, LogTable]
    by: Literal["simulation", "inverse_dynamics"] = "simulation"
    starts: Annotated[int, Field(ge=1, le=10_000)] = 8
    seed: Whole = 0
    loss: Literal["linear", "soft_l1", "huber"] = "linear"
    window: Literal["auto"] | Positive = "auto"
    strict: bool = False
    """Fail where the model leaves a part of the logs unexplained."""
    design: Any = None
    """The next experiment, which `mime design` reads."""


@dataclasses.dataclass(frozen=True)
class FitFile:
    """What `load_fit` returns: all that `fit` takes."""

    source: Source
    table: FitTable
    scenario: Scenario

    @property
    def title(self) -> str:
        """What the file calls itself, else its name."""
        return self.table.title or self.source.file.stem

    @property
    def lenient(self) -> "FitFile":
        """The same without `strict`, so that what is found can be written before it is judged."""
        return dataclasses.replace(self, table=self.table.model_copy(update={"strict": False}))

    def run(self, progress: Progress = True) -> Fit:
        """Read the logs and fit; what is wrong with the file is told with its line."""
        table = self.table
        try:
            columns = self._columns(("columns",), table.columns)
            unknowns: Any = table.unknowns
            if isinstance(unknowns, dict):
                unknowns = self._unknowns(("unknowns",), unknowns)
            logs = [log for name, entry in table.logs.items() for log in self._logs(name, entry)]
            self.source.stop_if_any()
            return fit(
                self.scenario.simulation,
                logs,
                columns,
                unknowns,
                inputs=None
                if table.by == "inverse_dynamics"
                else self._others([log.columns or columns for log in logs]),
                by=table.by,
                starts=table.starts,
                seed=table.seed,
                loss=table.loss,
                window=table.window,
                strict=table.strict,
                progress=progress,
            )
        except LogError:
            raise
        except InputError as error:
            named = {str(problem.place[-1]) for problem in error.problems if problem.place}
            inside: dict[str, Place] = {}
            for key in ("initial", "set", "columns"):
                of = [n for n, entry in table.logs.items() if named & {*getattr(entry, key)}]
                if of and not (key == "columns" and named & {*table.columns}):
                    inside[key] = "logs", of[0]
            self.source.refuse_arguments(error, inside)
            raise

    def _logs(self, name: str, entry: LogTable) -> list[Log]:
        """A log for each file that the table names, with what it says of all of them."""
        folder = self.source.file.parent
        files: list[Any]
        if isinstance(entry.file, dict):
            files = [{part: folder / file for part, file in entry.file.items()}]
        else:
            given = [entry.file] if isinstance(entry.file, str) else entry.file
            files = [file for pattern in given for file in files_of(pattern, folder)]
            if not files:
                self.source.add(("logs", name, "file"), "must name a file, got an empty list")
        of_all: dict[str, Any] = {
            "time": entry.time,
            "time_unit": entry.time_unit,
            "inputs": entry.inputs,
            "held_out": entry.held_out,
            "initial": self._initial(name, entry),
            "rate_hz": entry.rate_hz,
            "rows": entry.rows,
            "names": entry.names,
            "set": entry.set,
            "span": entry.span,
            "columns": self._columns(("logs", name, "columns"), entry.columns) or None,
        }
        is_one = isinstance(entry.file, dict) or files == [folder / str(entry.file)]
        try:
            return [
                Log(file, name=name if is_one else f"{name}/{file.stem}", **of_all)
                for file in files
            ]
        except InputError as error:
            self.source.refuse(("logs", name), error)
            return []

    def _columns(
        self, at: Place, given: Mapping[str, str | ColumnTable]
    ) -> dict[str, str | Channel]:
        """Columns as `fit` takes them; what is wrong with one is noted with its line."""
        found: dict[str, str | Channel] = {}
        for name, entry in given.items():
            try:
                found[name] = (
                    Channel(entry) if isinstance(entry, str) else Channel(**entry.model_dump())
                )
            except InputError as error:
                self.source.refuse((*at, name), error)
        return found

    def _initial(self, log: str, entry: LogTable) -> dict[str, Any]:
        """The scenario's initial state, and what the log says of it."""
        said = self._unknowns(("logs", log, "initial"), entry.initial)
        return {**start_of(self.scenario), **said}

    def _unknowns(self, at: Place, given: Mapping[str, float | UnknownTable]) -> dict[str, Any]:
        """A table of numbers and unknowns; what is wrong with one is noted with its line."""
        found: dict[str, Any] = {}
        for name, entry in given.items():
            try:
                found[name] = entry.unknown() if isinstance(entry, UnknownTable) else entry
            except InputError as error:
                self.source.refuse((*at, name), error)
        return found

    def _others(self, columns: Sequence[Mapping[str, str | Channel]]) -> dict[str, Any]:
        """Inputs of the scenario that some log has not: constants, which columns go before."""
        of_each = [{c.field.partition("[")[0] for c in fields_of(of).values()} for of in columns]
        logged = set.intersection(*of_each)
        over_time = {
            f"{node}.{field}"
            for node, fields in self.scenario.inputs.items()
            for field, value in fields.items()
            if callable(value)
        }
        has = "no" if not over_time & set().union(*of_each) else "not every"
        log = "column" if has == "no" else "log"
        mend = f", and {has} {log} has it. Log it, or make it constant"
        return constants_of(self.scenario, logged & over_time, mend)


def load_fit(path: str | os.PathLike[str], *, allow_code: bool = False) -> FitFile:
    """Read and check a fit's file and its scenario; a `ScenarioError` tells all that is wrong."""
    source = read_source(path_of("path", path))
    table = validated(FitTable, source.data, source, ())
    source.stop_if_any()
    assert table is not None, "all that was refused is noted"
    if not table.logs:
        source.add(("logs",), "no log: add a table [logs.NAME]")
    scenario = scenario_of(source, table.scenario)
    return FitFile(source, table, load_scenario(scenario, allow_code=allow_code))
