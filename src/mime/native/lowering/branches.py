"""Branches: what all members share decides with a branch of the processor. Where members differ, a
block does what any of them needs, and each lane keeps what is its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mime.native.lowering.arrays import size_of_variable
from mime.native.lowering.masks import elements, fill_where, is_varying, only
from mime.native.lowering.program import STRUCTURED, Program
from mime.native.lowering.tables import fill_all, rows_together
from mime.native.lowering.values import MOST_CARRIED, Lowered, Memory, Value, registers, type_of


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
        with only(p, mask), rows_together(p, False):
            found = p.run(branch.jaxpr, branch.consts, args)
        flat = []
        for x, place, v in zip(found, places, eqn.outvars, strict=True):
            type_ = type_of(v.aval.dtype)
            if place is None:
                flat += [(y, type_) for y in elements(p.in_registers(x))]
            elif k == 0:
                p.fill(place, x)
            else:
                fill_where(p, mask, place, x)
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
        else registers([next(flat_results) for _ in range(size_of_variable(v))], v.aval.shape)
        for place, v in zip(places, eqn.outvars, strict=True)
    ]


def _places(p: Program, eqn: Any, varies: Sequence[bool]) -> list[Memory | None]:
    """Where the results of branches go that are not joined in registers."""
    return [
        p.e.allocate(v.aval.shape, v.aval.dtype, flag or not p.in_workspace)
        if p.in_workspace or size_of_variable(v) > MOST_CARRIED
        else None
        for v, flag in zip(eqn.outvars, varies, strict=True)
    ]


def _one_case(p: Program, eqn: Any, which: Value, args: list[Lowered]) -> list[Lowered]:
    """All members take the same branch, and no other is computed."""
    e, branches, flags = p.e, eqn.params["branches"], [is_varying(x) for x in args]
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
            [] if place else [e.operand(y, type_, flag) for y in elements(p.in_registers(x))]
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
        phis = [e.phi(types[k], varies[k]) for _ in range(size_of_variable(v))]
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


STRUCTURED["cond"] = _cond
