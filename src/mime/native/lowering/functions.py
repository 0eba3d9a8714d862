"""Functions that a program calls many times: compiled once, called on arrays in the workspace.

A graph of a hundred motors has one motor's step in it, and a hundred calls: the time to compile
grows with what is different, and not with how often it is used.

A call leaves its arguments in the function's frame and takes the results from there. In a program
of very many calls, which is kept in the workspace altogether, each call has a table instead: where
its arguments lie, and where its results shall go.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mime.native.lowering.arrays import size_of_variable
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.masks import is_varying
from mime.native.lowering.module import Module
from mime.native.lowering.program import Program, equations
from mime.native.lowering.values import MOST_IN_REGISTERS, Lowered, Memory, registers

FEWEST_CALLS = 3
SMALLEST = 60
"""Equations from which on a function that is called again is worth a call."""
SMALLEST_BY_TABLE = 8
"""The same where a call is one line of the caller's, and nothing is copied."""
MANY_CALLS = 64
"""Calls from which on a program is kept in the workspace: LLVM's time for a straight line grows
faster than its length, as soon as most of its values do not fit into registers.
"""


class Function(NamedTuple):
    """A function of the module."""

    name: str
    frame: list[Memory]
    """Where arguments and results lie, unless a table says otherwise."""
    operations: int
    arithmetic: int
    """Those on members."""


class Functions:
    """The functions of one kernel."""

    def __init__(self, jaxpr: Any, module: Module):
        self.module = module
        self._calls: Counter[int] = Counter()
        self._made: dict[Any, Function] = {}
        self._kept: dict[int, Any] = {}
        self._serial = itertools.count(1)
        self._count(jaxpr)
        again = {k: n for k, n in self._calls.items() if n >= FEWEST_CALLS}
        sizes = {k: equations(self._kept[k]) for k in again}
        calls = sum(n for k, n in again.items() if sizes[k] >= SMALLEST)
        self.many = calls >= MANY_CALLS
        smallest = SMALLEST_BY_TABLE if self.many else SMALLEST
        self._large = {
            k for k, size in sizes.items() if size >= smallest and _in_registers(self._kept[k])
        }

    def _count(self, jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            for value in eqn.params.values():
                for inner in value if isinstance(value, tuple | list) else (value,):
                    inner = getattr(inner, "jaxpr", inner)
                    if hasattr(inner, "eqns"):
                        self._calls[id(inner)] += 1
                        if self._calls[id(inner)] == 1:
                            self._kept[id(inner)] = inner  # an id is good while the object lives
                            self._count(inner)

    def wants(self, caller: Program, jaxpr: Any, operands: Sequence[Lowered]) -> bool:
        """True when a call shall stay a call."""
        return id(jaxpr) in self._large and not any(
            isinstance(x, Memory) and not (caller.in_workspace and caller.lies_in_workspace(x))
            for x in operands
        )

    def call(
        self, caller: Program, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Lowered]
    ) -> list[Lowered]:
        """Call, and take the results."""
        flags = [is_varying(x) for x in operands]
        out_flags = caller.varying.outputs(jaxpr, flags)
        key = (id(jaxpr), tuple(flags), caller.in_workspace)
        if key not in self._made:
            self._made[key] = self._make(caller, jaxpr, consts, flags, out_flags)
        function = self._made[key]
        caller.e.operations += function.operations
        caller.e.arithmetic += function.arithmetic
        if caller.in_workspace:
            return self._by_table(caller, function, jaxpr, operands, flags, out_flags)
        e = caller.e
        for memory, x in zip(function.frame, operands, strict=False):
            caller.fill(memory, x)
        e.lines.append(f"call void @{function.name}(ptr %workspace)")
        # One frame serves all calls: its results are taken before the next.
        return [
            registers([e.load(memory, k) for k in range(memory.size)], memory.shape)
            for memory in function.frame[len(operands) :]
        ]

    def _by_table(
        self,
        caller: Program,
        function: Function,
        jaxpr: Any,
        operands: Sequence[Lowered],
        flags: Sequence[bool],
        out_flags: Sequence[bool],
    ) -> list[Lowered]:
        e = caller.e
        given = []
        for x, v, flag in zip(operands, jaxpr.invars, flags, strict=True):
            if isinstance(x, Memory):
                given.append(x)
            else:
                given.append(e.allocate(v.aval.shape, v.aval.dtype, flag))
                caller.fill(given[-1], x)
        made = [
            e.allocate(v.aval.shape, v.aval.dtype, flag)
            for v, flag in zip(jaxpr.outvars, out_flags, strict=True)
        ]
        table = self.module.table(np.array([e.offset(m) for m in (*given, *made)], np.int64))
        e.lines.append(f"call void @{function.name}(ptr %workspace, ptr {table.pointers[0]})")
        return list(made)

    def _make(
        self,
        caller: Program,
        jaxpr: Any,
        consts: Sequence[Any],
        flags: Sequence[bool],
        out_flags: Sequence[bool],
    ) -> Function:
        name = f"f{next(self._serial)}"
        e = Emitter(caller.e.lanes, caller.e.fma, self.module)
        variables = list(zip((*jaxpr.invars, *jaxpr.outvars), (*flags, *out_flags), strict=True))
        if caller.in_workspace:
            frame, parameters = (
                [self._from_table(e, k, *v) for k, v in enumerate(variables)],
                ", ptr noalias %table",
            )
        else:
            frame, parameters = (
                [e.allocate(v.aval.shape, v.aval.dtype, flag) for v, flag in variables],
                "",
            )
        args, outs = frame[: len(jaxpr.invars)], frame[len(jaxpr.invars) :]
        loaded = [registers([e.load(x, k) for k in range(x.size)], x.shape) for x in args]
        program = Program(e, caller.varying, self)
        results = program.run(jaxpr, consts, loaded)
        for out, x in zip(outs, results, strict=True):
            program.fill(out, x)
        head = f"define internal void @{name}(ptr noalias %workspace{parameters}) noinline {{"
        text = [head, "entry:", *e.prologue, *e.lines, "ret void", "}"]
        self.module.functions.append("\n".join(text))
        return Function(name, frame, e.operations, e.arithmetic)

    def _from_table(self, e: Emitter, k: int, variable: Any, varying: bool) -> Memory:
        """The array whose offset stands in the table of the call."""
        at, offset, pointer = f"%at{k}", f"%offset{k}", f"%p{k}"
        e.prologue += [
            f"{at} = getelementptr i64, ptr %table, i64 {k}",
            f"{offset} = load i64, ptr {at}, align 8",
            f"{pointer} = getelementptr i8, ptr %workspace, i64 {offset}",
        ]
        aval = variable.aval
        kind = "lanes" if varying else "plain"
        return Memory((pointer,), kind, aval.shape, np.dtype(aval.dtype), True)


def _in_registers(jaxpr: Any) -> bool:
    """Whether arguments and results may be loaded as a whole; larger ones are better in loops."""
    variables = [*jaxpr.invars, *jaxpr.outvars]
    return all(size_of_variable(v) <= MOST_IN_REGISTERS for v in variables)
