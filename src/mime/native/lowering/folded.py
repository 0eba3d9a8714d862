"""Element by element on numbers: what is known while compiling is computed there, by NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mime.native.lowering.conversions import converted

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


def folded(name: str, eqn: Any, operands: tuple[np.ndarray, ...]) -> np.ndarray:
    """The result of a primitive whose operands are all numbers."""
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
