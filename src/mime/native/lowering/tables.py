"""Very many small arrays, moved by one loop over tables that say from where to where.

A graph of a thousand motors has tens of thousands of arguments, states and samples. Instructions
for each would take LLVM minutes; a loop is as short for a thousand as for one.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from mime.native.lowering.emitter import Emitter
from mime.native.lowering.program import Program, Row
from mime.native.lowering.values import Lowered, Memory, Value, bytes_of, stored_type

Item = TypeVar("Item")


def copy_all(p: Program, pairs: Sequence[tuple[Memory, Memory]]) -> None:
    """to = source for each pair of arrays in the workspace, none of which is both."""

    def move(group: Sequence[tuple[Memory, Memory]]) -> None:
        to, source = group[0]
        places = p.looked_up(np.concatenate([_places(p.e, a) for a, _ in group]))
        origins = p.looked_up(np.concatenate([_places(p.e, b) for _, b in group]))
        count = sum(a.size for a, _ in group)
        whole_to, whole_source = _whole(to), _whole(source)
        p.each(count, lambda k: p.e.store(whole_to, places(k), p.e.load(whole_source, origins(k))))

    _by_kind(pairs, lambda pair: (pair[0].dtype, pair[0].kind, pair[1].kind), move)


def fill_all(p: Program, pairs: Sequence[tuple[Memory, Lowered]]) -> None:
    """Fill arrays in memory; those in the workspace together, if the whole program is there."""
    together = []
    for to, source in pairs:
        if p.in_workspace and p.lies_in_workspace(to) and p.lies_in_workspace(source):
            together.append((to, source))
        else:
            p.fill(to, source)
    copy_all(p, together)


@contextmanager
def rows_together(p: Program, together: bool) -> Iterator[None]:
    """Rows of results without end that are written here are written at the end, by one loop."""
    before, p.rows = p.rows, [] if together else None
    try:
        yield
        put_rows(p, p.rows or [], p.members)
    finally:
        p.rows = before


def take_arguments(
    p: Program, wanted: Sequence[tuple[int, Any]], members: Sequence[str] | None
) -> list[Memory]:
    """Copies of arguments, (number, aval), in the workspace; of each member's own if there are."""
    copies = [p.e.allocate(a.shape, a.dtype, members is not None) for _, a in wanted]

    def take(group: Sequence[tuple[tuple[int, Any], Memory]]) -> None:
        numbers, elements, sizes = _entries(p, [(k, a) for (k, a), _ in group])
        places = p.looked_up(np.concatenate([_places(p.e, m) for _, m in group]))
        memory = group[0][1]

        def one(k: Any) -> None:
            base = _array(p.e, "%args", numbers(k))
            source = Memory((base,), "shared", memory.shape, memory.dtype)
            if members is not None:
                own = of_members(p.e, base, members, memory.dtype, sizes(k))
                source = Memory(own, "members", memory.shape, memory.dtype)
            p.e.store(_whole(memory), places(k), p.e.load(source, elements(k)))

        p.each(sum(m.size for _, m in group), one)

    _by_kind(list(zip(wanted, copies, strict=True)), lambda item: item[1].dtype, take)
    return copies


def put_results(
    p: Program, found: Sequence[tuple[int, Any, Memory]], members: Sequence[str]
) -> None:
    """Write results, (number, aval, array in the workspace), to where the caller wants them."""

    def put(group: Sequence[tuple[int, Any, Memory]]) -> None:
        origins = p.looked_up(np.concatenate([_places(p.e, m) for _, _, m in group]))
        source = _whole(group[0][2])
        _put(p, group, members, lambda k: p.e.load(source, origins(k)))

    _by_kind(found, lambda item: (item[2].dtype, item[2].kind), put)


def put_constants(
    p: Program, found: Sequence[tuple[int, Any, np.ndarray]], members: Sequence[str]
) -> None:
    """The same for results that are known now."""

    def put(group: Sequence[tuple[int, Any, np.ndarray]]) -> None:
        dtype = group[0][1].dtype
        flat = np.concatenate([np.ravel(x) for _, _, x in group]).astype(dtype)
        table = p.e.module.table(flat)
        _put(p, group, members, lambda k: p.e.load(table, k))

    _by_kind(found, lambda item: item[1].dtype, put)


