"""Functions that run as machine code where that is possible: called directly, or inside of JAX."""

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


class Traced:
    """A function for arguments of one kind: its kernel, and how its results are arranged."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]):
        self.closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
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
        pure = jaxpr.replace(
            constvars=kept, invars=[*moved, *jaxpr.invars], debug_info=None
        )
        return ClosedJaxpr(pure, [_number(x) for x, o in zip(consts, is_outer, strict=True) if not o])

    def inside_jax(self, leaves: list[Any]) -> Any:
        """The results for traced arguments."""
        if self.why_not is None:
            results = bind(self.kernel, [*self.outer, *leaves])
        else:
            results = jaxpr_as_fun(self.closed)(*leaves)
        return jax.tree.unflatten(self.out_tree, results)

    def now(self, leaves: list[np.ndarray]) -> Any:
        """The results for NumPy arrays of the right types, as NumPy arrays."""
        return jax.tree.unflatten(self.out_tree, self.kernel.call(leaves))


def _number(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, jax.Array) and _is_plain(x) else x


def _is_plain(x: Any) -> bool:
    return not jnp.issubdtype(x.dtype, jax.dtypes.extended)


def inside_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as one kernel of the program that is being traced."""

    def call(*args: Any) -> Any:
        leaves, treedef = jax.tree.flatten(args)
        if why_off() or jax.config.jax_disable_jit:
            return function(*args)
        traced = Traced(lambda *x: function(*jax.tree.unflatten(treedef, x)), tuple(leaves))
        return traced.inside_jax([jnp.asarray(x) for x in leaves])

    return call


class Compiled:
    """`jax.jit(function)` that calls machine code directly when no argument is traced."""

    def __init__(self, function: Callable[..., Any], static: tuple[str, ...], options: dict[str, Any]):
        self.function, self.static = function, static
        self.known: dict[Any, Traced] = {}

        def in_xla(*args: Any, **kwargs: Any) -> Any:
            fixed = {name: value for name, value in kwargs.items() if name in static}
            rest = {name: value for name, value in kwargs.items() if name not in static}
            return inside_jax(lambda a, r: function(*a, **r, **fixed))(args, rest)

        self.jitted = jax.jit(in_xla, static_argnames=static, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced, leaves = self._find(args, kwargs)
        if traced is None:
            return self.jitted(*args, **kwargs)
        try:
            results = traced.now(leaves)
        except Unsupported as error:
            traced.why_not = str(error)
            return self.jitted(*args, **kwargs)
        return jax.device_put(results)

    def _find(self, args: Any, kwargs: dict[str, Any]) -> tuple[Traced | None, list[np.ndarray]]:
        """The machine code for these arguments, and the arguments as it wants them."""
        fixed = {name: kwargs[name] for name in self.static if name in kwargs}
        rest = {name: value for name, value in kwargs.items() if name not in fixed}
        leaves, treedef = jax.tree.flatten((args, rest))
        if any(isinstance(x, jax.core.Tracer) for x in leaves) or jax.config.jax_disable_jit:
            return None, []
        double = bool(jax.config.jax_enable_x64)
        key = (treedef, tuple(fixed.values()), double, tuple(map(_kind, leaves)))
        traced = self.known.get(key)
        if traced is None:
            if why_off() or not all(map(_is_plain, map(jnp.asarray, leaves))):
                return None, []

            def flat(*x: Any) -> Any:
                a, r = jax.tree.unflatten(treedef, x)
                return self.function(*a, **r, **fixed)

            traced = self.known[key] = Traced(flat, tuple(leaves))
        if traced.why_not is not None:
            return None, []
        arrays = [
            np.ascontiguousarray(np.asarray(x), a.dtype)
            for x, a in zip(leaves, traced.kernel.in_avals, strict=True)
        ]
        return traced, arrays

    def cache_size(self) -> int:
        """How many programs it holds."""
        return len(self.known) + self.jitted._cache_size()

    def clear_cache(self) -> None:
        """Release them."""
        self.known.clear()
        self.jitted.clear_cache()


def _kind(x: Any) -> Any:
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return type(x).__name__
    return x.shape, dtype, getattr(x, "weak_type", False)
