"""Primitives that move elements and compute nothing: free for arrays in registers."""

import math
from typing import Any

import numpy as np

from mime.native.lowering.values import as_objects


def _broadcast(eqn: Any, x: np.ndarray) -> np.ndarray:
    shape = eqn.outvars[0].aval.shape
    spread = [1] * len(shape)
    for axis, size in zip(eqn.params["broadcast_dimensions"], x.shape, strict=True):
        spread[axis] = size
    return np.broadcast_to(x.reshape(spread), shape)


def _reshape(eqn: Any, x: np.ndarray) -> np.ndarray:
    return x.reshape(eqn.outvars[0].aval.shape)


def _slice(eqn: Any, x: np.ndarray) -> np.ndarray:
    p = eqn.params
    strides = p["strides"] or [1] * x.ndim
    return x[tuple(map(slice, p["start_indices"], p["limit_indices"], strides))]


def _pad(eqn: Any, x: np.ndarray, filling: np.ndarray) -> np.ndarray:
    """Spread and pad; then cut off where a padding is negative."""
    config = list(zip(eqn.params["padding_config"], x.shape, strict=True))
    spread = [size + max(0, size - 1) * inner for (_, _, inner), size in config]
    room = zip(spread, config, strict=True)
    out = np.empty([max(0, low) + n + max(0, high) for n, ((low, high, _), _) in room], object)
    out[...] = as_objects(filling)[()]
    within = zip(spread, config, strict=True)
    out[
        tuple(slice(max(0, low), max(0, low) + n, inner + 1) for n, ((low, _, inner), _) in within)
    ] = as_objects(x)
    cut = zip(out.shape, config, strict=True)
    return out[tuple(slice(max(0, -low), n - max(0, -high)) for n, ((low, high, _), _) in cut)]


def _concatenate(eqn: Any, *x: np.ndarray) -> np.ndarray:
    return np.concatenate(_alike(x), axis=eqn.params["dimension"])


def _stack(eqn: Any, *x: np.ndarray) -> np.ndarray:
    return np.stack(_alike(x), axis=eqn.params["axis"])


def _alike(arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    if all(x.dtype != object for x in arrays):
        return list(arrays)
    return [as_objects(x) for x in arrays]


def _unstack(eqn: Any, x: np.ndarray) -> list[np.ndarray]:
    parts = np.moveaxis(x, eqn.params["axis"], 0)
    return [_array(part, x) for part in parts]


def _array(part: Any, like: np.ndarray) -> np.ndarray:
    if isinstance(part, np.ndarray):
        return part
    cell = np.empty((), like.dtype)
    cell[()] = part
    return cell


def _split(eqn: Any, x: np.ndarray) -> list[np.ndarray]:
    cuts = np.cumsum(eqn.params["sizes"])[:-1]
    return np.split(x, cuts, axis=eqn.params["axis"])


def _iota(eqn: Any) -> np.ndarray:
    p = eqn.params
    shape = [1] * len(p["shape"])
    shape[p["dimension"]] = p["shape"][p["dimension"]]
    counted = np.arange(p["shape"][p["dimension"]]).astype(p["dtype"]).reshape(shape)
    return np.broadcast_to(counted, p["shape"])


def _tile(eqn: Any, x: np.ndarray) -> np.ndarray:
    return np.tile(x, eqn.params["reps"]).reshape(eqn.outvars[0].aval.shape)


SHAPES: dict[str, Any] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "split": _split,
    "iota": _iota,
    "tile": _tile,
    "transpose": lambda eqn, x: np.transpose(x, eqn.params["permutation"]),
    "rev": lambda eqn, x: np.flip(x, eqn.params["dimensions"]),
}

VIEWS = ("reshape", "squeeze", "expand_dims")
"""What an array in memory becomes without moving it."""


def index_maps(eqn: Any) -> list[np.ndarray]:
    """Where each element of the results comes from: the rule, applied to the elements' numbers,
    which go on from one operand to the next.
    """
    numbers, first = [], 0
    for v in eqn.invars:
        size = math.prod(v.aval.shape)
        numbers.append(np.arange(first, first + size).reshape(v.aval.shape))
        first += size
    found = SHAPES[eqn.primitive.name](eqn, *numbers)
    maps = found if isinstance(found, list) else [found]
    return [np.asarray(x, np.int64).ravel() for x in maps]
