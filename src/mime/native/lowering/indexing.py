"""Elements at places that may be known only when the program runs: slices, gathers, scatters."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from mime.native.lowering.conversions import convert_element
from mime.native.lowering.elementwise import ELEMENTS
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.program import STRUCTURED, Program, Row
from mime.native.lowering.values import (
    Lowered,
    Memory,
    Unsupported,
    Value,
    as_objects,
    registers,
    type_of,
)

MOST_SELECTED = 16
"""Elements of an array of which one is replaced by comparing with all places, in registers."""


def _index(p: Program, x: Lowered, dtype: Any) -> Any:
    """A scalar index as an int64."""
    return _signed(p.e, p.in_registers(x).reshape(()).item(), dtype)


def _signed(e: Emitter, x: Any, dtype: Any) -> Any:
    """An index as an int64; one that is too large for it stays large."""
    if np.dtype(dtype) != np.uint64:
        return convert_element(e, x, dtype, np.int64)
    most = np.iinfo(np.int64).max
    return e.intrinsic("umin", "i64", x, most) if isinstance(x, Value) else min(int(x), most)


def _clamped(e: Emitter, x: Any, most: int) -> Any:
    if not isinstance(x, Value):
        return min(max(int(x), 0), most)
    if most <= 0:
        return 0
    return e.intrinsic("smin", "i64", e.intrinsic("smax", "i64", x, 0), most)


def _flat(e: Emitter, coordinates: Sequence[Any], shape: Sequence[int]) -> Any:
    """Σ coordinate × stride"""
    total: Any = 0
    for x, size in zip(coordinates, shape, strict=True):
        total = e.integer("add", e.integer("mul", total, size, "i64"), x, "i64")
    return total


def _starts(
    p: Program, eqn: Any, operands: Sequence[Lowered], sizes: Sequence[int], first: int
) -> list[Any]:
    """The first element of a slice along each axis, moved so that the slice lies within."""
    shape = eqn.invars[0].aval.shape
    return [
        _clamped(p.e, _index(p, x, v.aval.dtype), whole - size)
        for x, v, whole, size in zip(operands, eqn.invars[first:], shape, sizes, strict=True)
    ]


def _dynamic_slice(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    x, sizes = operands[0], eqn.params["slice_sizes"]
    starts = _starts(p, eqn, operands[1:], sizes, 1)
    if not any(isinstance(s, Value) for s in starts) and not isinstance(x, Memory):
        return [x[tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))]]
    memory = p.in_memory(x, eqn.invars[0].aval.dtype)
    base = _flat(p.e, starts, memory.shape)
    offsets = _offsets(memory.shape, sizes)
    if offsets.size <= 256:
        add = p.e.integer
        flat = [p.e.load(memory, add("add", base, int(k), "i64")) for k in offsets]
        return [registers(flat, sizes)]
    result = homes.get(eqn.outvars[0]) or p.e.allocate(sizes, memory.dtype)
    table = p.e.module.table(offsets)
    p.each(offsets.size, lambda k: p.e.store(
        result, k, p.e.load(memory, p.e.integer("add", base, p.e.load(table, k), "i64"))
    ))  # fmt: skip
    return [result]


def _offsets(shape: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Where the elements of a slice lie behind its first, in row-major order."""
    strides = np.cumprod([1, *reversed(shape[1:])], dtype=np.int64)[::-1][: len(shape)]
    places = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
    return strides @ places if len(shape) else np.zeros(1, np.int64)


def _dynamic_update_slice(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    x, update = operands[:2]
    sizes, dtype = eqn.invars[1].aval.shape, eqn.invars[0].aval.dtype
    starts = _starts(p, eqn, operands[2:], sizes, 2)
    if not isinstance(x, Memory):
        if not any(isinstance(s, Value) for s in starts):
            result = as_objects(x).copy()
            where = tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))
            result[where] = as_objects(p.in_registers(update))
            return [result]
        if x.size <= MOST_SELECTED and update.size == 1:
            return [_replaced(p, x, _flat(p.e, starts, x.shape), update, dtype)]
    memory = _writable(p, x, dtype, last[0], homes.get(eqn.outvars[0]))
    base = _flat(p.e, starts, memory.shape)
    offsets = _offsets(memory.shape, sizes)
    if p.rows is not None and memory.pointers in p.unbounded and p.lies_in_workspace(update):
        p.rows.append(Row(memory, base, update))
        p.aliased.add(update.pointers)  # it is read at the end of the pass
        return [memory]
    if isinstance(update, Memory) or offsets.size > 256:
        source, table = p.in_memory(update, dtype), p.e.module.table(offsets)
        p.each(offsets.size, lambda k: p.e.store(
            memory, p.e.integer("add", base, p.e.load(table, k), "i64"), p.e.load(source, k)
        ))  # fmt: skip
    else:
        for k, element in zip(offsets, as_objects(update).ravel().tolist(), strict=True):
            p.e.store(memory, p.e.integer("add", base, int(k), "i64"), element)
    return [memory]


