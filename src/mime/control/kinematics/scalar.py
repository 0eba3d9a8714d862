"""Scalars that know when they are constant.

A URDF joint frame is mostly 0 and ±1, and it is known when JAX traces. So the algebra of this
package works on single scalars: a Python `float` is a **constant**, a JAX array (or tracer) is a
**variable**. What is constant folds while tracing and costs nothing when the program runs:

    mul(0.0, x) -> 0.0        mul(1.0, x) -> x        add(0.0, x) -> x        mul(2.0, 3.0) -> 6.0

The rule for arrays is the same: NumPy arrays are unpacked into constants, JAX arrays into
variables. Hence a function called with NumPy arrays only is evaluated by Python itself, in double
precision, with no compilation. Python floats are weakly typed in JAX, so constants never change
the dtype of a variable.
"""

import math
from collections.abc import Sequence
from typing import Any, no_type_check

import jax
import jax.numpy as jnp
import numpy as np

from mime.xla.stacking import stack_scalars

Scalar = float | jax.Array
Array = jax.Array | np.ndarray

# `no_type_check`: tests check every call of the package; on a single multiplication that costs
# twenty times its work.


@no_type_check
def is_constant(x: Scalar) -> bool:
    """True when x is known while tracing."""
    return isinstance(x, float)


@no_type_check
def add(a: Scalar, b: Scalar) -> Scalar:
    """a + b; nothing is traced when one of them is an exact 0."""
    if is_constant(a) and a == 0.0:
        return b
    if is_constant(b) and b == 0.0:
        return a
    return a + b


@no_type_check
def sub(a: Scalar, b: Scalar) -> Scalar:
    """a - b; nothing is traced when b is an exact 0."""
    if is_constant(b) and b == 0.0:
        return a
    if is_constant(a) and a == 0.0:
        return -b
    return a - b


@no_type_check
def mul(a: Scalar, b: Scalar) -> Scalar:
    """a b; nothing is traced when one of them is an exact 0 or 1, a sign when it is -1."""
    if is_constant(b):
        a, b = b, a
    if is_constant(a):
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
        if a == -1.0:
            return -b
    return a * b


@no_type_check
def reciprocal(a: Scalar) -> Scalar:
    """1 / a"""
    return 1.0 / a


@no_type_check
def cos_sin(angle: Scalar) -> tuple[Scalar, Scalar]:
    """cos(angle) and sin(angle), of an angle in rad."""
    if is_constant(angle):
        return math.cos(angle), math.sin(angle)
    return jnp.cos(angle), jnp.sin(angle)


def unpack(array: Any) -> Any:
    """The array as nested lists of scalars: constants from NumPy or numbers, variables from JAX."""
    if not isinstance(array, jax.Array):
        return np.asarray(array, dtype=float).tolist()
    if array.ndim == 0:
        return array
    return [unpack(row) for row in jnp.unstack(array)]


def pack(scalars: Scalar | Sequence, *inputs: Any) -> Array:
    """The array of nested `scalars`, in the dtype of `inputs`, a public function's arguments.

    A result may be constant although the inputs are not (the mass of a slider): it is still a JAX
    array then, and still float32 when the inputs are.
    """
    flat, shape = _flatten(scalars)
    variables = [x for x in (*inputs, *flat) if isinstance(x, jax.Array)]
    if not variables:
        dtype = np.result_type(np.float32, *(x for x in inputs if isinstance(x, np.ndarray)))
        return np.array(flat, dtype=dtype).reshape(shape)
    dtype = jnp.result_type(jnp.float32, *variables)
    return stack_scalars([jnp.asarray(x, dtype) for x in flat]).reshape(shape)


def _flatten(nested: Any) -> tuple[list, tuple[int, ...]]:
    if not isinstance(nested, Sequence):
        return [nested], ()
    parts = [_flatten(part) for part in nested]
    return [x for flat, _ in parts for x in flat], (len(parts), *parts[0][1])
