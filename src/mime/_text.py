"""Words for people: names in error messages, warnings that point at the user's line."""

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches

MOST_CHARACTERS = 2000
"""Of a message: what comes from a file can be of any length, and a person reads a screen."""

_LONGEST_NAME = 100


def quoted(names: Iterable[str], most: int = 50) -> str:
    """'a', 'b', 'c'; or (none). Of very many the first are shown."""
    known = [shortened(repr(str(name)), 60) for name in names]
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more or "(none)"


def shortened(words: str, most: int = MOST_CHARACTERS) -> str:
    """The words, cut in their middle where they are longer than can be meant."""
    if len(words) <= most:
        return words
    half = (most - 5) // 2
    return f"{words[:half]} ... {words[len(words) - half :]}"


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` when a known name is near, else nothing."""
    if len(name := str(name)) > _LONGEST_NAME:
        return ""  # nobody mistypes so much, and the search takes its time
    close = get_close_matches(name, [str(entry) for entry in known], n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def warn_user(warning: Warning) -> None:
    """Issue a warning that points at the caller's code, not at ours or at equinox's wrappers."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("mime", "equinox"):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
