"""A store's folder: made, opened, locked; and refused where it holds something else."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mime.studies.address import BYTES
from mime.studies.region import ADDRESS, replace
from mime.studies.store import ARRAYS, MARKS, Store, StudyError
from mime.studies.study import Study

FORMAT = "MIME study 1"


def open_store(folder: Path, study: Study) -> Store:
    """The study's group in a folder, made where it is not there yet."""
    import_zarr()
    root = folder / ARRAYS
    _refuse_other(folder)
    arrays = root / study.signature
    marks = folder / MARKS / study.signature
    if not (marks / "layout.json").exists():
        layout = _create(root, arrays, study)
        marks.mkdir(parents=True, exist_ok=True)
        replace(marks / "layout.json", json.dumps(layout, indent=1).encode())
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
    if not (folder / ARRAYS / "zarr.json").exists():
        raise StudyError(f"{folder}: no study is kept there")
    return sorted(file.parent.name for file in (folder / MARKS).glob("*/layout.json"))


def read_store(folder: Path, group: str, check: bool = True) -> Store:
    """A group of a store as it is."""
    return _opened(folder, group, None, check)


def _opened(folder: Path, group: str, study: Study | None, check: bool = True) -> Store:
    file = folder / MARKS / group / "layout.json"
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
            replace(file, json.dumps(layout, indent=1).encode())
    return Store(folder, group, rows, layout, check)


def _refuse_other(folder: Path) -> None:
    """Stop at a folder that holds something else."""
    root = folder / ARRAYS / "zarr.json"
    if root.exists():
        try:
            about = json.loads(root.read_bytes())["attributes"]
            if about["format"] == FORMAT:
                return
        except (ValueError, KeyError, TypeError):
            pass
        raise StudyError(f"{root.parent}: not a store of studies; choose another folder")
    other = [name for name in (ARRAYS, MARKS) if (folder / name).exists()]
    if any(not (folder / name).is_dir() or any((folder / name).iterdir()) for name in other):
        raise StudyError(
            f"{folder}: has {', '.join(other)} and is no store of studies; delete them, "
            "or choose another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"{folder}: is a file, expected a folder")


def _create(root: Path, arrays: Path, study: Study) -> dict[str, Any]:
    """Make the group and its arrays, without rows."""
    if not (root / "zarr.json").exists():
        _note_group(root, {"format": FORMAT})
    if arrays.exists():  # begun by a process that was killed before its layout was kept
        shutil.rmtree(arrays)
    named = {"title": study.title, "source": study.source, "varied": list(study.columns)}
    _note_group(arrays, {**named, "versions": study.experiments[0].versions})
    rows = study.chunk
    dimensions: dict[str, int] = {}

    def array(
        name: str, shape: tuple[int, ...], dtype: Any, labels: list[str], **attributes: Any
    ) -> None:
        about = array_metadata((rows, *shape), np.dtype(dtype), ["member", *labels], attributes)
        _note(arrays / name, about)
        dimensions[name] = 1 + len(shape)

    array(ADDRESS, (BYTES,), "uint8", ["byte"])
    for name, column in study.columns.items():
        kind = "int32" if column.dtype == object else "float64"
        array(name, (), kind, [], units=study.units[name] or "1")
    for v in study.variables:
        labels = ["time"] * bool(v.shape) + [f"{v.name}.axis{i}" for i in range(len(v.shape) - 1)]
        words = {"units": v.unit or "1", "long_name": v.description or v.name}
        array(v.name, v.shape, v.dtype, labels, **words)
    return {
        "rows": rows,
        "dimensions": dimensions,
        "choices": {n: [] for n, c in study.columns.items() if c.dtype == object},
        "varied": {name: study.units[name] for name in study.columns},
        "logarithmic": sorted(study.logarithmic),
        "time_s": study.experiments[0].times.tolist() if study.experiments[0].fields else [],
        "title": study.title,
        "source": study.source,
        "versions": study.experiments[0].versions,
    }


def array_metadata(
    chunk: tuple[int, ...], dtype: np.dtype, labels: list[str], attributes: dict[str, Any]
) -> dict[str, Any]:
    """`zarr.json` of an array without rows, a chunk of which is the bytes of its numbers.

    Zarr's own functions would take as long for it as a thousand short runs.
    """
    order = {"configuration": {"endian": "little"}}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [0, *chunk[1:]],
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": {"b": False, "i": 0, "u": 0}.get(dtype.kind, "NaN"),
        "codecs": [{"name": "bytes", **(order if dtype.itemsize > 1 else {})}],
        "attributes": attributes,
        "dimension_names": labels,
        "storage_transformers": [],
    }


def _note_group(folder: Path, attributes: dict[str, Any]) -> None:
    _note(folder, {"zarr_format": 3, "node_type": "group", "attributes": attributes})


def _note(folder: Path, about: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / "zarr.json", json.dumps(about, indent=2).encode())


def import_zarr() -> Any:
    """The package, or words on how to have it."""
    try:
        import zarr
    except ImportError as error:
        raise StudyError(
            "a store of studies needs zarr: pip install 'mime-sim[studies]'"
        ) from error
    return zarr
