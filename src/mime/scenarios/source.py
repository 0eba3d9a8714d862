"""A scenario file, what the command line changes in it, and all that is found wrong with it."""

import dataclasses
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mime._text import nearest, quoted
from mime.core.problem import Place, Problem, ProblemError, listed
from mime.scenarios.positions import key_lines

_MOST_BYTES, _MOST_KEYS, _MOST_VALUES, _MOST_DOTS = 2**20, 5_000, 200_000, 1_000
"""Of a file. Larger than any that a person means, and small enough to be read in a second."""


@dataclasses.dataclass(frozen=True)
class ScenarioProblem(Problem):
    """A problem whose place is a path of keys: `("nodes", "motor", "gear", "ratio")`."""

    file: Path = Path()
    line: int | None = None
    """Where in the file; None when that is not known."""
    override: str = ""
    """The words of the command line that set the key, if they did."""

    def __str__(self) -> str:
        where = f"--set {self.override}" if self.override else str(self.file)
        where += f":{self.line}" if self.line is not None and not self.override else ""
        parts = [where, key(self.place), f"{self.label} {self.words}" if self.label else self.words]
        return ": ".join(part for part in parts if part)


class ScenarioError(ProblemError):
    """All that is wrong with a scenario file, in the order of the file."""

    problems: tuple[ScenarioProblem, ...]

    def __init__(self, file: str | os.PathLike[str], problems: Sequence[ScenarioProblem]):
        self.file = Path(file)
        super().__init__(str(file), problems)

    def text(self) -> str:
        """One line per problem: file, line, key, what is wrong."""
        return listed("", self.problems, bullet="")


@dataclasses.dataclass
class Source:
    """A scenario file and what was found wrong with it so far."""

    file: Path
    text: str
    data: dict[str, Any]
    lines: dict[Place, int]
    """The line of every key and table."""
    allow_code: bool = False
    """Whether a node's type may name a file of Python."""
    overridden: dict[Place, str] = dataclasses.field(default_factory=dict)
    """Keys that the command line set, with the words that did."""
    found: dict[ScenarioProblem, None] = dataclasses.field(default_factory=dict)
    """In the order in which they were found, each once."""

    def add(self, place: Place, message: str, hint: str = "") -> None:
        """Note a problem with the key at `place`."""
        self.note(Problem(place, message, hint))

    def note(self, problem: Problem, override: str = "") -> None:
        """Note a problem, with the nearest line that the file has for its place; once."""
        place, line = problem.place, None
        for length in range(len(place), 0, -1):
            override = override or self.overridden.get(place[:length], "")
            line = self.lines.get(place[:length])
            if override or line is not None:
                break
        parts = place, problem.message, problem.hint, problem.label
        located = ScenarioProblem(*parts, self.file, None if override else line, override)
        self.found[located] = None

    def refuse(self, place: Place, error: Exception) -> None:
        """Note what an error says: each of its problems below `place`, else all of it there."""
        if isinstance(error, ProblemError):
            for problem in error.problems:
                self.note(problem.inside(*place))
        else:
            self.add(place, in_words(error))

    def refuse_arguments(self, error: ProblemError, tables: Mapping[str, Place] = {}) -> None:
        """Note what a function says of its arguments, which this file has under the same names.

        Their labels are left out: the place says them. `tables`: where an argument stands if not at
        the top.
        """
        for problem in error.problems:
            outer = tables.get(str(problem.place[0]), ()) if problem.place else ()
            self.note(dataclasses.replace(problem, label="").inside(*outer))
        self.stop_if_any()

    def wrong(self, *place: Any) -> bool:
        """True when a problem was found at or below a place."""
        return any(problem.place[: len(place)] == place for problem in self.found)

    def names(self, table: str) -> list[str]:
        """The keys of a table of the file, whatever is wrong with them."""
        found = self.data.get(table)
        return list(found) if isinstance(found, dict) else []

    def folder(self, place: Place) -> Path:
        """Where the file that a key names is: here if `--set` named it, else by the scenario."""
        said = any(place[: len(known)] == known for known in self.overridden)
        return Path() if said else self.file.parent

    def stop_if_any(self) -> None:
        """Raise with all that was found: of the command line first, then as in the file."""
        if self.found:
            raise ScenarioError(self.file, sorted(self.found, key=lambda found: found.line or 0))


