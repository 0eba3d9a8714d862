"""What a function computes, as a digest: the same in every process, whoever wrote the function.

A function is traced and its jaxpr written out: primitives, their settings, variables by number,
constants by their bytes. Where it comes from (source, closure, default arguments, globals, an
object's attributes) leaves no other mark, and neither do names and addresses.
"""

import enum
import functools
import hashlib
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

_SILENT = {"debug_callback", "debug_print"}
"""Primitives that tell and compute nothing."""
_LABELS = {"name", "debug_info"}
"""Settings of a primitive that change nothing that it computes."""

_PLAIN = {type(None), bool, int, float, complex, str, bytes}
"""Types of most settings. Not their subclasses: an enumeration's number is its name, NumPy's has
bytes.
"""


class UnknownFunctionError(Exception):
    """A computation calls Python code of the user, and what that does is not seen by tracing."""


def computes(function: Callable[..., Any], *like: Any) -> str:
    """A digest of what `function` computes of arguments of these shapes and types.

    Raises `UnknownFunctionError` for one that calls Python at run time (`jax.pure_callback`).
    """
    # A function of its own, since JAX keeps traces by function and would not see a changed global.
    return digest(_closed(jax.make_jaxpr(lambda *args: function(*args))(*like)))


def digest(*parts: str | bytes) -> str:
    """SHA-256 of the parts, each with its length."""
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode()
        sha.update(len(data).to_bytes(8, "little") + data)
    return sha.hexdigest()


def array_digest(value: Any) -> str:
    """Type, shape and bytes of an array."""
    if isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        return digest(str(value.dtype), array_digest(jax.random.key_data(value)))
    array = np.asarray(value)
    return digest(_words(array.dtype), repr(array.shape), array.tobytes())


def _closed(closed: ClosedJaxpr) -> str:
    return f"{_jaxpr(closed.jaxpr)} of {[_value(constant) for constant in closed.consts]}"


def _jaxpr(jaxpr: Jaxpr) -> str:
    """Inputs, equations and outputs, with variables numbered as they appear."""
    numbers: dict[Var, int] = {}

    def atom(variable: Any) -> str:
        if isinstance(variable, Literal):
            return f"{_type(variable.aval)} {_value(np.asarray(variable.val))}"
        return f"v{numbers.setdefault(variable, len(numbers))}"

    lines = [f"{atom(v)} {_type(v.aval)}" for v in (*jaxpr.constvars, *jaxpr.invars)]
    for equation in jaxpr.eqns:
        primitive = equation.primitive.name
        if primitive in _SILENT:
            continue
        if "callback" in primitive:
            raise UnknownFunctionError(primitive)
        given = [atom(v) for v in equation.invars]
        made = [atom(v) for v in equation.outvars]
        lines.append(f"{made} = {primitive}{_settings(equation.params)}{given}")
    return "\n".join([*lines, repr([atom(v) for v in jaxpr.outvars])])


def _type(aval: Any) -> str:
    shape, weak = getattr(aval, "shape", ""), getattr(aval, "weak_type", False)
    kind = _words(aval.dtype) if hasattr(aval, "dtype") else str(aval)
    return f"{kind}{shape}{'*' if weak else ''}"


_words = functools.cache(str)
"""Of a type of numbers: there are few, and NumPy takes long to name one."""


def _settings(params: Mapping[str, Any]) -> list[str]:
    """The parameters of a primitive.

    One that holds a jaxpr computes that; functions beside it are its derivative or its batching.
    """
    found: list[str] = []
    unknown: list[UnknownFunctionError] = []
    for name in sorted(params.keys() - _LABELS):
        try:
            found.append(f"{name}={_value(params[name])}")
        except UnknownFunctionError as error:
            unknown.append(error)
    holds_jaxpr = any(isinstance(value, ClosedJaxpr | Jaxpr) for value in params.values())
    if unknown and not holds_jaxpr:
        raise unknown[0]
    return found


def _value(value: Any) -> str:
    """Any setting or constant as text without an address."""
    if type(value) in _PLAIN:
        return repr(value)
    match value:
        case ClosedJaxpr():
            return digest(_closed(value))
        case Jaxpr():
            return digest(_jaxpr(value))
        case np.ndarray() | np.generic() | jax.Array():
            return array_digest(value)
        case enum.Enum():
            return str(value)
        case int() | float() | complex() | str() | bytes():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(_value, value)))}}}"
        case dict():
            return f"{{{', '.join(sorted(f'{_value(k)}: {_value(v)}' for k, v in value.items()))}}}"
        case functools.partial():
            return _value((value.func, value.args, value.keywords))
        case type() | types.FunctionType() | types.BuiltinFunctionType():
            return _named(value)
    text = repr(value)
    if re.search(r"\bat 0x[0-9a-f]+", text):
        raise UnknownFunctionError(f"{type(value).__module__}.{type(value).__qualname__}")
    return text


def _named(value: Any) -> str:
    """A class, or a function of JAX itself; what any other function does nobody can tell."""
    name = f"{value.__module__}.{value.__qualname__}"
    if not isinstance(value, type) and name.partition(".")[0] not in ("jax", "jaxlib"):
        raise UnknownFunctionError(name)
    return name
