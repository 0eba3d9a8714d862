"""All members of a study as one xarray dataset, from a store that may be larger than the memory."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._files import write_atomically
from mime._text import quoted
from mime.core.arguments import path as path_of
from mime.core.upward import drawer
from mime.running.trajectory import Divergence
from mime.studies.layout import groups, import_zarr, read_store
from mime.studies.region import ADDRESS
from mime.studies.store import Store, StudyError, diverged
from mime.studies.study import Study

if TYPE_CHECKING:
    import xarray

OPTIMISE = "optimise"
"""Attribute with what a search has found: `objectives`, `constraints`, and by their numbers the
`best` member, the `front` and all that are `feasible`. JSON in a dataset."""
ROWS = ("front", "feasible")


@dataclasses.dataclass(frozen=True, repr=False)
class StudyResult:
    """What `sweep` and `open_study` return."""

    title: str
    dataset: "xarray.Dataset"
    """A variable for each figure and field, along `member`; what varies as coordinates. What comes
    from a store is read when it is asked for."""
    computed: int
    """Members that this call has run."""
    reused: int
    """Members that were in the store before."""
    diverged: Mapping[int, Divergence]
    """Members that left the finite numbers, by index; what is kept of them is NaN."""
    addresses: np.ndarray | None = None
    """(member, 16) bytes: the address of each member in its store."""
    study: Study | None = None
    """What was run, where that is known: `result.study.run(17)` runs a member again."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it as one NetCDF file, for what fits in memory."""
        file = Path(path_of("path", path))
        whole = self.dataset.load()
        write_atomically(file, lambda part: whole.to_netcdf(part, engine="h5netcdf"))

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page to look at the study on, one file, and its table beside it as CSV.

        With `study`, replays of the best and the worst member of each figure stand beside them.
        """
        return drawer("StudyResult.report")(self, path_of("path", path))

    def __repr__(self) -> str:
        size = self.dataset.sizes["member"]
        ran = f"{self.computed:,} computed, {self.reused:,} there before"
        failed = f", {len(self.diverged):,} diverged" if self.diverged else ""
        return f"StudyResult {self.title!r}: {size:,} members, {ran}{failed}\n{self.dataset!r}"


def open_study(
    path: str | os.PathLike[str], study: Study | None = None, *, check: bool = True
) -> StudyResult:
    """Open what `sweep` has kept in a folder: all members that are there, or those of a study.

    check    look at the checksums of all files; without it, only at their sizes
    """
    folder = Path(path_of("path", path))
    import_zarr()
    known = groups(folder)
    if study is None and len(known) != 1:
        words = f"{folder} holds {len(known)} studies ({quoted(known)})"
        raise StudyError(f"{words}: say which, open_study(path, load_study(file))")
    group = known[0] if study is None else study.signature
    if group not in known:
        raise StudyError(f"{folder}: this study is not kept there ({quoted(known)} is)")
    store = read_store(folder, group, check)
    if store.damaged:
        words = f"chunks {quoted(map(str, store.damaged))} are damaged"
        raise StudyError(f"{folder}: {words}; sweep the study again: it runs those alone")
    rows = np.sort(store.stored[1]) if study is None else store.rows_of(study.addresses)
    if (missing := int(np.count_nonzero(rows < 0))) and study is not None:
        words = f"{missing:,} of {study.size:,} members are missing"
        raise StudyError(f"{folder}: {words}; sweep the study again: it runs those alone")
    title = study.title if study else store.layout["title"]
    return result_of(store, rows, title, 0, study)


def result_of(
    store: Store, rows: np.ndarray, title: str, computed: int, study: Study | None = None
) -> StudyResult:
    """Some rows of a store."""
    import xarray

    whole = xarray.open_dataset(
        store.arrays, engine="zarr", consolidated=False, decode_cf=False, chunks=None
    ).drop_vars(ADDRESS)
    whole = whole[[name for name in store.layout["dimensions"] if name in whole.data_vars]]
    if "byte" in whole.dims:
        whole = whole.drop_dims("byte")
    picked: Any = rows
    if len(rows) and (np.diff(rows) == 1).all():
        picked = slice(int(rows[0]), int(rows[-1]) + 1)
    chosen = whole.isel(member=picked)
    layout = store.layout
    coordinates: dict[str, Any] = {}
    logarithmic = study.logarithmic if study else layout.get("logarithmic", ())
    for name, unit in layout["varied"].items():
        values: Any = chosen[name].values
        if name in layout["choices"]:
            words = layout["choices"][name]
            values = np.array([str(words[index]) for index in values])
        coordinates[name] = ("member", values, about_column(unit, name in logarithmic))
    if layout["time_s"]:
        coordinates["time"] = ("time", np.array(layout["time_s"]), {"units": "s"})
    far, optimum = list(diverged(store)), store.noted(OPTIMISE)
    place: dict[int, int] = {}
    if far or optimum is not None:
        place = {row: member for member, row in enumerate(rows.tolist())}
    failed = {place[row]: where for row, where in far if row in place}
    dataset = chosen.drop_vars(list(layout["varied"])).assign_coords(coordinates)
    dataset.attrs = attributes(title, layout["source"], layout["versions"], failed)
    if (found := _optimum(optimum, place)) is not None:
        dataset.attrs[OPTIMISE] = json.dumps(found)
    before, failed = len(rows) - computed, dict(sorted(failed.items()))
    return StudyResult(title, dataset, computed, before, failed, store.keys_of(rows), study)


def about_column(unit: str, is_logarithmic: bool) -> dict[str, str]:
    """What a dataset says of a column that varies."""
    return {"units": unit or "1", **({"scale": "log"} if is_logarithmic else {})}


def _optimum(noted: Any, place: Mapping[int, int]) -> dict[str, Any] | None:
    """What the last search has found: rows of the store as numbers of members, those that are
    there. None where there was no search, or its answer is of other members.
    """
    if not isinstance(noted, dict) or (noted["best"] is not None and noted["best"] not in place):
        return None
    numbers = {name: [place[r] for r in noted[name] if r in place] for name in ROWS}
    return {**noted, "best": place.get(noted["best"]), **numbers}


def attributes(
    title: str, source: str, versions: Mapping[str, str], failed: Mapping[int, Divergence]
) -> dict[str, Any]:
    """What a dataset says of its study."""
    where = {member: dataclasses.astuple(found) for member, found in failed.items()}
    return {
        "title": title,
        "source": source,
        "versions": json.dumps(dict(versions)),
        "diverged": json.dumps(where),
    }
