"""Compile once, fold what is constant: the one rule behind every compiled function here.

    NumPy leaves are constants of the program; JAX arrays are its arguments.

A URDF's joint frames are NumPy arrays, mostly zeros and ones: folded, they cost nothing. A motor's
resistance is a JAX array: it can change, be batched and be differentiated with no new compilation.

Programs are released. JAX keeps what a jitted function has compiled for as long as the process
lives: each takes some megabytes and dozens of the 65,530 memory maps that Linux grants. So every
structure has a jitted function of its own, and beyond `MOST_PROGRAMS` those that were not called
for the longest time are cleared, with the input functions and graphs that they were made for.
"""

import dataclasses
import itertools
import threading
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import jax
import numpy as np

from mime.native.compiled import Compiled


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

    def copy(self) -> "Constants":
        """The same constants in arrays of their own; what was one array stays one."""
        own = {id(leaf): None if leaf is None else leaf.copy() for leaf in self.leaves}
        return Constants(self.treedef, tuple(own[id(leaf)] for leaf in self.leaves))

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

    def now(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The same, but NumPy arrays where machine code makes them."""
        constants, variables = split(value)
        return _programs.of(self, constants).now(variables, *args, **kwargs)

    def of(self, value: Any) -> Callable[..., Any]:
        """The function of all arguments but the first, which many calls then split only once."""
        constants, variables = split(value)
        return partial(_programs.of(self, constants), variables)

    def compiled(self, value: Any) -> "tuple[Compiled, list[Any]]":
        """The compiled function, and the variables that it takes in front of its arguments."""
        constants, variables = split(value)
        return _programs.of(self, constants), variables

    def jit(self, constants: Constants) -> Any:
        """The jitted function of one structure in one precision, with constants of its own.

        JAX knows a NumPy constant by its identity, and lowers one that it has met in the other
        precision with the wrong type. A copy also stays what it is when its owner writes into it.
        """
        function, constants = self._function, constants.copy()

        def compiled(variables: list[Any], *args: Any, **kwargs: Any) -> Any:
            return function(constants.merge(variables), *args, **kwargs)

        return Compiled(compiled, **self._jit_options)


@dataclasses.dataclass(slots=True)
class _Kept:
    """The jitted function of one structure, with a program for each kind of its arguments."""

    jitted: Any
    counted: int = 0
    """Programs when they were last counted, and the one that was about to be compiled."""
    used: int = 0
    """When it was last called for: the larger, the later."""


class _Programs:
    """The jitted functions of all structures."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Folding, Constants, bool], _Kept] = {}
        self._clock = itertools.count()
        self._lock = threading.Lock()

    def of(self, folding: Folding, constants: Constants) -> Any:
        """The jitted function of a structure in this precision: the one there is, or a new one."""
        key = (folding, constants, jax.config.read("jax_enable_x64"))
        entry = self._kept.get(key)
        if entry is None:
            entry = self._kept.setdefault(key, _Kept(folding.jit(constants)))
        entry.used = next(self._clock)
        if entry.jitted.cache_size() >= entry.counted:  # it has compiled since, or is new
            with self._lock:
                entry.counted = entry.jitted.cache_size() + 1
                self._release(entry)
        return entry.jitted

    def _release(self, latest: _Kept) -> None:
        """Clear the oldest functions until few enough programs are left, the latest's own last."""
        total = sum(entry.counted for entry in self._kept.copy().values())
        if total <= MOST_PROGRAMS:
            return
        for key, entry in sorted(self._kept.copy().items(), key=lambda item: item[1].used):
            if total <= MOST_PROGRAMS:
                return
            total -= entry.counted
            entry.jitted.clear_cache()
            entry.counted = 1
            if entry is not latest:
                del self._kept[key]

    def count(self) -> int:
        """How many programs there are now."""
        return sum(entry.jitted.cache_size() for entry in self._kept.copy().values())


_programs = _Programs()


def programs_kept() -> int:
    """How many compiled programs there are now."""
    return _programs.count()


def jit_folding(
    function: Callable[..., Any], static_argnames: tuple[str, ...] = (), **jit_options: Any
) -> Folding:
    """Compile a function, or decorate it, so that its first argument is folded; see `Folding`."""
    return Folding(function, {"static": tuple(static_argnames), "options": jit_options})
