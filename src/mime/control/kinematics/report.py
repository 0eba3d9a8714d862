"""What a reader of robot files comes across, as values."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mime._text import Travels, shortened, warn_user
from mime.control.kinematics.rules import RULES, Kind
from mime.core.arguments import wrong

ON_PROBLEM = ("warn", "refuse", "mend")
_NAMED = 3
"""Findings of a kind that a warning names; `tree.report` has all."""


class Finding(NamedTuple):
    """One thing in a file that is worth a word."""

    place: str
    """The file that it stands in."""
    line: int | None
    what: str
    """The element, and what it says."""
    effect: str = ""
    """What MIME does with it; empty: what its rule says."""
    rule: str = "malformed"
    """The line of the table `RULES` that decides."""
    kind: Kind = "noted"
    """noted, reported, refused, or mended."""

    def __str__(self) -> str:
        where = self.place if self.line is None else f"{self.place}:{self.line}"
        return f"{where}: {self.words}"

    @property
    def where(self) -> str:
        """File, without its folder, and line."""
        name = Path(self.place).name
        return name if self.line is None else f"{name}:{self.line}"

    @property
    def briefly(self) -> str:
        """Without the folder of the file."""
        return f"{self.where}: {self.words}"

    @property
    def words(self) -> str:
        """Without the place."""
        return self.what + (f"; {self.effect}" if self.effect else "")

    @property
    def consequence(self) -> str:
        """What MIME does with it."""
        return self.effect or RULES[self.rule].effect


class RobotFileWarning(UserWarning):
    """A robot's file loads, and moves otherwise than it says."""


class RobotFileError(Travels, ValueError):
    """A robot's file cannot be simulated. It names file and line, what was found, what to do.

    `findings` holds all that is wrong.
    """

    def __init__(self, file: Path, message: str, line: int | None = None, rule: str = "malformed"):
        self.filename = str(file)  # as an `OSError` has it
        where = str(file) if line is None else f"{file}:{line}"
        super().__init__(shortened(f"{where}: {message}"))
        finding = Finding(str(file), line, message, rule=rule, kind="refused")
        self.findings: tuple[Finding, ...] = (finding,)


def refused(
    kind: type[RobotFileError], findings: Sequence[Finding], hint: str = ""
) -> RobotFileError:
    """The error of all that is wrong, one line each."""
    first, *others = findings
    lines = [first.words, *map(str, others), hint]  # a scenario shows them in one line
    words = "\n".join(line if line.endswith(".") else f"{line}." for line in lines if line)
    error = kind(Path(first.place), words, first.line)
    error.findings = tuple(findings)
    return error


@dataclass
class Findings:
    """What a reader comes across; `settled` judges all of it at the end."""

    on_problem: str = "warn"
    all: list[Finding] = field(default_factory=list)

    def add(self, rule: str, finding: Finding, mended: str = "") -> bool:
        """Add a finding under a rule; True where it is to be mended, as `mended` says."""
        mends = self.on_problem == "mend" and bool(RULES[rule].mend)
        kind = "mended" if mends else RULES[rule].kind
        effect = (mended or RULES[rule].mend) if mends else finding.effect
        self.all.append(finding._replace(rule=rule, kind=kind, effect=effect))
        return mends

    def refuse(self, kind: type[RobotFileError]) -> None:
        """Raise the error of what is refused, if there is any."""
        stops = ["refused", *(["reported"] if self.on_problem == "refuse" else [])]
        if found := in_order(finding for finding in self.all if finding.kind in stops):
            raise refused(kind, found, _hint(found))

    def settled(self, kind: type[RobotFileError]) -> tuple[Finding, ...]:
        """All findings in the order of the file, after one warning of those that are reported."""
        self.refuse(kind)
        report = tuple(in_order(self.all))
        if reported := [finding for finding in report if finding.kind == "reported"]:
            warn_user(RobotFileWarning(warning_words(reported)))
        return report


def _hint(findings: Sequence[Finding]) -> str:
    """What to do about refusals: each word that helps, once."""
    rules = dict.fromkeys(finding.rule for finding in findings)
    words = [RULES[rule].effect for rule in rules if RULES[rule].kind == "refused"]
    hint = "; ".join(words)
    hint = hint[:1].upper() + hint[1:] + "." if hint else ""
    if any(RULES[rule].mend for rule in rules):
        mends = "; ".join(RULES[rule].mend for rule in rules if RULES[rule].mend)
        hint += f" on_problem='mend' reads the file: {mends}."
    if any(RULES[rule].kind == "reported" for rule in rules):
        hint += " on_problem='warn' reads the file without what is reported."
    return hint.strip()


def warning_words(reported: Sequence[Finding]) -> str:
    """One block: how many of each rule, what that changes, and the first by name."""
    file = Path(reported[0].place).name
    lines = [f"{file}: parts of the file are not simulated as they are written"]
    by_rule: dict[str, list[Finding]] = {}
    for finding in reported:
        by_rule.setdefault(finding.rule, []).append(finding)
    for rule, findings in by_rule.items():
        lines.append(f"  {RULES[rule].what} ({len(findings)}): {RULES[rule].effect}")
        lines += [f"    {shortened(finding.briefly, 200)}" for finding in findings[:_NAMED]]
        if len(findings) > _NAMED:
            lines.append(f"    and {len(findings) - _NAMED} more")
    lines.append("tree.report has all of it; on_problem='refuse' refuses such a file")
    return "\n".join(lines)


_NAME = re.compile(r"'[^']*'")
_NAME_OR_LINE = re.compile(_NAME.pattern + r"|\bline \d+")
HEADINGS = ("class", "line", "what", "effect")


def report_rows(report: Sequence[Finding]) -> list[tuple[str, str, str, str]]:
    """A report as a table under `HEADINGS`: what changes the motion first.

    Notes that differ in names and lines alone share a row.
    """
    rows: dict[tuple[str, str, str, str], list[Finding]] = {}
    for kind in ("refused", "reported", "mended", "noted"):
        for finding in report:
            if finding.kind == kind:
                words = _NAME_OR_LINE.sub("", finding.what) if kind == "noted" else finding.what
                key = kind, finding.rule, words, finding.effect
                rows.setdefault(key, []).append(finding)
    return [
        (alike[0].kind, alike[0].where, _and_more(alike), alike[0].consequence)
        for alike in rows.values()
    ]


def _and_more(alike: Sequence[Finding]) -> str:
    first, *others = alike
    if not others:
        return first.what
    known = set(_NAME.findall(first.what))
    names = [name for finding in others for name in _NAME.findall(finding.what)]
    new = [name for name in dict.fromkeys(names) if name not in known]
    listed = ", ".join(new[:_NAMED]) + (", ..." if len(new) > _NAMED else "")
    return f"{first.what}; and {len(others)} more like it" + (f": {listed}" if new else "")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By file and line, without those that say the same of the same line."""
    return sorted(dict.fromkeys(findings), key=lambda finding: (finding.place, finding.line or 0))


def checked_choice(on_problem: str) -> str:
    """`on_problem`, which is one of three words."""
    if not isinstance(on_problem, str) or on_problem not in ON_PROBLEM:
        was_report = isinstance(on_problem, str) and on_problem == "report"
        hint = "What 'report' did is 'warn' now" if was_report else ""
        raise wrong("on_problem", "'warn', 'refuse' or 'mend'", on_problem, hint)
    return on_problem


def checked_base(base: str | None) -> str | None:
    """`base`, which is one of two words, or None where the file says it."""
    if base not in (None, "fixed", "floating"):
        raise wrong("base", "'fixed' or 'floating'", base)
    return base
