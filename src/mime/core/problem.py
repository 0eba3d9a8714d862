"""What is wrong, as a value: where, what, and what to do. Errors carry such values.

Whoever shows a problem looks at its place and never at its words: a scenario finds the line of the
file by the place, a test compares it.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from mime._text import MOST_LETTERS, Travels, shortened

Place = tuple[Any, ...]
"""A path: `("r_ohm",)`, `("gear", "ratio")`, `("edge", edge)`, `("input", "motor", "load")`."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    `Problem(("gear", "ratio"), "must be > 0, got -1")` reads "gear.ratio must be > 0, got -1".
    """

    place: Place
    message: str
    """What was expected and what was found, without the name of the place."""
    hint: str = ""
    """What to do about it; true in Python and in a scenario file alike."""
    label: str | None = None
    """The place in words, where it is not its parts joined by dots."""

    def __str__(self) -> str:
        place = ".".join(map(str, self.place)) if self.label is None else self.label
        return f"{place} {self.words}".strip()

    @property
    def words(self) -> str:
        """Message and hint, without the place."""
        return f"{self.message}. {self.hint}" if self.hint else self.message

    def __getstate__(self) -> dict[str, Any]:
        """What pickle sends: an edge goes without its transform, which may be a lambda."""
        sent = tuple(getattr(part, "without_transform", part) for part in self.place)
        return vars(self) | {"place": sent}

    def inside(self, *outer: Any) -> "Problem":
        """The same problem, its place seen from further out."""
        return dataclasses.replace(self, place=(*outer, *self.place))


class ProblemError(Travels, ValueError):
    """Something that was refused. `problems` says all that is wrong, each with its place.

    `ProblemError("MotorNode 'm'", problems)`, or one sentence: `ProblemError(message, place=...)`,
    with the `label` before it, which a file has no need of: it says the place.
    """

    def __init__(
        self,
        where: str,
        problems: Iterable[Problem] | None = None,
        *,
        place: Place = (),
        label: str = "",
    ) -> None:
        single = problems is None
        self.where = "" if single else where
        self.problems = (Problem(place, where, label=label),) if single else tuple(problems or ())
        super().__init__(self.text())

    def text(self) -> str:
        """The error for people: one sentence, or one line per problem."""
        head = f"{self.where}: " if self.where else ""
        if len(self.problems) == 1:
            return shortened(f"{head}{self.problems[0]}")
        return listed(f"{head}{len(self.problems)} problems:", self.problems)


def listed(head: str, problems: Iterable[Problem], bullet: str = "  - ") -> str:
    """A line per problem, as many as a person reads; the rest is counted."""
    lines = [shortened(f"{bullet}{problem}") for problem in problems]
    kept, room = [shortened(head)] if head else [], MOST_LETTERS - len(head)
    for index, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0 and index:
            return "\n".join([*kept, f"{bullet}... and {len(lines) - index} more"])
        kept.append(line)
    return "\n".join(kept)


class StabilityWarning(UserWarning):
    """A node's timestep is longer than its integrator is stable at."""


class ParameterError(ProblemError):
    """Parameters that no such element can have; places are names of parameters."""


class InputError(ProblemError):
    """An input, a state or a request that a graph does not have, or of the wrong shape.

    Places: `("input", node, field)`, `("state", node, field)`, `("record", node, field)`, or the
    name of an argument.
    """


class GraphError(ProblemError):
    """Everything that is wrong with a graph, found in one pass.

    Places: `("node", name)`, `("edge", edge)`, `("input", node, field)`, `("group", name)`.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        super().__init__("the graph", problems)

    def text(self) -> str:
        """One line per problem."""
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return listed(f"the graph has {count}:", self.problems)
