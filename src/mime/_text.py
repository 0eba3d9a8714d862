"""Words for people: names in error messages, warnings that point at the user's line."""

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

MOST_LETTERS = 1_500
"""Of a message: whoever reads on a terminal sees its beginning and its end."""
_MOST_NAMES, _LONGEST_NAME = 20, 60
_NEAREST = 3
"""Names of links or joints in a message that are told beside a wrong one."""


def quoted(names: Iterable[str]) -> str:
    """'a', 'b', 'c'; or (none); or the first 20 of them and how many more there are."""
    found = list(names)
    words = [brief(str(name), _LONGEST_NAME) for name in found[:_MOST_NAMES]]
    if len(found) > _MOST_NAMES:
        words.append(f"... and {len(found) - _MOST_NAMES} more")
    return ", ".join(words) or "(none)"


def brief(value: Any, most: int = 200) -> str:
    """`repr(value)`, on one line and at most so many letters; for what an error was given."""
    try:
        return shortened(" ".join(repr(value).split()), most)
    except Exception:  # a value whose repr fails is still named
        return f"a {type(value).__name__}"


def shortened(text: str, most: int = MOST_LETTERS) -> str:
    """The text, its middle left out where it is longer than anyone would read."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]} ... {text[-(most // 4) :]}"


class Travels:
    """An exception that pickles to itself, whatever its `__init__` takes.

    Worker processes send exceptions that way; by default they are built anew from their text.
    """

    def __reduce__(self) -> Any:
        return _arrive, (type(self), getattr(self, "args", ()), vars(self))


def _arrive(kind: Any, args: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


def nearest(name: str, known: Iterable[str], most: int = 1) -> str:
    """` (did you mean 'x'?)`, with at most so many known names that are near; else nothing."""
    close = [brief(entry, _LONGEST_NAME) for entry in _near(name, known, most)]
    *others, last = close or [""]
    words = f"{', '.join(others)} or {last}" if others else last
    return f" (did you mean {words}?)" if close else ""


def unknown_name(name: Any, known: Iterable[str], kind: str) -> tuple[str, str]:
    """What is said of a name of a link or joint that is not there, and of those that are.

    `names no link 'tol' (did you mean 'tool' or 'tool0'?)` and `It has 24 links`.
    """
    names = [str(entry) for entry in known]
    near = nearest(str(name), names, _NEAREST)
    return f"names no {kind} {brief(name)}{near}", f"It has {counted(str(name), names, kind)}"


def counted(name: str, known: Iterable[str], kind: str) -> str:
    """`24 links`; with the first three of them where no name is near; all where they are few."""
    names = [str(entry) for entry in known]
    words = f"{len(names)} {kind}{'' if len(names) == 1 else 's'}"
    few = len(names) <= _NEAREST
    if not names or (not few and _near(name, names, 1)):
        return words
    shown = ", ".join(brief(entry, _LONGEST_NAME) for entry in names[:_NEAREST])
    return f"{words}: {shown}{'' if few else ', ...'}"


def _near(name: str, known: Iterable[str], most: int) -> list[str]:
    if len(str(name)) > _LONGEST_NAME:  # the search takes a time that grows with its square
        return []
    names = dict.fromkeys(str(entry) for entry in known)
    return get_close_matches(str(name), names, n=most, cutoff=0.5)


def warn_user(warning: Warning) -> None:
    """Issue a warning that points at the caller's code, not at ours or at what wraps it."""
    level, frame = 1, sys._getframe()
    ours = ("mime", "equinox", "jaxtyping")
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ours:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
