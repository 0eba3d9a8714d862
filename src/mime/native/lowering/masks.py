"""What members do apart: masks of lanes, and what each lane keeps."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mime.native.lowering.program import Program
from mime.native.lowering.values import Lowered, Memory, Value, as_objects, type_of


def both(p: Program, mask: Any, active: Any) -> Any:
    """mask and active"""
    if active is True:
        return mask
    if not isinstance(mask, Value):
        return active if mask else False
    return p.e.op("and", "i1", mask, active)


@contextmanager
def only(p: Program, mask: Any) -> Iterator[None]:
    """What is lowered here is for the lanes of a mask: a loop goes on for those alone."""
    before = p.active
    if isinstance(mask, Value) and mask.varying:
        p.active = both(p, mask, before)
    try:
        yield
    finally:
        p.active = before


def fill_where(p: Program, mask: Any, place: Memory, x: Lowered) -> None:
    """Copy for the lanes that the mask names."""
    e, source = p.e, p.in_memory(x, place.dtype)
    type_ = type_of(place.dtype)
    p.each(
        place.size,
        lambda k: e.store(place, k, e.select(mask, e.load(source, k), e.load(place, k), type_)),
    )


def elements(x: Lowered) -> list[Any]:
    """The elements of an array in registers."""
    assert isinstance(x, np.ndarray)
    return as_objects(x).ravel().tolist()


def is_varying(x: Lowered) -> bool:
    """True when an array differs from member to member."""
    if isinstance(x, Memory):
        return x.kind not in ("shared", "plain")
    return x.dtype == object and any(isinstance(v, Value) and v.varying for v in x.flat)
