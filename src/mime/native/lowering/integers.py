"""Integers element by element, in XLA's meaning where LLVM leaves one open."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mime.native.lowering.emitter import Emitter
from mime.native.lowering.values import Value

Element = Callable[..., Any]
"""`(emitter, *elements, type_of_the_operands, eqn)`: the element of the result."""


def unsigned(eqn: Any) -> bool:
    """Whether the operands have no sign."""
    return np.issubdtype(eqn.invars[0].aval.dtype, np.unsignedinteger)


def whole_division(e: Emitter, x: Any, y: Any, type_: str, code: str, by_zero: Any) -> Any:
    """x / y towards zero or its remainder; `by_zero` where y is 0, x itself where that is None."""
    # A division by zero, and the smallest number by -1, would stop the process.
    if not isinstance(y, Value) and y not in (0, -1):
        return e.op(code, type_, x, y)
    zero = e.compare("icmp eq", y, 0, type_) if isinstance(y, Value) else y == 0
    safe = e.select(zero, 1, y, type_)
    if code[0] == "s":
        least = -(1 << (int(type_[1:]) - 1))
        at_least = e.compare("icmp eq", x, least, type_) if isinstance(x, Value) else x == least
        minus = e.compare("icmp eq", y, -1, type_) if isinstance(y, Value) else y == -1
        overflows = _both(e, at_least, minus)
        safe = e.select(overflows, 1, safe, type_)
        if code == "srem":  # least rem -1 is 0, and so is least rem 1
            overflows = False
    result = e.op(code, type_, x, safe) if isinstance(safe, Value) or isinstance(x, Value) else 0
    return e.select(zero, x if by_zero is None else by_zero, result, type_)


def _both(e: Emitter, a: Any, b: Any) -> Any:
    if not isinstance(a, Value):
        return b if a else False
    if not isinstance(b, Value):
        return a if b else False
    return e.op("and", "i1", a, b)


def bits(code: str) -> Element:
    """`and`, `or`, `xor`, bit by bit."""

    def rule(e: Emitter, x: Any, y: Any, type_: str, _: Any) -> Any:
        if type_ == "i1":
            for a, b in ((x, y), (y, x)):
                if not isinstance(a, Value) and code in ("and", "or"):
                    return (b if a else False) if code == "and" else (True if a else b)
        return e.op(code, type_, x, y)

    return rule


def not_(e: Emitter, x: Any, type_: str, _: Any) -> Any:
    """All bits turned."""
    return e.op("xor", type_, x, True if type_ == "i1" else -1)


def shift(code: str) -> Element:
    """A shift by as many bits as there are, or more, gives 0 (or the sign): LLVM leaves it open."""

    def rule(e: Emitter, x: Any, y: Any, type_: str, _: Any) -> Any:
        bits = int(type_[1:])
        if not isinstance(y, Value):
            if 0 <= y < bits:
                return e.op(code, type_, x, y)
            return e.op("ashr", type_, x, bits - 1) if code == "ashr" else 0
        fits = e.compare("icmp ult", y, bits, type_)
        shifted = e.op(code, type_, x, e.select(fits, y, bits - 1, type_))
        return shifted if code == "ashr" else e.select(fits, shifted, 0, type_)

    return rule
