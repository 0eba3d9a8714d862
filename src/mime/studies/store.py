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

import functools
import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._text import Travels
from mime.running.identity import digest
from mime.running.trajectory import Divergence
from mime.studies.address import BYTES, as_keys
from mime.studies.region import ADDRESS, Region, chunk_file, filled, replace
from mime.studies.study import Study

ARRAYS, MARKS = "members.zarr", "marks"


class StudyError(Travels, ValueError):
    """A store that cannot be used, or a study that cannot go on in it."""


class StoreWriteError(StudyError):
    """A store that cannot be written to: no room, or no permission. What is done is kept."""


class Store:
    """The members of one signature in a folder; `open_store` makes one."""

    def __init__(
        self, folder: Path, group: str, rows: int, layout: Mapping[str, Any], check: bool = True
    ):
        self.folder, self.group, self.rows, self.layout = folder, group, rows, layout
        self.check = check
        """Whether checksums are looked at, or sizes alone."""
        self.arrays = folder / ARRAYS / group
        self.marks = folder / MARKS / group

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
        parts = [(np.empty(0, f"S{BYTES}"), np.empty(0, np.int64)), *map(self._rows, self.done)]
        return _sorted(parts)

    def _rows(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """Address and row of each member of a chunk."""
        own = as_keys(self.addresses(chunk, self.done[chunk]["members"]))
        return own, chunk * self.rows + np.arange(len(own))

    def look_again(self, chunks: Iterable[int]) -> None:
        """Note chunks that were written since the store was opened."""
        for chunk in chunks:
            if (mark := self.mark(chunk)) is None:
                raise StudyError(f"{self.folder}: chunk {chunk} was damaged while it was written")
            self.done[chunk] = mark
            self.stored = _sorted([self.stored, self._rows(chunk)])

    def read(self, name: str, rows: np.ndarray) -> np.ndarray:
        """A number for each of some rows, of a figure."""
        found: np.ndarray = np.empty(len(rows))
        for chunk in np.unique(rows // self.rows).tolist():
            content = chunk_file(self.arrays, name, chunk, 1).read_bytes()
            own = rows // self.rows == chunk
            found[own] = np.frombuffer(content, "<f8")[rows[own] % self.rows]
        return found

    def note(self, key: str, value: Any) -> None:
        """Write an attribute of the group."""
        path = self.arrays / "zarr.json"
        about = json.loads(path.read_bytes())
        about["attributes"][key] = value
        replace(path, json.dumps(about, indent=2).encode())

    def noted(self, key: str) -> Any:
        """An attribute of the group; None where there is none."""
        return json.loads((self.arrays / "zarr.json").read_bytes())["attributes"].get(key)

    def rows_of(self, addresses: np.ndarray) -> np.ndarray:
        """The row of each member; -1 of one that is not there."""
        known, rows = self.stored
        wanted = as_keys(addresses)
        if not len(known):
            return np.full(len(wanted), -1)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, rows[place], -1)

    def keys_of(self, rows: np.ndarray) -> np.ndarray:
        """(row, 16) bytes: the address of each row that is there."""
        known, places = self.stored
        order = np.argsort(places)
        found = known[order[np.searchsorted(places, rows, sorter=order)]]
        return found.view(np.uint8).reshape(-1, BYTES)

    @functools.cached_property
    def plans(self) -> list[tuple[str, int, np.ndarray]]:
        """Of each plan: the digest of its study's addresses, its first chunk, and the member of
        each row, -1 where a chunk has fewer.
        """
        found = []
        for index in range(len(list(self.marks.glob("plan_*.npz")))):
            path = self.marks / f"plan_{index}.npz"
            try:
                with np.load(path, allow_pickle=False) as file:
                    found.append((str(file["digest"]), int(file["first"]), file["members"]))
            except (ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
                words = f"{path}: damaged; delete the folders {self.group} of the store"
                raise StudyError(f"{words} to start anew") from error
        return found

    def plan(self, study: Study) -> list[tuple[int, np.ndarray]]:
        """The chunks that are to be done, each with its members; noted in the store first."""
        own = digest(study.addresses.tobytes())
        if own not in [name for name, _, _ in self.plans]:
            missing = np.flatnonzero(self.rows_of(study.addresses) < 0)
            if table := [
                filled(c.members, self.rows, -1) for c in study.chunks(missing, self.rows)
            ]:
                self._note(own, np.concatenate(table))
        self._grow()
        done = self.done
        left = []
        for name, first, members in self.plans:
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
        table = [filled(c.members, self.rows, -1) for c in study.chunks(lost, self.rows)]
        first = self._note(own, np.concatenate(table))
        self._grow()
        return left + [(first + i, rows[rows >= 0]) for i, rows in enumerate(table)]

    def _note(self, own: str, members: np.ndarray) -> int:
        """Keep a plan: the first of its chunks, which come after those of all others."""
        first = self.planned // self.rows
        file = io.BytesIO()
        np.savez(file, digest=np.array(own), first=np.array(first), members=members)
        replace(self.marks / f"plan_{len(self.plans)}.npz", file.getvalue())
        self.plans.append((own, first, members))
        return first

    @property
    def planned(self) -> int:
        """Rows of all plans."""
        return sum(len(members) for _, _, members in self.plans)

    def _grow(self) -> None:
        """Make room for all plans in all arrays."""
        rows = self.planned
        for name in self.layout["dimensions"]:
            path = self.arrays / name / "zarr.json"
            about = json.loads(path.read_bytes())
            if about["shape"][0] != rows:
                about["shape"][0] = rows
                replace(path, json.dumps(about, indent=2).encode())


def _sorted(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Addresses of all parts in order, and their rows."""
    keys, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]


def diverged(store: Store) -> Iterator[tuple[int, Divergence]]:
    """Rows whose member left the finite numbers, and where it did."""
    for chunk, mark in store.done.items():
        for row, where in mark["diverged"].items():
            yield chunk * store.rows + int(row), Divergence(*where)
