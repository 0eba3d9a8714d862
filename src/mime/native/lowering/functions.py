"""Functions that a program calls many times: compiled once, called with a frame in memory.

A graph of a hundred motors has one motor's step in it, and a hundred calls: the time to compile
grows with what is different, and not with how often it is used.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mime.native.lowering.control import size_of
from mime.native.lowering.emitter import Emitter, Module
from mime.native.lowering.program import Program
from mime.native.lowering.values import Lowered, Memory, Value, as_objects, registers

FEWEST_CALLS = 3
SMALLEST = 60
"""Equations from which on a function that is called again is worth a frame."""


class Functions:
    """The functions of one kernel."""

    def __init__(self, jaxpr: Any, module: Module):
        self.module = module
        self._calls: Counter[int] = Counter()
        self._large: dict[int, bool] = {}
        self._made: dict[Any, str] = {}
        self._frames: dict[Any, list[Memory]] = {}
        self._serial = 0
        self._kept: list[Any] = []
        self._count(jaxpr)

    def _count(self, jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            for value in eqn.params.values():
                for inner in value if isinstance(value, tuple | list) else (value,):
                    inner = getattr(inner, "jaxpr", inner)
                    if hasattr(inner, "eqns"):
                        self._calls[id(inner)] += 1
                        if self._calls[id(inner)] == 1:
                            self._kept.append(inner)  # an id is good while the object lives
                            self._count(inner)

    def wants(self, jaxpr: Any, operands: Sequence[Lowered]) -> bool:
        """True when a call shall stay a call."""
        if self._calls[id(jaxpr)] < FEWEST_CALLS or any(isinstance(x, Memory) for x in operands):
            return False
        if id(jaxpr) not in self._large:
            self._large[id(jaxpr)] = size_of(jaxpr) >= SMALLEST
        return self._large[id(jaxpr)]

    def call(
        self, caller: Program, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Lowered]
    ) -> list[Lowered]:
        """Put the arguments into a frame, call, and take the results from it."""
        e = caller.e
        args = [as_objects(x).ravel().tolist() for x in operands]  # type: ignore[arg-type]
        flags = [any(isinstance(v, Value) and v.varying for v in x) for x in args]
        out_flags = caller.varying.outputs(jaxpr, flags)
        key = (id(jaxpr), tuple(flags))
        if key not in self._made:
            self._made[key] = self._make(caller, jaxpr, consts, flags, out_flags)
        # One frame serves all calls: its results are taken before the next.
        frame = self._frames.get((key, id(e)))
        if frame is None:
            variables = zip((*jaxpr.invars, *jaxpr.outvars), (*flags, *out_flags), strict=True)
            frame = [self._array(caller, v.aval, flag) for v, flag in variables]
            self._frames[key, id(e)] = frame
        for memory, elements in zip(frame, args, strict=False):
            for k, x in enumerate(elements):
                e.store(memory, k, x)
        pointers = ", ".join(f"ptr {memory.pointers[0]}" for memory in frame)
        e.lines.append(f"call void @{self._made[key]}({pointers}, ptr %workspace)")
        found = frame[len(args) :]
        return [
            registers([e.load(memory, k) for k in range(memory.size)], memory.shape)
            for memory in found
        ]

    def _array(self, caller: Program, aval: Any, varying: bool) -> Memory:
        memory = caller.e.allocate(aval.shape, aval.dtype)
        if varying:
            return memory
        return Memory(memory.pointers, "plain", memory.shape, memory.dtype, True)

    def _make(
        self,
        caller: Program,
        jaxpr: Any,
        consts: Sequence[Any],
        flags: Sequence[bool],
        out_flags: Sequence[bool],
    ) -> str:
        self._serial += 1
        name = f"f{self._serial}"
        e = Emitter(caller.e.lanes, caller.e.fma, self.module)
        pointers = [f"%p{k}" for k in range(len(jaxpr.invars) + len(jaxpr.outvars))]
        arrays = [
            Memory((p,), "lanes" if flag else "plain", v.aval.shape, np.dtype(v.aval.dtype), True)
            for p, v, flag in zip(
                pointers, (*jaxpr.invars, *jaxpr.outvars), (*flags, *out_flags), strict=True
            )
        ]
        args, outs = arrays[: len(jaxpr.invars)], arrays[len(jaxpr.invars) :]
        loaded = [registers([e.load(x, k) for k in range(x.size)], x.shape) for x in args]
        self._kept.append(e)
        program = Program(e, caller.varying, self)
        results = program.run(jaxpr, consts, loaded)
        for out, x in zip(outs, results, strict=True):
            program.fill(out, x)
        arguments = ", ".join(f"ptr noalias {p}" for p in pointers)
        head = f"define internal void @{name}({arguments}, ptr noalias %workspace) noinline {{"
        text = [head, "entry:", *e.prologue, *e.lines, "ret void", "}"]
        self.module.functions.append("\n".join(text))
        caller.e.operations += e.operations
        caller.e.arithmetic += e.arithmetic
        return name
