"""A simulation computes in the precision that it was built in, whoever calls it."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp

P = ParamSpec("P")
R = TypeVar("R")


def in_own_precision(method: Callable[P, R]) -> Callable[P, R]:
    """A method that runs in double precision where its object's parameters are double.

    A scenario builds its nodes in the precision that it names; to run them in the caller's would
    cut their numbers off, with a warning for each.
    """

    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _precision_of(args[0]):
            return method(*args, **kwargs)

    return wrapped


def _precision_of(value: Any) -> AbstractContextManager[Any]:
    leaves = (leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.Array))
    double = any(leaf.dtype == jnp.float64 for leaf in leaves)
    return jax.enable_x64(True) if double else nullcontext()
