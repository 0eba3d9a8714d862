"""One chunk of a store as a worker writes it: files that are whole or not there, the mark last."""

import contextlib
import dataclasses
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime.studies.experiment import Kept

ADDRESS = "address"


@dataclasses.dataclass(frozen=True)
class Region:
    """One chunk of a store: where a worker writes, and nobody else."""

    arrays: str
    """The folder of the group's arrays."""
    marks: str
    """The folder of the group's marks."""
    chunk: int
    rows: int
    """Rows of a whole chunk; one with fewer members is filled up."""
    choices: Mapping[str, list[Any]]
    """The words of columns that hold no numbers; the store has their places in these lists."""

    def write(self, columns: Mapping[str, np.ndarray], addresses: np.ndarray, kept: Kept) -> None:
        """Write all arrays of the chunk, then its mark."""
        own = {
            name: np.array([self.choices[name].index(value) for value in column], np.int32)
            if name in self.choices
            else column
            for name, column in columns.items()
        }
        sums = {}
        for name, values in {ADDRESS: addresses, **own, **kept.arrays}.items():
            content = filled(values, self.rows).tobytes()
            path = chunk_file(Path(self.arrays), name, self.chunk, values.ndim)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, content)
            sums[name] = [zlib.crc32(content), len(content)]
        mark = {
            "members": len(addresses),
            "sums": sums,
            "diverged": {
                str(row): dataclasses.astuple(where) for row, where in kept.diverged.items()
            },
        }
        replace(Path(self.marks) / f"{self.chunk}.json", json.dumps(mark).encode())


def chunk_file(arrays: Path, name: str, chunk: int, dimensions: int) -> Path:
    """Where Zarr has a chunk along the first axis; the other axes are whole."""
    return arrays.joinpath(name, "c", str(chunk), *["0"] * (dimensions - 1))


def filled(values: np.ndarray, rows: int, fill: int | None = None) -> np.ndarray:
    """As many rows as a chunk has, in Zarr's order of bytes."""
    values = np.ascontiguousarray(values)
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    if len(values) == rows:
        return little
    empty = fill if fill is not None else 0 if values.dtype.kind in "iub" else np.nan
    rest = np.full((rows - len(values), *values.shape[1:]), empty, little.dtype)
    return np.concatenate([little, rest])


def replace(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, whatever process is killed.

    It is not forced onto the disk: should the power fail, a checksum tells, and the chunk runs
    again.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
