"""Native code of a function, member by member and in lanes, beside what JAX makes of it."""

import jax
import numpy as np

from compiling import QUICK
from mime.native.kernel import Kernel
from mime.native.machine import host


def kernel_of(function, args, shared):
    """The kernel of one member; what is not shared has an axis of members in front."""
    one = [
        jax.ShapeDtypeStruct(x.shape if s else x.shape[1:], x.dtype)
        for x, s in zip(args, shared, strict=True)
    ]
    kernel = Kernel(jax.make_jaxpr(function)(*one))
    assert kernel.why_not() is None
    return kernel


def natively(function, *args, shared=None, singles=2):
    """The results in lanes; `singles` members have the same bits when each is computed alone."""
    args = [np.array(x, order="C") for x in args]
    shared = tuple(shared or [False] * len(args))
    kernel = kernel_of(function, args, shared)
    members = next(len(x) for x, s in zip(args, shared, strict=True) if not s)
    results = [np.array(x) for x in kernel.call(args, shared, members)]
    for k in np.linspace(0, members - 1, singles).astype(int):
        own = [x if s else np.array(x[k]) for x, s in zip(args, shared, strict=True)]
        for alone, together in zip(kernel.call(own), results, strict=True):
            assert same_bits(alone, together[k]), (k, alone, together[k])
    return results


def by_jax(function, *args, shared=None, jit=True):
    """What XLA makes of the same members."""
    shared = shared or [False] * len(args)
    mapped = jax.vmap(function, in_axes=[None if s else 0 for s in shared])
    results = (jax.jit(mapped, compiler_options=QUICK) if jit else mapped)(*args)
    return [np.asarray(x) for x in jax.tree.leaves(results)]


def same_bits(a, b):
    """True when all numbers are equal, zeros with their signs; one NaN is as good as another."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(
        np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b)
    )


def ulps(a, b):
    """|a - b| in units in the last place of b; of the smallest normal number where b is smaller."""
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.maximum(np.abs(b), np.finfo(b.dtype).tiny))
        far = np.abs(a - b) / unit
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, far)


def odd_members(bits):
    """A number of members that is no multiple of the lanes."""
    return 2 * host().lanes(bits) + 3
