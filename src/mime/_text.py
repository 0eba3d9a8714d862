"""Words for people: names in error messages, warnings that point at the user's line."""

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches


def quoted(names: Iterable[str]) -> str:
    """'a', 'b', 'c'; or (none)."""
    return ", ".join(repr(str(name)) for name in names) or "(none)"


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` when a known name is near, else nothing."""
    close = get_close_matches(str(name), [str(entry) for entry in known], n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def warn_user(warning: Warning) -> None:
    """Issue a warning that points at the caller's code, not at ours or at what wraps it."""
    level, frame = 1, sys._getframe()
    ours = ("mime", "equinox", "jaxtyping")
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ours:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
