"""The members of a study as a table: a column for each parameter and figure, with units."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from mime._files import write_atomically
from mime.scenarios.merits import Merit
from mime.studies.result import StudyResult

Kind = Literal["parameter", "figure"]
Direction = Literal["minimise", "maximise"]
_BLOCK = 2**16
"""Rows of the CSV that are written at once."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A number for each member, or a word."""

    name: str
    unit: str
    kind: Kind
    values: np.ndarray
    """(member,) numbers; of words, their place in `words`."""
    is_log: bool = False
    words: tuple[str, ...] = ()
    about: str = ""
    direction: Direction | None = None
    """What is better, where the study says so."""

    @property
    def heading(self) -> str:
        """`motor.r_ohm [Ω]`"""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def cells(self, rows: slice) -> list[str]:
        """Some values as text that gives the same numbers when it is read; nothing for NaN."""
        values = self.values[rows].tolist()
        if self.words:
            return [_quoted(self.words[int(value)]) for value in values]
        return [repr(value) if value == value else "" for value in values]


class Limit(NamedTuple):
    """What a figure must keep: by the scenario, or by a search."""

    figure: str
    sense: str
    bound: float

    def is_kept(self, values: np.ndarray) -> np.ndarray:
        """(member,); a figure that was not reached keeps no limit."""
        return values <= self.bound if self.sense == "<=" else values >= self.bound


@dataclasses.dataclass(frozen=True)
class Table:
    """All members of a study."""

    columns: tuple[Column, ...]
    addresses: np.ndarray | None
    """(member, 16) bytes."""
    diverged: Mapping[int, str]
    """In words, where a member left the finite numbers."""
    outside: np.ndarray
    """(member,) whether a figure is beyond its limits, or was not reached."""
    limits: str
    """These limits in words."""

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self.outside)

    @property
    def parameters(self) -> list[Column]:
        """What varies."""
        return [column for column in self.columns if column.kind == "parameter"]

    @property
    def figures(self) -> list[Column]:
        """What came out."""
        return [column for column in self.columns if column.kind == "figure"]

    @property
    def eligible(self) -> np.ndarray:
        """(member,) who may be best: those that keep all limits; all where none does."""
        return np.ones(self.size, bool) if self.outside.all() else ~self.outside

    def write_csv(self, path: Path) -> None:
        """All members, a line each, a block at a time; whole or not at all."""

        def write(part: Path) -> None:
            with part.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(self._lines())

        write_atomically(path, write)

    def _lines(self) -> Iterator[str]:
        names = [column.heading for column in self.columns]
        yield ",".join(map(_quoted, ["member", "address", *names, "diverged", "outside"])) + "\n"
        for first in range(0, self.size, _BLOCK):
            rows = slice(first, min(first + _BLOCK, self.size))
            members = range(rows.start, rows.stop)
            addresses = self._hexadecimal(rows)
            cells = [column.cells(rows) for column in self.columns]
            failed = [""] * len(members)
            for member in self.diverged.keys() & members:
                failed[member - first] = _quoted(self.diverged[member])
            outside = ["1" if value else "0" for value in self.outside[rows].tolist()]
            lines = zip(map(str, members), addresses, *cells, failed, outside)
            yield "\n".join(map(",".join, lines)) + "\n"

    def _hexadecimal(self, rows: slice) -> list[str]:
        if self.addresses is None:
            return [""] * (rows.stop - rows.start)
        digits, width = self.addresses[rows].tobytes().hex(), 2 * self.addresses.shape[1]
        return [digits[i : i + width] for i in range(0, len(digits), width)]


def table_of(result: StudyResult) -> Table:
    """The table behind a result; fields over time are left out."""
    dataset = result.dataset
    search = search_of(result)
    wanted = {entry["figure"]: entry["direction"] for entry in search.get("objectives", ())}
    merits: dict[str, Merit] = {}
    if result.study is not None:
        merits = {merit.name: merit for merit in result.study.experiments[0].merits}
    columns = []
    for name, values in dataset.coords.items():
        if values.dims == ("member",) and name != "member":
            is_log = values.attrs.get("scale") == "log"
            numbers, words = _numbers(values.values)
            unit = _unit(values.attrs)
            columns.append(Column(str(name), unit, "parameter", numbers, is_log, words))
    for name, values in dataset.data_vars.items():
        if values.dims == ("member",):
            merit = merits.get(str(name))
            about = values.attrs.get("long_name", "")
            direction = wanted.get(str(name)) or (_direction(merit) if merit else None)
            numbers, unit = np.asarray(values.values, float), _unit(values.attrs)
            columns.append(Column(str(name), unit, "figure", numbers, False, (), about, direction))
    failed = {member: str(where) for member, where in result.diverged.items()}
    if search:  # it says itself what must be kept
        limits = [Limit(e["figure"], e["sense"], e["bound"]) for e in search["constraints"]]
    else:
        limits = [limit for name, merit in merits.items() for limit in _limits(name, merit)]
    outside = np.zeros(dataset.sizes["member"], bool)
    by_name = {column.name: column for column in columns}
    told = []
    for limit in dict.fromkeys(limits):
        column = by_name[limit.figure]
        outside |= ~limit.is_kept(column.values)
        sign = {"<=": "≤", ">=": "≥"}[limit.sense]
        told.append(f"{limit.figure} {sign} {limit.bound:g} {column.unit}".rstrip())
    return Table(tuple(columns), result.addresses, failed, outside, ", ".join(told))


def search_of(result: StudyResult) -> dict[str, Any]:
    """What `mime optimise` has noted in the store: objectives, constraints, best, front."""
    noted = result.dataset.attrs.get("optimise", "{}")
    found = json.loads(noted) if isinstance(noted, str) else dict(noted)
    return found if isinstance(found, dict) else {}


def _numbers(values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    if values.dtype.kind in "fiub":
        return np.asarray(values, float), ()
    every = dict.fromkeys(values.tolist())
    place = {word: index for index, word in enumerate(every)}
    return np.array([place[word] for word in values.tolist()], float), tuple(map(str, every))


def _unit(attributes: Mapping[str, Any]) -> str:
    unit = str(attributes.get("units", ""))
    return "" if unit == "1" else unit


def _direction(merit: Merit) -> Direction | None:
    """A figure that must not be exceeded shall be small."""
    if (merit.at_least is None) == (merit.at_most is None):
        return None
    return "minimise" if merit.at_least is None else "maximise"


def _limits(name: str, merit: Merit) -> Iterator[Limit]:
    if merit.at_least is not None:
        yield Limit(name, ">=", merit.at_least)
    if merit.at_most is not None:
        yield Limit(name, "<=", merit.at_most)


def _quoted(text: str) -> str:
    """A cell of a CSV file, in quotes where it needs them."""
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text
