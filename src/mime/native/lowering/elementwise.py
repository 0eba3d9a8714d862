"""Primitives that work element by element: on numbers by NumPy, on values by instructions."""

from typing import Any

import numpy as np

from mime.native.lowering.conversions import as_numbers, cell, convert_element, settled
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.folded import folded
from mime.native.lowering.integers import Element, bits, not_, shift, unsigned, whole_division
from mime.native.lowering.values import FLOATS, Unsupported, Value, type_of


def _arithmetic(name: str) -> Element:
    return lambda e, x, y, type_, _: getattr(e, name)(x, y, type_)


def _divide(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
    """x / y; of integers towards zero, -1 (all bits set) when y is 0, as XLA has it."""
    if type_ in FLOATS:
        return e.div(x, y, type_)
    return whole_division(e, x, y, type_, "udiv" if unsigned(eqn) else "sdiv", -1)


def _remainder(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
    """The remainder of a division towards zero; x when an integer y is 0."""
    if type_ in FLOATS:
        return e.elementary("rem", type_, x, y)
    return whole_division(e, x, y, type_, "urem" if unsigned(eqn) else "srem", None)


_COMPARISONS = {
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
}


def _comparison(name: str) -> Element:
    def rule(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
        floating, signed, natural = _COMPARISONS[name]
        if type_ in FLOATS:
            return e.compare(f"fcmp {floating}", x, y, type_)
        plain = natural if unsigned(eqn) or type_ == "i1" else signed
        return e.compare(f"icmp {plain}", x, y, type_)

    return rule


def _extreme(name: str) -> Element:
    """The larger or the smaller; NaN when one is NaN, and max(-0, 0) = 0."""

    def rule(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
        if type_ in FLOATS:
            return extreme_of_floats(e, name, x, y, type_)
        if type_ == "i1":
            return bits("or" if name == "max" else "and")(e, x, y, type_, eqn)
        signs = "u" if unsigned(eqn) else "s"
        return e.intrinsic(f"{signs}{name}", type_, x, y)

    return rule


def extreme_of_floats(e: Emitter, name: str, x: Any, y: Any, type_: str) -> Any:
    """max or min of two floats: `llvm.maximum` takes four instructions, a constant needs fewer."""
    if not isinstance(x, Value):
        x, y = y, x
    if not isinstance(y, Value) and y != 0:
        if y != y:
            return y
        if y == (-np.inf if name == "max" else np.inf):
            return x
        # x unless y is beyond it, so that a NaN stays: an ordered comparison with NaN is false.
        beyond = e.compare(f"fcmp {'olt' if name == 'max' else 'ogt'}", x, y, type_)
        return e.select(beyond, y, x, type_)
    return e.intrinsic("maximum" if name == "max" else "minimum", type_, x, y)


def _select(e: Emitter, which: Any, *rest: Any) -> Any:
    *cases, _, eqn = rest
    if len(cases) == 1:
        return cases[0]
    if not isinstance(which, Value):
        return cases[int(which)]
    case_type = type_of(eqn.outvars[0].aval.dtype)
    if which.type == "i1":
        return e.select(which, cases[1], cases[0], case_type)
    result = cases[-1]
    for k in reversed(range(len(cases) - 1)):
        is_k = e.compare("icmp slt" if k == 0 else "icmp eq", which, 1 if k == 0 else k, which.type)
        result = e.select(is_k, cases[k], result, case_type)
    return result


def _clamp(e: Emitter, low: Any, x: Any, high: Any, type_: str, eqn: Any) -> Any:
    return _extreme("min")(e, _extreme("max")(e, low, x, type_, eqn), high, type_, eqn)


def _abs(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    if type_ in FLOATS:
        return e.intrinsic("fabs", type_, x)
    if unsigned(eqn):
        return x
    negative = e.compare("icmp slt", x, 0, type_)
    return e.select(negative, e.op("sub", type_, 0, x), x, type_)


def _sign(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    """-1, 0 or 1; a zero keeps its sign and NaN stays."""
    if type_ not in FLOATS:
        if unsigned(eqn):
            return e.select(e.compare("icmp ne", x, 0, type_), 1, 0, type_)
        down = e.select(e.compare("icmp slt", x, 0, type_), -1, 0, type_)
        return e.select(e.compare("icmp sgt", x, 0, type_), 1, down, type_)
    down = e.select(e.compare("fcmp olt", x, 0.0, type_), -1.0, x, type_)
    return e.select(e.compare("fcmp ogt", x, 0.0, type_), 1.0, down, type_)


def _intrinsic(name: str) -> Element:
    return lambda e, x, type_, _: e.intrinsic(name, type_, x)


def _round(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    away = int(eqn.params["rounding_method"]) == 0
    return e.intrinsic("round" if away else "roundeven", type_, x)


def _elementary(name: str) -> Element:
    return lambda e, *x: e.elementary(name, x[-2], *x[:-2])


def _rsqrt(e: Emitter, x: Any, type_: str, _: Any) -> Any:
    return e.div(1.0, e.intrinsic("sqrt", type_, x), type_)


def _square(e: Emitter, x: Any, type_: str, _: Any) -> Any:
    return e.mul(x, x, type_)


def _integer_pow(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    """x^n by squaring."""
    n = eqn.params["y"]
    if n == 0:
        return 1.0 if type_ in FLOATS else 1
    result, power, rest = None, x, abs(n)
    while rest:
        if rest & 1:
            result = power if result is None else e.mul(result, power, type_)
        rest >>= 1
        if rest:
            power = e.mul(power, power, type_)
    return result if n > 0 else e.div(1.0, result, type_)


def _is_finite(e: Emitter, x: Any, type_: str, _: Any) -> Any:
    return e.compare("fcmp olt", e.intrinsic("fabs", type_, x), np.inf, type_)


def _convert(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    source, target = (v.aval.dtype for v in (eqn.invars[0], eqn.outvars[0]))
    return convert_element(e, x, source, target)


def _bitcast(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    source, target = (v.aval.dtype for v in (eqn.invars[0], eqn.outvars[0]))
    if np.dtype(source).itemsize != np.dtype(target).itemsize:
        raise Unsupported("bitcast_convert_type between sizes")
    if type_ == type_of(target):
        return x
    return e.convert("bitcast", x, type_, type_of(target))


def _pow(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
    y = convert_element(e, y, eqn.invars[1].aval.dtype, eqn.invars[0].aval.dtype)
    return e.elementary("pow", type_, x, y)


def _reduce_precision(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    digits = eqn.params["exponent_bits"], eqn.params["mantissa_bits"]
    if digits != {"double": (11, 52), "float": (8, 23)}[type_]:
        raise Unsupported("reduce_precision to less than the type has")
    return Value(x.name, x.type, x.varying)  # rounded here: no sum fuses with it


_same = lambda e, x, type_, _: x  # noqa: E731

ELEMENTS: dict[str, Element] = {
    **{name: _arithmetic(name) for name in ("add", "sub", "mul")},
    "add_any": _arithmetic("add"),
    "div": _divide,
    "rem": _remainder,
    "and": bits("and"),
    "or": bits("or"),
    "xor": bits("xor"),
    "not": not_,
    "shift_left": shift("shl"),
    "shift_right_logical": shift("lshr"),
    "shift_right_arithmetic": shift("ashr"),
    **{name: _comparison(name) for name in _COMPARISONS},
    "max": _extreme("max"),
    "min": _extreme("min"),
    "clamp": _clamp,
    "select_n": _select,
    "neg": lambda e, x, type_, _: e.neg(x, type_),
    "abs": _abs,
    "sign": _sign,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "round": _round,
    "sqrt": _intrinsic("sqrt"),
    "rsqrt": _rsqrt,
    "square": _square,
    "integer_pow": _integer_pow,
    "pow": _pow,
    "is_finite": _is_finite,
    "convert_element_type": _convert,
    "bitcast_convert_type": _bitcast,
    "stop_gradient": _same,
    "copy": _same,
    "copy_p": _same,
    "reduce_precision": _reduce_precision,
    **{
        name: _elementary(name)
        for name in (
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
            *("asinh", "acosh", "atanh", "exp", "exp2", "expm1", "log", "log1p", "cbrt"),
            *("logistic", "erf", "erfc", "erf_inv"),
        )
    },
}

_FOLDING = ("add", "add_any", "sub", "mul", "neg", "select_n", "stop_gradient", "copy")
"""Those whose rules see by themselves that all is constant."""


def lower_elementwise(e: Emitter, eqn: Any, *operands: np.ndarray) -> np.ndarray:
    """One element after another; axes of length 1 are repeated."""
    name, out = eqn.primitive.name, eqn.outvars[0].aval
    if all(x.dtype != object for x in operands):
        return folded(name, eqn, operands).astype(out.dtype)
    type_ = type_of(eqn.invars[0].aval.dtype)
    element = ELEMENTS[name]
    dtypes = [v.aval.dtype for v in eqn.invars]

    def rule(*x: Any) -> Any:
        if name not in _FOLDING and not any(isinstance(part, Value) for part in x):
            numbers = tuple(as_numbers(cell(part), d) for part, d in zip(x, dtypes, strict=True))
            return folded(name, eqn, numbers).astype(out.dtype).item()
        return element(e, *x, type_, eqn)

    if out.shape == ():
        return cell(rule(*(x.reshape(()).item() for x in operands)))
    flat = [
        x.ravel().tolist() if x.size == out.size else np.broadcast_to(x, out.shape).ravel().tolist()
        for x in operands
    ]
    result = np.empty(int(out.size), object)
    result[:] = [rule(*x) for x in zip(*flat, strict=True)]
    return settled(result.reshape(out.shape), out.dtype)
