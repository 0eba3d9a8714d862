"""Files that are whole or not there."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_atomically(
    path: str | os.PathLike[str], write: Callable[[Path], object], private: bool = False
) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one move.

    On any failure (full disk, read-only folder, a crash) `path` is as it was before. The temporary
    file is `.NAME.PROCESS.*.part`: what a killed process leaves is known as its own. A `private`
    file is for its owner alone, whatever the umask.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    prefix = f".{path.name}.{os.getpid()}."
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.chmod(0o600 if private else 0o666 & ~_umask())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def is_file(file: Path) -> bool:
    """True for a plain file; a name that no file can have is none."""
    try:
        return file.is_file()
    except (OSError, ValueError):  # too long, or with a null character
        return False
