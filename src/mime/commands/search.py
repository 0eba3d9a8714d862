"""What `fit`, `design` and `tune` share: a file goes in, a search runs, a folder comes out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol

import tyro

from mime.commands import UserMistakeError

Out = Annotated[Path | None, tyro.conf.arg(metavar="DIR", help="folder (mime_output/NAME)")]
Quiet = Annotated[bool, tyro.conf.arg(help="print nothing but errors")]
Write = Callable[[Any, Path], None]
"""What was found, to a path."""
REPORT = "report.html"


class Loaded(Protocol):
    """A file that was read: what it calls itself, and the search it asks for."""

    @property
    def title(self) -> str: ...

    def run(self, progress: bool = True) -> Any: ...


def folder_of(file: Path, out: Path | None, tail: str = "") -> Path:
    """The folder that was asked for, else one in `mime_output` with the file's name."""
    # `...toml` has the stem `..`, which is another folder than a run's own.
    return out or Path("mime_output") / f"{file.stem.strip('. ') or 'unnamed'}{tail}"


def search(loaded: Loaded, folder: Path, quiet: bool, files: Mapping[str, Write]) -> Any:
    """Run it, and write `files` and its report, whole or not at all."""
    from mime.commands.output import open_folder, write_bytes
    from mime.fitting.log import LogError
    from mime.fitting.result import FitError

    names = [*files, REPORT]
    with open_folder(folder) as opened:
        opened.refuse_foreign(names)
        try:
            found = loaded.run(progress=not quiet)
        except (LogError, FitError) as error:
            raise UserMistakeError(str(error)) from error
        opened.claim(names)
        for name, write in files.items():
            write(found, folder / name)
        write_bytes(folder / REPORT, found.report(loaded.title).encode())
    return found
