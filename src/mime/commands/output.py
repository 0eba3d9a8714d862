"""The folder of a run: whole files or none, and never those of two runs at once.

Results of an earlier run are set aside when a run begins, and removed when it has written its own:
a result in the folder is never that of another run than the last.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mime._files import write_atomically
from mime.commands import RunFailedError, UserMistakeError

if TYPE_CHECKING:
    from mime.running.trajectory import Trajectory

RESULT, PARTIAL, CHECKPOINT, REPORT = (
    "result.nc",
    "result.partial.nc",
    "checkpoint.npz",
    "report.html",
)
EARLIER = "earlier_run"
"""Where results are that a run has found in its folder."""


def prepare(folder: Path) -> None:
    """Make the folder, and see that it can be written to before hours are spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / ".writable", lambda part: _write(part, b"mime"))
        (folder / ".writable").unlink()
        for left in folder.glob(".*.part"):  # of a run that was killed while it wrote
            left.unlink(missing_ok=True)
    except OSError as error:
        raise UserMistakeError(f"cannot write to {folder}: {reason(error)}") from error


def set_aside(folder: Path) -> list[Path]:
    """Move an earlier run's results to `earlier_run/`; what was moved. It takes no room on a disk.

    A whole result replaces one set aside before; what a failed run has left does not.
    """
    found, aside = _results(folder), folder / EARLIER
    try:
        if folder / RESULT in found:
            _remove(_results(aside))
        for file in found:
            aside.mkdir(exist_ok=True)
            file.replace(aside / file.name)
    except OSError as error:
        words = f"cannot move earlier results to {aside}: {reason(error)}"
        raise UserMistakeError(words) from error
    return [aside / file.name for file in found]


def put_back(moved: list[Path]) -> None:
    """Undo `set_aside`: there was no run."""
    for file in moved:
        file.replace(file.parent.parent / file.name)
        _remove_if_empty(file.parent)


def clean_up(folder: Path) -> None:
    """After a run that has written all its results: they alone stay."""
    _remove([folder / CHECKPOINT, folder / PARTIAL, *_results(folder / EARLIER)])
    _remove_if_empty(folder / EARLIER)


def earlier_result(folder: Path) -> str:
    """A line that says where the result of an earlier run is, if there is one."""
    file = folder / EARLIER / RESULT
    return f"\nThe result of an earlier run is in {file}" if file.exists() else ""


def save(trajectory: "Trajectory", path: Path) -> None:
    """Write a result, whole or not at all."""
    try:
        trajectory.save(path)
    except OSError as error:
        raise RunFailedError(f"cannot write {path}: {reason(error)}") from error


def save_partial(trajectory: "Trajectory", folder: Path) -> str:
    """Write what there is of a run that did not end; in words, where it is."""
    try:
        save(trajectory, folder / PARTIAL)
    except RunFailedError as error:
        return f"not kept ({error})"
    return f"kept in {folder / PARTIAL}"


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        write_atomically(path, lambda part: _write(part, content))
    except OSError as error:
        raise RunFailedError(f"cannot write {path}: {reason(error)}") from error


def reason(error: OSError) -> str:
    """What the operating system says."""
    return os.strerror(error.errno) if error.errno else str(error)


def _write(part: Path, content: bytes) -> None:
    part.write_bytes(content)


def _results(folder: Path) -> list[Path]:
    """The files of a run that are there; nothing else in the folder is ours."""
    plots = sorted(plot.name for plot in folder.glob("plot_*.png"))
    return [
        folder / name for name in (RESULT, PARTIAL, REPORT, *plots) if (folder / name).is_file()
    ]


def _remove(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
