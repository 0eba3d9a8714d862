"""Compile once, fold what is constant: the one rule behind every compiled function here.

    NumPy leaves are constants of the program; JAX arrays are its arguments.

A URDF's joint frames are NumPy arrays, mostly zeros and ones: folded, they cost nothing. A motor's
resistance is a JAX array: it can change, be batched and be differentiated with no new compilation.
"""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import jax
import numpy as np


class Constants:
    """Structure and NumPy leaves of a pytree: a static argument of `jax.jit`, hashable by value."""

    __slots__ = ("_hash", "_key", "leaves", "treedef")

    def __init__(self, treedef: Any, leaves: tuple[np.ndarray | None, ...]):
        self.treedef = treedef
        self.leaves = leaves
        contents = tuple(
            None if leaf is None else (leaf.shape, leaf.dtype.str, leaf.tobytes())
            for leaf in leaves
        )
        self._key = (treedef, contents)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constants) and self._key == other._key

    def merge(self, variables: list[Any]) -> Any:
        """The pytree again, with `variables` where a leaf was not a constant."""
        rest = iter(variables)
        leaves = [next(rest) if leaf is None else leaf for leaf in self.leaves]
        return jax.tree.unflatten(self.treedef, leaves)


def split(value: Any) -> tuple[Constants, list[Any]]:
    """A pytree as (its structure and NumPy leaves, all its other leaves)."""
    leaves, treedef = jax.tree.flatten(value)
    constants = tuple(leaf if isinstance(leaf, np.ndarray) else None for leaf in leaves)
    variables = [leaf for leaf in leaves if not isinstance(leaf, np.ndarray)]
    return Constants(treedef, constants), variables


class Folding:
    """`jax.jit(function)` that folds the NumPy leaves of the *first* argument into the program."""

    def __init__(self, function: Callable[..., Any], jit_options: dict[str, Any]):
        def compiled(constants: Constants, variables: list[Any], *args: Any, **kwargs: Any) -> Any:
            return function(constants.merge(variables), *args, **kwargs)

        self._compiled = jax.jit(compiled, static_argnums=0, **jit_options)
        update_wrapper(self, function)

    def __call__(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*split(value), *args, **kwargs)

    def of(self, value: Any) -> Callable[..., Any]:
        """The function of all arguments but the first, which many calls then split only once."""
        return partial(self._compiled, *split(value))


def jit_folding(
    function: Callable[..., Any], static_argnames: tuple[str, ...] = (), **jit_options: Any
) -> Folding:
    """Compile a function, or decorate it, so that its first argument is folded; see `Folding`."""
    return Folding(function, {"static_argnames": static_argnames, **jit_options})
