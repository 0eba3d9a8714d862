"""Loops: a pass after another, and what it hands to the next.

Where members make different numbers of passes, a block makes those of the longest, and each lane
keeps what it had when its own were over.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mime.native.lowering.masks import both, elements, fill_where, is_varying, only
from mime.native.lowering.program import STRUCTURED, Program, equations
from mime.native.lowering.tables import fill_all, rows_together
from mime.native.lowering.values import (
    MOST_CARRIED,
    Lowered,
    Memory,
    Value,
    as_objects,
    registers,
    stored_type,
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
    if (length * max(1, equations(body)) <= MOST_UNROLLED and not in_memory) or length <= 1:
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
    flags = [is_varying(x) for x in operands]
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
    carried, differs = p.varying.loop(eqn, [is_varying(x) for x in operands])
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
        mask = both(p, mask, p.active)
    e.branch_if(e.any(mask), inside, after)
    e.begin(inside)
    private = [*([False] * n_body), *([not differs] * len(values))]
    with only(p, mask if differs else True), rows_together(p, p.in_workspace and not differs):
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
                elif p.may_change(x, last[k]) and is_varying(x) == varies[k]:
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
            else [p.e.operand(v, type_of(var.aval.dtype), flag) for v in elements(x)]
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
                for (phi, _), value in zip(phis, elements(x), strict=True)
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


def _blended(p: Program, mask: Any, new: Lowered, old: Lowered, aval: Any) -> Lowered:
    if isinstance(old, Memory):
        fill_where(p, mask, old, new)
        return old
    type_ = type_of(aval.dtype)
    pairs = zip(elements(p.in_registers(new)), elements(old), strict=True)
    return registers([p.e.select(mask, a, b, type_) for a, b in pairs], aval.shape)


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
    stored = stored_type(x.dtype)
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
        for j, element in enumerate(elements(x)):
            p.e.store(memory, p.e.integer("add", first, j, "i64"), element)


STRUCTURED["scan"] = _scan
STRUCTURED["while"] = _while
