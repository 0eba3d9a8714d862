"""Numbers in a page, small: whole numbers, as differences from row to row, in planes of bytes.

    x = low + step k,    k_r - k_(r-1) zigzag,    all lowest bytes, then all second ones, ...

Motions are smooth and vertices stand beside their neighbours: most upper bytes are 0, and gzip
removes them. What the page computes with is `low + step k` in double precision, within half a step
of what was recorded.
"""

import base64
import gzip
from typing import Any

import numpy as np

EXACT, DRAWN, COARSE = 28, 16, 14
"""Bits of a range: of what moves frames, of what is only drawn as a curve, and of vertices."""


class Block:
    """The tables of a page in one row of bytes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add_whole(self, table: np.ndarray) -> dict[str, Any]:
        """A table (rows, columns) of whole numbers, and where it stands."""
        k = np.ascontiguousarray(table, np.int64)
        differences = np.diff(k, axis=0, prepend=0)
        differences = (differences + 2**31) % 2**32 - 2**31  # as 32-bit numbers wrap
        zigzag = ((differences << 1) ^ (differences >> 63)).astype(np.uint32)
        planes = zigzag.reshape(-1).view(np.uint8).reshape(-1, 4).T
        content = np.ascontiguousarray(planes).tobytes()
        place = {"at": self._size, "shape": list(k.shape)}
        self._pieces.append(content)
        self._size += len(content)
        return place

    def add(self, table: np.ndarray, bits: int) -> dict[str, Any]:
        """A table (rows, columns) of real numbers, each column in 2^bits steps of its range.

        What is not finite is what was finite before it, or 0.
        """
        x = filled(np.asarray(table, float))
        low = x.min(axis=0, initial=np.inf)
        span = x.max(axis=0, initial=-np.inf) - low
        step = np.where(span > 0, span / (2**bits - 2), 1.0)
        # Steps are counted from 0 where that is in the range: it is told as 0, not as half a step.
        low = np.where((low <= 0) & (low + span >= 0), step * np.floor(low / step), low)
        whole = np.all((x == np.round(x)) & (np.abs(x) < 2**30), axis=0)
        low, step = np.where(whole, 0.0, low), np.where(whole, 1.0, step)
        k = np.round((x - low) / step)
        return self.add_whole(k) | {"low": low.tolist(), "step": step.tolist()}

    def base64(self) -> str:
        """All of it, as the page holds it; the same for the same numbers."""
        packed = gzip.compress(b"".join(self._pieces), 9, mtime=0)
        return base64.b64encode(packed).decode()


def filled(x: np.ndarray) -> np.ndarray:
    """The table with the last finite value of a column in place of what is not finite."""
    bad = ~np.isfinite(x)
    if not bad.any():
        return x
    rows = np.where(bad, 0, np.arange(len(x))[:, None])
    found = np.take_along_axis(x, np.maximum.accumulate(rows, axis=0), axis=0)
    return np.where(np.isfinite(found), found, 0.0)
