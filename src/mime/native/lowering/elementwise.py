"""Primitives that work element by element: on numbers by NumPy, on values by instructions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mime.native.lowering.conversions import as_numbers, cell, convert_element, converted, settled
from mime.native.lowering.emitter import Emitter
from mime.native.lowering.values import FLOATS, Unsupported, Value, type_of

Element = Callable[..., Any]
"""`(emitter, *elements, type_of_the_operands, eqn)`: the element of the result."""


def _unsigned(eqn: Any) -> bool:
    return np.issubdtype(eqn.invars[0].aval.dtype, np.unsignedinteger)


def _arithmetic(name: str) -> Element:
    return lambda e, x, y, type_, _: getattr(e, name)(x, y, type_)


def _divide(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
    """x / y; of integers towards zero, -1 (all bits set) when y is 0, as XLA has it."""
    if type_ in FLOATS:
        return e.div(x, y, type_)
    return _whole_division(e, x, y, type_, "udiv" if _unsigned(eqn) else "sdiv", -1)


def _remainder(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
    """The remainder of a division towards zero; x when an integer y is 0."""
    if type_ in FLOATS:
        return e.elementary("rem", type_, x, y)
    return _whole_division(e, x, y, type_, "urem" if _unsigned(eqn) else "srem", None)


def _whole_division(e: Emitter, x: Any, y: Any, type_: str, code: str, by_zero: Any) -> Any:
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


def _bits(code: str) -> Element:
    def rule(e: Emitter, x: Any, y: Any, type_: str, _: Any) -> Any:
        if type_ == "i1":
            for a, b in ((x, y), (y, x)):
                if not isinstance(a, Value) and code in ("and", "or"):
                    return (b if a else False) if code == "and" else (True if a else b)
        return e.op(code, type_, x, y)

    return rule


def _not(e: Emitter, x: Any, type_: str, _: Any) -> Any:
    return e.op("xor", type_, x, True if type_ == "i1" else -1)


def _shift(code: str) -> Element:
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
        floating, signed, unsigned = _COMPARISONS[name]
        if type_ in FLOATS:
            return e.compare(f"fcmp {floating}", x, y, type_)
        plain = unsigned if _unsigned(eqn) or type_ == "i1" else signed
        return e.compare(f"icmp {plain}", x, y, type_)

    return rule


def _extreme(name: str) -> Element:
    """The larger or the smaller; NaN when one is NaN, and max(-0, 0) = 0."""

    def rule(e: Emitter, x: Any, y: Any, type_: str, eqn: Any) -> Any:
        if type_ in FLOATS:
            return extreme_of_floats(e, name, x, y, type_)
        if type_ == "i1":
            return _bits("or" if name == "max" else "and")(e, x, y, type_, eqn)
        signs = "u" if _unsigned(eqn) else "s"
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
    if _unsigned(eqn):
        return x
    negative = e.compare("icmp slt", x, 0, type_)
    return e.select(negative, e.op("sub", type_, 0, x), x, type_)


def _sign(e: Emitter, x: Any, type_: str, eqn: Any) -> Any:
    """-1, 0 or 1; a zero keeps its sign and NaN stays."""
    if type_ not in FLOATS:
        if _unsigned(eqn):
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
    "and": _bits("and"),
    "or": _bits("or"),
    "xor": _bits("xor"),
    "not": _not,
    "shift_left": _shift("shl"),
    "shift_right_logical": _shift("lshr"),
    "shift_right_arithmetic": _shift("ashr"),
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

CONSTANTS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
    "square": np.square,
    "sign": lambda x: np.where(x == 0, x, np.sign(x)),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "atan2": np.arctan2,
    "cbrt": np.cbrt,
    "is_finite": np.isfinite,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "stop_gradient": np.asarray,
    "copy": np.asarray,
    "copy_p": np.asarray,
}
"""What NumPy computes when all operands are numbers."""


def lower_elementwise(e: Emitter, eqn: Any, *operands: np.ndarray) -> np.ndarray:
    """One element after another; axes of length 1 are repeated."""
    name, out = eqn.primitive.name, eqn.outvars[0].aval
    if all(x.dtype != object for x in operands):
        return _folded(name, eqn, operands).astype(out.dtype)
    type_ = type_of(eqn.invars[0].aval.dtype)
    element = ELEMENTS[name]
    dtypes = [v.aval.dtype for v in eqn.invars]

    def rule(*x: Any) -> Any:
        if name not in _FOLDING and not any(isinstance(part, Value) for part in x):
            numbers = tuple(as_numbers(cell(part), d) for part, d in zip(x, dtypes, strict=True))
            return _folded(name, eqn, numbers).astype(out.dtype).item()
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


def _folded(name: str, eqn: Any, operands: tuple[np.ndarray, ...]) -> np.ndarray:
    with np.errstate(all="ignore"):
        if name in CONSTANTS:
            return np.asarray(CONSTANTS[name](*operands))
        if name == "convert_element_type":
            return converted(operands[0], eqn.outvars[0].aval.dtype)
        if name == "div" and np.issubdtype(operands[0].dtype, np.floating):
            return np.asarray(np.divide(*operands))
        if name == "integer_pow" and np.issubdtype(operands[0].dtype, np.floating):
            return np.asarray(operands[0] ** float(eqn.params["y"]))
        if name == "select_n" and operands[0].dtype == bool:
            return np.where(operands[0], operands[-1], operands[1])
        import jax

        # Rare: whatever JAX itself makes of numbers, in the precision that they have.
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            return np.asarray(eqn.primitive.bind(*operands, **eqn.params))
