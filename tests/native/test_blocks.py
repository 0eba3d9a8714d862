"""How many members the code treats at once changes no bit; and in which thread it runs neither."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.native.compiled import Traced, inside_jax
from mime.native.kernel import AT_ONCE
from mime.native.machine import host

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 100)


def settle(x, y):
    """Passes that differ from member to member, a branch, elementary functions."""
    passes, z = jax.lax.while_loop(
        lambda c: c[1] > 0.1, lambda c: (c[0] + 1, c[1] * y), (jnp.int32(0), x)
    )
    return passes, jax.lax.cond(x > 1, jnp.sin, jnp.exp, z) / y, x / 3 + y * y


def long_sum(x, y):
    for k in range(AT_ONCE):
        x = x * y + k
    return x


def traced(function, dtype="float64"):
    with jax.enable_x64(dtype == "float64"):
        return Traced(function, (jax.ShapeDtypeStruct((), np.dtype(dtype)),) * 2)


def members(count, dtype="float64"):
    rng = np.random.default_rng(count)
    return [rng.uniform(0.1, 3.0, count).astype(dtype), rng.uniform(0.2, 0.9, count).astype(dtype)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_member_has_the_same_bits_in_any_batch_and_alone(dtype):
    kernel = traced(settle, dtype).kernel
    x, y = members(COUNTS[-1], dtype)
    alone = [kernel.call([np.array(a), np.array(b)]) for a, b in zip(x, y, strict=True)]
    for count in COUNTS:
        for k, found in enumerate(kernel.call([x[:count], y[:count]], (False, False), count)):
            assert found.tobytes() == np.array([a[k] for a in alone[:count]]).tobytes(), count


def test_small_code_treats_several_vectors_at_once_where_there_are_members_enough():
    kernel, lanes = traced(settle).kernel, host().lanes(64)
    both = (False, False)
    assert kernel.entry(both, None).lanes == 1
    assert kernel.entry(both, 1).lanes == kernel.entry(both, lanes).lanes == lanes
    assert kernel.entry(both, lanes + 1).lanes == kernel.entry(both, 4096).lanes == 4 * lanes


@pytest.mark.parametrize("first", [1, 4096])
def test_large_code_treats_one_vector_and_serves_all_sizes(first):
    kernel, lanes = traced(long_sum).kernel, host().lanes(64)
    entry = kernel.entry((False, False), first)
    assert entry.lanes == lanes
    assert kernel.entry((False, False), 1) is kernel.entry((False, False), 4096) is entry


TINY = np.array([5e-324, 1e-310, 2.3e-308, 1.0])


def halved(x):
    return x * 0.5, x + x


def test_denormal_numbers_are_kept_by_every_road_and_xla_goes_on_as_before():
    with jax.enable_x64(True):
        made = Traced(halved, (jax.ShapeDtypeStruct((4,), np.float64),))
        wanted = TINY * 0.5, TINY + TINY
        own = jax.jit(halved)(TINY)
        many = jax.jit(jax.vmap(inside_jax(halved)))(np.tile(TINY, (200_000, 1)))  # on threads
        for found in (
            made.now([TINY]),
            jax.jit(inside_jax(halved))(TINY),
            [x[0] for x in many],
            [x[-1] for x in many],
        ):
            assert [np.asarray(x).tobytes() for x in found] == [x.tobytes() for x in wanted]
        # The flags that XLA's threads have set are theirs again.
        assert [x.tobytes() for x in jax.jit(halved)(TINY)] == [x.tobytes() for x in own]


@pytest.mark.small("5")
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_branch_that_all_members_take_is_that_of_jax(size):
    """Cases of shared and of own values, in registers and in memory, before and beyond the ends."""
    shared = jnp.linspace(0.0, 1.0, size, dtype=jnp.float32)
    cases = [lambda x: x, lambda x: 2 * x, lambda x: shared + 0 * x[0], lambda x: shared]

    def function(which, x):
        return jax.lax.switch(which, cases, x), jax.lax.cond(which > 1, jnp.sin, lambda x: x, x)

    xs = np.linspace(-1, 1, 9 * size, dtype=np.float32).reshape(9, size)
    run = jax.jit(jax.vmap(inside_jax(function), (None, 0)))
    plain = jax.jit(jax.vmap(function, (None, 0)))
    for which in (-1, 0, 1, 2, 3, 4):
        for mine, theirs in zip(run(which, xs), plain(which, xs), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-7, atol=1e-7)
