"""Where members are kept: a Zarr store, a region for each chunk, and a mark when it is done.

    STORE/members.zarr/GROUP/        a group for all members of one signature (see `Study`)
        address, motor.r_ohm, ...    what each row is of
        final speed, ...             what is kept of it; `c/7` of each array is chunk 7
    STORE/marks/GROUP/7.json         chunk 7 is done: checksums of its files
    STORE/marks/GROUP/plan_0.npz     which members chunks hold, noted before the first of them runs

A file of an array is written under another name and moved into place, and the mark comes last: a
chunk is whole or not there, whoever was killed, and no lock is needed between writers of different
chunks. A plan is kept, so that a study that was stopped goes on in the same rows: a store has the
same bytes however often that happened.
"""

import contextlib
import dataclasses
import functools
import io
import json
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._text import Travels
from mime.running.identity import digest
from mime.running.trajectory import Divergence
from mime.studies.address import BYTES, as_keys
from mime.studies.experiment import Kept, versions
from mime.studies.study import Study

FORMAT = "MIME study 1"
ADDRESS = "address"
_ARRAYS, _MARKS = "members.zarr", "marks"


class StudyError(Travels, ValueError):
    """A store that cannot be used, or a study that cannot go on in it."""


class StoreWriteError(StudyError):
    """A store that cannot be written to: no room, or no permission. What is done is kept."""


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
            content = _filled(values, self.rows).tobytes()
            path = chunk_file(Path(self.arrays), name, self.chunk, values.ndim)
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, content)
            sums[name] = [zlib.crc32(content), len(content)]
        mark = {
            "members": len(addresses),
            "sums": sums,
            "diverged": {
                str(row): dataclasses.astuple(where) for row, where in kept.diverged.items()
            },
        }
        _replace(Path(self.marks) / f"{self.chunk}.json", json.dumps(mark).encode())


