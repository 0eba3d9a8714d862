"""Results as NetCDF files that know when they are damaged.

Every variable carries the SHA-256 of all that is read of it: name, axes, type, shape, values, unit
and description. The file carries that of its attributes and of the list of its variables. HDF5
itself notices few changed bits, and its readers meet a damaged file with any error they have.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mime._text import warn_user
from mime.running.identity import digest

if TYPE_CHECKING:
    import xarray

FORMAT = "MIME trajectory 2"
METADATA = "the metadata (parameters, list of fields)"
"""What a message calls the part that is no variable."""
_CHECKSUM, _CONTENTS = "sha256", "contents"
_ABOUT = ("units", "long_name")
_LEADS = (("time",), ("member", "time"), ("member",))
"""The axes that come first: of a field, of a field of a batch, of a varied parameter."""


class ResultError(ValueError):
    """A result that cannot be read; `damaged` names the fields whose checksums are wrong."""

    def __init__(self, what: str, damaged: Iterable[str] = ()):
        self.damaged = tuple(damaged)
        super().__init__(what)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.damaged)


class SalvageWarning(UserWarning):
    """A damaged result was read in part; the message names what was lost."""


def to_bytes(dataset: "xarray.Dataset") -> bytes:
    """The file of a dataset, with its checksums."""
    written = dataset.copy()
    for name, variable in written.variables.items():
        values = np.asarray(variable.values)
        lead = tuple(axis for axis in variable.dims if axis in ("member", "time"))
        checksum = _variable_checksum(str(name), lead, values, variable.attrs)
        written[name].attrs[_CHECKSUM] = checksum
    written.attrs[_CONTENTS] = json.dumps(sorted(map(str, written.variables)))
    written.attrs[_CHECKSUM] = _metadata_checksum(written.attrs)
    # No fill values: a NaN is a NaN, whatever its bits.
    encoding = {name: {"_FillValue": None} for name in written.variables}
    # HDF5 does not survive a disk that fills up while it writes: it writes to memory.
    return bytes(written.to_netcdf(engine="h5netcdf", encoding=encoding))


def read(path: str | os.PathLike[str], salvage: bool) -> "xarray.Dataset":
    """What `to_bytes` wrote, or a `ResultError` that names what is damaged.

    With `salvage`, what is sound, and a `SalvageWarning` that names what is lost.
    """
    import h5py

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with h5py.File(path, "r") as file:
            attributes, listed = _metadata(path, file, salvage)
            variables, lost = _variables(file, listed, Path(path).stat().st_size)
    except ResultError:
        raise
    except Exception as error:  # HDF5 meets a damaged file with any error it has
        words = f"{path}: not a readable NetCDF file, or cut short ({error})"
        raise ResultError(words) from error
    if listed is None:
        lost.insert(0, METADATA)
    if not lost:
        return _dataset(variables, attributes)
    names = ", ".join(lost)
    if not salvage:
        advice = "Trajectory.load(path, salvage=True) and `mime plot --salvage` read the rest"
        raise ResultError(f"{path}: damaged in {names}; {advice}", lost)
    if not variables:
        raise ResultError(f"{path}: damaged in {names}; nothing of it is sound", lost)
    if "time" not in variables:
        names += " (samples are counted instead of timed)"
        axes, values = next((a, v) for a, v, _ in variables.values() if "time" in a)
        count = values.shape[axes.index("time")]
        variables["time"] = (("time",), np.arange(1.0, count + 1), {"units": "1"})
    warn_user(SalvageWarning(f"{path}: damaged, and lost: {names}"))
    return _dataset(variables, attributes)


_Variable = tuple[tuple[str, ...], np.ndarray, dict[str, str]]
"""Axes, values, and what they are."""


def _metadata(
    path: str | os.PathLike[str], file: Any, salvage: bool
) -> tuple[dict[str, Any], list[str] | None]:
    """The file's attributes and the list of its variables; None when the list is not sound."""
    try:
        attributes = {
            str(name): value for name, value in file.attrs.items() if not name.startswith("_NC")
        }
        found = attributes.get("format")
        if found != FORMAT and not salvage:
            raise ResultError(
                f"{path}: not a trajectory of MIME, or of another version (its format is "
                f"{found!r}, expected {FORMAT!r})"
            )
        if attributes.pop(_CHECKSUM, None) != _metadata_checksum(attributes):
            return {}, None
        listed = json.loads(attributes.pop(_CONTENTS))
        return attributes, [str(name) for name in listed]
    except ResultError:
        raise
    except Exception:
        return {}, None


def _variables(
    file: Any, listed: list[str] | None, size: int
) -> tuple[dict[str, _Variable], list[str]]:
    """The variables that are sound, and the names of the others."""
    sound: dict[str, _Variable] = {}
    lost = []
    for name in sorted(file) if listed is None else listed:
        try:
            if listed is None and _CHECKSUM not in file[name].attrs:
                continue  # an axis
            sound[name] = _variable(file[name], name, size)
        except Exception:
            lost.append(name)
    return sound, lost


def _variable(stored: Any, name: str, size: int) -> _Variable:
    """A variable of the file; a `ValueError` when it is not what was written."""
    if stored.nbytes > size:  # a damaged shape would fill the memory
        raise ValueError("larger than its file")
    values = stored[()]
    if stored.attrs.get("dtype") == "bool":  # NetCDF has none
        values = values.astype(bool)
    about = {key: stored.attrs[key] for key in _ABOUT if key in stored.attrs}
    for lead in _LEADS:
        if stored.attrs[_CHECKSUM] == _variable_checksum(name, lead, values, about):
            inner = tuple(f"{name}.axis{i}" for i in range(values.ndim - len(lead)))
            return (*lead, *inner), values, about
    raise ValueError("its checksum is wrong")


def _dataset(variables: Mapping[str, _Variable], attributes: Mapping[str, Any]) -> "xarray.Dataset":
    """Fields, which have units, as variables; time and varied parameters as coordinates."""
    import xarray

    fields = {n: v for n, v in variables.items() if n != "time" and "units" in v[2]}
    others = {n: v for n, v in variables.items() if n not in fields}
    return xarray.Dataset(fields, others, attributes)


def _variable_checksum(
    name: str, lead: tuple[str, ...], values: np.ndarray, about: Mapping[str, Any]
) -> str:
    words = [str(about.get(key, "")) for key in _ABOUT]
    kind = (values.dtype.str, values.shape)
    return digest(name, repr(lead), *words, repr(kind), np.ascontiguousarray(values).tobytes())


def _metadata_checksum(attributes: Mapping[str, Any]) -> str:
    """Of all attributes but itself; a number and an array of one number are the same to NetCDF."""
    parts = []
    for name in sorted(attributes.keys() - {_CHECKSUM}):
        value = attributes[name]
        text = value if isinstance(value, str) else repr(np.atleast_1d(value).tolist())
        parts += [name, text]
    return digest(*parts)
