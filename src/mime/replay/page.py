"""A replay as one HTML file, and as a value that a notebook shows."""

import json
import os
import tempfile
import webbrowser
from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from mime._files import write_atomically
from mime.core.arguments import path as path_of
from mime.replay.codec import Block
from mime.running.drawing import Page

_FRAME_HEIGHT = 560


class Replay(Page):
    """A page to watch: `save` it, `open` it in a browser, or let a notebook show it."""

    def __init__(self, title: str, make: Callable[[], tuple[Mapping[str, Any], Block]]):
        self.title = title
        self._make = make

    @property
    def html(self) -> str:
        """The whole page. It loads nothing: one file is all of it."""
        return self._html

    @cached_property
    def _html(self) -> str:
        return page_html(*self._make())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all."""
        file, content = path_of("path", path), self.html.encode()
        write_atomically(file, lambda part: _write(part, content))
        return file

    def open(self) -> Path:
        """Write the page to a temporary file and show it in the browser."""
        handle, name = tempfile.mkstemp(prefix="mime_", suffix=".html")
        os.close(handle)
        file = self.save(name)
        webbrowser.open(file.resolve().as_uri())
        return file

    def __repr__(self) -> str:
        return f"Replay({self.title!r}): .save('run.html'), .open(); a notebook shows it"

    def _repr_html_(self) -> str:
        style = f'style="width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #8888"'
        return f'<iframe srcdoc="{escape(self.html)}" {style}></iframe>'


def page_html(scene: Mapping[str, Any], block: Block) -> str:
    """The page of a scene and its numbers."""
    folder = files("mime.replay") / "page"

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    return Template(text("replay.html")).substitute(
        title=escape(str(scene["title"])),
        style=text("uplot.min.css") + text("replay.css"),
        scene=json_in_html(scene),
        numbers=block.base64(),
        licences=escape(text("LICENCES.txt")),
        script=text("replay.min.js"),
    )


def json_in_html(value: Any) -> str:
    """JSON that cannot end the script element it stands in, nor begin another."""
    words = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for mark in "<>&":
        words = words.replace(mark, f"\\u{ord(mark):04x}")
    return words


def _write(part: Path, content: bytes) -> None:
    part.write_bytes(content)
