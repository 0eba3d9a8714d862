"""Functions that run as machine code where that is possible: called directly, or inside of JAX."""

import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from mime.native.kernel import Kernel
from mime.native.lowering import Unsupported
from mime.native.machine import why_off
from mime.native.primitive import bind


class _Depth(threading.local):
    depth = 0


_now = _Depth()


def tracing_a_kernel() -> bool:
    """True while a function is traced that will be one kernel."""
    return _now.depth > 0


def double_precision() -> bool:
    """Whether JAX's own numbers have 64 bits here."""
    return bool(jax.config.read("jax_enable_x64"))


def without_jit() -> bool:
    """True under `jax.disable_jit`."""
    config: Any = jax.config
    return bool(config.jax_disable_jit)


class Traced:
    """A function for arguments of one kind: its kernel, and how its results are arranged."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]):
        _now.depth += 1
        try:
            self.closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        finally:
            _now.depth -= 1
        self.out_tree = jax.tree.structure(shape)
        self.outer = [x for x in self.closed.consts if isinstance(x, jax.core.Tracer)]
        self.kernel = Kernel(self._pure())
        self.why_not = self.kernel.why_not()

    def _pure(self) -> ClosedJaxpr:
        """The jaxpr with what it takes from an outer trace as arguments in front."""
        jaxpr, consts = self.closed.jaxpr, self.closed.consts
        is_outer = [isinstance(x, jax.core.Tracer) for x in consts]
        if not any(is_outer):
            return ClosedJaxpr(jaxpr, [_number(x) for x in consts])
        moved = [v for v, outer in zip(jaxpr.constvars, is_outer, strict=True) if outer]
        kept = [v for v, outer in zip(jaxpr.constvars, is_outer, strict=True) if not outer]
        known = jaxpr.debug_info
        named = known._replace(arg_names=("",) * len(moved) + tuple(known.arg_names or ()))
        pure = jaxpr.replace(constvars=kept, invars=[*moved, *jaxpr.invars], debug_info=named)
        return ClosedJaxpr(
            pure, [_number(x) for x, o in zip(consts, is_outer, strict=True) if not o]
        )

    def inside_jax(self, leaves: list[Any]) -> Any:
        """The results for traced arguments."""
        if self.why_not is None:
            results = bind(self.kernel, [*self.outer, *leaves])
        else:
            results = jaxpr_as_fun(self.closed)(*leaves)
        return jax.tree.unflatten(self.out_tree, results)

    def arranged(self, leaves: list[Any]) -> list[np.ndarray]:
        """Arguments of its kind as the machine code wants them."""
        kinds = self.kernel.in_avals
        return [np.ascontiguousarray(x, a.dtype) for x, a in zip(leaves, kinds, strict=True)]

    def now(self, leaves: list[np.ndarray], *call: Any) -> Any:
        """The results for NumPy arrays of the right types, as NumPy arrays: see `Kernel.call`."""
        return jax.tree.unflatten(self.out_tree, self.kernel.call(leaves, *call))

    @property
    def shapes(self) -> Any:
        """Shapes and types of the results."""
        return jax.tree.unflatten(self.out_tree, list(self.kernel.out_avals))


def _number(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, jax.Array) and _is_plain(x) else x


def _is_plain(x: Any) -> bool:
    return not jnp.issubdtype(x.dtype, jax.dtypes.extended)


def inside_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as one kernel of the program that is being traced."""

    def call(*args: Any) -> Any:
        leaves, treedef = jax.tree.flatten(args)
        if why_off() or without_jit():
            return function(*jax.tree.map(jnp.asarray, args))
        traced = Traced(lambda *x: function(*jax.tree.unflatten(treedef, x)), tuple(leaves))
        return traced.inside_jax([jnp.asarray(x) for x in leaves])

    return call


OFTEN = 32
"""Calls after which JAX is given the kernel to call. That costs a compilation of XLA's, some 50 ms;
afterwards a call takes JAX arrays and gives them in a tenth of the time, with the same bits."""