def _put(
    p: Program,
    group: Sequence[tuple[int, Any, Any]],
    members: Sequence[str],
    element: Callable[[Any], Any],
) -> None:
    numbers, elements, sizes = _entries(p, [(k, a) for k, a, _ in group])
    aval = group[0][1]

    def one(k: Any) -> None:
        base = _array(p.e, "%results", numbers(k))
        pointers = of_members(p.e, base, members, aval.dtype, sizes(k))
        target = Memory(pointers, "members", aval.shape, np.dtype(aval.dtype))
        p.e.store(target, elements(k), element(k))

    p.each(sum(math.prod(a.shape) for _, a, _ in group), one)


def put_rows(p: Program, rows: Sequence[Row], members: Sequence[str]) -> None:
    """Write rows to results of rows without end."""

    def put(group: Sequence[Row]) -> None:
        entries = [(*p.unbounded[row.memory.pointers], row.source.size) for row in group]
        numbers, strides, elements = (
            p.looked_up(column)
            for column in (
                _repeated([number for number, _, _ in entries], [size for _, _, size in entries]),
                _repeated([stride for _, stride, _ in entries], [size for _, _, size in entries]),
                np.concatenate([np.arange(size) for _, _, size in entries]),
            )
        )
        origins = p.looked_up(np.concatenate([_places(p.e, row.source) for row in group]))
        source, first = group[0].source, group[0].first

        def one(k: Any) -> None:
            base, distance = _array(p.e, "%results", numbers(k)), p.e.load(STRIDES, strides(k))
            pointers = of_members(p.e, base, members, source.dtype, distance)
            target = Memory(pointers, "members", source.shape, source.dtype)
            at = p.e.integer("add", first, elements(k), "i64")
            p.e.store(target, at, p.e.load(_whole(source), origins(k)))

        p.each(sum(size for _, _, size in entries), one)

    _by_kind(rows, lambda row: (row.source.dtype, row.source.kind, _name(row.first)), put)


STRIDES = Memory(("%strides",), "shared", (2**31,), np.dtype(np.int64))
"""The distances, in elements, between the members of the results of rows without end."""


def _by_kind(
    items: Iterable[Item], kind: Callable[[Item], Hashable], move: Callable[[list[Item]], None]
) -> None:
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(kind(item), []).append(item)
    for group in groups.values():
        move(group)


def _name(x: Any) -> Any:
    return x.name if isinstance(x, Value) else x


def _repeated(numbers: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    return np.repeat(np.array(numbers, np.int64), sizes)


def _entries(p: Program, arrays: Sequence[tuple[int, Any]]) -> list[Callable[[Any], Any]]:
    """Of each element: the number of its array, its place there, and the size of the array."""
    sizes = [math.prod(a.shape) for _, a in arrays]
    columns = (
        _repeated([number for number, _ in arrays], sizes),
        np.concatenate([np.arange(size) for size in sizes]),
        _repeated(sizes, sizes),
    )
    return [p.looked_up(column) for column in columns]


def _whole(memory: Memory) -> Memory:
    """The workspace as one array of such elements."""
    return Memory(("%workspace",), memory.kind, (2**31,), memory.dtype)


def _places(e: Emitter, memory: Memory) -> np.ndarray:
    """Where the elements of an array lie in that."""
    element = bytes_of(memory.dtype) * (e.lanes if memory.kind == "lanes" else 1)
    return e.offset(memory) // element + np.arange(memory.size)


def _array(e: Emitter, arrays: str, number: Any) -> str:
    """The pointer to argument or result `number`."""
    text = number.name if isinstance(number, Value) else number
    at = e.emit(f"getelementptr ptr, ptr {arrays}, i64 {text}", "ptr", False)
    return e.emit(f"load ptr, ptr {at.name}, align 8", "ptr", False).name


def of_members(
    e: Emitter, base: str, members: Sequence[str], dtype: Any, distance: Any
) -> tuple[str, ...]:
    """Where the arrays of the members begin, `distance` elements apart."""
    pointers = []
    for member in members:
        if member == "0":
            pointers.append(base)
            continue
        at = e.integer("mul", Value(member, "i64", False), distance, "i64")
        text = f"getelementptr {stored_type(dtype)}, ptr {base}, i64 {at.name}"
        pointers.append(e.emit(text, "ptr", False).name)
    return tuple(pointers)
