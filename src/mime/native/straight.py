"""Functions of a robot that are called one by one: with NumPy arrays, straight to the machine code.

    @kernel_function("link_idx")
    def frame_jacobian(tree, q, link_idx): ...

NumPy arrays outside of a transformation give NumPy arrays, in microseconds: control loops in Python
use them so; the first array says in which precision. JAX arrays, and whatever `jit`, `vmap` or a
derivative traces, give JAX arrays; there the function is one kernel of the program. Inside another
kernel it is simply part of it.
"""

import inspect
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from mime.native.compiled import Traced, tracing_a_kernel
from mime.native.ffi import SPLIT_NS, Entry, StraightCall, call_direct
from mime.native.folding import jit_folding
from mime.native.lowering import Unsupported
from mime.native.machine import why_off

F = TypeVar("F", bound=Callable[..., Any])

MOST_KINDS = 256
"""Kinds of arguments that one function keeps machine code for."""


def kernel_function(*static: str) -> Callable[[F], F]:
    """Make a function of (value, *arrays) a kernel; arguments named `static` are no arrays."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        names = tuple(signature.parameters)
        folding = jit_folding(function, static_argnames=static)
        straight = _Straight(function, names, static)

        @wraps(function)
        def call(value: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs:
                bound = signature.bind(value, *args, **kwargs)
                args = tuple(bound.arguments.get(n, _default(signature, n)) for n in names[1:])
            if not tracing_a_kernel():
                try:
                    return straight(value, args)
                except _NotNumPy:
                    pass
                of_jax = [x for x in jax.tree.leaves((value, args)) if isinstance(x, jax.Array)]
                if of_jax and not why_off():
                    dtype = jnp.result_type(jnp.float32, *of_jax)
                    given = {
                        name: np.asarray(x, dtype) if isinstance(x, np.ndarray) else x
                        for name, x in zip(names[1:], args, strict=False)
                    }
                    fixed = {name: given.pop(name) for name in static if name in given}
                    return folding(value, **given, **fixed)
            return function(value, *args)

        return call  # type: ignore[return-value]

    return decorate


def _default(signature: inspect.Signature, name: str) -> Any:
    return signature.parameters[name].default


def _is_plain(x: np.ndarray) -> bool:
    """Whether machine code can read an array where it lies."""
    return bool(x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative)


class _NotNumPy(Exception):  # noqa: N818
    """There is an array of JAX, or something that is no array at all."""


class _Call(NamedTuple):
    """The machine code for one kind of arguments."""

    entry: Entry
    shape: tuple[int, ...]
    dtype: np.dtype
    others: tuple[int, ...]
    """Arguments that come in the other precision."""
    straight: StraightCall
    fill: Callable[[tuple[Any, ...], np.ndarray], bool]
    """Its function, for arguments that go to it as they come."""


class _Straight:
    """The machine code of one function, for each value (a tree) and kind of arguments.

    Arguments of the kind of the last call go to the machine code as they come, which looks at them
    itself. Of others, a key is made.
    """

    def __init__(
        self, function: Callable[..., Any], names: tuple[str, ...], static: tuple[str, ...]
    ):
        self.function = function
        self.is_static = tuple(name in static for name in names[1:])
        self.static = [k for k, is_static in enumerate(self.is_static) if is_static]
        self.known: dict[Any, _Call] = {}
        self.latest: dict[Any, _Call] = {}

    def __call__(self, value: Any, args: tuple[Any, ...]) -> Any:
        call = self.latest.get(self._name(value, args))
        if call is not None:
            result = np.empty(call.shape, call.dtype)
            if call.fill(args, result):
                return result
        return self._of_any_kind(value, args)

    def _name(self, value: Any, args: tuple[Any, ...]) -> Any:
        """All that tells calls apart but the arrays."""
        if not self.static:
            return (id(value),)
        return (id(value), *[args[k] for k in self.static if k < len(args)])

    def _of_any_kind(self, value: Any, args: tuple[Any, ...]) -> Any:
        arrays: list[np.ndarray] = []
        key: list[Any] = [id(value)]
        for x, is_static in zip(args, self.is_static, strict=False):
            if is_static or x is None:
                key.append(x)
                continue
            if type(x) is not np.ndarray or not _is_plain(x):
                x = self._array(x)
            key += x.shape, x.dtype.char
            arrays.append(x)
        call = self.known.get(tuple(key))
        if call is None:
            call = self._prepare(tuple(key), value, args, arrays)
        for k in call.others:
            arrays[k] = arrays[k].astype(call.dtype)
        result = np.empty(call.shape, call.dtype)
        call_direct(call.entry, arrays, [result], 1)
        if call.entry.cost_ns < SPLIT_NS:  # else others should have Python's lock meanwhile
            self.latest[self._name(value, args)] = call
        return result

    def _array(self, x: Any) -> np.ndarray:
        if isinstance(x, jax.Array) or not isinstance(x, np.ndarray | list | tuple | float | int):
            raise _NotNumPy
        try:
            dtype = x.dtype.newbyteorder("=") if isinstance(x, np.ndarray) else float
            return np.array(x, dtype, order="C")
        except (TypeError, ValueError):
            raise _NotNumPy from None

    def _prepare(
        self, key: Any, value: Any, args: tuple[Any, ...], arrays: list[np.ndarray]
    ) -> "_Call":
        if why_off() or any(isinstance(x, jax.Array) for x in jax.tree.leaves((value, args))):
            raise _NotNumPy
        places = [
            k for k, (x, s) in enumerate(zip(args, self.is_static, strict=False))
            if not s and x is not None
        ]  # fmt: skip
        if not arrays or any(x.dtype.char not in "fd" for x in arrays):
            raise _NotNumPy

        def of_arrays(*given: Any) -> Any:
            whole = list(args)
            for k, x in zip(places, given, strict=True):
                whole[k] = x
            return self.function(value, *whole)

        dtype = arrays[0].dtype
        with jax.enable_x64(dtype == np.float64):  # NumPy's precision, whatever JAX's is
            types = tuple(jax.ShapeDtypeStruct(x.shape, dtype) for x in arrays)
            traced = Traced(of_arrays, types)
        if traced.why_not or len(traced.kernel.out_avals) != 1:
            raise _NotNumPy
        try:
            entry = traced.kernel.entry((True,) * len(places), members=None)
        except Unsupported:
            raise _NotNumPy from None
        out = traced.kernel.out_avals[0]
        if out.dtype != dtype:
            raise _NotNumPy
        for kept in (self.known, self.latest):
            if len(kept) >= MOST_KINDS:
                kept.pop(next(iter(kept)))
        others = tuple(k for k, x in enumerate(arrays) if x.dtype != dtype)
        shapes = iter(x.shape for x in arrays)
        kinds = [
            ... if s else None if x is None else next(shapes)
            for x, s in zip(args, self.is_static, strict=False)
        ]
        straight = StraightCall(entry, dtype, kinds)
        found = self.known[key] = _Call(entry, out.shape, dtype, others, straight, straight.fill)
        weakref.finalize(value, self._forget, key[0]).atexit = False  # its id may be another's then
        return found

    def _forget(self, identity: int) -> None:
        for kept in (self.known, self.latest):
            for key in [key for key in kept if key[0] == identity]:
                del kept[key]