class Compiled:
    """`jax.jit(function)` that calls machine code directly when no argument is traced."""

    def __init__(
        self, function: Callable[..., Any], static: tuple[str, ...], options: dict[str, Any]
    ):
        self.function, self.static = function, static
        self.known: dict[Any, Traced] = {}
        self.calls = 0

        def in_xla(*args: Any, **kwargs: Any) -> Any:
            fixed, rest = self._sorted(kwargs)
            return inside_jax(lambda a, r: function(*a, **r, **fixed))(args, rest)

        def one_by_one(head: Any, varied: Any, *common: Any, **fixed: Any) -> Any:
            return jax.lax.map(lambda its: function(head, its, *common, **fixed), varied)

        self.jitted: Any = jax.jit(in_xla, static_argnames=static, **options)
        self.mapped: Any = jax.jit(one_by_one, static_argnames=static, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        found = self.ready(*args, **kwargs) if self.calls <= OFTEN else None
        if found is None:
            return self.jitted(*args, **kwargs)
        traced, leaves = found
        return jax.device_put(traced.now(leaves))

    def now(self, *args: Any, **kwargs: Any) -> Any:
        """The same, but NumPy arrays where machine code makes them: to bring them to JAX takes
        longer than many a function.
        """
        found = self.ready(*args, **kwargs)
        if found is None:
            return self.jitted(*args, **kwargs)
        traced, leaves = found
        return traced.now(leaves)

    def ready(self, *args: Any, **kwargs: Any) -> tuple[Traced, list[np.ndarray]] | None:
        """What `find` finds, and its machine code is there."""
        found = self.find(args, kwargs)
        if found is None:
            return None
        traced, leaves = found
        try:
            traced.kernel.entry((True,) * len(leaves), members=None)
        except Unsupported as error:
            traced.why_not = str(error)
            return None
        return found

    def find(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], varied: int | None = None
    ) -> tuple[Traced, list[np.ndarray]] | None:
        """The machine code for these arguments, and the arguments as it wants them; None where JAX
        itself must do the work. The leaves of argument `varied` have a leading axis of members.
        """
        fixed, rest = self._sorted(kwargs)
        leaves, treedef = jax.tree.flatten((args, rest))
        traced_by_jax = any(isinstance(x, jax.core.Tracer) for x in leaves)
        if traced_by_jax or without_jit() or why_off():
            return None
        kinds = [_kind(x) for x in leaves]
        if varied is not None:
            flags = self.flags(args, rest, varied)
            kinds = [(k[0][1:], *k[1:]) if f else k for k, f in zip(kinds, flags, strict=True)]
        key = (treedef, tuple(fixed.values()), double_precision(), tuple(kinds))
        traced = self.known.get(key)
        if traced is None:
            if not all(_is_plain(x) for x in leaves if hasattr(x, "dtype")):
                return None

            def flat(*x: Any) -> Any:
                a, r = jax.tree.unflatten(treedef, x)
                return self.function(*a, **r, **fixed)

            traced = self.known[key] = Traced(flat, tuple(map(_example, leaves, kinds)))
        if traced.why_not is not None:
            return None
        return traced, traced.arranged(leaves)

    @staticmethod
    def flags(args: tuple[Any, ...], rest: dict[str, Any], varied: int) -> list[bool]:
        """Which leaves belong to the argument that varies."""
        parts = [(k == varied, part) for k, part in enumerate(args)]
        counted = [(is_varied, len(jax.tree.leaves(part))) for is_varied, part in parts]
        counted.append((False, len(jax.tree.leaves(rest))))
        return [is_varied for is_varied, count in counted for _ in range(count)]

    def _sorted(self, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        fixed = {name: kwargs[name] for name in self.static if name in kwargs}
        return fixed, {name: value for name, value in kwargs.items() if name not in fixed}

    def cache_size(self) -> int:
        """How many programs it holds."""
        return len(self.known) + self.jitted._cache_size() + self.mapped._cache_size()

    def clear_cache(self) -> None:
        """Release them."""
        self.known.clear()
        self.jitted.clear_cache()
        self.mapped.clear_cache()


def _example(x: Any, kind: Any) -> Any:
    if not hasattr(x, "dtype"):
        return x
    return jax.ShapeDtypeStruct(kind[0], kind[1], weak_type=kind[2])


def _kind(x: Any) -> Any:
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return (), type(x).__name__, False
    if isinstance(x, np.ndarray | np.generic):
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return tuple(x.shape), dtype, bool(getattr(x, "weak_type", False))
