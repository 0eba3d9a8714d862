"""Members that are asked for a few at a time: read where they are known, run where they are not.

Who searches asks for columns and is told figures. A member that was asked for before, by this
search or by anybody who used the store, is not run again. A search that was stopped asks the same
questions again, and the store answers them.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mime.running.trajectory import Divergence
from mime.studies.address import BYTES, as_keys
from mime.studies.layout import open_store
from mime.studies.result import OPTIMISE, ROWS, StudyResult, result_of
from mime.studies.space import Columns
from mime.studies.store import Store
from mime.studies.study import Study
from mime.studies.sweep import result_in_memory, work_of, writing
from mime.studies.task import Runner


class BudgetSpentError(Exception):
    """More members are asked for than a search may have."""


class Evaluations:
    """All members that a search has asked for, in the order in which it did."""

    def __init__(self, base: Study, keeper: "Keeper", budget: int, tell: Callable[[int], None]):
        self._base, self._keeper, self._budget, self._tell = base, keeper, budget, tell
        self._known: dict[bytes, int] = {}
        self._columns: Columns = {name: column[:0] for name, column in base.columns.items()}
        names = [variable.name for variable in base.variables if not variable.shape]
        self.figures: dict[str, np.ndarray] = {name: np.empty(0) for name in names}
        """By name, a number for each member so far."""

    def __len__(self) -> int:
        return len(self._known)

    @property
    def left(self) -> int:
        """How many more members there may be."""
        return self._budget - len(self)

    def of(self, columns: Columns) -> np.ndarray:
        """The number of each member, in the order in which they were first asked for."""
        study = self._base.with_columns(columns)
        keys = as_keys(study.addresses).tolist()
        new: dict[bytes, int] = {}
        for row, key in enumerate(keys):
            if key not in self._known:
                new.setdefault(key, row)
        if len(new) > self.left:
            raise BudgetSpentError
        if new:
            rows = np.array(list(new.values()))
            own = self._base.with_columns({n: column[rows] for n, column in study.columns.items()})
            figures = self._keeper.evaluate(own, list(self.figures))
            for name, values in figures.items():
                self.figures[name] = np.concatenate([self.figures[name], values])
            for name, column in own.columns.items():
                self._columns[name] = np.concatenate([self._columns[name], column])
            self._known |= {key: len(self._known) + i for i, key in enumerate(new)}
            self._tell(len(self))
        return np.array([self._known[key] for key in keys], int)

    def addresses(self, members: np.ndarray) -> np.ndarray:
        """(member, 16) bytes of some members."""
        keys = np.array(list(self._known), f"S{BYTES}")[members]
        return np.frombuffer(keys.tobytes(), np.uint8).reshape(len(members), BYTES)

    @property
    def study(self) -> Study:
        """The study of all members so far."""
        return self._base.with_columns(self._columns)


class Keeper:
    """Where members are kept and run: a store, or the memory."""

    computed = 0
    """Members that were run here."""

    def evaluate(self, study: Study, names: list[str]) -> dict[str, np.ndarray]:
        """Figures of a study's members, of which none was asked for before."""
        raise NotImplementedError

    def result(self, study: Study, about: dict[str, Any]) -> StudyResult:
        """All of a study's members, which were asked for, and what was found of them: a table that
        speaks of members by their numbers.
        """
        raise NotImplementedError

    def slopes(self, name: str) -> Path | None:
        """The file for slopes of that name; None in memory."""
        return None


class InMemory(Keeper):
    """Keeps all of it here."""

    def __init__(self, threads: int | None):
        self._threads = threads
        self._parts: list[dict[str, np.ndarray]] = []
        self._failed: dict[int, Divergence] = {}

    def evaluate(self, study: Study, names: list[str]) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for chunk in study.chunks(np.arange(study.size), study.chunk):
            kept = chunk.experiment.run(study.lanes(chunk), self._threads)
            for name, values in kept.arrays.items():
                if name not in found:
                    found[name] = np.empty((study.size, *values.shape[1:]), values.dtype)
                found[name][chunk.members] = values
            for row, where in kept.diverged.items():
                self._failed[self.computed + int(chunk.members[row])] = where
        self._parts.append(found)
        self.computed += study.size
        return {name: found[name] for name in names}

    def result(self, study: Study, about: dict[str, Any]) -> StudyResult:
        parts = {
            variable.name: np.concatenate([part[variable.name] for part in self._parts])
            for variable in study.variables
        }
        found = result_in_memory(study, parts, self._failed)
        found.dataset.attrs[OPTIMISE] = json.dumps(about)
        return found


class InStore(Keeper):
    """Keeps it in a folder, which is held until the search ends."""

    def __init__(self, store: Store, run: Runner):
        self.store, self._run = store, run

    @staticmethod
    @contextlib.contextmanager
    def opened(folder: Path, study: Study, run: Runner) -> Iterator["InStore"]:
        """The study's group in a folder, made where it is not there."""
        with writing(folder):
            store = open_store(folder, study)
            store.sweep_up()
            yield InStore(store, run)

    def evaluate(self, study: Study, names: list[str]) -> dict[str, np.ndarray]:
        left = self.store.plan(study)
        for done in self._run(study, work_of(study, self.store, left)):
            self.computed += done.members
            self.store.look_again([done.chunk])
        rows = self.store.rows_of(study.addresses)
        return {name: self.store.read(name, rows) for name in names}

    def result(self, study: Study, about: dict[str, Any]) -> StudyResult:
        rows = self.store.rows_of(study.addresses)
        best, row = about["best"], rows.tolist()
        by_row = {name: [row[member] for member in about[name]] for name in ROWS}
        self.store.note(OPTIMISE, {**about, "best": None if best is None else row[best], **by_row})
        return result_of(self.store, rows, study.title, self.computed, study)

    def slopes(self, name: str) -> Path | None:
        return self.store.marks / f"slopes_{name}.npz"