def read_source(file: Path, allow_code: bool = False) -> Source:
    """A file's tables and the lines of their keys; a `ScenarioError` when it is no TOML."""
    try:
        if (size := file.stat().st_size) > _MOST_BYTES:
            _refuse_size(file, size, "bytes", _MOST_BYTES)
        text = file.read_bytes().decode("utf-8")
        plain = text.replace("\r\n", "\n")
        # First of all: the time that `tomllib` takes grows with the square of a key's parts.
        deep = [n for part in re.split(r"[=,\[{\n]", plain) if (n := part.count(".")) > 40]
        if sum(deep) > _MOST_DOTS:
            _refuse_size(file, sum(deep), "parts in dotted keys", _MOST_DOTS)
        data = tomllib.loads(plain)
        for count, what, most in zip(
            _size(data), ("keys", "values"), (_MOST_KEYS, _MOST_VALUES), strict=True
        ):
            if count > most:
                _refuse_size(file, count, what, most)
        return Source(file, text, data, key_lines(plain), allow_code)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].count(b"\n")
        _refuse(file, f"not UTF-8 text: {error.reason}", before + 1)
    except OSError as error:
        _refuse(file, f"cannot be read: {error.strerror}")
    except tomllib.TOMLDecodeError as error:
        message, row, column = _toml_position(error)
        _refuse(file, f"not TOML: {message}", row, f"column {column}:" if row else "")
    except ValueError as error:  # a number of more digits than Python reads
        if isinstance(error, ScenarioError):
            raise
        _refuse(file, f"not TOML: {error}")


def _size(data: Any) -> tuple[int, int]:
    """How many keys and how many entries of lists there are in all tables."""
    keys = entries = 0
    left = [data]
    while left:
        table = left.pop()
        keys += len(table) if isinstance(table, dict) else 0
        entries += len(table) if isinstance(table, list) else 0
        inside = table.values() if isinstance(table, dict) else table
        left += [value for value in inside if isinstance(value, dict | list)]
    return keys, entries


def _refuse_size(file: Path, count: int, what: str, most: int) -> NoReturn:
    _refuse(file, f"{count:,} {what}: not a scenario, which has at most {most:,}")


def _refuse(
    file: Path, message: str, line: int | None = None, label: str | None = None
) -> NoReturn:
    raise ScenarioError(file, [ScenarioProblem((), message, "", label, file, line)])


def _toml_position(error: tomllib.TOMLDecodeError) -> tuple[str, int | None, int]:
    """Message, line and column.

    The one place that reads the text of an error: before Python 3.14, `tomllib` tells the position
    nowhere else.
    """
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
    return (match[1], int(match[2]), int(match[3])) if match else (str(error), None, 0)


def apply_overrides(overrides: Sequence[str], source: Source) -> None:
    """Set keys from outside the file.

    `motor.r_ohm=2`, `motor.gear.ratio=5` and `arm.link[forearm].mass_kg=2` are a node's (or an
    assembly's), `simulation.duration=3` is the simulation's, and of an input
    `inputs.motor.commanded_voltage.value=6` is a key and
    `inputs.motor.commanded_voltage={kind="constant", value=6}` all of it.
    """
    for words in overrides:
        name, equals, value = words.partition("=")
        place = _override_place(name.strip(), source)
        if not equals or place is None:
            known = [*source.names("nodes"), *source.names("assemblies")]
            near = nearest(name.partition(".")[0], [*known, "simulation"])
            forms = "NODE.PARAMETER=VALUE, simulation.KEY=VALUE or inputs.NODE.INPUT.KEY=VALUE"
            form = f"must be {forms}{near}"
            source.note(Problem((), f"{form} (nodes: {quoted(known)})"), words)
            continue
        table: Any = source.data
        for part in place[:-1]:
            table = table.setdefault(part, {}) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            source.note(Problem(place[:-1], "is not a table"), words)
            continue
        table[place[-1]] = _override_value(value.strip())
        source.overridden[place] = words
        replaced = [at for at in source.lines if at[: len(place)] == place != at]
        for at in replaced:  # the file's lines are not of what took their place
            del source.lines[at]


def _override_place(name: str, source: Source) -> Place | None:
    first, _, rest = name.partition(".")
    parts = [rest] if "[" in rest else rest.split(".")
    if not all(parts):
        return None
    for kind in ("nodes", "assemblies"):
        if first in source.names(kind):
            return (kind, first, *parts)
    if first == "simulation":
        return ("simulation", *parts)
    if first == "inputs" and len(parts) in (2, 3):
        return ("inputs", ".".join(parts[:2]), *parts[2:])
    return None


def _override_value(words: str) -> Any:
    """Read it as TOML does; what TOML does not read is a string, so quotes may be left out."""
    try:
        parsed = tomllib.loads(f"value = {words}")
    except (ValueError, RecursionError):
        return words
    return parsed["value"] if list(parsed) == ["value"] else words


def key(place: Place) -> str:
    """`edges[0].from`, `inputs."rotor.commanded_voltage".kind`: as TOML writes it."""
    return "".join(_key_parts(place))


def _key_parts(place: Place) -> Iterator[str]:
    for index, part in enumerate(place):
        if isinstance(part, int):
            yield f"[{part}]"
        else:
            plain = part.replace("_", "").replace("-", "").isalnum() and part.isascii()
            yield ("." if index else "") + (part if plain else f'"{part}"')


def in_words(error: Exception) -> str:
    """An error of any package in one line."""
    words = " ".join(str(error).split())
    return words if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {words}"


def shown(value: Any) -> str:
    """A value as a person wrote it, cut short when long."""
    words = str(value).lower() if isinstance(value, bool) else repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