def _replaced(p: Program, x: np.ndarray, at: Any, update: Lowered, dtype: Any) -> np.ndarray:
    """The array with one element exchanged, in registers."""
    type_, new = type_of(dtype), p.in_registers(update).reshape(()).item()
    flat = [
        p.e.select(p.e.compare("icmp eq", at, k, "i64"), new, old, type_)
        for k, old in enumerate(as_objects(x).ravel().tolist())
    ]
    return registers(flat, x.shape)


def _writable(p: Program, x: Lowered, dtype: Any, last: bool, home: Memory | None) -> Memory:
    """The array itself if it may be changed, else a copy of it."""
    if isinstance(x, Memory) and (p.may_change(x, last) or (home and home.pointers == x.pointers)):
        return x
    memory = home or p.e.allocate(x.shape, dtype)
    p.fill(memory, x)
    return memory


def _gather(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    """result[batch, offset] = x[start(indices[batch]) + offset]"""
    d = eqn.params["dimension_numbers"]
    x, shape, out = operands[0], eqn.invars[0].aval.shape, eqn.outvars[0].aval
    if out.size > 4096:
        raise Unsupported("gather of a large array")
    indices = as_objects(p.in_registers(operands[1]))
    index_dtype = eqn.invars[1].aval.dtype
    fills = eqn.params["mode"] == GatherScatterMode.FILL_OR_DROP
    offset_axes = [
        a for a in range(len(shape))
        if a not in d.collapsed_slice_dims and a not in d.operand_batching_dims
    ]  # fmt: skip
    batch_axes = [a for a in range(len(out.shape)) if a not in d.offset_dims]
    read: Callable[[Any], Any]
    if isinstance(x, np.ndarray) and not _any_value(indices):
        flat_x = as_objects(x).ravel()
        read = lambda at: flat_x[int(at)]  # noqa: E731
    else:
        memory = p.in_memory(x, eqn.invars[0].aval.dtype)
        read = lambda at: p.e.load(memory, at)  # noqa: E731
    results = []
    starts_of: dict[Any, tuple[list[Any], Any]] = {}
    for place in np.ndindex(*out.shape):
        batch = tuple(place[a] for a in batch_axes)
        if batch not in starts_of:
            starts_of[batch] = _gather_start(p, eqn, indices[batch], index_dtype, batch)
        start, within = starts_of[batch]
        coordinates = list(start)
        for a, k in zip(offset_axes, (place[i] for i in d.offset_dims), strict=True):
            coordinates[a] = p.e.integer("add", coordinates[a], k, "i64")
        value = read(_flat(p.e, coordinates, shape))
        if fills and within is not True:
            value = p.e.select(within, value, _filling(eqn, out.dtype), type_of(out.dtype))
        results.append(value)
    return [registers(results, out.shape)]


def _filling(eqn: Any, dtype: Any) -> Any:
    given = eqn.params.get("fill_value")
    if given is not None:
        return np.asarray(given, dtype).item()
    kind = np.dtype(dtype).kind
    if kind == "f":
        return float("nan")
    if kind == "b":
        return True
    return int(np.iinfo(dtype).min if kind == "i" else np.iinfo(dtype).max)


def _any_value(x: np.ndarray) -> bool:
    return any(isinstance(v, Value) for v in x.flat)


def _gather_start(
    p: Program, eqn: Any, vector: np.ndarray, dtype: Any, batch: tuple[int, ...]
) -> tuple[list[Any], Any]:
    """Where a slice begins, moved to lie within; and whether it lay there."""
    d, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    shape = eqn.invars[0].aval.shape
    start: list[Any] = [0] * len(shape)
    within: Any = True
    for axis, x in zip(d.start_index_map, np.atleast_1d(vector).tolist(), strict=True):
        raw = _signed(p.e, x, dtype)
        most = shape[axis] - sizes[axis]
        start[axis] = _clamped(p.e, raw, most)
        within = _and(p.e, within, _inside(p.e, raw, most))
    for axis, source in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
        start[axis] = batch[source]
    return start, within


def _inside(e: Emitter, x: Any, most: int) -> Any:
    """0 <= x <= most, by one unsigned comparison."""
    if not isinstance(x, Value):
        return 0 <= x <= most
    return e.compare("icmp ule", x, most, "i64")


def _and(e: Emitter, a: Any, b: Any) -> Any:
    if a is True or b is True:
        return b if a is True else a
    if a is False or b is False:
        return False
    return e.op("and", "i1", a, b)


def _scatter(join: str | None) -> Callable[..., list[Lowered]]:
    """x[start(indices[batch]) + offset] = joined with updates[batch, offset], one by one."""

    def rule(
        p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
    ) -> list[Lowered]:
        d, shape = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape
        x, dtype = operands[0], eqn.invars[0].aval.dtype
        update = eqn.params["update_jaxpr"]  # none, x + new, new; or a function of x by `.apply`
        if join is None and update is not None and update.outvars != update.invars[1:]:
            raise Unsupported("scatter that applies a function")
        indices = as_objects(p.in_registers(operands[1]))
        updates = as_objects(p.in_registers(operands[2]))
        index_dtype, type_ = eqn.invars[1].aval.dtype, type_of(dtype)
        clips = eqn.params["mode"] == GatherScatterMode.CLIP
        window_axes = [
            a for a in range(len(shape))
            if a not in d.inserted_window_dims and a not in d.operand_batching_dims
        ]  # fmt: skip
        batch_axes = [a for a in range(updates.ndim) if a not in d.update_window_dims]
        window = [1] * len(shape)
        for a, k in zip(window_axes, d.update_window_dims, strict=True):
            window[a] = updates.shape[k]
        memory, flat = None, np.empty(0, object)
        if not isinstance(x, Memory) and (not _any_value(indices) or x.size <= MOST_SELECTED):
            flat = as_objects(x).ravel().copy()
        else:
            memory = _writable(p, x, dtype, last[0], homes.get(eqn.outvars[0]))
        joined = ELEMENTS[join] if join else None
        for place in np.ndindex(*updates.shape):
            batch = tuple(place[a] for a in batch_axes)
            coordinates: list[Any] = [0] * len(shape)
            within: Any = True
            for axis, raw in zip(
                d.scatter_dims_to_operand_dims, np.atleast_1d(indices[batch]).tolist(), strict=True
            ):
                at = _signed(p.e, raw, index_dtype)
                most = shape[axis] - window[axis]
                coordinates[axis] = _clamped(p.e, at, most)
                if not clips:
                    within = _and(p.e, within, _inside(p.e, at, most))
            for axis, source in zip(
                d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True
            ):
                coordinates[axis] = batch[source]
            for a, k in zip(window_axes, d.update_window_dims, strict=True):
                coordinates[a] = p.e.integer("add", coordinates[a], place[k], "i64")
            if within is False:
                continue
            where, new = _flat(p.e, coordinates, shape), updates[place]

            def exchanged(old: Any, new: Any = new, within: Any = within) -> Any:
                made = joined(p.e, old, new, type_, eqn) if joined else new
                return made if within is True else p.e.select(within, made, old, type_)

            if memory is not None:
                p.e.store(memory, where, exchanged(p.e.load(memory, where)))
            elif isinstance(where, Value):
                for k, old in enumerate(flat.tolist()):
                    hit = p.e.compare("icmp eq", where, k, "i64")
                    flat[k] = p.e.select(hit, exchanged(old), old, type_)
            else:
                flat[int(where)] = exchanged(flat[int(where)])
        return [memory if memory is not None else flat.reshape(shape)]

    return rule


STRUCTURED.update(
    dynamic_slice=_dynamic_slice,
    dynamic_update_slice=_dynamic_update_slice,
    gather=_gather,
    scatter=_scatter(None),
)
STRUCTURED["scatter-add"] = STRUCTURED["scatter_add"] = _scatter("add")
STRUCTURED["scatter-sub"] = STRUCTURED["scatter_sub"] = _scatter("sub")
STRUCTURED["scatter-mul"] = STRUCTURED["scatter_mul"] = _scatter("mul")
STRUCTURED["scatter-min"] = STRUCTURED["scatter_min"] = _scatter("min")
STRUCTURED["scatter-max"] = STRUCTURED["scatter_max"] = _scatter("max")
