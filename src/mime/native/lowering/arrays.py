"""Arrays between registers and memory, and the operations on those too large for registers."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mime.native.lowering.conversions import settled
from mime.native.lowering.elementwise import ELEMENTS
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.reductions import REDUCTIONS
from mime.native.lowering.shapes import SHAPES, VIEWS, index_maps
from mime.native.lowering.values import (
    MOST_IN_REGISTERS,
    MOST_LOADED,
    Lowered,
    Memory,
    Unsupported,
    Value,
    as_objects,
    registers,
    type_of,
)

LARGE: dict[str, Callable[..., Any]] = {}
"""Rules `(program, eqn, home, *arrays in memory) -> result` for arrays too large for registers."""


def size_of_variable(v: Any) -> int:
    """The number of elements of a variable."""
    return math.prod(v.aval.shape)


class Arrays:
    """Loads, stores and loops over elements in a function under way."""

    def __init__(self, emitter: Emitter):
        self.e = emitter

    def in_registers(self, x: Lowered) -> np.ndarray:
        """The array with each element loaded."""
        if not isinstance(x, Memory):
            return x
        if x.kind == "nothing":
            return np.zeros(x.shape, x.dtype)
        if x.size > MOST_LOADED:
            raise Unsupported(f"an array of {x.size} elements outside of loops")
        return registers([self.e.load(x, k) for k in range(x.size)], x.shape)

    def in_memory(self, x: Lowered, dtype: Any, home: Memory | None = None) -> Memory:
        """The array at addresses: a table if it is constant, else a copy in the workspace."""
        if isinstance(x, Memory) and home is None:
            return x
        if home is None and isinstance(x, np.ndarray) and x.dtype != object:
            return self.e.module.table(np.ascontiguousarray(x, dtype))
        memory = home if home is not None else self.e.allocate(x.shape, dtype)
        self.fill(memory, x)
        return memory

    def fill(self, memory: Memory, x: Lowered) -> None:
        """Copy an array to another in memory."""
        if isinstance(x, Memory):
            if x.pointers == memory.pointers or x.kind == "nothing":
                return
            self.each(memory.size, lambda k: self.e.store(memory, k, self.e.load(x, k)))
        elif x.size > 64 and x.dtype != object and np.all(x == x.flat[0]):
            number = x.flat[0].item()
            self.each(memory.size, lambda k: self.e.store(memory, k, number))
        elif x.dtype != object and x.size > 64:
            self.fill(memory, self.e.module.table(np.ascontiguousarray(x)))
        else:
            for k, element in enumerate(as_objects(x).ravel().tolist()):
                self.e.store(memory, k, element)

    def each(self, count: int, body: Callable[[Any], None], unroll: int = 16) -> None:
        """Do something for each index: as a loop, unless there are few."""
        if count <= unroll:
            for k in range(count):
                body(k)
            return
        e = self.e
        before, head, after = e.block, e.label("each"), e.label("done")
        e.branch(head)
        e.begin(head)
        index, line = e.phi("i64", False)
        e.enter()
        body(index)
        following = e.emit(f"add i64 {index.name}, 1", "i64", False)
        e.complete(index, line, [("0", before), (following.name, e.block)])
        e.branch_if(e.compare("icmp ult", following, count, "i64"), head, after)
        e.leave()
        e.begin(after)

    def summed(self, count: int, start: Any, dtype: Any, body: Callable[[Any, Any], Any]) -> Value:
        """body(index, so far), from the first index to the last, in a loop."""
        e, type_ = self.e, type_of(dtype)
        before, head, after = e.block, e.label("sum"), e.label("done")
        e.branch(head)
        e.begin(head)
        index, line = e.phi("i64", False)
        total, total_line = e.phi(type_, True)
        e.enter()
        result = e.operand(body(index, total), type_, True)
        following = e.emit(f"add i64 {index.name}, 1", "i64", False)
        e.complete(index, line, [("0", before), (following.name, e.block)])
        e.complete(total, total_line, [(e.operand(start, type_, True), before), (result, e.block)])
        e.branch_if(e.compare("icmp ult", following, count, "i64"), head, after)
        e.leave()
        e.begin(after)
        return Value(result, type_, True)

    def small(self, eqn: Any, operands: Sequence[Lowered]) -> bool:
        sizes = [x.size for x in operands] + [size_of_variable(v) for v in eqn.outvars]
        return max(sizes) <= MOST_IN_REGISTERS

    def large(
        self, eqn: Any, operands: Sequence[Lowered], homes: Mapping[Any, Memory]
    ) -> list[Lowered]:
        """An equation on arrays too large for registers: views, copies, loops over elements."""
        name, out = eqn.primitive.name, eqn.outvars[0].aval
        home = homes.get(eqn.outvars[0])
        if name in VIEWS and isinstance(operands[0], Memory):
            return [operands[0].reshaped(out.shape)]
        if name in ("copy", "copy_p", "stop_gradient") and isinstance(operands[0], Memory):
            return [operands[0]]
        if name == "slice" and isinstance(operands[0], Memory):
            (source,) = index_maps(eqn)
            if source.size <= MOST_IN_REGISTERS:
                flat = [self.e.load(operands[0], int(k)) for k in source]
                return [registers(flat, out.shape)]
        if name in LARGE:
            arrays = [
                self.in_memory(x, v.aval.dtype) for x, v in zip(operands, eqn.invars, strict=True)
            ]
            return [LARGE[name](self, eqn, home, *arrays)]
        if name in REDUCTIONS:
            loaded = [self.in_registers(x) for x in operands]
            return [settled(REDUCTIONS[name](self.e, eqn, *loaded), out.dtype)]
        if name in SHAPES and not (name == "broadcast_in_dim" and operands[0].size == 1):
            return self._moved(eqn, operands, homes)
        result = home or self.e.allocate(out.shape, out.dtype)
        if name in ELEMENTS:
            self._elements(eqn, operands, result)
            return [result]
        if name == "broadcast_in_dim" and operands[0].size == 1:
            element = self.in_registers(operands[0]).reshape(()).item()
            self.each(result.size, lambda k: self.e.store(result, k, element))
            return [result]
        raise Unsupported(f"{name} of arrays with {max(x.size for x in operands)} elements")

    def _moved(
        self, eqn: Any, operands: Sequence[Lowered], homes: Mapping[Any, Memory]
    ) -> list[Lowered]:
        """Results that are elements of the operands in another order."""
        results: list[Lowered] = []
        for var, flat in zip(eqn.outvars, index_maps(eqn), strict=True):
            result = homes.get(var) or self.e.allocate(var.aval.shape, var.aval.dtype)
            first = 0
            for x, v in zip(operands, eqn.invars, strict=True):
                places = np.flatnonzero((flat >= first) & (flat < first + x.size))
                self._copied(result, places, self.in_memory(x, v.aval.dtype), flat[places] - first)
                first += x.size
            results.append(result)
        return results

    def _copied(
        self, result: Memory, places: np.ndarray, source: Memory, indices: np.ndarray
    ) -> None:
        """result[places] = source[indices]"""
        to, at = (self.looked_up(flat) for flat in (places, indices))
        self.each(places.size, lambda k: self.e.store(result, to(k), self.e.load(source, at(k))))

    def looked_up(self, flat: np.ndarray) -> Callable[[Any], Any]:
        """flat[k]: by a table, unless it counts."""
        if np.array_equal(flat, np.arange(flat.size)):
            return lambda k: k
        table = self.e.module.table(flat)
        return lambda k: self.e.load(table, k) if isinstance(k, Value) else int(flat[k])

    def _elements(self, eqn: Any, operands: Sequence[Lowered], result: Memory) -> None:
        sources = [
            self._spread(x, v.aval.dtype, result.shape) if x.size > 1 else self.in_registers(x)
            for x, v in zip(operands, eqn.invars, strict=True)
        ]
        type_ = type_of(eqn.invars[0].aval.dtype)

        def one(k: Any) -> None:
            x = [self.e.load(s, k) if isinstance(s, Memory) else s.item() for s in sources]
            self.e.store(result, k, ELEMENTS[eqn.primitive.name](self.e, *x, type_, eqn))

        self.each(result.size, one)

    def _spread(self, x: Lowered, dtype: Any, shape: tuple[int, ...]) -> Memory:
        """The array in memory, with axes of length 1 repeated."""
        source = self.in_memory(x, dtype)
        if source.shape == shape:
            return source
        numbers = np.broadcast_to(np.arange(source.size).reshape(source.shape), shape).ravel()
        memory = self.e.allocate(shape, dtype)
        self._copied(memory, np.arange(memory.size), source, numbers)
        return memory