class Store:
    """The members of one signature in a folder; `open_store` makes one."""

    def __init__(
        self, folder: Path, group: str, rows: int, layout: Mapping[str, Any], check: bool = True
    ):
        self.folder, self.group, self.rows, self.layout = folder, group, rows, layout
        self.check = check
        """Whether checksums are looked at, or sizes alone."""
        self.arrays = folder / _ARRAYS / group
        self.marks = folder / _MARKS / group

    def sweep_up(self) -> None:
        """Remove what a killed writer has left: parts of files that nobody waits for."""
        for folder in (self.marks, *(self.arrays / name for name in self.layout["dimensions"])):
            for part in folder.rglob(".*.part"):
                part.unlink(missing_ok=True)

    def region(self, chunk: int) -> Region:
        """Where a chunk is written."""
        choices = self.layout["choices"]
        return Region(str(self.arrays), str(self.marks), chunk, self.rows, choices)

    def mark(self, chunk: int) -> dict[str, Any] | None:
        """What is noted of a chunk, if it is done and its files are as they were written."""
        try:
            found: Any = json.loads((self.marks / f"{chunk}.json").read_bytes())
            for name, (crc, size) in found["sums"].items():
                dimensions = self.layout["dimensions"][name]
                file = chunk_file(self.arrays, name, chunk, dimensions)
                if file.stat().st_size != size:
                    return None
                if self.check and zlib.crc32(file.read_bytes()) != crc:
                    return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found

    @functools.cached_property
    def done(self) -> dict[int, dict[str, Any]]:
        """The marks of all chunks that are done, by chunk; damaged ones are not."""
        numbers = sorted(int(f.stem) for f in self.marks.glob("*.json") if f.stem.isdigit())
        return {chunk: mark for chunk in numbers if (mark := self.mark(chunk)) is not None}

    @property
    def damaged(self) -> list[int]:
        """Chunks with a mark whose files are not what was written."""
        numbers = [int(f.stem) for f in self.marks.glob("*.json") if f.stem.isdigit()]
        return sorted(chunk for chunk in numbers if chunk not in self.done)

    def addresses(self, chunk: int, count: int) -> np.ndarray:
        """The addresses of a chunk's members."""
        content = chunk_file(self.arrays, ADDRESS, chunk, 2).read_bytes()
        return np.frombuffer(content, np.uint8).reshape(-1, BYTES)[:count]

    @functools.cached_property
    def stored(self) -> tuple[np.ndarray, np.ndarray]:
        """Addresses of all members that are there, sorted, and the row of each."""
        keys, rows = [np.empty(0, f"S{BYTES}")], [np.empty(0, np.int64)]
        for chunk, mark in self.done.items():
            own = as_keys(self.addresses(chunk, mark["members"]))
            keys.append(own)
            rows.append(chunk * self.rows + np.arange(len(own)))
        every, places = np.concatenate(keys), np.concatenate(rows)
        order = np.argsort(every, kind="stable")
        return every[order], places[order]

    def rows_of(self, addresses: np.ndarray) -> np.ndarray:
        """The row of each member; -1 of one that is not there."""
        known, rows = self.stored
        wanted = as_keys(addresses)
        if not len(known):
            return np.full(len(wanted), -1)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, rows[place], -1)

    def plans(self) -> list[tuple[str, int, np.ndarray]]:
        """Of each plan: the digest of its study's addresses, its first chunk, and the member of
        each row, -1 where a chunk has fewer.
        """
        found = []
        for index in range(len(list(self.marks.glob("plan_*.npz")))):
            with np.load(self.marks / f"plan_{index}.npz", allow_pickle=False) as file:
                found.append((str(file["digest"]), int(file["first"]), file["members"]))
        return found

    def plan(self, study: Study) -> list[tuple[int, np.ndarray]]:
        """The chunks that are to be done, each with its members; noted in the store first."""
        own = digest(study.addresses.tobytes())
        plans = self.plans()
        if own not in [name for name, _, _ in plans]:
            missing = np.flatnonzero(self.rows_of(study.addresses) < 0)
            first = sum(len(members) // self.rows for _, _, members in plans)
            table = [_filled(c.members, self.rows, -1) for c in study.chunks(missing, self.rows)]
            if table:
                members = np.concatenate(table)
                self._note(len(plans), own, first, members)
                plans.append((own, first, members))
        self._grow(sum(len(members) for _, _, members in plans))
        done = self.done
        left = []
        for name, first, members in plans:
            if name == own:
                for index, rows in enumerate(members.reshape(-1, self.rows)):
                    if first + index not in done:
                        left.append((first + index, rows[rows >= 0]))
        return self._with_lost(study, own, left)

    def _with_lost(
        self, study: Study, own: str, left: list[tuple[int, np.ndarray]]
    ) -> list[tuple[int, np.ndarray]]:
        """And members that another study had stored before and that were damaged since."""
        planned = np.concatenate([np.empty(0, int), *(members for _, members in left)])
        there = self.rows_of(study.addresses) >= 0
        there[planned] = True
        lost = np.flatnonzero(~there)
        if not len(lost):
            return left
        plans = self.plans()
        first = sum(len(members) // self.rows for _, _, members in plans)
        table = [_filled(c.members, self.rows, -1) for c in study.chunks(lost, self.rows)]
        self._note(len(plans), own, first, np.concatenate(table))
        self._grow((first + len(table)) * self.rows)
        return left + [(first + i, rows[rows >= 0]) for i, rows in enumerate(table)]

    def _note(self, index: int, own: str, first: int, members: np.ndarray) -> None:
        file = io.BytesIO()
        np.savez(file, digest=np.array(own), first=np.array(first), members=members)
        _replace(self.marks / f"plan_{index}.npz", file.getvalue())

    def _grow(self, rows: int) -> None:
        """Make room for so many rows in all arrays."""
        for name in self.layout["dimensions"]:
            path = self.arrays / name / "zarr.json"
            about = json.loads(path.read_bytes())
            if about["shape"][0] != rows:
                about["shape"][0] = rows
                _replace(path, json.dumps(about, indent=2).encode())


def open_store(folder: Path, study: Study) -> Store:
    """The study's group in a folder, made where it is not there yet."""
    import_zarr()
    root = folder / _ARRAYS
    _refuse_other(folder)
    arrays = root / study.signature
    marks = folder / _MARKS / study.signature
    if not (marks / "layout.json").exists():
        marks.mkdir(parents=True, exist_ok=True)
        layout = _create(root, arrays, study)
        _replace(marks / "layout.json", json.dumps(layout, indent=1).encode())
    return _opened(folder, study.signature, study)


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the store for one sweep; the system lets go of it when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (folder / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(
                f"{folder}: another sweep is writing there; wait for its end, or choose another "
                "folder"
            ) from None
        except OSError:  # a file system without locks
            pass
        yield


def groups(folder: Path) -> list[str]:
    """The signatures in a store."""
    if not (folder / _ARRAYS / "zarr.json").exists():
        raise StudyError(f"{folder}: no study is kept there")
    return sorted(file.parent.name for file in (folder / _MARKS).glob("*/layout.json"))


def read_store(folder: Path, group: str, check: bool = True) -> Store:
    """A group of a store as it is."""
    return _opened(folder, group, None, check)


def _opened(folder: Path, group: str, study: Study | None, check: bool = True) -> Store:
    file = folder / _MARKS / group / "layout.json"
    try:
        layout = json.loads(file.read_bytes())
        rows = int(layout["rows"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"{file}: damaged; delete the folders {group} of the store to start anew"
        raise StudyError(words) from error
    if study is not None:
        added = False
        for name, column in study.columns.items():
            if column.dtype == object:
                known = layout["choices"].setdefault(name, [])
                new = [v for v in dict.fromkeys(column.tolist()) if v not in known]
                known += new
                added = added or bool(new)
        if added:
            _replace(file, json.dumps(layout, indent=1).encode())
    return Store(folder, group, rows, layout, check)


def _refuse_other(folder: Path) -> None:
    """Stop at a folder that holds something else."""
    root = folder / _ARRAYS / "zarr.json"
    if root.exists():
        try:
            about = json.loads(root.read_bytes())["attributes"]
            if about["format"] == FORMAT:
                return
        except (ValueError, KeyError, TypeError):
            pass
        raise StudyError(f"{root.parent}: not a store of studies; choose another folder")
    known = {_ARRAYS, _MARKS}
    if folder.is_dir() and (other := {f.name for f in folder.iterdir()} & known):
        raise StudyError(
            f"{folder}: has {', '.join(sorted(other))} and is no store of studies; delete them, "
            "or choose another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"{folder}: is a file, expected a folder")


def _create(root: Path, arrays: Path, study: Study) -> dict[str, Any]:
    """Make the group and its arrays, without rows."""
    zarr = import_zarr()
    if not (root / "zarr.json").exists():
        root.mkdir(parents=True, exist_ok=True)
        zarr.create_group(str(root), zarr_format=3, attributes={"format": FORMAT})
    about = {
        "title": study.title,
        "source": study.source,
        "varied": list(study.columns),
        "versions": versions(),
    }
    group = zarr.create_group(str(arrays), zarr_format=3, attributes=about, overwrite=True)
    rows = study.chunk
    dimensions: dict[str, int] = {}

    def array(
        name: str, shape: tuple[int, ...], dtype: Any, labels: list[str], **attrs: Any
    ) -> None:
        group.create_array(
            name,
            shape=(0, *shape),
            chunks=(rows, *shape),
            dtype=dtype,
            compressors=None,
            filters=None,
            fill_value=0 if np.dtype(dtype).kind in "iub" else float("nan"),
            dimension_names=["member", *labels],
            attributes=attrs,
        )
        dimensions[name] = 1 + len(shape)

    array(ADDRESS, (BYTES,), "uint8", ["byte"])
    for name, column in study.columns.items():
        kind = "int32" if column.dtype == object else "float64"
        array(name, (), kind, [], units=study.units[name] or "1")
    for v in study.variables:
        labels = ["time"] * bool(v.shape) + [f"{v.name}.axis{i}" for i in range(len(v.shape) - 1)]
        about = {"units": v.unit or "1", "long_name": v.description or v.name}
        array(v.name, v.shape, v.dtype, labels, **about)
    return {
        "rows": rows,
        "dimensions": dimensions,
        "choices": {n: [] for n, c in study.columns.items() if c.dtype == object},
        "varied": {name: study.units[name] for name in study.columns},
        "time_s": study.experiments[0].times.tolist() if study.experiments[0].fields else [],
        "title": study.title,
        "source": study.source,
        "versions": versions(),
    }


def import_zarr() -> Any:
    """The package, or words on how to have it."""
    try:
        import zarr
    except ImportError as error:
        raise StudyError(
            "a store of studies needs zarr: pip install 'mime-sim[studies]'"
        ) from error
    return zarr


def chunk_file(arrays: Path, name: str, chunk: int, dimensions: int) -> Path:
    """Where Zarr has a chunk along the first axis; the other axes are whole."""
    return arrays.joinpath(name, "c", str(chunk), *["0"] * (dimensions - 1))


def _filled(values: np.ndarray, rows: int, fill: int | None = None) -> np.ndarray:
    """As many rows as a chunk has, in Zarr's order of bytes."""
    values = np.ascontiguousarray(values)
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    if len(values) == rows:
        return little
    empty = fill if fill is not None else 0 if values.dtype.kind in "iub" else np.nan
    rest = np.full((rows - len(values), *values.shape[1:]), empty, little.dtype)
    return np.concatenate([little, rest])


def _replace(path: Path, content: bytes) -> None:
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


def diverged(store: Store) -> Iterator[tuple[int, Divergence]]:
    """Rows whose member left the finite numbers, and where it did."""
    for chunk, mark in store.done.items():
        for row, where in mark["diverged"].items():
            yield chunk * store.rows + int(row), Divergence(*where)
