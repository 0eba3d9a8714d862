"""Arithmetic between parameters: `motor.gear.ratio * motor.kt_n_m_per_a <= 0.5`, on columns.

An expression is read by Python's parser and walked here: what is not in the tables below is
refused, so that a study's file is data and executes nothing.
"""

import ast
from collections.abc import Callable, Mapping
from typing import Any

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


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_LETTERS:
        raise InputError(f"an expression of {len(text):,} letters; at most {_MOST_LETTERS:,}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{text!r} is no expression: {error}") from error


def _value(node: ast.AST, columns: Mapping[str, np.ndarray], text: str) -> Any:
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
            sides = (_value(node.left, columns, text), _value(node.right, columns, text))
            return _BINARY[type(op)](*map(_number, sides, (text, text)))
        case ast.UnaryOp(op=ast.USub()):
            return -_number(_value(node.operand, columns, text), text)
        case ast.UnaryOp(op=ast.Not()):
            return np.logical_not(_value(node.operand, columns, text))
        case ast.BoolOp(op=op):
            parts = [_value(part, columns, text) for part in node.values]
            joined = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return joined.reduce(np.broadcast_arrays(*parts))
        case ast.Compare():
            return _compared(node, columns, text)
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _FUNCTIONS:
            given = [_number(_value(part, columns, text), text) for part in node.args]
            function: Any = _FUNCTIONS[name]
            if len(given) == function.nin:
                return function(*given)
    raise InputError(
        f"{ast.unparse(node)!r} in {text!r} is not understood; an expression has numbers, "
        f"parameters that vary, + - * / **, comparisons, and, or, not, {', '.join(_FUNCTIONS)}"
    )


def _compared(node: ast.Compare, columns: Mapping[str, np.ndarray], text: str) -> Any:
    sides = [_value(part, columns, text) for part in (node.left, *node.comparators)]
    result: Any = True
    for op, left, right in zip(node.ops, sides, sides[1:]):
        if type(op) not in _COMPARED:
            raise InputError(f"{ast.unparse(node)!r} compares in a way that is not understood")
        result = np.logical_and(result, _COMPARED[type(op)](left, right))
    return result


def _number(value: Any, text: str) -> Any:
    if np.asarray(value).dtype.kind not in "fiub":
        raise InputError(f"{text!r} computes with a word; words can only be compared (== or !=)")
    return value
