"""Mazes in files, whatever their format."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mime._files import write_atomically
from mime._text import nearest, quoted
from mime.core.arguments import path as path_of
from mime.maze.formats.maz import format_maz, parse_maz
from mime.maze.formats.num import format_num, parse_num
from mime.maze.formats.shared import SIZE, Goals
from mime.maze.formats.smartmouse import format_mz, parse_mz
from mime.maze.formats.text import format_text, parse_text
from mime.maze.grid import MazeError
from mime.maze.maze import Maze


class _Format(NamedTuple):
    suffixes: tuple[str, ...]
    parse: Callable[..., Maze]
    format: Callable[[Maze], str | bytes]


FORMATS = {
    "mz": _Format((".mz",), parse_mz, format_mz),
    "text": _Format((".txt", ".maze"), parse_text, format_text),
    "maz": _Format((".maz",), parse_maz, format_maz),
    "num": _Format((".num",), parse_num, format_num),
}
"""The formats by name: endings of files, and the functions that read and write them."""


def read_maze(
    path: str | os.PathLike[str], format: str | None = None, goals: Goals = None, **dimensions: Any
) -> Maze:
    """The maze in a file. Its format is "mz", "text", "maz" or "num", by suffix or contents.

    Give `goals` where the file has none or others, `cell_size_m` and `wall_thickness_m` where they
    are not those of the classic contest.
    """
    path = path_of("path", path)
    data = path.read_bytes()
    kind = format or _by_suffix(path) or _by_contents(data)
    if kind is None:
        raise MazeError(
            f"{path}: neither its suffix nor its contents are those of a maze. Say which it is: "
            f"format = {quoted(FORMATS)}"
        )
    parse = _known(kind).parse
    contents = data if kind == "maz" else _decode(data, path)
    maze = parse(contents, goals, str(path))
    if not dimensions:
        return maze
    fields = maze.start, maze.start_heading, maze.goals
    return Maze(maze.horizontal, maze.vertical, *fields, name=maze.name, **dimensions)


def write_maze(maze: Maze, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a maze in the format that the suffix names; the file is whole, or as it was before."""
    kind = format or _by_suffix(Path(path))
    if kind is None:
        suffixes = [suffix for entry in FORMATS.values() for suffix in entry.suffixes]
        raise MazeError(f"{path}: the suffix is none of {quoted(suffixes)}. Name a format")
    contents = _known(kind).format(maze)
    data = contents if isinstance(contents, bytes) else contents.encode("ascii")
    write_atomically(path, lambda part: _write(part, data))


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _known(kind: str) -> _Format:
    if kind not in FORMATS:
        hint = nearest(kind, FORMATS)
        raise MazeError(f"unknown maze format {kind!r}{hint}; known are {quoted(FORMATS)}")
    return FORMATS[kind]


def _by_suffix(path: Path) -> str | None:
    suffix = path.suffix.lower()
    return next((kind for kind, entry in FORMATS.items() if suffix in entry.suffixes), None)


def _by_contents(data: bytes) -> str | None:
    if len(data) == SIZE**2 and max(data) < 16:
        return "maz"
    words = data.split()
    if words and all(word.isdigit() for word in words[:6]):
        return "num"
    return {b"o": "text", b"+": "text", b"|": "mz"}.get(data[:1])


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise MazeError(
            f"{path}: byte {error.start} is 0x{data[error.start]:02X}, expected plain ASCII text. "
            "Is it another format?"
        ) from None
