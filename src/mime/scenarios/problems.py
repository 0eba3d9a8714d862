"""What is wrong with a scenario: every problem with its file, line and key."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Path_ = tuple[str | int, ...]
"""Where in the file: `("nodes", "rotor", "r_ohm")`, `("edges", 0, "from")`."""


class ScenarioError(ValueError):
    """All that is wrong with a scenario file. `problems` lists it, one line each."""

    def __init__(self, file: str | os.PathLike[str], problems: Sequence[str]):
        self.file, self.problems = Path(file), tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclasses.dataclass
class Source:
    """A scenario file and what was found in it so far."""

    file: Path
    lines: Mapping[Path_, int]
    """The line of every key and table."""
    overridden: Mapping[Path_, str] = dataclasses.field(default_factory=dict)
    """Keys that the command line set, with the words that did."""
    found: list[str] = dataclasses.field(default_factory=list)

    def add(self, path: Path_, message: str) -> None:
        """Note a problem with the key at `path`; the same one is noted once."""
        problem = f"{self._place(path)}: {key(path)}: {message}" if path else self._whole(message)
        if problem not in self.found:
            self.found.append(problem)

    def folder(self, path: Path_) -> Path:
        """Where the file that a key names is: here if `--set` named it, else by the scenario."""
        said = any(path[: len(known)] == known for known in self.overridden)
        return Path() if said else self.file.parent

    def stop_if_any(self) -> None:
        """Raise with all that was found."""
        if self.found:
            raise ScenarioError(self.file, sorted(self.found, key=self._line))

    def _line(self, problem: str) -> int:
        """Problems are told in the order of the file, those of the command line first."""
        line = problem.removeprefix(f"{self.file}:").partition(":")[0]
        return int(line) if line.isdigit() else 0

    def _whole(self, message: str) -> str:
        return f"{self.file}: {message}"

    def _place(self, path: Path_) -> str:
        """The nearest place that the file (or the command line) knows of."""
        for length in range(len(path), 0, -1):
            for known, words in self.overridden.items():
                if known[:length] == path[:length] and length >= len(known):
                    return words
            if path[:length] in self.lines:
                return f"{self.file}:{self.lines[path[:length]]}"
        return str(self.file)


def blamed(path: Path_, given: Mapping[str, Any], message: str) -> Path_:
    """The key that a refusal speaks of: one that it names, else one whose value it shows."""
    named = [(message.find(name), name) for name in given if name in message]
    if not named:
        shows = [(message.find(repr(v)), name) for name, v in given.items() if isinstance(v, str)]
        named = [entry for entry in shows if entry[0] >= 0]
    return (*path, min(named)[1]) if named else path


def key(path: Path_) -> str:
    """`edges[0].from`, `inputs."rotor.commanded_voltage".kind`: as TOML writes it."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            plain = part.replace("_", "").replace("-", "").isalnum() and part.isascii()
            words += ("." if words else "") + (part if plain else f'"{part}"')
    return words
