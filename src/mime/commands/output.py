"""The folder of a run: whole files or none, never those of two runs at once, and nobody else's.

A run owns what it wrote: `.mime-run.json` lists those files with their sizes, and no other file is
moved, replaced or removed. Results of an earlier run are set aside when a run begins, and removed
when it has written its own: a result in the folder is never that of another run than the last.
"""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mime._files import is_file, write_atomically
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
MANIFEST, LOCK = ".mime-run.json", ".mime-run.lock"
_FORMAT = "MIME run 1"


def prepare(folder: Path) -> None:
    """Make the folder, and see that it can be written to before hours are spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".mime-", dir=folder)
        os.close(handle)
        Path(name).unlink()
    except OSError as error:
        raise UserMistakeError(f"cannot write to {folder}: {reason(error)}") from error


class RunFolder:
    """The files of one run in its folder; `with open_folder(...)` makes one."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.owned, self._writer = _read_manifest(folder)

    def refuse_foreign(self, names: Iterable[str]) -> None:
        """Stop when there is something under one of these names that no run has written."""
        names = list(names)
        wanted = [*names, *(f"{EARLIER}/{name}" for name in names)]
        if found := [name for name in wanted if self._exists(name) and not self._is_ours(name)]:
            files = ", ".join(str(self.folder / name) for name in found)
            raise UserMistakeError(
                f"{files}: not written by a run in this folder, and not overwritten; "
                "move it away, or choose another folder with --out"
            )

    def claim(self, names: Iterable[str]) -> None:
        """Own these names from now on: they are about to be written."""
        names = list(names)
        self.refuse_foreign(names)
        self.remove_parts()
        for name in names:
            self.owned.setdefault(name, None)
        self._writer = os.getpid()
        self.note()

    def note(self) -> None:
        """Write down what is ours, with the sizes of finished files.

        On a full disk the list stays as it was: a file that is not on it is left alone.
        """
        for name in self.owned:
            if name != CHECKPOINT:  # it grows as the run goes on
                self.owned[name] = _size(self.folder / name)
        content = {"format": _FORMAT, "process": self._writer, "files": self.owned}
        text = json.dumps(content, indent=1).encode()
        with contextlib.suppress(OSError):
            write_atomically(self.folder / MANIFEST, lambda part: _write(part, text))

    def settle(self) -> None:
        """At the end, however it came: what is there is ours, and nothing else."""
        self.owned = {name: size for name, size in self.owned.items() if self._exists(name)}
        self.note()

    def set_aside(self) -> list[str]:
        """Move an earlier run's results to `earlier_run/`; what was moved. It takes no room.

        A whole result replaces one set aside before; what a failed run has left does not.
        """
        found = [name for name in self._here() if name != CHECKPOINT]
        self.refuse_foreign(found)
        try:
            if RESULT in found:
                self.remove(self._earlier())
            self.owned |= {f"{EARLIER}/{name}": None for name in found}
            self.note()  # first, for a run that is killed while it moves them
            for name in found:
                self._move(name, f"{EARLIER}/{name}")
            self.note()
        except OSError as error:
            words = f"cannot move earlier results to {self.folder / EARLIER}: {reason(error)}"
            raise UserMistakeError(words) from error
        return found

    def put_back(self, moved: Iterable[str]) -> None:
        """Undo `set_aside`: there was no run."""
        for name in moved:
            self._move(f"{EARLIER}/{name}", name)
        _remove_if_empty(self.folder / EARLIER)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, if they are ours."""
        for name in list(names):
            if self._is_ours(name):
                (self.folder / name).unlink(missing_ok=True)

    def clean_up(self) -> None:
        """After a run that has written all its results: they alone stay."""
        self.remove([CHECKPOINT, PARTIAL, *self._earlier()])
        _remove_if_empty(self.folder / EARLIER)

    def _earlier(self) -> list[str]:
        return [name for name in self.owned if name.startswith(f"{EARLIER}/")]

    def _here(self) -> list[str]:
        return [n for n in self.owned if n not in self._earlier() and self._is_ours(n)]

    def _exists(self, name: str) -> bool:
        return os.path.lexists(self.folder / name)

    def _is_ours(self, name: str) -> bool:
        """Noted by a run, and as large as it was then."""
        if name not in self.owned or not is_file(self.folder / name):
            return False
        return self.owned[name] in (None, _size(self.folder / name))

    def _move(self, name: str, to: str) -> None:
        (self.folder / to).parent.mkdir(exist_ok=True)
        (self.folder / name).replace(self.folder / to)
        self.owned[to] = self.owned.pop(name)

    def remove_parts(self) -> None:
        """Remove what the last run was about to write when it was killed."""
        killed = self._writer if self._writer != os.getpid() else None
        for name in [MANIFEST, *self.owned] if killed else ():
            path = self.folder / name
            for part in path.parent.glob(f".{path.name}.{killed}.*.part"):
                part.unlink(missing_ok=True)


@contextlib.contextmanager
def open_folder(folder: Path) -> Iterator[RunFolder]:
    """The folder, for this run alone as long as it lasts."""
    prepare(folder)
    with _lock(folder):
        files = RunFolder(folder)
        try:
            yield files
        finally:
            files.settle()


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system releases when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    path = folder / LOCK
    while True:
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "unknown"
            file.close()
            raise UserMistakeError(
                f"{folder}: another run is writing there (process {who}); "
                "wait for its end, or choose another folder with --out"
            ) from None
        except OSError:  # a file system without locks
            break
        if _is_the_same(file, path):  # and not one that its run has removed meanwhile
            break
        file.close()
    try:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()


def _is_the_same(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _read_manifest(folder: Path) -> tuple[dict[str, int | None], int | None]:
    """What runs have written here, and the process of the last; nothing, if that cannot be read."""
    try:
        found: Any = json.loads((folder / MANIFEST).read_bytes())
        files, process = found["files"], found["process"]
        sound = found["format"] == _FORMAT and isinstance(process, int | None)
        inside = all(_is_inside(name) and isinstance(files[name], int | None) for name in files)
    except (OSError, ValueError, TypeError, KeyError):
        return {}, None
    return (files, process) if sound and inside else ({}, None)


def _is_inside(name: str) -> bool:
    """Whether a name of a manifest is one that a run writes, and leads nowhere else."""
    return Path(name).name == name.removeprefix(f"{EARLIER}/") and not name.startswith(".")


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def earlier_result(folder: Path) -> str:
    """A line that says where the result of an earlier run is, if there is one."""
    file = folder / EARLIER / RESULT
    return f"\nThe result of an earlier run is in {file}" if file.exists() else ""


def save(trajectory: "Trajectory", path: Path) -> None:
    """Write a result, whole or not at all."""
    try:
        trajectory.save(path)
    except OSError as error:
        size = sum(x.nbytes for fields in trajectory.fields.values() for x in fields.values())
        raise RunFailedError(f"cannot write {path}: {_reason_and_size(error, size)}") from error


def save_partial(trajectory: "Trajectory", files: RunFolder) -> str:
    """Write what there is of a run that did not end; in words, where it is."""
    try:
        files.claim([PARTIAL])
        save(trajectory, files.folder / PARTIAL)
    except (RunFailedError, UserMistakeError) as error:
        return f"not kept ({error})"
    return f"kept in {files.folder / PARTIAL}"


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        write_atomically(path, lambda part: _write(part, content))
    except OSError as error:
        words = _reason_and_size(error, len(content))
        raise RunFailedError(f"cannot write {path}: {words}") from error


def reason(error: OSError) -> str:
    """What the operating system says."""
    return os.strerror(error.errno) if error.errno else str(error)


def _reason_and_size(error: OSError, size: int) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return f"{reason(error)} (it takes {size / 1e6:.2g} MB)" if full else reason(error)


def _write(part: Path, content: bytes) -> None:
    part.write_bytes(content)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
