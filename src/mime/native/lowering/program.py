"""A jaxpr, equation by equation: what each variable becomes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from jax.extend.core import Literal

from mime.native.lowering.arrays import Arrays, size_of_variable
from mime.native.lowering.conversions import settled
from mime.native.lowering.elementwise import ELEMENTS, lower_elementwise
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.reductions import REDUCTIONS
from mime.native.lowering.shapes import SHAPES, VIEWS
from mime.native.lowering.values import MOST_IN_REGISTERS, Lowered, Memory, Unsupported, type_of
from mime.native.lowering.varying import Varying, inner_jaxpr

if TYPE_CHECKING:
    from mime.native.lowering.functions import Functions

Rule = Callable[..., Any]
STRUCTURED: dict[str, Rule] = {}
"""Rules `(program, eqn, operands, last) -> results` of loops, branches and indices.

`last` tells of each operand whether nobody reads it afterwards.
"""


class Row(NamedTuple):
    """memory[first:] = source, with as many elements as the source has."""

    memory: Memory
    first: Any
    source: Memory


class Program(Arrays):
    """The lowering of one function."""

    def __init__(
        self, emitter: Emitter, varying: Varying, functions: "Functions", in_workspace: bool = False
    ):
        super().__init__(emitter)
        self.varying, self.functions = varying, functions
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
        in_memory = any(isinstance(x, Memory) for x in operands)
        if in_memory and (name == "slice" or not self.small(eqn, operands)):
            return self.large(eqn, operands, homes)
        loaded = [self.in_registers(x) for x in operands]
        varies = any(x.dtype == object for x in loaded)
        large = varies and max(size_of_variable(v) for v in eqn.outvars) > MOST_IN_REGISTERS
        if large and (name in ELEMENTS or name in ("broadcast_in_dim", "pad", "dot_general")):
            return self.large(eqn, operands, homes)
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
