"""Results as NetCDF files that know when they are damaged.

    HDF5 | index (JSON) | SHA-256 of the index | its length | mark

The index says where the values of each variable stand, of which type and unit, with their SHA-256,
and holds the attributes. Other programs read the NetCDF file and never see it. MIME reads by the
index alone: HDF5 notices few changed bits, and on some it never returns.
"""

import hashlib
import io
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._text import Travels, warn_user

if TYPE_CHECKING:
    import xarray

FORMAT = "MIME trajectory 2"
METADATA = "the index of its fields and parameters"
STRUCTURE = "the NetCDF structure"
_MARK = b"MIMEindx"
_CHECKSUM_BYTES, _LENGTH_BYTES = 32, 8
_END = _CHECKSUM_BYTES + _LENGTH_BYTES + len(_MARK)


class ResultError(Travels, ValueError):
    """A result that cannot be read; `damaged` names the fields whose checksums are wrong."""

    def __init__(self, what: str, damaged: Iterable[str] = ()):
        self.damaged = tuple(damaged)
        super().__init__(what)


class SalvageWarning(UserWarning):
    """A damaged result was read in part; the message names what was lost."""


def to_bytes(dataset: "xarray.Dataset") -> bytes:
    """The file of a dataset, with its index."""
    import h5py

    # No fill values: a NaN is a NaN, whatever its bits.
    encoding = {name: {"_FillValue": None} for name in dataset.variables}
    # HDF5 does not survive a disk that fills up while it writes: it writes to memory.
    content = bytes(dataset.to_netcdf(engine="h5netcdf", encoding=encoding))
    variables = {}
    with h5py.File(io.BytesIO(content), "r") as file:
        for name, variable in dataset.variables.items():
            start, values = file[name].id.get_offset() or 0, np.asarray(variable.values)
            variables[str(name)] = {
                "start": start,
                "type": values.dtype.str,
                "shape": values.shape,
                "axes": variable.dims,
                "about": variable.attrs,
                "sha256": _sha256(content[start : start + values.nbytes]),
            }
    index = {
        "format": FORMAT,
        "coordinates": [str(name) for name in dataset.coords],
        "variables": variables,
        "attributes": {str(key): _as_json(value) for key, value in dataset.attrs.items()},
        "netcdf": _sha256(content),
    }
    text = json.dumps(index).encode()
    length = len(text).to_bytes(_LENGTH_BYTES, "little")
    return b"".join([content, text, hashlib.sha256(text).digest(), length, _MARK])


def read(path: str | os.PathLike[str], salvage: bool) -> "xarray.Dataset":
    """What `to_bytes` wrote, or a `ResultError` that names what is damaged.

    With `salvage`, what is sound, and a `SalvageWarning` that names what is lost.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    data = Path(path).read_bytes()
    index, end = _index(path, data)
    try:
        sound, lost = _variables(data[:end], index["variables"])
        if not lost and _sha256(data[:end]) != index["netcdf"]:
            lost = [STRUCTURE]
        if lost and not salvage:
            advice = "Trajectory.load(path, salvage=True) and `mime plot --salvage` read the rest"
            raise ResultError(f"{path}: damaged in {', '.join(lost)}; {advice}", lost)
        if "time" in lost:
            shape = index["variables"]["time"]["shape"]
            sound["time"] = (("time",), np.arange(1.0, shape[0] + 1), {"units": "1"})
            lost[lost.index("time")] = "time (samples are counted instead)"
        dataset = _dataset(sound, index)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ResultError):
            raise
        words = f"{path}: not a trajectory of MIME ({METADATA} makes no sense)"
        raise ResultError(words, [METADATA]) from error
    if lost:
        warn_user(SalvageWarning(f"{path}: damaged, and lost: {', '.join(lost)}"))
    return dataset


def _index(path: str | os.PathLike[str], data: bytes) -> tuple[dict[str, Any], int]:
    """The index, and where it begins."""
    if not data.endswith(_MARK):
        raise ResultError(f"{path}: not a trajectory of MIME (of this version), or cut short")
    tail = len(data) - _END
    begin = tail - int.from_bytes(data[-_LENGTH_BYTES - len(_MARK) : -len(_MARK)], "little")
    text = data[max(begin, 0) : max(tail, 0)]
    if begin < 0 or hashlib.sha256(text).digest() != data[tail : tail + _CHECKSUM_BYTES]:
        raise ResultError(f"{path}: damaged in {METADATA}; nothing can be read", [METADATA])
    index = json.loads(text)
    found = index.get("format") if isinstance(index, dict) else None
    if found != FORMAT:
        words = f"{path}: of another version (its format is {found!r}, expected {FORMAT!r})"
        raise ResultError(words)
    return index, begin


_Variable = tuple[tuple[str, ...], np.ndarray, dict[str, str]]
"""Axes, values, and what they are."""


def _variables(data: bytes, listed: dict[str, Any]) -> tuple[dict[str, _Variable], list[str]]:
    """The variables that are sound, and the names of the others."""
    sound: dict[str, _Variable] = {}
    lost = []
    for name, entry in listed.items():
        dtype, shape, start = np.dtype(entry["type"]), tuple(entry["shape"]), entry["start"]
        content = data[start : start + math.prod(shape) * dtype.itemsize]
        if _sha256(content) == entry["sha256"]:
            values = np.frombuffer(content, dtype).reshape(shape).copy()
            sound[name] = tuple(entry["axes"]), values, dict(entry["about"])
        else:
            lost.append(name)
    return sound, lost


def _dataset(variables: dict[str, _Variable], index: dict[str, Any]) -> "xarray.Dataset":
    import xarray

    fields = {name: v for name, v in variables.items() if name not in index["coordinates"]}
    others = {name: v for name, v in variables.items() if name in index["coordinates"]}
    attributes = {key: _from_json(value) for key, value in index["attributes"].items()}
    return xarray.Dataset(fields, others, attributes)


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"type": value.dtype.str, "values": value.tolist()}
    return value


def _from_json(value: Any) -> Any:
    return np.array(value["values"], value["type"]) if isinstance(value, dict) else value


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
