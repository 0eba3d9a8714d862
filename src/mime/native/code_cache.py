"""Machine code on disk, beside XLA's programs: kept and cleared where those are.

Who can write to these files can run code as the user. So the folder and each file must belong to
the user and be writable by nobody else, and a file must hold the checksum of its key and content.
"""

import hashlib
import os
import stat
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from mime._files import write_atomically
from mime.xla.cache import active_folder

MOST_BYTES = 256_000_000
"""Of all files together; those not used for longest go first."""
WORTH_S = 0.02
"""What compiles faster is not kept."""
_OPENING = b"MIME native code\n"
_DIGEST = hashlib.sha256().digest_size


def kept(key: str, make: Callable[[], bytes]) -> bytes:
    """The code kept under `key`, else that of `make`, which is kept from then on."""
    folder = _folder()
    if folder is None:
        return make()
    if (code := _read(folder / key, key)) is not None:
        return code
    began = time.perf_counter()
    code = make()
    if time.perf_counter() - began >= WORTH_S:
        _write(folder / key, key, code)
    return code


def _folder() -> Path | None:
    """The folder, made private when it is new; None where nothing is kept or others may write."""
    base = active_folder()
    if base is None:
        return None
    folder = base / "native"
    try:
        base.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        _warn(f"{folder} cannot be used: {error}")
        return None
    if not stat.S_ISDIR(status.st_mode) or not _is_private(status):
        _warn(f"{folder} is not a folder that only you can write to; remove it, or run chmod 700")
        return None
    return folder


def _is_private(status: os.stat_result) -> bool:
    if os.name == "nt":  # access is not in these bits: a user's folders are the user's
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read(path: Path, key: str) -> bytes | None:
    """The code of a file; None if it is missing, not the user's own, or damaged."""
    try:
        with path.open("rb") as file:
            if not _is_private(os.fstat(file.fileno())):
                return None
            content = file.read()
        os.utime(path)
    except OSError:
        return None
    code = content[len(_OPENING) + _DIGEST :]
    return code if content == _sealed(key, code) else None


def _write(path: Path, key: str, code: bytes) -> None:
    try:
        write_atomically(path, lambda part: part.write_bytes(_sealed(key, code)), private=True)
        _shrink(path.parent)
    except OSError as error:
        _warn(f"{path} is not written: {error}")


def _sealed(key: str, code: bytes) -> bytes:
    return _OPENING + hashlib.sha256(key.encode() + code).digest() + code


def _shrink(folder: Path) -> None:
    found = []
    for file in os.scandir(folder):
        try:
            found.append((file.stat().st_mtime, file.stat().st_size, file.path))
        except FileNotFoundError:  # another process was faster
            continue
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= MOST_BYTES:
            return
        Path(path).unlink(missing_ok=True)
        total -= size


def _warn(what: str) -> None:
    warnings.warn(f"native code is not kept on disk: {what}", RuntimeWarning, stacklevel=4)
