"""Primitives that move, join and pick elements, in native code beside JAX.

Small arrays stay in registers, large ones (300 elements and more) in memory: each case has both.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mime.native.lowering import Unsupported
from native_kernels import by_jax, natively, odd_members, same_bits, ulps

MODES = ("clip", "fill", "promise_in_bounds")


def agree(function, *args, shared=None, exact=True, singles=2):
    """Native code has XLA's bits, or is at most a few roundings away."""
    mine = natively(function, *args, shared=shared, singles=singles)
    for k, (x, y) in enumerate(zip(mine, by_jax(function, *args, shared=shared), strict=True)):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), k
        if exact or x.dtype.kind != "f":
            assert same_bits(x, y), (k, x, y)
        else:  # sums of a few terms in another order; a b + c rounded once
            assert np.max(ulps(x, y) * (np.abs(y) > 1e-9 * np.nanmax(np.abs(y)))) <= 64, (k, x, y)


def moved(x):
    """All shape primitives of an array of at least three rows and four columns."""
    rows, columns = x.shape
    zero = jnp.zeros((), x.dtype)
    return [
        jnp.broadcast_to(x[:, None, :], (rows, 2, columns)),
        lax.broadcast_in_dim(x[0, 0], (2, 3), ()),
        x.reshape(-1),
        x[None].squeeze(0),
        lax.expand_dims(x, (1,)),
        x[1:, ::2],
        lax.slice(x, (0, 1), (rows, columns), (2, 1)),
        lax.pad(x, zero, [(1, 2, 0), (0, 0, 1)]),
        lax.pad(x, zero + 1, [(-1, 1, 0), (2, -2, 0)]),
        lax.pad(x, zero + 1, [(-1, -1, 2), (0, 0, 0)]),
        lax.pad(x, x[0, 0], [(-2, -1, 1), (-1, 1, 2)]),
        jnp.concatenate([x, x[:1], 2 * x], axis=0),
        jnp.concatenate([x, x[:, :1]], axis=1),
        jnp.stack([x, -x], axis=1),
        *jnp.split(x, [1, 3], axis=1),
        *jnp.unstack(x[:, :3], axis=1),
        jnp.tile(x, (2, 1)),
        x.T,
        x[::-1],
        lax.rev(x, (0, 1)),
        lax.broadcasted_iota(jnp.int32, x.shape, 1) + x.astype(jnp.int32),
        lax.iota(x.dtype, columns) + x[0],
        lax.tile(x, (1, 3)),
    ]


@pytest.mark.small("shape1-float64")
@pytest.mark.parametrize(("shape", "dtype"), [((3, 4), "int32"), ((20, 16), "float64")])
def test_shapes_have_the_bits_of_xla(shape, dtype):
    x = np.random.default_rng(1).normal(size=(odd_members(64), *shape)) * 100
    parts = 6  # LLVM takes half the time that it takes for all at once
    for part in range(parts):
        agree(lambda x, part=part: moved(x)[part::parts], x.astype(dtype), singles=1)


def joined(x):
    """All reductions and scans, along each axis, and along both."""
    results = []
    for axis in (0, 1, (0, 1)):
        results += [jnp.sum(x, axis), jnp.prod(x, axis), jnp.max(x, axis), jnp.min(x, axis)]
        truth = x > 0
        results += [jnp.any(truth, axis), jnp.all(truth, axis)]
    for axis in (0, 1):
        results += [jnp.argmax(x, axis), jnp.argmin(x, axis), jnp.argmax(x > 0, axis)]
        for scan in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin):
            results += [scan(x, axis), scan(x, axis, reverse=True)]
    return results


def joined_integers(x):
    results = [lax.reduce_xor(x, (0,)), lax.reduce_or(x, (1,)), lax.reduce_and(x, (0,))]
    results += [jnp.sum(x, 0, x.dtype), jnp.max(x, 1), jnp.min(x, 0), jnp.prod(x, 1, x.dtype)]
    return [*results, jnp.argmax(x, 0), lax.cumsum(x, 1), lax.cummax(x, 0, reverse=True)]


@pytest.mark.small("float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_reductions_are_those_of_xla(dtype):
    agree(joined, np.random.default_rng(2).normal(size=(7, 3, 4)).astype(dtype), exact=False)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_reductions_of_integers_have_the_bits_of_xla(dtype):
    info = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(info.min, info.max, (5, 3, 4), dtype, endpoint=True)
    agree(joined_integers, x)


def test_extremes_see_a_nan_and_the_first_of_equals():
    x = np.random.default_rng(4).choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0], (64, 5))
    x = x[[len(np.unique(np.sign(row[row == 0]))) < 2 and _one_zero(row) for row in x]]

    def extremes(x):
        reduced = [jnp.argmax(x), jnp.argmin(x), jnp.max(x), jnp.min(x)]
        return [*reduced, lax.cummax(x), lax.cummin(x, reverse=True)]

    agree(extremes, x)


def _one_zero(row):
    """XLA may take either of two zeros of different sign."""
    return len(set(np.signbit(row[row == 0]).tolist())) < 2


def test_a_reduction_over_nothing_is_where_it_starts():
    agree(lambda x: [jnp.sum(x[:0]), jnp.prod(x[:0]), jnp.any(x[:0] > 0), jnp.sum(x[:, :0], 1)],
          np.ones((3, 2, 2)))  # fmt: skip


