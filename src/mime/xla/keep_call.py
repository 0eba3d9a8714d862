"""Calls that stay calls in the compiled program.

XLA's fusion evaluates a value anew in every kernel that needs it, and along a chain of links this
grows with each link. The results of a call that is not inlined are computed once and kept.
benchmarks/joints.py and benchmarks/parts.py measure what that is worth.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax.experimental.xla_metadata import set_xla_metadata

Call = Callable[..., Any]
"""`call(function, *args)`: `inline`, or `keep_call` from all that is around it."""


def inline(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args)"""
    return function(*args)


def keep_call(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), its results computed once. What is constant stays so, on both sides."""
    variables, constants = eqx.partition(args, eqx.is_array)
    constant_results = None

    def call(variables: Any) -> Any:
        nonlocal constant_results
        results = function(*eqx.combine(variables, constants))
        results, constant_results = eqx.partition(results, eqx.is_array)
        return results

    with set_xla_metadata(inlineable="false"):
        results = jax.jit(call)(variables)
    return eqx.combine(results, constant_results)
