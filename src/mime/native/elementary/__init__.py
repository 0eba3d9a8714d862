"""Elementary functions of vectors of lanes, as LLVM functions.

`define(module, "sin", 4, 64)` is a function of four doubles, made of additions, products,
divisions, roots, comparisons and bit operations alone: no call of a library, no fast-math flag,
no branch but one for huge angles and quotients. What a lane gets depends on nothing but its own
argument, whatever the others hold and however many there are (but for the sign and the payload of
a NaN, of which LLVM says nothing). Signed zeros, infinities, NaN and denormal numbers are treated
as C99 says; where the processor takes denormal numbers for zeros, as in XLA's threads, other
numbers keep their bits (atan2: to one unit beside the least number).

The largest errors seen in a million arguments and more (all exponents, usual sizes, the nearest
numbers to multiples of pi/2, special ones), in units in the last place and rounded up; a result
that is correctly rounded has at most 0.5. `no fma` is for processors that cannot multiply and add
at once. The times are for one number in a loop over vectors, 4 lanes of 64 or 8 of 32 bits, on an
AMD EPYC (Zen 3) at 2.45 GHz. `python tests/elementary_functions.py` measures all this.

    ============  ====  ======  ====  ======  =====  =====
    function        64  no fma    32  no fma     64     32
                  ulps    ulps  ulps    ulps     ns     ns
    ============  ====  ======  ====  ======  =====  =====
    sin           0.85    0.85  0.80    0.80    2.3    1.3
    cos           0.85    0.90  0.85    0.85    2.1    0.9
    sincos        0.85    0.90  0.85    0.85    2.4    1.1
    tan           1.00    1.00  0.95    0.95    3.2    1.6
    asin          0.70    0.70  0.70    0.70    2.1    0.8
    acos          0.70    0.70  0.70    0.70    2.2    0.9
    atan          0.85    0.85  0.90    0.90    2.7    1.2
    atan2         0.90    0.90  0.90    0.90    3.6    1.6
    sinh          0.75    0.75  0.75    0.75    4.0    1.8
    cosh          0.65    0.65  0.65    0.65    4.0    1.8
    tanh          0.75    0.75  0.75    0.75    3.5    1.7
    asinh         0.90    0.90  0.90    0.90    6.9    3.0
    acosh         0.85    0.85  0.85    0.85    6.2    2.8
    atanh         0.85    0.85  0.85    0.85    5.0    2.2
    exp           0.80    0.80  0.80    0.80    2.3    0.8
    exp2          0.80    0.80  0.80    0.80    1.7    0.7
    expm1         0.85    0.85  0.85    0.85    2.6    1.1
    log           0.85    0.85  0.85    0.85    2.2    1.0
    log1p         0.85    0.85  0.85    0.85    3.0    1.4
    logistic      0.80    0.80  0.80    0.80    3.5    1.6
    pow           0.80    0.80  0.80    0.80   15.2    6.7
    sqrt          0.50    0.50  0.50    0.50    0.7    0.3
    cbrt          0.55    0.55  0.55    0.55    2.9    1.2
    erf           0.95    0.95  0.80    0.80    6.9    2.9
    erfc          0.90    0.90  0.80    0.85    7.7    3.1
    erf_inv       1.00    1.00  1.00    1.00   20.3    8.6
    rem           0.00    0.00  0.00    0.00    1.2    0.6
    ============  ====  ======  ====  ======  =====  =====

An argument of sin, cos or tan beyond 131072 makes its vector take a longer way, and so does a
quotient of rem beyond 2^50.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from mime.native.elementary import (
    error,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    trigonometric,
)
from mime.native.elementary.module import FORMATS, internal, once
from mime.native.elementary.vector import Lanes, Vector

_FUNCTIONS: dict[str, tuple[int, Callable]] = {
    "sin": (1, trigonometric.sin),
    "cos": (1, trigonometric.cos),
    "sincos": (1, trigonometric.sincos),
    "tan": (1, trigonometric.tan),
    "asin": (1, inverse_trigonometric.asin),
    "acos": (1, inverse_trigonometric.acos),
    "atan": (1, inverse_trigonometric.atan),
    "atan2": (2, inverse_trigonometric.atan2),
    "sinh": (1, hyperbolic.sinh),
    "cosh": (1, hyperbolic.cosh),
    "tanh": (1, hyperbolic.tanh),
    "asinh": (1, hyperbolic.asinh),
    "acosh": (1, hyperbolic.acosh),
    "atanh": (1, hyperbolic.atanh),
    "exp": (1, exponential.exp),
    "exp2": (1, exponential.exp2),
    "expm1": (1, exponential.expm1),
    "log": (1, logarithm.log),
    "log1p": (1, logarithm.log1p),
    "logistic": (1, hyperbolic.logistic),
    "pow": (2, power.pow),
    "sqrt": (1, Lanes.sqrt),
    "cbrt": (1, power.cbrt),
    "erf": (1, error.erf),
    "erfc": (1, error.erfc),
    "erf_inv": (1, error.erf_inv),
    "rem": (2, remainder.rem),
}
"""How many arguments a function takes, and what builds it."""
NAMES = tuple(_FUNCTIONS)


def define(module: ir.Module, name: str, lanes: int, bits: int, *, fma: bool = True) -> ir.Function:
    """The function `name` of vectors of `lanes` numbers of `bits`, built once in a module.

    `sincos` returns a struct of two vectors, all others return one. `fma=False` is for processors
    that cannot multiply and add at once: there LLVM would call a library for it.
    """
    if name not in _FUNCTIONS:
        raise KeyError(f"no elementary function {name}; there are {', '.join(NAMES)}")
    full_name = f"mime.{name}.{lanes}x{bits}" + ("" if fma else ".no_fma")
    count, body = _FUNCTIONS[name]

    def build() -> ir.Function:
        kind = ir.VectorType(FORMATS[bits].float_type, lanes)
        pair = ir.LiteralStructType([kind, kind])
        signature = ir.FunctionType(pair if name == "sincos" else kind, [kind] * count)
        function = internal(module, full_name, signature)
        builder = ir.IRBuilder(function.entry_basic_block)
        k = Lanes(builder, lanes, bits, fma)
        answer = body(k, *(Vector(k, argument) for argument in function.args))
        if isinstance(answer, Vector):
            builder.ret(answer.value)
        else:
            struct = ir.Constant(pair, ir.Undefined)
            for i, part in enumerate(answer):
                struct = builder.insert_value(struct, part.value, i)
            builder.ret(struct)
        return function

    return once(module, full_name, build)
