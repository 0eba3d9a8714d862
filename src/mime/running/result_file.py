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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mime._text import Travels, warn_user
from mime.running.contents import Contents, Variable

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


def to_bytes(contents: Contents) -> bytes:
    """The file of a result, with its index."""
    import h5py

    netcdf = _netcdf(contents)
    variables = {}
    with h5py.File(io.BytesIO(netcdf), "r") as file:
        for name, (axes, values, about) in contents.variables.items():
            start = file[name].id.get_offset() or 0
            variables[name] = {
                "start": start,
                "type": values.dtype.str,
                "shape": values.shape,
                "axes": axes,
                "about": dict(about),
                "sha256": _sha256(netcdf[start : start + values.nbytes]),
            }
    index = {
        "format": FORMAT,
        "coordinates": list(contents.coordinates),
        "variables": variables,
        "attributes": {key: _as_json(value) for key, value in contents.attributes.items()},
        "netcdf": _sha256(netcdf),
    }
    text = json.dumps(index).encode()
    length = len(text).to_bytes(_LENGTH_BYTES, "little")
    return b"".join([netcdf, text, hashlib.sha256(text).digest(), length, _MARK])


def _netcdf(contents: Contents) -> bytes:
    """The file for other programs, by the conventions that xarray keeps."""
    import h5netcdf

    # HDF5 does not survive a disk that fills up while it writes: it writes to memory.
    memory = io.BytesIO()
    with h5netcdf.File(memory, "w") as file:
        file.dimensions = contents.sizes
        for name, (axes, values, about) in contents.variables.items():
            truth = values.dtype == bool  # which NetCDF has no type for
            stored = values.view(np.int8) if truth else values
            variable = file.create_variable(name, axes, data=np.ascontiguousarray(stored))
            variable.attrs.update(about)
            if truth:
                variable.attrs["dtype"] = "bool"
            if name in contents.fields and (beside := _beside(axes, contents.coordinates)):
                variable.attrs["coordinates"] = " ".join(beside)
        file.attrs.update(contents.attributes)
    return memory.getvalue()


def _beside(axes: tuple[str, ...], coordinates: Mapping[str, Variable]) -> list[str]:
    """The coordinates that are no axis themselves and vary along some of these axes only."""
    return sorted(
        name
        for name, coordinate in coordinates.items()
        if name not in coordinate.axes and set(coordinate.axes) <= set(axes)
    )


def read(path: str | os.PathLike[str], salvage: bool) -> Contents:
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
            sound["time"] = Variable(("time",), np.arange(1.0, shape[0] + 1), {"units": "1"})
            lost[lost.index("time")] = "time (samples are counted instead)"
        contents = _contents(sound, index)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ResultError):
            raise
        words = f"{path}: not a trajectory of MIME ({METADATA} makes no sense)"
        raise ResultError(words, [METADATA]) from error
    if lost:
        warn_user(SalvageWarning(f"{path}: damaged, and lost: {', '.join(lost)}"))
    return contents


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


def _variables(data: bytes, listed: dict[str, Any]) -> tuple[dict[str, Variable], list[str]]:
    """The variables that are sound, and the names of the others."""
    sound: dict[str, Variable] = {}
    lost = []
    for name, entry in listed.items():
        dtype, shape, start = np.dtype(entry["type"]), tuple(entry["shape"]), entry["start"]
        content = data[start : start + math.prod(shape) * dtype.itemsize]
        if _sha256(content) == entry["sha256"]:
            values = np.frombuffer(content, dtype).reshape(shape).copy()
            sound[name] = Variable(tuple(entry["axes"]), values, dict(entry["about"]))
        else:
            lost.append(name)
    return sound, lost


def _contents(variables: dict[str, Variable], index: dict[str, Any]) -> Contents:
    fields = {name: v for name, v in variables.items() if name not in index["coordinates"]}
    others = {name: v for name, v in variables.items() if name in index["coordinates"]}
    attributes = {key: _from_json(value) for key, value in index["attributes"].items()}
    return Contents(fields, others, attributes)


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"type": value.dtype.str, "values": value.tolist()}
    return value


def _from_json(value: Any) -> Any:
    return np.array(value["values"], value["type"]) if isinstance(value, dict) else value


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
