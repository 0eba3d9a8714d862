"""Scalars that know when they are constant.

A URDF joint frame is mostly 0 and ±1, and it is known when JAX traces. So the algebra of this
package works on single scalars: a Python `float` is a **constant**, a JAX array (or tracer) of no
axes is a **variable**. What is constant folds while tracing and costs nothing when the program
runs:

    mul(0.0, x) -> 0.0        mul(1.0, x) -> x        add(0.0, x) -> x        mul(2.0, 3.0) -> 6.0

The rule for arrays is the same: NumPy arrays are unpacked into constants, JAX arrays into
variables. Hence a function called with NumPy arrays only is evaluated by Python itself, in double
precision, with no compilation. All variables of a call have one dtype (`common_dtype`), which a
constant takes on when it meets one.

Operations are those of `jax.lax`: a robot has ten thousand of them, and `a * b` takes longer to
trace.
"""

import math
from collections.abc import Sequence
from typing import Any, no_type_check

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike

Scalar = float | jax.Array
Array = jax.Array | np.ndarray

# `no_type_check`: tests check every call of the package; on a single multiplication that costs
# twenty times its work.


@no_type_check
def is_constant(x: Scalar) -> bool:
    """True when x is known while tracing."""
    return type(x) is float


@no_type_check
def add(a: Scalar, b: Scalar) -> Scalar:
    """a + b; nothing is traced when one of them is an exact 0."""
    if type(a) is float:
        a, b = b, a
    if type(b) is not float:
        return lax.add(a, b)
    if b == 0.0:
        return a
    return a + b if type(a) is float else lax.add(a, a.dtype.type(b))


@no_type_check
def sub(a: Scalar, b: Scalar) -> Scalar:
    """a - b; nothing is traced when b is an exact 0."""
    if type(b) is float:
        return add(a, -b)
    if type(a) is not float:
        return lax.sub(a, b)
    return lax.neg(b) if a == 0.0 else lax.sub(b.dtype.type(a), b)


@no_type_check
def neg(a: Scalar) -> Scalar:
    """-a"""
    return -a if type(a) is float else lax.neg(a)


@no_type_check
def mul(a: Scalar, b: Scalar) -> Scalar:
    """a b; nothing is traced when one of them is an exact 0 or 1, a sign when it is -1."""
    if type(a) is float:
        a, b = b, a
    if type(b) is not float:
        return lax.mul(a, b)
    if b == 0.0:
        return 0.0
    if b == 1.0:
        return a
    if b == -1.0:
        return neg(a)
    return a * b if type(a) is float else lax.mul(a, a.dtype.type(b))


@no_type_check
def reciprocal(a: Scalar) -> Scalar:
    """1 / a"""
    return 1.0 / a if type(a) is float else lax.div(a.dtype.type(1.0), a)


@no_type_check
def cos_sin(angle: Scalar) -> tuple[Scalar, Scalar]:
    """cos(angle) and sin(angle), of an angle in rad."""
    if type(angle) is float:
        return math.cos(angle), math.sin(angle)
    return lax.cos(angle), lax.sin(angle)


def common_dtype(*values: Any) -> DTypeLike | None:
    """The dtype that all JAX arrays among the values share; None when there are none."""
    dtypes = {x.dtype for x in jax.tree.leaves(values) if isinstance(x, jax.Array)}
    return jnp.result_type(jnp.float32, *dtypes) if dtypes else None


def unpack(array: Any, dtype: DTypeLike | None) -> Any:
    """The array as nested lists of scalars: constants from NumPy or numbers, variables from JAX."""
    if not isinstance(array, jax.Array):
        return np.asarray(array, dtype=float).tolist()
    return _unstack(array.astype(dtype))


def _unstack(array: jax.Array) -> Any:
    return array if array.ndim == 0 else [_unstack(row) for row in jnp.unstack(array)]


def pack(scalars: Scalar | Sequence, dtype: DTypeLike | None, *inputs: Any) -> Array:
    """The array of nested `scalars`.

    A result may be constant although the inputs are not (the mass of a slider): it is still a JAX
    array of that `dtype` then. With None it is a NumPy array, in the dtype of `inputs`, a public
    function's arguments.
    """
    flat, shape = flatten(scalars)
    if dtype is None:
        dtype = np.result_type(np.float32, *(x for x in inputs if isinstance(x, np.ndarray)))
        return np.array(flat, dtype=dtype).reshape(shape)
    typed = [np.asarray(x, dtype) if is_constant(x) else x for x in flat]
    return jnp.stack(typed).reshape(shape) if flat else jnp.zeros(shape, dtype)


def flatten(nested: Any) -> tuple[list, tuple[int, ...]]:
    """The scalars of a nested sequence, in order, and its shape."""
    if not isinstance(nested, Sequence):
        return [nested], ()
    parts = [flatten(part) for part in nested]
    if not parts:  # a robot without joints
        return [], (0,)
    return [x for flat, _ in parts for x in flat], (len(parts), *parts[0][1])
