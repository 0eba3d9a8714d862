"""The one way up: results and robots are drawn where they are, by rooms above them.

`trajectory.replay()` is a method of a result, and pages are made in `replay`, which knows results
and may not be known by them. So a method asks here for the function that draws a kind of picture of
its type. MIME's own are named in the table, and load when they are first asked for; another package
adds or replaces one by the entry point `mime.drawing`, named `Trajectory.replay`.
"""

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

GROUP = "mime.drawing"
_OWN = {
    "Trajectory.replay": "mime.replay.show:replay_run",
    "Trajectory.animate": "mime.replay.show:animate_run",
    "KinematicTree.show": "mime.replay.show:show_robot",
}


class Page(ABC):
    """A page to watch, as a value; a notebook shows it."""

    @property
    @abstractmethod
    def html(self) -> str:
        """The whole page. It loads nothing: one file is all of it."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all."""

    @abstractmethod
    def open(self) -> Path:
        """Write the page to a temporary file and show it in the browser."""


@cache
def drawer(name: str) -> Callable[..., Any]:
    """The function that draws `Type.picture`."""
    for entry in entry_points(group=GROUP, name=name):
        return entry.load()
    module, _, function = _OWN[name].partition(":")
    return getattr(importlib.import_module(module), function)
