"""Files that are whole or not there, and reading that does not wait for a device."""

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

MOST_MESH_BYTES = 2**26
"""Of a file of triangles; that is more than a million of them."""


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


def read_plain(file: str | os.PathLike[str], most: int) -> bytes:
    """The first `most` bytes of a plain file.

    Raises `OSError` for a folder, a FIFO and a device, which are not waited for.
    """
    with open(os.fspath(file), "rb", opener=_open_plain) as stream:
        return stream.read(most)


def _open_plain(file: str, flags: int) -> int:
    handle = os.open(file, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file", file)
    return handle
