"""The reverse of one operation: JAX is asked once for each kind of it."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr
from jax.extend.core.primitives import copy_p
from jax.interpreters import partial_eval

from mime.native.jaxprs import flattened, inner_jaxprs

MOST_KINDS = 4096
"""Kinds of operations whose reverse is remembered."""


def floats(x: Any) -> bool:
    """True for what has derivatives."""
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def bind_equation(eqn: Any, args: Sequence[Any]) -> list[Any]:
    """The results of an equation's operation for other arguments."""
    found = eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
    return list(found) if eqn.primitive.multiple_results else [found]


def typed(variables: Sequence[Any]) -> list[Any]:
    """Shapes and types of variables, for JAX to trace with."""
    return [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in variables]


_kinds: dict[Any, tuple[ClosedJaxpr, list[bool]]] = {}


def reverse_of(
    eqn: Any, flags: tuple[bool, ...], seen: tuple[bool, ...]
) -> tuple[ClosedJaxpr, list[bool]]:
    """(*arguments, *bars that are there) -> bars of what moves; and which arguments that needs."""
    simple = next(inner_jaxprs(eqn), None) is None
    key: Any = None
    if simple:
        types = tuple((v.aval.shape, v.aval.dtype) for v in (*eqn.invars, *eqn.outvars))
        try:
            key = (eqn.primitive, tuple(sorted(eqn.params.items())), types, flags, seen)
            if (found := _kinds.get(key)) is not None:
                return found
        except TypeError:  # a parameter without a hash
            key = None
    made = _made_by_jax(eqn, flags, seen)
    if key is not None:
        if len(_kinds) >= MOST_KINDS:
            _kinds.pop(next(iter(_kinds)))
        _kinds[key] = made
    return made


def _made_by_jax(
    eqn: Any, flags: tuple[bool, ...], seen: tuple[bool, ...]
) -> tuple[ClosedJaxpr, list[bool]]:
    count = len(eqn.invars)
    floating = [floats(v.aval) for v in eqn.outvars]

    def back(*given: Any) -> list[Any]:
        arguments, bars = given[:count], iter(given[count:])

        def of_moving(*free: Any) -> list[Any]:
            rest = iter(free)
            whole = [next(rest) if f else x for x, f in zip(arguments, flags, strict=True)]
            return [x for x, f in zip(bind_equation(eqn, whole), floating, strict=True) if f]

        free = [x for x, f in zip(arguments, flags, strict=True) if f]
        cotangents = [
            next(bars) if is_seen else jnp.zeros(v.aval.shape, v.aval.dtype)
            for v, f, is_seen in zip(eqn.outvars, floating, seen, strict=True)
            if f
        ]
        return list(jax.vjp(of_moving, *free)[1](cotangents))

    given = [*eqn.invars, *(v for v, is_seen in zip(eqn.outvars, seen, strict=True) if is_seen)]
    closed = flattened(jax.make_jaxpr(back)(*typed(given)))
    jaxpr, used = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return ClosedJaxpr(jaxpr, closed.consts), list(used)


def sum_of(shape: tuple[int, ...], dtype: Any) -> ClosedJaxpr:
    """x + y"""
    key = ("sum", shape, dtype)
    if key not in _small:
        x = jax.ShapeDtypeStruct(shape, dtype)
        _small[key] = jax.make_jaxpr(jax.lax.add)(x, x)
    return _small[key]


def copy_of(shape: tuple[int, ...], dtype: Any) -> ClosedJaxpr:
    """x as a variable of its own."""
    key = ("copy", shape, dtype)
    if key not in _small:
        x = jax.ShapeDtypeStruct(shape, dtype)
        _small[key] = jax.make_jaxpr(copy_p.bind)(x)
    return _small[key]


_small: dict[Any, ClosedJaxpr] = {}
