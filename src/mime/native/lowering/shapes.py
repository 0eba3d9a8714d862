"""Primitives that move elements and compute nothing: free for arrays in registers."""

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
    out = np.empty(eqn.outvars[0].aval.shape, object)
    out[...] = as_objects(filling)[()]
    config = eqn.params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in config):
        cut = tuple(
            slice(max(0, -low), size - max(0, -high) if high < 0 else size)
            for (low, high, _), size in zip(config, x.shape, strict=True)
        )
        if any(inner for _, _, inner in config):
            from mime.native.lowering.values import Unsupported

            raise Unsupported("pad that cuts and spreads at once")
        x = x[cut]
    where = tuple(
        slice(
            max(0, low),
            max(0, low) + (size - 1) * (inner + 1) + 1 if size else max(0, low),
            inner + 1,
        )
        for (low, _, inner), size in zip(config, x.shape, strict=True)
    )
    out[where] = as_objects(x)
    return out


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


def index_map(eqn: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Where each element of a result comes from: the rule, applied to the elements' numbers."""
    numbers = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    return np.asarray(SHAPES[eqn.primitive.name](eqn, numbers))
