"""Compile once, fold what is constant: the one rule behind every compiled function here.

    NumPy leaves are constants of the program; JAX arrays are its arguments.

A URDF's joint frames are NumPy arrays, mostly zeros and ones: folded, they cost nothing. A motor's
resistance is a JAX array: it can change, be batched and be differentiated with no new compilation.

Programs are released. JAX keeps what a jitted function has compiled for as long as the process
lives: each takes some megabytes and dozens of the 65,530 memory maps that Linux grants. So every
structure has a jitted function of its own, and beyond `MOST_PROGRAMS` those that were not called
for the longest time are cleared, with the input functions and graphs that they were made for.
"""

import threading
from collections import OrderedDict
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


MOST_PROGRAMS = 128
"""How many compiled programs are kept, in all: more than a session uses in turns."""


class Folding:
    """`jax.jit(function)` that folds the NumPy leaves of the *first* argument into the program."""

    def __init__(self, function: Callable[..., Any], jit_options: dict[str, Any]):
        self._function, self._jit_options = function, jit_options
        update_wrapper(self, function)

    def __call__(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        constants, variables = split(value)
        return _programs.of(self, constants)(variables, *args, **kwargs)

    def of(self, value: Any) -> Callable[..., Any]:
        """The function of all arguments but the first, which many calls then split only once."""
        constants, variables = split(value)
        return partial(_programs.of(self, constants), variables)

    def jit(self, constants: Constants) -> Any:
        """The jitted function of one structure."""
        function = self._function

        def compiled(variables: list[Any], *args: Any, **kwargs: Any) -> Any:
            return function(constants.merge(variables), *args, **kwargs)

        return jax.jit(compiled, **self._jit_options)


class _Programs:
    """The jitted functions of all structures, the one called last at the end."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Folding, Constants], Any] = OrderedDict()
        self._counts: dict[tuple[Folding, Constants], int] = {}
        self._lock = threading.RLock()

    def of(self, folding: Folding, constants: Constants) -> Any:
        """The jitted function of a structure: the one there is, or a new one."""
        key = (folding, constants)
        with self._lock:
            jitted = self._kept.get(key)
            if jitted is None:
                jitted = self._kept[key] = folding.jit(constants)
            else:
                self._kept.move_to_end(key)
            if jitted._cache_size() >= self._counts.get(key, 0):  # it has compiled since, or is new
                self._counts[key] = jitted._cache_size() + 1
                self._release(key)
        return jitted

    def _release(self, latest: tuple[Folding, Constants]) -> None:
        """Clear the oldest functions until few enough programs are left, the latest's own last."""
        while sum(self._counts.values()) > MOST_PROGRAMS:
            key = next(iter(self._kept))
            self._kept[key].clear_cache()
            if key == latest:
                self._counts[key] = 1
                break
            del self._kept[key], self._counts[key]

    def count(self) -> int:
        """How many programs there are now."""
        return sum(jitted._cache_size() for jitted in self._kept.values())


_programs = _Programs()


def programs_kept() -> int:
    """How many compiled programs there are now."""
    return _programs.count()


def jit_folding(
    function: Callable[..., Any], static_argnames: tuple[str, ...] = (), **jit_options: Any
) -> Folding:
    """Compile a function, or decorate it, so that its first argument is folded; see `Folding`."""
    return Folding(function, {"static_argnames": static_argnames, **jit_options})
