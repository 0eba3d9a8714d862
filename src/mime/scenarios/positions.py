"""The line of a TOML text on which each key stands; `tomllib` reads values but tells no lines."""

import re
import tomllib
from bisect import bisect_right

from mime.core.problem import Place

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2}(?!"))'
    r"|'''.*?'''(?:'{0,2}(?!'))"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_MOST_PARTS = 100
"""Parts of a dotted key: more than any scenario has, and every prefix of a key is kept."""
_OTHER = re.compile(r"[^,\]}\n#]+")


def key_lines(text: str) -> dict[Place, int]:
    """Line numbers, from 1, of every key and table of a text that `tomllib` has accepted."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.lines: dict[Place, int] = {}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._tables: dict[Place, int] = {}
        """How many `[[tables]]` of each name there were."""

    def scan(self) -> dict[Place, int]:
        table: Place = ()
        while self._skip() < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.lines

    def _skip(self) -> int:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _header(self) -> Place:
        start, many = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        path: Place = ()
        for part in self._key():
            path = self._latest((*path, part))
        if many:
            path = path[:-1] if isinstance(path[-1], int) else path
            count = self._tables.get(path, 0)
            self._tables[path] = count + 1
            self._note(path, start)
            path = (*path, count)
        self.at += 2 if many else 1
        self._note(path, start)
        return path

    def _latest(self, path: Place) -> Place:
        """`[a.b]` after `[[a]]` belongs to the last of them."""
        return (*path, self._tables[path] - 1) if path in self._tables else path

    def _pair(self, table: Place) -> None:
        start, path = self.at, table
        for part in self._key():
            path = (*path, part)
            self._note(path, start)
        self.at += 1  # the equals sign
        self._skip()
        self._value(path)

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._skip()
            if match := _STRING.match(self.text, self.at):
                parts.append(str(tomllib.loads(f"x = {match.group()}")["x"]))
            else:
                match = _BARE.match(self.text, self.at)
                assert match is not None, "tomllib accepted this text"
                parts.append(match.group())
            self.at = match.end()
            self._skip()
            if self.text[self.at] != ".":
                return parts
            if len(parts) == _MOST_PARTS:
                raise RecursionError
            self.at += 1

    def _value(self, path: Place) -> None:
        opening = self.text[self.at]
        if match := _STRING.match(self.text, self.at):
            self.at = match.end()
        elif opening in "[{":
            self._items(path, "]" if opening == "[" else "}")
        elif match := _OTHER.match(self.text, self.at):
            self.at = match.end()

    def _items(self, path: Place, closing: str) -> None:
        self.at += 1
        index = 0
        while self._skip() < len(self.text) and self.text[self.at] != closing:
            if closing == "}":
                self._pair(path)
            else:
                self._note((*path, index), self.at)
                self._value((*path, index))
                index += 1
            self._skip()
            if self.text[self.at] == ",":
                self.at += 1
        self.at += 1

    def _note(self, path: Place, start: int) -> None:
        self.lines.setdefault(path, bisect_right(self._starts, start))
