"""What a reader of robot files did not take as it is written, as values."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mime._text import Travels, shortened


class Finding(NamedTuple):
    """One thing in a file that is not simulated as it is written."""

    place: str
    """The file that it stands in."""
    line: int | None
    what: str
    """In words: the element, and what it says."""
    mended: str = ""
    """What was taken instead; empty where it was left out."""

    def __str__(self) -> str:
        where = self.place if self.line is None else f"{self.place}:{self.line}"
        return f"{where}: {self.what}" + (f"; {self.mended}" if self.mended else "")


class RobotFileError(Travels, ValueError):
    """A robot's file cannot be simulated. It names file and line, what was found, what to do."""

    def __init__(self, file: Path, message: str, line: int | None = None):
        self.filename = str(file)  # as an `OSError` has it
        where = str(file) if line is None else f"{file}:{line}"
        super().__init__(shortened(f"{where}: {message}"))


def left_out(file: Path, notes: Iterable[str]) -> tuple[Finding, ...]:
    """Findings of notes without lines."""
    return tuple(Finding(str(file), None, note) for note in notes)
