"""What a reader of robot files did not take as it is written, as values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mime._text import Travels, shortened
from mime.core.arguments import wrong

ON_PROBLEM = ("refuse", "report")
REFUSE_HINT = (
    "Correct the file; or pass on_problem='report': then each is mended as it says after its "
    "semicolon, or else left out, and tree.report lists it."
)


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
        return f"{where}: {self.words}"

    @property
    def briefly(self) -> str:
        """Without the folder of the file."""
        return str(self._replace(place=Path(self.place).name))

    @property
    def words(self) -> str:
        """Without the place."""
        return self.what + (f"; {self.mended}" if self.mended else "")


class RobotFileError(Travels, ValueError):
    """A robot's file cannot be simulated. It names file and line, what was found, what to do.

    `findings` holds all that is wrong.
    """

    def __init__(self, file: Path, message: str, line: int | None = None):
        self.filename = str(file)  # as an `OSError` has it
        where = str(file) if line is None else f"{file}:{line}"
        super().__init__(shortened(f"{where}: {message}"))
        self.findings: tuple[Finding, ...] = (Finding(str(file), line, message),)


def refused(
    kind: type[RobotFileError], findings: Sequence[Finding], hint: str = ""
) -> RobotFileError:
    """The error of all that is wrong, one line each."""
    first, *others = findings
    words = "\n".join([first.words, *map(str, others), *([hint] if hint else [])])
    error = kind(Path(first.place), words, first.line)
    error.findings = tuple(findings)
    return error


@dataclass
class Findings:
    """What a reader comes across: a reader mends what it can, and `settled` judges at the end."""

    left_out: list[Finding] = field(default_factory=list)
    """What MIME does not simulate."""
    mended: list[Finding] = field(default_factory=list)
    """What is wrong in the file, and what was taken instead."""

    def settled(self, on_problem: str, kind: type[RobotFileError]) -> tuple[Finding, ...]:
        """All of it, in the order of the file; refused where mending was not allowed."""
        if self.mended and on_problem == "refuse":
            raise refused(kind, in_order(self.mended), REFUSE_HINT)
        return tuple(in_order([*self.left_out, *self.mended]))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By file and line."""
    return sorted(findings, key=lambda finding: (finding.place, finding.line or 0))


def checked_choice(on_problem: str) -> str:
    """`on_problem`, which is one of two words."""
    if not isinstance(on_problem, str) or on_problem not in ON_PROBLEM:
        raise wrong("on_problem", "'refuse' or 'report'", on_problem)
    return on_problem


def checked_base(base: str | None) -> str | None:
    """`base`, which is one of two words, or None where the file says it."""
    if base not in (None, "fixed", "floating"):
        raise wrong("base", "'fixed' or 'floating'", base)
    return base
