"""Elementary functions of vectors of lanes, as LLVM functions."""

from __future__ import annotations

from llvmlite import ir

from mime.native.elementary import (
    exponential,
    hyperbolic,
    inverse_trigonometric,
    power,
    remainder,
    logarithm,
    trigonometric,
)
from mime.native.elementary.vector import FORMATS, Lanes, Vector, internal

_OF_ONE = {
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "sqrt": Lanes.sqrt,
    "sincos": trigonometric.sincos,
    "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin,
    "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": logarithm.log,
    "log1p": logarithm.log1p,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "cbrt": power.cbrt,
    "logistic": hyperbolic.logistic,
}
_OF_TWO = {"atan2": inverse_trigonometric.atan2, "pow": power.pow, "rem": remainder.rem}
NAMES = tuple(_OF_ONE | _OF_TWO)


def define(module: ir.Module, name: str, lanes: int, bits: int, *, fma: bool = True) -> ir.Function:
    """The function `name` of vectors of `lanes` numbers of `bits`, built once in a module.

    `fma=False` is for processors that cannot multiply and add at once.
    """
    full_name = f"mime.{name}.{lanes}x{bits}" + ("" if fma else ".no_fma")
    if full_name in module.globals:
        return module.globals[full_name]
    if name not in NAMES:
        raise KeyError(f"no elementary function {name}; there are {', '.join(NAMES)}")
    body = (_OF_ONE | _OF_TWO)[name]
    kind = ir.VectorType(FORMATS[bits].float_type, lanes)
    result = ir.LiteralStructType([kind, kind]) if name == "sincos" else kind
    function = internal(
        module, full_name, ir.FunctionType(result, [kind] * (1 + (name in _OF_TWO)))
    )
    builder = ir.IRBuilder(function.entry_basic_block)
    k = Lanes(builder, lanes, bits, fma)
    answer = body(k, *(Vector(k, argument) for argument in function.args))
    if isinstance(answer, Vector):
        builder.ret(answer.value)
    else:
        struct = ir.Constant(result, ir.Undefined)
        for i, part in enumerate(answer):
            struct = builder.insert_value(struct, part.value, i)
        builder.ret(struct)
    return function
