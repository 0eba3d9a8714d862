"""The function that computes a block of members after another."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from mime.native.lowering import branches, indexing, large, loops
from mime.native.lowering.elementwise import ELEMENTS
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.functions import Functions
from mime.native.lowering.module import Module
from mime.native.lowering.program import CALLS, STRUCTURED, Program
from mime.native.lowering.reductions import REDUCTIONS
from mime.native.lowering.shapes import SHAPES
from mime.native.lowering.tables import (
    STRIDES,
    of_members,
    put_constants,
    put_results,
    take_arguments,
)
from mime.native.lowering.values import UNBOUNDED, Lowered, Memory, Value, is_constant
from mime.native.lowering.varying import Varying

del branches, indexing, large, loops  # imported for their rules

MANY_CONSTANTS = 256
"""Elements of results that are known now, from which on a loop writes them."""
LOADED = 256
"""Elements of an argument that are loaded at once; a larger one is read where it is used."""


class KernelText(NamedTuple):
    """The IR of a kernel."""

    text: str
    workspace_bytes: int
    operations: int
    """Instructions of one pass over the code."""
    arithmetic: int
    """Those of them that compute, with a result for each member."""


def kernel_text(
    closed: ClosedJaxpr, shared: Sequence[bool], lanes: int, fma: bool, name: str = "kernel"
) -> KernelText:
    """Lower a jaxpr of one member; arguments that are `shared` have no member axis.

    Behind the arguments stand the distances, in elements, between the members of those results that
    are unbounded.
    """
    module = Module(lanes, fma)
    e = Emitter(lanes, fma, module)
    jaxpr = closed.jaxpr
    functions = Functions(jaxpr, module)
    program = Program(e, Varying(), functions, functions.many)
    arguments = _Arguments(program, jaxpr, shared)
    e.prologue.append(f"%strides.at = getelementptr ptr, ptr %args, i64 {len(jaxpr.invars)}")
    e.prologue.append("%strides = load ptr, ptr %strides.at, align 8")
    arguments.take_shared()
    results = _Results(program, jaxpr.outvars)
    before, before_label = e.lines, e.block
    e.lines = []
    e.begin("block")
    e.enter()
    member, line = e.phi("i64", False)
    program.members = _members(e, member)
    arguments.take_own()
    outs = results.arrays()
    found = program.run(jaxpr, closed.consts, arguments.values, homes=results.homes(outs, jaxpr))
    results.fill(outs, found)
    following = e.emit(f"add i64 {member.name}, {lanes}", "i64", False)
    e.complete(member, line, [("%first", before_label), (following.name, e.block)])
    e.lines.append(f"%more = icmp slt i64 {following.name}, %last")
    e.lines.append("br i1 %more, label %block, label %exit")
    head = (
        f"define void @{name}(ptr noalias %args, ptr noalias %results, ptr noalias %workspace, "
        "i64 %first, i64 %last, i64 %members) {"
    )
    body = [head, "entry:", *e.prologue, *before, "br label %block", *e.lines]
    module.functions.append("\n".join([*body, "exit:", "ret void", "}"]))
    return KernelText(module.text(), module.workspace, e.operations, e.arithmetic)


def _members(e: Emitter, member: Value) -> list[str]:
    """The number of the member in each lane; lanes beyond the last member repeat it."""
    if e.lanes == 1:  # there is one member only
        return ["0"]
    most = e.emit("sub i64 %last, 1", "i64", False)
    places = [member.name]
    for lane in range(1, e.lanes):
        plain = e.emit(f"add i64 {member.name}, {lane}", "i64", False)
        places.append(e.intrinsic("smin", "i64", plain, most).name)
    return places


class _Arguments:
    """The arguments of a kernel: in registers, in memory if they are large; in the workspace, if
    the whole program is.
    """

    def __init__(self, p: Program, jaxpr: Any, shared: Sequence[bool]):
        self.p, self.shared = p, shared
        self.invars = jaxpr.invars
        self.used = {v for eqn in jaxpr.eqns for v in eqn.invars if not isinstance(v, Literal)}
        self.used |= {v for v in jaxpr.outvars if not isinstance(v, Literal)}
        self.values: list[Lowered] = [
            Memory((), "nothing", v.aval.shape, np.dtype(v.aval.dtype)) for v in self.invars
        ]

    def take_shared(self) -> None:
        """What all members share, before the first block."""
        self._take([k for k, is_shared in enumerate(self.shared) if is_shared], None)

    def take_own(self) -> None:
        """What is a member's own, in every block."""
        own = [k for k, is_shared in enumerate(self.shared) if not is_shared]
        self._take(own, self.p.members)

    def _take(self, numbers: Sequence[int], members: Sequence[str] | None) -> None:
        numbers = [k for k in numbers if self.invars[k] in self.used]
        small = {k for k in numbers if _size(self.invars[k].aval) <= LOADED}
        if self.p.in_workspace:
            wanted = [(k, self.invars[k].aval) for k in sorted(small)]
            copies = take_arguments(self.p, wanted, members)
            for (k, _), copy in zip(wanted, copies, strict=True):
                self.values[k] = copy
            numbers = [k for k in numbers if k not in small]
        for k in numbers:
            array = self._in_place(k, members)
            self.values[k] = self.p.in_registers(array) if k in small else array

    def _in_place(self, k: int, members: Sequence[str] | None) -> Memory:
        e, aval = self.p.e, self.invars[k].aval
        pointer = _base(e, "args", k)
        if members is None:
            return Memory((pointer,), "shared", aval.shape, np.dtype(aval.dtype))
        lanes = of_members(e, pointer, members, aval.dtype, _size(aval))
        return Memory(lanes, "members", aval.shape, np.dtype(aval.dtype))


