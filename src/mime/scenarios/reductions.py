"""From samples over time to one number a member: what `[[figures_of_merit]]` and studies keep.

Samples are (member, time) or (member, time, components); a single run is a batch of one. A member's
number has the same bits in any batch: sums run along its own samples, which lie side by side.
"""

from typing import Any

import numpy as np

Samples = np.ndarray
"""(member, time, ...)"""
PerMember = np.ndarray
"""(member,)"""
_NEAR_BYTES = 2**20


def statistic(kind: str, values: Samples) -> PerMember:
    """The last, largest, smallest, mean or root mean square value, over all components."""
    flat = _rows(values)
    if not flat.shape[1]:
        return _nothing(values)
    if kind == "rms":
        return root_mean_square(flat)
    if kind == "final":
        return flat[:, -1]
    return getattr(flat, kind)(axis=1)


def quantile(values: Samples, q: float) -> PerMember:
    """The value that a share `q` of all samples do not exceed, straight between samples."""
    flat = _rows(values)
    return np.quantile(flat, q, axis=1) if flat.shape[1] else _nothing(values)


def root_mean_square(values: Samples) -> PerMember:
    """sqrt(mean(x²)), of a few members at a time: their squares stay near the core."""
    flat = _rows(values)
    if not flat.shape[1]:
        return _nothing(values)
    few = max(1, _NEAR_BYTES // (flat.shape[1] * flat.itemsize))
    squares = np.empty((few, flat.shape[1]), flat.dtype)
    sums = np.empty(len(flat), flat.dtype if flat.dtype.kind == "f" else float)
    for first in range(0, len(flat), few):
        some = flat[first : first + few]
        np.add.reduce(np.square(some, out=squares[: len(some)]), axis=1, out=sums[first:][:few])
    return np.sqrt(sums / flat.shape[1])


def count(values: Samples) -> PerMember:
    """How often the value leaves zero."""
    away = values != 0
    return away[:, :1].sum(axis=1) + np.count_nonzero(away[:, 1:] & ~away[:, :-1], axis=1)


def distances(error: Samples) -> Samples:
    """|e|, the length of the vector, at each time."""
    return np.linalg.norm(error.reshape(*error.shape[:2], -1), axis=2)


def delayed(time: np.ndarray, values: Samples, lag: float) -> Samples:
    """values(t - lag), on straight lines between samples."""
    if not lag or len(time) < 2:
        return values
    asked = time - lag
    before = np.clip(np.searchsorted(time, asked, side="right") - 1, 0, len(time) - 2)
    shape = (-1, *[1] * (values.ndim - 2))
    way = (np.maximum(asked, time[0]) - time[before]).reshape(shape)
    slope = (values[:, before + 1] - values[:, before]) / np.diff(time)[before].reshape(shape)
    return (slope * way + values[:, before]).astype(values.dtype)


def time_of_max(t: np.ndarray, values: Samples) -> PerMember:
    """When |y| is largest; NaN where it never was anything but zero."""
    if not len(t):
        return _nothing(values)
    return np.where(values.any(axis=1), t[np.argmax(np.abs(values), axis=1)], np.nan)


def settling_time(
    t: np.ndarray, values: Samples, target: np.ndarray, width: np.ndarray
) -> PerMember:
    """The first time after which |y - target| <= width, (member, 1) each; NaN where the run ends
    before.

    It is y beyond either end of the band, so that no array of the size of y is written on the way.
    """
    outside = values > target + width
    outside |= values < target - width
    settled = np.append(np.maximum(t, 0.0), np.nan)[1 + _last_true(outside)]
    return np.where(np.isnan(width[:, 0]), np.nan, settled)


def _last_true(flags: np.ndarray) -> np.ndarray:
    """Of each row, the place of the last True; -1 where there is none.

    As bytes, which Python searches from the end: NumPy would turn every row around.
    """
    flags = np.ascontiguousarray(flags)
    count, content = flags.shape[1], flags.tobytes()
    starts = range(0, len(content), count)
    return np.array([content.rfind(1, start, start + count) for start in starts]) - starts


def rise_time(t: np.ndarray, way: Samples) -> PerMember:
    """From 10 % to 90 % of the way."""
    return _crossing(t, way, 0.9) - _crossing(t, way, 0.1)


def _crossing(t: np.ndarray, way: Samples, level: float) -> PerMember:
    """The time at which `way` first reaches the level, straight between samples."""
    beyond = way >= level
    k = np.argmax(beyond, axis=1)
    last = np.take_along_axis(way, k[:, None], axis=1)[:, 0]
    first = np.take_along_axis(way, np.maximum(k - 1, 0)[:, None], axis=1)[:, 0]
    t0, t1 = t[np.maximum(k - 1, 0)], t[k]
    between = (t1 - t0) / (last - first) * (level - first) + t0
    found = np.where((k == 0) | (last == level), t1, between)
    return np.where(beyond.any(axis=1), found, np.nan)


def _rows(values: Samples) -> np.ndarray:
    """(member, numbers), those of a member side by side: NumPy adds up strided ones otherwise."""
    size = int(np.prod(values.shape[1:]))
    return np.ascontiguousarray(values.reshape(len(values), size))


def _nothing(values: Samples) -> Any:
    return np.full(len(values), np.nan)
