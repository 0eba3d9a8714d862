"""Markdown that is changed outside of its code: fenced blocks stay as they are."""

import re
from collections.abc import Callable

FENCE = r"^[ ]*(?P<fence>```+|~~~+)[^\n]*\n.*?^[ ]*(?P=fence)[ ]*$"
CODE = r"(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"


def replaced(text: str, pattern: str, draw: Callable[[re.Match], str]) -> str:
    """`pattern` -> `draw(match)`, outside of fenced blocks and of code in a line."""
    return outside(f"{FENCE}|{CODE}", text, pattern, draw)


def replaced_in_prose(text: str, pattern: str, draw: Callable[[re.Match], str]) -> str:
    """Likewise, in lines and their code, outside of fenced blocks only."""
    return outside(FENCE, text, pattern, draw)


def outside(kept: str, text: str, pattern: str, draw: Callable[[re.Match], str]) -> str:
    """Likewise, outside of what `kept` matches."""

    def one(match: re.Match) -> str:
        return match[0] if match["kept"] is not None else draw(match)

    both = f"(?P<kept>{kept})|{pattern}"
    return re.sub(both, one, text, flags=re.DOTALL | re.MULTILINE)
