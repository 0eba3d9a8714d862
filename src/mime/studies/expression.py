"""Arithmetic between parameters: `motor.gear.ratio * motor.kt_n_m_per_a <= 0.5`, on columns.

An expression is read by Python's parser and walked here: what is not in the tables below is
refused, so that a study's file is data and executes nothing.
"""

import ast
import functools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from mime._text import nearest, quoted
from mime.core.problem import InputError

_BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_COMPARED: dict[type, Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "min": np.minimum,
    "max": np.maximum,
}
_MOST_LETTERS = 2000


def names_in(text: str) -> set[str]:
    """The parameters that an expression speaks of."""
    found: set[str] = set()
    left: list[ast.AST] = [_parsed(text)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Attribute | ast.Subscript):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Call):
            left += node.args
        elif isinstance(node, ast.Name):
            found.add(node.id)
        else:
            left += ast.iter_child_nodes(node)
    return found


def evaluate(text: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """What an expression gives for each member."""
    size = len(next(iter(columns.values()))) if columns else 0
    with np.errstate(all="ignore"):
        return np.broadcast_to(_value(_parsed(text), columns, text), (size,))


def traced(text: str, values: Mapping[str, Any]) -> Any:
    """What an expression gives for one member whose numbers JAX traces."""
    return _value(_parsed(text), values, text, jnp)


def differences(text: str) -> list[str]:
    """Expressions that are at most 0 where a constraint holds: of `a < b and c >= 1`, a - b and
    1 - c. None for one that is not made of such comparisons, and has no slope therefore.
    """
    found: list[str] = []
    left = [_parsed(text)]
    while left:
        match left.pop(0):
            case ast.BoolOp(op=ast.And()) as node:
                left = [*node.values, *left]
            case ast.Compare() as node:
                sides = [node.left, *node.comparators]
                for op, a, b in zip(node.ops, sides, sides[1:]):
                    if isinstance(op, ast.Gt | ast.GtE):
                        a, b = b, a
                    elif not isinstance(op, ast.Lt | ast.LtE):
                        return []
                    found.append(f"({ast.unparse(a)}) - ({ast.unparse(b)})")
            case _:
                return []
    return found


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_LETTERS:
        raise InputError(f"an expression of {len(text):,} letters; at most {_MOST_LETTERS:,}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise InputError(f"{text!r} is no expression: {reason}") from error


def _value(node: ast.AST, columns: Mapping[str, Any], text: str, library: Any = np) -> Any:
    """Of a part of an expression; `library` is NumPy, or JAX's for what is traced."""

    def of(part: ast.AST) -> Any:
        return _value(part, columns, text, library)

    def called(function: Any, *given: Any) -> Any:
        return getattr(library, function.__name__)(*given)

    match node:
        case ast.Constant(value=bool()) | ast.Constant(value=complex()):
            pass
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Constant(value=str() as words):
            return words
        case ast.Attribute() | ast.Subscript() | ast.Name():
            name = ast.unparse(node)
            if name not in columns:
                near = nearest(name, columns)
                raise InputError(f"{name!r} does not vary{near}; what varies: {quoted(columns)}")
            return columns[name]
        case ast.BinOp(op=op) if type(op) in _BINARY:
            sides = (of(node.left), of(node.right))
            return called(_BINARY[type(op)], *map(_number, sides, (text, text)))
        case ast.UnaryOp(op=ast.USub()):
            return -_number(of(node.operand), text)
        case ast.UnaryOp(op=ast.Not()):
            return called(np.logical_not, of(node.operand))
        case ast.BoolOp(op=op):
            joined = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return functools.reduce(partial(called, joined), map(of, node.values))
        case ast.Compare():
            return _compared(node, of, called)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _FUNCTIONS:
            given = [_number(of(part), text) for part in node.args]
            function: Any = _FUNCTIONS[name]
            if len(given) == function.nin:
                return called(function, *given)
    raise InputError(
        f"{ast.unparse(node)!r} in {text!r} is not understood; an expression has numbers, "
        f"parameters that vary, + - * / **, comparisons, and, or, not, {', '.join(_FUNCTIONS)}"
    )


def _compared(node: ast.Compare, of: Callable[..., Any], called: Callable[..., Any]) -> Any:
    sides = [of(part) for part in (node.left, *node.comparators)]
    result: Any = True
    for op, left, right in zip(node.ops, sides, sides[1:]):
        if type(op) not in _COMPARED:
            raise InputError(f"{ast.unparse(node)!r} compares in a way that is not understood")
        result = called(np.logical_and, result, called(_COMPARED[type(op)], left, right))
    return result


def _number(value: Any, text: str) -> Any:
    dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
    if dtype.kind not in "fiub":
        raise InputError(f"{text!r} computes with a word; words can only be compared (== or !=)")
    return value
