"""A simulation computes in the precision that it was built in, whoever calls it."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
_DOUBLE = np.dtype(np.float64)
_SINGLE_OR_DOUBLE = {np.dtype(np.float32), _DOUBLE}


def in_own_precision(method: Callable[P, R]) -> Callable[P, R]:
    """A method that runs in the precision of its object's parameters, double or single.

    A scenario builds its nodes in the precision that it names. To run them in the caller's would
    cut their numbers off, with a warning for each, or carry on with more digits than they have.
    """

    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with precision_of(args[0]):
            return method(*args, **kwargs)

    return wrapped


def precision_of(value: Any) -> AbstractContextManager[Any]:
    """The precision that a value's arrays were made in, as a context to compute in."""
    found = {leaf.dtype for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array)}
    if found & _SINGLE_OR_DOUBLE:
        return jax.enable_x64(_DOUBLE in found)
    return nullcontext()
