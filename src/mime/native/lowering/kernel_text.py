"""The function that computes a block of members after another."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from mime.native.lowering import control, indexing, large
from mime.native.lowering.elementwise import ELEMENTS
from mime.native.lowering.emitter import Emitter, Module
from mime.native.lowering.functions import Functions
from mime.native.lowering.program import CALLS, STRUCTURED, Program
from mime.native.lowering.reductions import REDUCTIONS
from mime.native.lowering.shapes import SHAPES
from mime.native.lowering.values import UNBOUNDED, Lowered, Memory, registers, type_of
from mime.native.lowering.varying import Varying

del control, indexing, large  # imported for their rules

LOADED = 256
"""Elements of an argument that are loaded at once; a larger one is read where it is used."""


class KernelText(NamedTuple):
    """The IR of a kernel."""

    text: str
    workspace_bytes: int
    operations: int
    arithmetic: int
    """Instructions of one pass over the code."""


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
    pointers = [f"%arg{k}" for k in range(len(jaxpr.invars))]
    results = [f"%result{k}" for k in range(len(jaxpr.outvars))]
    for source, names in (("args", pointers), ("results", results)):
        for k, pointer in enumerate(names):
            e.prologue.append(f"{pointer}.at = getelementptr ptr, ptr %{source}, i64 {k}")
            e.prologue.append(f"{pointer} = load ptr, ptr {pointer}.at, align 8")
    args: list[Lowered | None] = [
        _loaded(e, Memory((pointer,), "shared", v.aval.shape, np.dtype(v.aval.dtype)))
        if is_shared
        else None
        for pointer, v, is_shared in zip(pointers, jaxpr.invars, shared, strict=True)
    ]
    count = sum(is_unbounded(v.aval) for v in jaxpr.outvars)
    e.prologue.append(f"%strides.at = getelementptr ptr, ptr %args, i64 {len(pointers)}")
    if count:
        e.prologue.append("%strides = load ptr, ptr %strides.at, align 8")
    distances = Memory(("%strides",), "shared", (count,), np.dtype(np.int64))
    strides = [e.load(distances, k).name for k in range(count)]
    before = e.lines
    e.lines = []
    e.begin("block")
    e.enter()
    member, line = e.phi("i64", False)
    places = _members(e, member)
    args = [
        x if x is not None else _loaded(e, _of_members(e, pointer, places, v.aval))
        for x, pointer, v in zip(args, pointers, jaxpr.invars, strict=True)
    ]
    loose = iter(strides)
    outs = [
        _of_members(e, pointer, places, v.aval, next(loose) if is_unbounded(v.aval) else None, True)
        for pointer, v in zip(results, jaxpr.outvars, strict=True)
    ]
    given = set(jaxpr.invars)
    named = Counter(v for v in jaxpr.outvars if not isinstance(v, Literal))
    homes = {
        v: out
        for v, out in zip(jaxpr.outvars, outs, strict=True)
        if not isinstance(v, Literal) and out.size > LOADED and v not in given and named[v] == 1
    }
    program = Program(e, Varying(), Functions(jaxpr, module))
    found = program.run(jaxpr, closed.consts, args, homes=homes)  # type: ignore[arg-type]
    for out, x in zip(outs, found, strict=True):
        program.fill(out, x)
    following = e.emit(f"add i64 {member.name}, {lanes}", "i64", False)
    e.complete(member, line, [("%first", "entry"), (following.name, e.block)])
    e.lines.append(f"%more = icmp slt i64 {following.name}, %last")
    e.lines.append("br i1 %more, label %block, label %exit")
    head = (
        f"define void @{name}(ptr noalias %args, ptr noalias %results, ptr noalias %workspace, "
        "i64 %first, i64 %last, i64 %members) {"
    )
    body = [head, "entry:", *e.prologue, *before, "br label %block", *e.lines]
    module.functions.append("\n".join([*body, "exit:", "ret void", "}"]))
    return KernelText(module.text(), module.workspace, e.operations, e.arithmetic)


def _members(e: Emitter, member: Any) -> list[str]:
    """The number of the member in each lane; lanes beyond the last member repeat it."""
    most = e.emit("sub i64 %last, 1", "i64", False)
    places = [member.name]
    for lane in range(1, e.lanes):
        plain = e.emit(f"add i64 {member.name}, {lane}", "i64", False)
        places.append(e.intrinsic("smin", "i64", plain, most).name)
    return places


def is_unbounded(aval: Any) -> bool:
    """True for a result of rows without end."""
    return bool(aval.shape) and aval.shape[0] == UNBOUNDED


def _of_members(
    e: Emitter,
    pointer: str,
    places: Sequence[str],
    aval: Any,
    stride: str | None = None,
    owned: bool = False,
) -> Memory:
    size = stride or int(np.prod(aval.shape, dtype=np.int64))
    type_ = type_of(aval.dtype)
    stored = "i8" if type_ == "i1" else type_
    lanes = []
    for place in places:
        at = e.emit(f"mul i64 {place}, {size}", "i64", False)
        lanes.append(
            e.emit(f"getelementptr {stored}, ptr {pointer}, i64 {at.name}", "ptr", False).name
        )
    return Memory(tuple(lanes), "members", aval.shape, np.dtype(aval.dtype), owned)


def _loaded(e: Emitter, memory: Memory) -> Lowered:
    if memory.size > LOADED:
        return memory
    return registers([e.load(memory, k) for k in range(memory.size)], memory.shape)


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