PRODUCTS = {
    "matrix·matrix": lambda a, b: a @ b,
    "matrix·vector": lambda a, b: a @ b[:, 0],
    "batched": lambda a, b: jnp.einsum("bij,bjk->bik", jnp.stack([a, 2 * a]), jnp.stack([b, b])),
    "both axes": lambda a, b: jnp.einsum("ij,ij->", a, b.T),
    "outer": lambda a, b: jnp.outer(a[0], b[0]),
    "constant": lambda a, b: np.arange(6).reshape(2, 3).astype(a.dtype) @ a + b[:2, :1],
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_products_of_matrices_are_those_of_xla(dtype):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-50, 50, (6, *s)).astype(dtype) for s in ((3, 4), (4, 3)))
    agree(lambda a, b: [f(a, b) for f in PRODUCTS.values()], a, b)  # no rounding: small integers


def slices_of(size):
    def slices(x, i, new):
        table = x.reshape(4, -1)
        return [
            lax.dynamic_slice(x, (i,), (3,)),
            lax.dynamic_update_slice(x, new, (i,)),
            lax.dynamic_slice(table, (i, 1), (2, 2)),
            lax.dynamic_update_slice(table, new[None], (i, i)),
            lax.dynamic_slice(x, (i.astype(jnp.int8),), (2,)),
            lax.dynamic_slice(x, (i.astype(jnp.uint32),), (2,)),
            lax.dynamic_slice(x, (i.astype(jnp.uint64),), (2,)),
            lax.dynamic_index_in_dim(x, i, keepdims=False),
            lax.dynamic_slice(x, (2,), (size - 2,)),
            x,
        ]

    return slices


@pytest.mark.small("12")
@pytest.mark.parametrize("size", [12, 400])
def test_slices_at_places_known_later_are_clamped(size):
    rng = np.random.default_rng(6)
    members = odd_members(64)
    x = rng.normal(size=(members, size))
    at = rng.integers(-2 * size, 2 * size, members)
    at[:4] = [-1, 0, size - 3, size]
    new = rng.normal(size=(members, 3))

    slices = slices_of(size)
    agree(slices, x, at, new)
    agree(slices, x, at[2], new, shared=[False, True, False], singles=1)
    agree(slices, x[0], at, new, shared=[True, False, False], singles=1)


def gathers(x, i, inside):
    found = [x[:, 0].at[j].get(mode=m) for m in MODES[:2] for j in (i, i.astype(jnp.int32))]
    found += [x.at[i[:2], inside[0] % 2].get(mode=m) for m in MODES[:2]]
    found += [x.at[:, 1].get().at[inside].get(mode="promise_in_bounds")]
    found += [x[:, 0].at[i].get(mode="fill", fill_value=7.0)]
    found += [(x[:, 0] * 100).astype(jnp.int32).at[i].get(mode="fill")]
    found += [(x[:, 0] > 0).at[i].get(mode="fill")]
    found += [jnp.take_along_axis(x[:4], inside[:2][None] % 4, axis=0)]
    found += [jax.vmap(lambda row, k: row[k])(x[:2], inside[:2] % 2)]
    found += [x[np.array([2, 0, 2])], x[-1]]
    return found


@pytest.mark.small("400")
@pytest.mark.parametrize("size", [6, 400])
def test_gathers_in_every_mode_have_the_bits_of_xla(size):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(7, size, 2))
    i = rng.integers(-size - 2, size + 2, (7, 5))
    inside = np.abs(i) % size

    agree(gathers, x, i, inside)
    if size == 6:
        agree(gathers, x[0], i, inside, shared=[True, False, False], singles=1)


def scatters(x, i, inside, new):
    row = x[:, 0]
    made = []
    for mode in ("clip", "drop"):
        at = row.at[i]
        made += [at.add(new, mode=mode), at.multiply(new, mode=mode), at.min(new, mode=mode)]
        made += [at.max(new, mode=mode), at.subtract(new, mode=mode)]
        made += [row.at[i[1]].set(new[1], mode=mode), row.at[inside].set(new, mode=mode)]
        made += [x.at[i[0]].add(new[:2], mode=mode), x.at[i[:2], 1].add(new[:2], mode=mode)]
    made += [row.at[inside].set(new, mode="promise_in_bounds")]
    made += [row.at[np.array([1, 1, 2])].add(new[:3])]
    made += [jax.vmap(lambda r, k, v: r.at[k].add(v))(x[:2], inside[:2] % 2, new[:2])]
    made += [row.astype(jnp.int32).at[i].add(new.astype(jnp.int32), mode="drop"), row]
    return made


@pytest.mark.small("400")
@pytest.mark.parametrize("size", [6, 400])
def test_scatters_in_every_mode_have_the_bits_of_xla(size):
    rng = np.random.default_rng(8)
    x = rng.integers(-9, 9, (7, size, 2)).astype(float)
    i = rng.integers(-size - 2, size + 2, (7, 5))
    i[0] = 3  # the same place again and again
    inside = np.sort(rng.permuted(np.tile(np.arange(size), (7, 1)), axis=1)[:, :5], axis=1)
    new = rng.integers(-9, 9, (7, 5)).astype(float)

    agree(scatters, x, i, inside, new)
    if size == 6:
        agree(scatters, x[0], i, inside, new, shared=[True, False, False, False], singles=1)


REFUSED = {
    "a function applied at places": lambda x: x.at[jnp.array([1, 2])].apply(jnp.abs),
    "a product in another type": lambda x: jnp.dot(x, x, preferred_element_type=jnp.float64),
    "less precision": lambda x: lax.reduce_precision(x, 5, 10),
    "bits of another size": lambda x: lax.bitcast_convert_type(x, jnp.uint8),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_rule_in_this_form_is_refused_and_not_guessed(name):
    with pytest.raises(Unsupported):
        natively(REFUSED[name], np.ones((2, 4), np.float32))