class _Results:
    """Where the results of a kernel go."""

    def __init__(self, p: Program, outvars: Sequence[Any]):
        self.p, self.avals = p, [v.aval for v in outvars]
        unbounded = [k for k, aval in enumerate(self.avals) if is_unbounded(aval)]
        self.strides = {k: stride for stride, k in enumerate(unbounded)}
        if not p.in_workspace:
            self.bases = [_base(p.e, "results", k) for k in range(len(outvars))]
            self.distances = {k: p.e.load(STRIDES, s) for k, s in self.strides.items()}

    def arrays(self) -> list[Memory]:
        """The results of the members of a block, in memory."""
        e, members = self.p.e, self.p.members
        found = []
        for k, aval in enumerate(self.avals):
            if self.p.in_workspace:  # formed where they are used, if not by tables
                pointers = tuple(f"%result{k}.{lane}" for lane in range(len(members)))
                for lane, pointer in enumerate(pointers):
                    e.recipes[pointer] = partial(self._formed, k, members[lane])
            else:
                distance = self.distances.get(k, _size(aval))
                pointers = of_members(e, self.bases[k], members, aval.dtype, distance)
            memory = Memory(pointers, "members", aval.shape, np.dtype(aval.dtype), True)
            if k in self.strides:
                self.p.unbounded[pointers] = k, self.strides[k]
            found.append(memory)
        return found

    def _formed(self, k: int, member: str) -> str:
        e, aval = self.p.e, self.avals[k]
        at = e.emit(f"getelementptr ptr, ptr %results, i64 {k}", "ptr", False)
        base = e.emit(f"load ptr, ptr {at.name}, align 8", "ptr", False).name
        distance: Any = _size(aval)
        if k in self.strides:
            distance = e.load(STRIDES, self.strides[k])
        return of_members(e, base, [member], aval.dtype, distance)[0]

    def homes(self, outs: Sequence[Memory], jaxpr: Any) -> dict[Any, Memory]:
        """Large results, which are made where they shall go."""
        given = set(jaxpr.invars)
        named = Counter(v for v in jaxpr.outvars if not isinstance(v, Literal))
        return {
            v: out
            for v, out in zip(jaxpr.outvars, outs, strict=True)
            if not isinstance(v, Literal) and out.size > LOADED and v not in given and named[v] == 1
        }

    def fill(self, outs: Sequence[Memory], found: Sequence[Lowered]) -> None:
        """Write what was found."""
        in_workspace, constant, others = [], [], []
        for k, (out, x) in enumerate(zip(outs, found, strict=True)):
            if self.p.in_workspace and self.p.lies_in_workspace(x):
                in_workspace.append((k, self.avals[k], x))
            elif is_constant(x) and x.size <= LOADED:
                constant.append((k, self.avals[k], x))
            else:
                others.append((out, x))
        if sum(x.size for _, _, x in constant) < MANY_CONSTANTS:
            others += [(outs[k], x) for k, _, x in constant]
            constant = []
        for out, x in others:
            self.p.fill(out, x)
        put_results(self.p, in_workspace, self.p.members)
        put_constants(self.p, constant, self.p.members)


def _base(e: Emitter, arrays: str, k: int) -> str:
    """The pointer to an argument or a result, known before the first block."""
    pointer = f"%{arrays}.{k}"
    e.prologue.append(f"{pointer}.at = getelementptr ptr, ptr %{arrays}, i64 {k}")
    e.prologue.append(f"{pointer} = load ptr, ptr {pointer}.at, align 8")
    return pointer


def _size(aval: Any) -> int:
    return math.prod(aval.shape)


def is_unbounded(aval: Any) -> bool:
    """True for a result of rows without end."""
    return bool(aval.shape) and aval.shape[0] == UNBOUNDED


def unknown_primitives(jaxpr: Any, seen: set[int] | None = None) -> set[str]:
    """Primitives in a jaxpr, and in those inside it, that no rule knows."""
    unknown: set[str] = set()
    seen = set() if seen is None else seen
    if id(jaxpr) in seen:  # a function that is called again
        return unknown
    seen.add(id(jaxpr))
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if not any(name in rules for rules in (ELEMENTS, SHAPES, REDUCTIONS, STRUCTURED, CALLS)):
            unknown.add(name)
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    unknown |= unknown_primitives(inner, seen)
    return unknown
