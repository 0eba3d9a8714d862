"""A jaxpr, equation by equation: what each variable becomes."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from jax.extend.core import Literal

from mime.native.lowering.elementwise import ELEMENTS, lower_elementwise, settled
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
from mime.native.lowering.varying import Varying, inner_jaxpr

if TYPE_CHECKING:
    from mime.native.lowering.functions import Functions

Rule = Callable[..., Any]
LARGE: dict[str, Rule] = {}
"""Rules `(program, eqn, home, *arrays in memory) -> result` for arrays too large for registers."""
STRUCTURED: dict[str, Rule] = {}
"""Rules `(program, eqn, operands, last) -> results` of loops, branches and indices.

`last` tells of each operand whether nobody reads it afterwards.
"""


class Row(NamedTuple):
    """memory[first:] = source, with as many elements as the source has."""

    memory: Memory
    first: Any
    source: Memory


class Program:
    """The lowering of one function."""

    def __init__(
        self, emitter: Emitter, varying: Varying, functions: "Functions", in_workspace: bool = False
    ):
        self.e, self.varying, self.functions = emitter, varying, functions
        self.in_workspace = in_workspace
        """Arguments, results of calls and what loops carry stay in memory: there are very many."""
        self.rows: list[Row] | None = None
        """Rows of results that are written together at the end of a pass; None: one by one."""
        self.unbounded: dict[tuple[str, ...], tuple[int, int]] = {}
        """Which result an array of rows without end is, and which of those."""
        self.members: list[str] = []
        """The number of the member in each lane."""
        self.aliased: set[tuple[str, ...]] = set()
        """Arrays in memory that several variables may mean: none of them is changed in place."""
        self.active: Any = True
        """The lanes that a branch or a pass of a loop is for; the others only go along."""

    def run(
        self,
        jaxpr: Any,
        consts: Sequence[Any],
        args: Sequence[Lowered],
        private: Sequence[bool] | None = None,
        homes: Mapping[Any, Memory] | None = None,
    ) -> list[Lowered]:
        """Lower a jaxpr on these arguments.

        private   arguments that nobody else reads: an array in memory may be changed in place
        homes     where results that are large shall lie
        """
        env: dict[Any, Lowered] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            env[var] = constant(const)
        seen = Counter(x.pointers for x in args if isinstance(x, Memory))
        mine = {
            v: own and not (isinstance(x, Memory) and seen[x.pointers] > 1)
            for v, x, own in zip(jaxpr.invars, args, private or [False] * len(args), strict=True)
        }
        env.update(zip(jaxpr.invars, args, strict=True))
        eqns, last_use = _needed(jaxpr)
        self_homes = dict(homes or {})

        def read(atom: Any) -> Lowered:
            return constant(atom.val) if isinstance(atom, Literal) else env[atom]

        for number, eqn in enumerate(eqns):
            operands = [read(v) for v in eqn.invars]
            times = Counter(v for v in eqn.invars if not isinstance(v, Literal))
            last = [
                not isinstance(v, Literal)
                and last_use[v] == number
                and mine.get(v, True)
                and times[v] == 1
                for v in eqn.invars
            ]
            wanted = {v: self_homes[v] for v in eqn.outvars if v in self_homes}
            results = self.equation(eqn, operands, last, wanted)
            self._note_aliases(operands, last, results)
            env.update(zip(eqn.outvars, results, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def _note_aliases(
        self, operands: Sequence[Lowered], last: Sequence[bool], results: Sequence[Lowered]
    ) -> None:
        if not any(isinstance(x, Memory) for x in results):
            return
        read_later = {
            x.pointers
            for x, is_last in zip(operands, last, strict=True)
            if isinstance(x, Memory) and not is_last
        }
        made = Counter(x.pointers for x in results if isinstance(x, Memory))
        self.aliased.update(p for p, count in made.items() if p in read_later or count > 1)

    def lies_in_workspace(self, x: Lowered) -> TypeGuard[Memory]:
        """True for an array at a known place of the workspace."""
        return isinstance(x, Memory) and x.pointers[:1] != () and x.pointers[0] in self.e.offsets

    def may_change(self, x: Lowered, last: bool) -> bool:
        """True when an array in memory may be changed in place."""
        return isinstance(x, Memory) and x.owned and last and x.pointers not in self.aliased

    def equation(
        self, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
    ) -> Sequence[Lowered]:
        """The results of one equation."""
        name = eqn.primitive.name
        if name in STRUCTURED:
            return STRUCTURED[name](self, eqn, operands, last, homes)
        inner = inner_jaxpr(eqn)
        if inner is not None and name in CALLS:
            jaxpr, consts = inner
            inner_homes = {
                v: homes[out]
                for v, out in zip(jaxpr.outvars, eqn.outvars, strict=True)
                if out in homes and not isinstance(v, Literal)
            }
            skip = len(operands) - len(jaxpr.invars)
            if name == "jit" and not inner_homes and self.functions.wants(self, jaxpr, operands):
                return self.functions.call(self, jaxpr, consts, operands)
            return self.run(jaxpr, consts, operands[skip:], last[skip:], inner_homes)
        if self.in_workspace and _is_view(eqn) and isinstance(operands[0], Memory):
            return [operands[0].reshaped(eqn.outvars[0].aval.shape)]
        if any(isinstance(x, Memory) for x in operands) and not self._small(eqn, operands):
            return self._in_memory(eqn, operands, homes)
        loaded = [self.in_registers(x) for x in operands]
        varies = any(x.dtype == object for x in loaded)
        large = varies and max(size_of_variable(v) for v in eqn.outvars) > MOST_IN_REGISTERS
        if large and (name in ELEMENTS or name in ("broadcast_in_dim", "pad", "dot_general")):
            return self._in_memory(eqn, operands, homes)
        if name in ELEMENTS:
            return [lower_elementwise(self.e, eqn, *loaded)]
        if name in SHAPES:
            found = SHAPES[name](eqn, *loaded)
            results = found if isinstance(found, list) else [found]
            if large:
                return [
                    self.in_memory(x, v.aval.dtype, homes.get(v))
                    for x, v in zip(results, eqn.outvars, strict=True)
                ]
            return results
        if name in REDUCTIONS:
            return [settled(REDUCTIONS[name](self.e, eqn, *loaded), eqn.outvars[0].aval.dtype)]
        raise Unsupported(name)

    # --- between registers and memory -----------------------------------------------------------

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

    def _small(self, eqn: Any, operands: Sequence[Lowered]) -> bool:
        sizes = [x.size for x in operands] + [size_of_variable(v) for v in eqn.outvars]
        return max(sizes) <= MOST_IN_REGISTERS

    def _in_memory(
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


CALLS = {
    *("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call"),
}
"""Calls of functions, which are lowered where they stand."""


def constant(x: Any) -> np.ndarray:
    """A number or an array of them."""
    array = np.asarray(x)
    type_of(array.dtype)
    return array


def _is_view(eqn: Any) -> bool:
    """True when the result has the elements of the operand in their order."""
    if eqn.primitive.name == "broadcast_in_dim":
        return size_of_variable(eqn.invars[0]) == size_of_variable(eqn.outvars[0])
    return eqn.primitive.name in VIEWS


def size_of_variable(v: Any) -> int:
    """The number of elements of a variable."""
    return math.prod(v.aval.shape)


def _needed(jaxpr: Any) -> tuple[list[Any], dict[Any, int]]:
    """The equations that matter, and where each variable is read last; results: never."""
    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            needed.update(v for v in eqn.invars if not isinstance(v, Literal))
    kept.reverse()
    last = {
        v: number
        for number, eqn in enumerate(kept)
        for v in eqn.invars
        if not isinstance(v, Literal)
    }
    last.update((v, len(kept)) for v in jaxpr.outvars if not isinstance(v, Literal))
    return kept, last


def equations(jaxpr: Any) -> int:
    """Equations of a jaxpr, those of inner ones included, arrays counted by their elements."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [
            j
            for value in eqn.params.values()
            for j in (value if isinstance(value, tuple | list) else [value])
            if hasattr(j, "jaxpr") or hasattr(j, "eqns")
        ]
        own = max((size_of_variable(v) for v in eqn.outvars), default=1)
        total += sum(equations(getattr(j, "jaxpr", j)) for j in inner) if inner else max(1, own)
    return total


def _linear_solve(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    lengths, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    counts = [lengths.matvec, lengths.vecmat, lengths.solve, lengths.transpose_solve]
    first = sum(counts[:2])
    solve = operands[first : first + counts[2]]
    right = operands[sum(counts) :]
    return p.run(jaxprs.solve.jaxpr, jaxprs.solve.consts, [*solve, *right])


def _empty(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    out = eqn.outvars[0].aval
    return [Memory((), "nothing", out.shape, np.dtype(out.dtype))]


STRUCTURED["empty"] = STRUCTURED["empty2"] = _empty
STRUCTURED["custom_linear_solve"] = STRUCTURED["linear_solve"] = _linear_solve
STRUCTURED["optimization_barrier"] = lambda p, eqn, operands, last, homes: operands
STRUCTURED["name"] = lambda p, eqn, operands, last, homes: operands
