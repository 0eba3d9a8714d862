"""Numbers of one type as numbers of another: what is out of range saturates, NaN becomes 0."""

from typing import Any

import numpy as np

from mime.native.lowering.emitter import Emitter
from mime.native.lowering.values import FLOATS, Value, type_of


def convert_element(e: Emitter, x: Any, source: Any, target: Any) -> Any:
    """A number of one type as another's: floats to integers saturate, and NaN becomes 0."""
    a, b = type_of(source), type_of(target)
    if not isinstance(x, Value):
        return converted(as_numbers(cell(x), source), target).item()
    if a == b and (np.dtype(source) == np.dtype(target) or a not in FLOATS):
        return x
    unsigned = np.issubdtype(source, np.unsignedinteger) or a == "i1"
    if b == "i1":
        if a in FLOATS:
            return e.compare("fcmp une", x, 0.0, a)
        return e.compare("icmp ne", x, 0, a)
    if a in FLOATS and b in FLOATS:
        return e.convert("fpext" if b == "double" else "fptrunc", x, a, b)
    if a in FLOATS:
        signs = "u" if np.issubdtype(target, np.unsignedinteger) else "s"
        return _saturated(e, x, a, b, f"fpto{signs}i.sat")
    if b in FLOATS:
        return e.convert("uitofp" if unsigned else "sitofp", x, a, b)
    if int(b[1:]) < int(a[1:]):
        return e.convert("trunc", x, a, b)
    return e.convert("zext" if unsigned else "sext", x, a, b)


def converted(x: np.ndarray, target: Any) -> np.ndarray:
    """Numbers as those of another type, by the same rule."""
    target = np.dtype(target)
    with np.errstate(all="ignore"):
        if x.dtype.kind != "f" or target.kind not in "iu":
            return x.astype(target)
        info = np.iinfo(target)
        beyond = float(info.max) + 1  # a power of two in every format
        ends = [x >= beyond, x <= float(info.min), np.isnan(x)]
        inside = np.where(np.logical_or.reduce(ends), 0, x).astype(target)
        return np.select(ends, [target.type(k) for k in (info.max, info.min, 0)], inside)


def _saturated(e: Emitter, x: Value, a: str, b: str, name: str) -> Value:
    short = {"double": "f64", "float": "f32"}[a]
    dims = f"v{e.lanes}" if x.varying else ""
    function = f"llvm.{name}.{dims}{b}.{dims}{short}"
    result, source = e.type(b, x.varying), e.type(a, x.varying)
    e.module.declare(function, result, [source])
    return e.emit(f"call {result} @{function}({source} {x.name})", b, x.varying)


def cell(x: Any) -> np.ndarray:
    """x as the one element of an array of objects."""
    cell = np.empty((), object)
    cell[()] = x
    return cell


def settled(x: np.ndarray, dtype: Any) -> np.ndarray:
    """An array of numbers alone as a constant."""
    if x.dtype == object and not any(isinstance(v, Value) for v in x.flat):
        return as_numbers(x, dtype)
    return x


def as_numbers(x: Any, dtype: Any) -> np.ndarray:
    """Numbers as an array of a dtype; an integer that is too large keeps its lowest bits."""
    x, dtype = np.asarray(x), np.dtype(dtype)
    if x.dtype != object or dtype.kind not in "iu":
        return x.astype(dtype)
    least = (1 << 8 * dtype.itemsize) - 1
    flat = np.array([int(v) & least for v in x.flat], f"u{dtype.itemsize}")
    return flat.view(dtype).reshape(x.shape)
