"""What a method that draws a page gives back."""

import os
from abc import ABC, abstractmethod
from pathlib import Path


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
