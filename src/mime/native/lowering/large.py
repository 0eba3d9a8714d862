"""Sums and products of arrays in memory: loops over elements."""

import math
from typing import Any

import numpy as np

from mime.native.lowering.arrays import LARGE
from mime.native.lowering.program import Program
from mime.native.lowering.reductions import JOINS, joiner, neutral
from mime.native.lowering.values import MOST_IN_REGISTERS, Lowered, Memory, Value, registers


def _strides(shape: tuple[int, ...]) -> np.ndarray:
    return np.cumprod([1, *reversed(shape[1:])], dtype=np.int64)[::-1][: len(shape)]


def _places(shape: tuple[int, ...], axes: list[int]) -> np.ndarray:
    """Where the elements along some axes lie, the others held at their first."""
    sizes = [shape[a] for a in axes]
    indices = np.indices(sizes).reshape(len(axes), -1) if axes else np.zeros((0, 1), np.int64)
    return _strides(shape)[axes] @ indices if axes else np.zeros(1, np.int64)


def _sum(p: Program, k: Any, first: Any) -> Any:
    return p.e.integer("add", first, k, "i64")


def _each_result(p: Program, out: Any, home: Memory | None, value: Any) -> Lowered:
    """An array of `value(k)`, k the number of the element."""
    size = math.prod(out.shape)
    if size <= MOST_IN_REGISTERS and size <= 16 and home is None:
        return registers([value(k) for k in range(size)], out.shape)
    result = home or p.e.allocate(out.shape, out.dtype)
    p.each(size, lambda k: p.e.store(result, k, value(k)))
    return result


def _reduction(p: Program, eqn: Any, home: Memory | None, x: Memory) -> Lowered:
    axes = list(eqn.params["axes"])
    rest = [a for a in range(len(x.shape)) if a not in axes]
    outer, inner = p.looked_up(_places(x.shape, rest)), _places(x.shape, axes)
    along, join = p.looked_up(inner), joiner(p.e, eqn, JOINS[eqn.primitive.name])
    dtype = eqn.invars[0].aval.dtype
    start = neutral(JOINS[eqn.primitive.name], dtype)

    def value(k: Any) -> Value:
        first = outer(k)
        return p.summed(
            inner.size,
            start,
            dtype,
            lambda j, total: join(total, p.e.load(x, _sum(p, along(j), first))),
        )

    return _each_result(p, eqn.outvars[0].aval, home, value)


def _dot(p: Program, eqn: Any, home: Memory | None, a: Memory, b: Memory) -> Lowered:
    (ka, kb), (ba, bb) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    free_a = [i for i in range(len(a.shape)) if i not in (*ka, *ba)]
    free_b = [i for i in range(len(b.shape)) if i not in (*kb, *bb)]
    batch_a, batch_b = _places(a.shape, list(ba)), _places(b.shape, list(bb))
    rows, columns = _places(a.shape, free_a), _places(b.shape, free_b)
    of_a = (batch_a[:, None, None] + rows[None, :, None] + 0 * columns).ravel()
    of_b = (batch_b[:, None, None] + 0 * rows[None, :, None] + columns).ravel()
    first_a, first_b = p.looked_up(of_a), p.looked_up(of_b)
    inner_a, inner_b = _places(a.shape, list(ka)), _places(b.shape, list(kb))
    along_a, along_b = p.looked_up(inner_a), p.looked_up(inner_b)
    type_ = {"float64": "double", "float32": "float"}[np.dtype(out.dtype).name]

    def value(k: Any) -> Value:
        at_a, at_b = first_a(k), first_b(k)

        def add(j: Any, total: Any) -> Any:
            x = p.e.load(a, _sum(p, along_a(j), at_a))
            y = p.e.load(b, _sum(p, along_b(j), at_b))
            return p.e.add(p.e.mul(x, y, type_), total, type_)

        return p.summed(inner_a.size, 0.0, out.dtype, add)

    return _each_result(p, out, home, value)


LARGE.update({name: _reduction for name in JOINS if name.startswith("reduce")})
LARGE["dot_general"] = _dot
