"""Loops and branches.

What all members share decides with a branch of the processor. Where members differ, a block does
what any of them needs, and each lane keeps what is its own.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mime.native.lowering.program import STRUCTURED, Program
from mime.native.lowering.tables import fill_all, rows_together
from mime.native.lowering.values import (
    MOST_CARRIED,
    Lowered,
    Memory,
    Value,
    as_objects,
    registers,
    type_of,
)

MOST_UNROLLED = 1500
"""Equations that a loop may become when it is written out: constants of its passes fold then."""


PASSES = 100
"""What a loop is taken to make where nobody knows: it only decides whether threads are worth it."""


def _scan(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    consts, carries = eqn.params["num_consts"], eqn.params["num_carry"]
    length, closed = eqn.params["length"], eqn.params["jaxpr"]
    body = closed.jaxpr
    given, start, xs = (
        operands[:consts],
        operands[consts : consts + carries],
        operands[consts + carries :],
    )
    stacked = eqn.outvars[carries:]
    order = range(length - 1, -1, -1) if eqn.params["reverse"] else range(length)
    in_memory = any(x.size > MOST_CARRIED for x in start)
    if (length * max(1, size_of(body)) <= MOST_UNROLLED and not in_memory) or length <= 1:
        carry, rows = list(start), []
        for k in order:
            results = p.run(body, closed.consts, [*given, *carry, *(_row(p, x, k) for x in xs)])
            carry, row = results[:carries], results[carries:]
            rows.append([p.in_registers(x) for x in row])
        if eqn.params["reverse"]:
            rows.reverse()
        ys = [
            np.stack([as_objects(row[j]) for row in rows])
            if rows
            else np.zeros(v.aval.shape, v.aval.dtype)
            for j, v in enumerate(stacked)
        ]
        return [*carry, *ys]
    flags = [_varies(x) for x in operands]
    carried, _ = p.varying.scan(eqn, flags)
    kept = [
        a is b for a, b in zip(body.invars[consts : consts + carries], body.outvars, strict=False)
    ]
    tables = [
        p.in_memory(x, v.aval.dtype)
        for x, v in zip(xs, eqn.invars[consts + carries :], strict=True)
    ]
    places = [homes.get(v) or p.e.allocate(v.aval.shape, v.aval.dtype) for v in stacked]
    e = p.e
    carry_ = Carry(p, start, last[consts : consts + carries], carried, kept, eqn.outvars, homes)
    before, head, after = e.block, e.label("scan"), e.label("end")
    e.branch(head)
    e.begin(head)
    index, line = e.phi("i64", False)
    values = carry_.enter()
    e.enter()
    counted = e.operations
    at: Any = index
    if eqn.params["reverse"]:
        at = e.op("sub", "i64", length - 1, index)
    rows_in = [_row(p, x, at) for x in tables]
    private = [*([False] * consts), *([True] * carries), *([False] * len(xs))]
    with rows_together(p, False):
        results = p.run(body, closed.consts, [*given, *values, *rows_in], private)
    for memory, y in zip(places, results[carries:], strict=True):
        _put_row(p, memory, at, y)
    carry_.settle(results[:carries])
    following = e.emit(f"add i64 {index.name}, 1", "i64", False)
    e.complete(index, line, [("0", before), (following.name, e.block)])
    finals = carry_.complete(before)
    e.branch_if(e.compare("icmp ult", following, length, "i64"), head, after)
    e.operations = counted + (e.operations - counted) * length
    e.leave()
    e.begin(after)
    return [*finals, *places]


def _while(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    n_cond, n_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_cond, of_body = operands[:n_cond], operands[n_cond : n_cond + n_body]
    start = operands[n_cond + n_body :]
    carried, differs = p.varying.loop(eqn, [_varies(x) for x in operands])
    kept = [a is b for a, b in zip(body.jaxpr.invars[n_body:], body.jaxpr.outvars, strict=True)]
    e = p.e
    carry = Carry(p, start, last[n_cond + n_body :], carried, kept, eqn.outvars, homes)
    before, head, inside, after = e.block, e.label("while"), e.label("do"), e.label("end")
    e.branch(head)
    e.begin(head)
    values = carry.enter()
    e.enter()
    counted = e.operations
    going = p.run(cond.jaxpr, cond.consts, [*of_cond, *values])[0]
    mask = p.in_registers(going).reshape(()).item()
    if differs:
        mask = _both(p, mask, p.active)
    e.branch_if(e.any(mask), inside, after)
    e.begin(inside)
    private = [*([False] * n_body), *([not differs] * len(values))]
    with _only(p, mask if differs else True), rows_together(p, p.in_workspace and not differs):
        results = p.run(body.jaxpr, body.consts, [*of_body, *values], private)
    if differs:
        results = [
            x if same else _blended(p, mask, x, value, v.aval)
            for x, value, v, same in zip(
                carry.apart(results), values, eqn.outvars, kept, strict=True
            )
        ]
    carry.settle(results)
    carry.complete(before)
    e.branch(head)
    e.operations = counted + (e.operations - counted) * PASSES
    e.leave()
    e.begin(after)
    return list(values)


class Carry:
    """What a loop takes from one pass to the next: phis for arrays in registers, a place of its own
    for each array in memory.
    """

    def __init__(
        self,
        p: Program,
        start: Sequence[Lowered],
        last: Sequence[bool],
        varies: Sequence[bool],
        kept: Sequence[bool],
        outvars: Sequence[Any],
        homes: Mapping[Any, Memory],
    ):
        self.p, self.start, self.kept, self.varies = p, list(start), kept, varies
        self.outvars = outvars[: len(start)]
        copies = []
        for k, (x, var) in enumerate(zip(start, self.outvars, strict=True)):
            if kept[k]:
                continue
            many = p.in_workspace and isinstance(x, Memory)
            if x.size > MOST_CARRIED or (isinstance(x, Memory) and x.size > 16) or many:
                place: Lowered
                if var in homes:
                    place = p.in_memory(x, var.aval.dtype, homes[var])
                elif p.may_change(x, last[k]) and _varies(x) == varies[k]:
                    place = x
                else:
                    varying = varies[k] or not p.in_workspace
                    place = p.e.allocate(var.aval.shape, var.aval.dtype, varying)
                    copies.append((place, x))
                self.start[k] = place
            else:
                self.start[k] = p.in_registers(x)
        fill_all(p, copies)
        # Operands of the phis, spread over the lanes before the loop where that is needed.
        self.entries = [
            []
            if same or isinstance(x, Memory)
            else [p.e.operand(v, type_of(var.aval.dtype), flag) for v in _elements(x)]
            for x, var, same, flag in zip(self.start, self.outvars, kept, varies, strict=True)
        ]

    def enter(self) -> list[Lowered]:
        """The carried values at the head of the loop."""
        self.phis: list[list[tuple[Value, int]]] = []
        values: list[Lowered] = []
        for x, var, same, varies in zip(
            self.start, self.outvars, self.kept, self.varies, strict=True
        ):
            if same or isinstance(x, Memory):
                self.phis.append([])
                values.append(x)
            else:
                type_ = type_of(var.aval.dtype)
                self.phis.append([self.p.e.phi(type_, varies) for _ in range(x.size)])
                values.append(registers([v for v, _ in self.phis[-1]], x.shape))
        self.values = values
        return values

    def apart(self, results: Sequence[Lowered]) -> list[Lowered]:
        """The results of a pass, none of which lies where another is to go."""
        places = {
            x.pointers for x, same in zip(self.start, self.kept, strict=True)
            if isinstance(x, Memory) and not same
        }  # fmt: skip
        moved = []
        for x, place, same in zip(results, self.start, self.kept, strict=True):
            if isinstance(x, Memory) and not same:
                if not isinstance(place, Memory):
                    x = self.p.in_registers(x)
                elif x.pointers != place.pointers and x.pointers in places:
                    copy = self.p.e.allocate(x.shape, x.dtype)
                    self.p.fill(copy, x)
                    x = copy
            moved.append(x)
        return moved

    def settle(self, results: Sequence[Lowered]) -> None:
        """Bring the results of a pass to where the next one looks for them."""
        self.results: list[Lowered] = []
        copies = []
        for x, place, same in zip(self.apart(results), self.start, self.kept, strict=True):
            if same:
                self.results.append(place)
            elif isinstance(place, Memory):
                copies.append((place, x))
                self.results.append(place)
            else:
                self.results.append(self.p.in_registers(x))
        fill_all(self.p, copies)
        self.operands = [
            [
                self.p.e.operand(self._as(phi, value), phi.type, phi.varying)
                for (phi, _), value in zip(phis, _elements(x), strict=True)
            ]
            if phis
            else []
            for phis, x in zip(self.phis, self.results, strict=True)
        ]

    def _as(self, phi: Value, value: Any) -> Any:
        """What all members share may come back from memory in every lane: one is enough."""
        if isinstance(value, Value) and value.varying and not phi.varying:
            return Value(self.p.e.lane(value, 0, value.type), value.type, False)
        return value

    def complete(self, before: str) -> list[Lowered]:
        """Close the loop: say what each phi is. Returns the values after the last pass."""
        e = self.p.e
        block = e.block
        for phis, entries, operands in zip(self.phis, self.entries, self.operands, strict=True):
            if not phis:
                continue
            for (phi, line), first, again in zip(phis, entries, operands, strict=True):
                e.complete(phi, line, [(first, before), (again, block)])
        return self.results


def _both(p: Program, mask: Any, active: Any) -> Any:
    """mask and active"""
    if active is True:
        return mask
    if not isinstance(mask, Value):
        return active if mask else False
    return p.e.op("and", "i1", mask, active)


@contextmanager
def _only(p: Program, mask: Any) -> Iterator[None]:
    """What is lowered here is for the lanes of a mask: a loop goes on for those alone."""
    before = p.active
    if isinstance(mask, Value) and mask.varying:
        p.active = _both(p, mask, before)
    try:
        yield
    finally:
        p.active = before


def _elements(x: Lowered) -> list[Any]:
    assert isinstance(x, np.ndarray)
    return as_objects(x).ravel().tolist()


def _cond(
    p: Program, eqn: Any, operands: list[Lowered], last: list[bool], homes: Mapping[Any, Memory]
) -> list[Lowered]:
    which = p.in_registers(operands[0]).reshape(()).item()
    branches, args = eqn.params["branches"], operands[1:]
    count = len(branches)
    if not isinstance(which, Value):
        chosen = branches[min(max(int(which), 0), count - 1)]
        return p.run(chosen.jaxpr, chosen.consts, args)
    e, index_type = p.e, which.type
    if not which.varying:
        return _one_case(p, eqn, which, args)
    places = _places(p, eqn, [True] * len(eqn.outvars))
    results: list[Any] = []
    for k, branch in enumerate(branches):
        mask = _is_case(p, which, k, count, index_type)
        before, inside, after = e.block, e.label("case"), e.label("join")
        e.branch_if(e.any(mask), inside, after)
        e.begin(inside)
        e.enter()
        with _only(p, mask), rows_together(p, False):
            found = p.run(branch.jaxpr, branch.consts, args)
        flat = []
        for x, place, v in zip(found, places, eqn.outvars, strict=True):
            type_ = type_of(v.aval.dtype)
            if place is None:
                flat += [(y, type_) for y in _elements(p.in_registers(x))]
            elif k == 0:
                p.fill(place, x)
            else:
                _fill_where(p, mask, place, x)
        # Lanes keep what is their own inside of the branch: where none takes it, it costs nothing.
        earlier = [x.name for x in results] if k else ["poison"] * len(flat)
        if k:
            flat = [(e.select(mask, y, x, t), t) for (y, t), x in zip(flat, results, strict=True)]
        texts = [e.operand(y, type_, True) for y, type_ in flat]
        e.branch(after)
        end = e.block
        e.leave()
        e.begin(after)
        phis = [e.phi(type_, True) for _, type_ in flat]
        for (phi, line), first, text in zip(phis, earlier, texts, strict=True):
            e.complete(phi, line, [(first, before), (text, end)])
        results = [phi for phi, _ in phis]
    flat_results = iter(results)
    return [
        place
        if place is not None
        else registers([next(flat_results) for _ in range(_size(v))], v.aval.shape)
        for place, v in zip(places, eqn.outvars, strict=True)
    ]


def _places(p: Program, eqn: Any, varies: Sequence[bool]) -> list[Memory | None]:
    """Where the results of branches go that are not joined in registers."""
    return [
        p.e.allocate(v.aval.shape, v.aval.dtype, flag or not p.in_workspace)
        if p.in_workspace or _size(v) > MOST_CARRIED
        else None
        for v, flag in zip(eqn.outvars, varies, strict=True)
    ]


def _one_case(p: Program, eqn: Any, which: Value, args: list[Lowered]) -> list[Lowered]:
    """All members take the same branch, and no other is computed."""
    e, branches, flags = p.e, eqn.params["branches"], [_varies(x) for x in args]
    count = len(branches)
    varying = [p.varying.outputs(branch.jaxpr, flags) for branch in branches]
    varies = [any(each) for each in zip(*varying, strict=True)]
    types = [type_of(v.aval.dtype) for v in eqn.outvars]
    places = _places(p, eqn, varies)
    masks = [_is_case(p, which, k, count, which.type) for k in range(count - 1)]
    join, ways = e.label("join"), []
    for k, branch in enumerate(branches):
        if k < count - 1:
            inside, other = e.label("case"), e.label("else")
            e.branch_if(masks[k], inside, other)
            e.begin(inside)
        e.enter()
        with rows_together(p, False):
            found = p.run(branch.jaxpr, branch.consts, args)
        fill_all(p, [(place, x) for place, x in zip(places, found, strict=True) if place])
        texts = [
            [] if place else [e.operand(y, type_, flag) for y in _elements(p.in_registers(x))]
            for x, place, type_, flag in zip(found, places, types, varies, strict=True)
        ]
        ways.append((texts, e.block))
        e.branch(join)
        e.leave()
        if k < count - 1:
            e.begin(other)
    e.begin(join)
    joined: list[Lowered] = []
    for k, (v, place) in enumerate(zip(eqn.outvars, places, strict=True)):
        if place is not None:
            joined.append(place)
            continue
        phis = [e.phi(types[k], varies[k]) for _ in range(_size(v))]
        for j, (phi, line) in enumerate(phis):
            e.complete(phi, line, [(texts[k][j], block) for texts, block in ways])
        joined.append(registers([phi for phi, _ in phis], v.aval.shape))
    return joined


def _is_case(p: Program, which: Value, k: int, count: int, type_: str) -> Value:
    e = p.e
    if type_ == "i1":
        return which if k == 1 else e.op("xor", "i1", which, True)
    if k == 0:
        return e.compare("icmp sle", which, 0, type_)
    if k == count - 1:
        return e.compare("icmp sge", which, k, type_)
    return e.compare("icmp eq", which, k, type_)


def _blended(p: Program, mask: Any, new: Lowered, old: Lowered, aval: Any) -> Lowered:
    if isinstance(old, Memory):
        _fill_where(p, mask, old, new)
        return old
    type_ = type_of(aval.dtype)
    pairs = zip(_elements(p.in_registers(new)), _elements(old), strict=True)
    return registers([p.e.select(mask, a, b, type_) for a, b in pairs], aval.shape)


def _fill_where(p: Program, mask: Any, place: Memory, x: Lowered) -> None:
    """Copy for the lanes that the mask names."""
    e, source = p.e, p.in_memory(x, place.dtype)
    type_ = type_of(place.dtype)
    p.each(
        place.size,
        lambda k: e.store(place, k, e.select(mask, e.load(source, k), e.load(place, k), type_)),
    )


def _row(p: Program, x: Lowered, k: Any) -> Lowered:
    """x[k]"""
    shape = x.shape[1:]
    if not isinstance(x, Memory):
        row = x[k]
        return row if isinstance(row, np.ndarray) else _scalar(x, row)
    size = math.prod(shape)
    first = p.e.integer("mul", k, size, "i64")
    if size <= 256:
        flat = [p.e.load(x, p.e.integer("add", first, j, "i64")) for j in range(size)]
        return registers(flat, shape)
    scale = p.e.lanes if x.kind == "lanes" else 1
    stored = type_of(x.dtype)
    stored = "i8" if stored == "i1" else stored
    pointers = tuple(p.e.address(pointer, first, stored, scale) for pointer in x.pointers)
    return Memory(pointers, x.kind, shape, x.dtype)


def _scalar(like: np.ndarray, x: Any) -> np.ndarray:
    cell = np.empty((), like.dtype)
    cell[()] = x
    return cell


def _put_row(p: Program, memory: Memory, k: Any, x: Lowered) -> None:
    """memory[k] = x"""
    size = math.prod(memory.shape[1:])
    first = p.e.integer("mul", k, size, "i64")
    if isinstance(x, Memory):
        p.each(
            size, lambda j: p.e.store(memory, p.e.integer("add", first, j, "i64"), p.e.load(x, j))
        )
    else:
        for j, element in enumerate(_elements(x)):
            p.e.store(memory, p.e.integer("add", first, j, "i64"), element)


def _varies(x: Lowered) -> bool:
    if isinstance(x, Memory):
        return x.kind not in ("shared", "plain")
    return x.dtype == object and any(isinstance(v, Value) and v.varying for v in x.flat)


def size_of(jaxpr: Any) -> int:
    """Equations of a jaxpr, those of inner ones included, arrays counted by their elements."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [
            j
            for value in eqn.params.values()
            for j in (value if isinstance(value, tuple | list) else [value])
            if hasattr(j, "jaxpr") or hasattr(j, "eqns")
        ]
        own = max((_size(v) for v in eqn.outvars), default=1)
        total += sum(size_of(getattr(j, "jaxpr", j)) for j in inner) if inner else max(1, own)
    return total


def _size(v: Any) -> int:
    return math.prod(v.aval.shape)


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


STRUCTURED.update(scan=_scan, cond=_cond, empty=_empty, empty2=_empty)
STRUCTURED["while"] = _while
STRUCTURED["custom_linear_solve"] = STRUCTURED["linear_solve"] = _linear_solve
STRUCTURED["optimization_barrier"] = lambda p, eqn, operands, last, homes: operands
STRUCTURED["name"] = lambda p, eqn, operands, last, homes: operands
