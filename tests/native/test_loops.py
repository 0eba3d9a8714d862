"""Loops, branches and calls in native code beside JAX, and what may go wrong when arrays in memory
are changed in place.

An array beyond 96 elements is carried in memory: `BIG`. A loop of few operations is written out:
`LONG` ones are loops.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from compiling import QUICK
from mime.native.compiled import inside_jax
from mime.native.jaxprs import kept
from native_kernels import natively, same_bits

BIG, LONG, MEMBERS = 300, 40, 7


def exactly(function, *args, shared=None, **options):
    """Native code has the bits of the same Python with NumPy's numbers, op by op, member by member.

    All arithmetic here is exact: sums and products of small integers.
    """
    mine = natively(function, *args, shared=shared, **options)
    shared = shared or [False] * len(args)
    members = next(len(x) for x, s in zip(args, shared, strict=True) if not s)
    compiled = jax.jit(function, compiler_options=QUICK)
    for k in range(members):
        own = [x if s else x[k] for x, s in zip(args, shared, strict=True)]
        for j, (found, wanted) in enumerate(
            zip(mine, jax.tree.leaves(compiled(*own)), strict=True)
        ):
            assert same_bits(found[k], np.asarray(wanted)), (j, k, found[k], wanted)


def whole(*shape, seed=1, most=9):
    return np.random.default_rng(seed).integers(-most, most, (MEMBERS, *shape)).astype(float)


# --- scan ---------------------------------------------------------------------------------------


@pytest.mark.small("0-False", "1-True", "40-False")
@pytest.mark.parametrize(
    ("length", "reverse"), [(0, False), (1, True), (2, True), (LONG, False), (600, True)]
)
def test_a_scan_takes_rows_forward_or_backward(length, reverse):
    table = np.arange(3.0 * length).reshape(length, 3) % 5

    def scanned(x, rows):
        def body(carry, row):
            a, n = carry
            mine, fixed = row
            a = a + mine * fixed - n % 3
            return (a, n + 1), (a, mine[0], n)

        return lax.scan(body, (x, 0), (rows, table), reverse=reverse)

    rows = whole(length, 3)
    exactly(scanned, whole(3, most=4), rows, singles=1)
    if length == 600:
        exactly(scanned, whole(3, most=4), rows[0], shared=[False, True], singles=1)
        exactly(lambda x, rows: scanned(x, rows)[0][1], whole(3), rows, singles=1)


def test_scans_inside_scans_carry_registers_and_memory():
    def nested(x, big):
        def outer(carry, n):
            x, big = carry

            def inner(carry, m):
                x, big = carry
                big = big.at[(n + m) % BIG].add(x)
                return (x + m % 2 - 1, big), big[m]

            (x, big), seen = lax.scan(inner, (x, big), jnp.arange(LONG))
            return (x % 7, big), (seen[3], big[5])

        return lax.scan(outer, (x, big), jnp.arange(LONG))

    exactly(nested, whole(), whole(BIG))


def test_a_shared_carry_and_shared_tables_stay_right_beside_varying_ones():
    def mixed(x, table):
        def body(carry, n):
            shared, own, copy = carry
            shared = shared.at[n % 20].add(table[n % 4])
            return (shared, own + shared[3] + copy[0], copy), shared[n % 20]

        return lax.scan(body, (jnp.zeros(20), x, table), jnp.arange(600))

    exactly(mixed, whole(most=3), np.array([1.0, -1.0, 0.0, 2.0]), shared=[False, True])


# --- arrays in memory, changed in place ---------------------------------------------------------


def traps(big, i, v):
    """Each result must not see what another update does: name -> result."""

    def loop(body, *start, length=LONG):
        return lax.scan(lambda c, n: body(n, *c), start, jnp.arange(length))

    put = lambda x, n, y: x.at[n % BIG].set(y)  # noqa: E731
    made = big * 2
    return {
        "old and new": (made, put(made, i, v)),
        "two updates of one": (put(made, i, v), put(made, i + 1, v + 1)),
        "a view read after": (put(made, i, v), made.reshape(10, -1)[2]),
        "a view updated": (put(made.reshape(10, -1).reshape(-1), i, v), made.reshape(20, -1)),
        "carried twice": loop(
            lambda n, a, b: ((put(a, n, v), put(b, n + 3, a[n + 1])), b[n]), made, made
        ),
        "carried and constant": loop(lambda n, a: ((put(a, n + 1, made[n]),), a[0]), made),
        "carried and rows": lax.scan(
            lambda c, x: (put(c, 1, x), c[2] + x), made, made[:LONG] if BIG < LONG else made
        ),
        "swapped": loop(lambda n, a, b: ((put(b, n, v), put(a, n, v + n)), a[n] - b[n]), big, made),
        "rotated": loop(lambda n, a, b, c: ((b, put(c, n, v), a), b[n]), big, made, made + 1),
        "swapped untouched": loop(lambda n, a, b: ((b, a), a[n]), big, made, length=LONG + 1),
        "kept": loop(lambda n, a, b: ((a, put(b, n, a[n])), b[n]), big, made),
        "returned old and new": loop(
            lambda n, a, b: ((put(a, n, v), a), (a[n], b[n])), made, made
        ),
        "row of itself": loop(lambda n, a: ((put(a, n + 1, a[n] + 1),), a), made, length=30),
        "read after the update": loop(
            lambda n, a: ((put(a, n, a[n] + 1) + a[n + 1] * 0 + 0 * a,), a[n]), made
        ),
        "through a call": jax.jit(lambda a: (put(a, i, v), a))(made),
        "through a call alone": jax.jit(lambda a: put(a, i, v))(made + 1),
        "one branch updates": lax.cond(v > 0, lambda a: put(a, i, v), lambda a: a, made),
        "in a loop, one branch updates": loop(
            lambda n, a: (
                (lax.cond(v + n % 3 > 0, lambda a: put(a, n, v), lambda a: a, a),), a[n + 1]
            ),
            made,
        ),
        "slices": loop(
            lambda n, a: (
                (lax.dynamic_update_slice(a, lax.dynamic_slice(a, (n,), (3,)) + 1, (n + 1,)),),
                lax.dynamic_slice(a, (n,), (2,)),
            ),
            made,
        ),
        "large slices": loop(
            lambda n, a: (
                (lax.dynamic_update_slice(a, lax.dynamic_slice(a, (n,), (260,)), (n + 1,)),), a[5]
            ),
            made,
            length=3,
        ),
        "first written here": lax.dynamic_update_slice(lax.empty((BIG,), float), made, (0,)),
        "last": made,
    }  # fmt: skip


@pytest.mark.parametrize("same_place", [True, False])
def test_an_update_in_place_is_seen_by_nobody_else(same_place):
    place = np.array([0, 1, 5, 299, 7, 260, 40])
    at, is_shared = (place[2], True) if same_place else (place, False)
    exactly(traps, whole(BIG), at, whole(), shared=[False, is_shared, False])


def test_an_array_that_a_loop_is_the_last_to_read_is_given_to_it_twice():
    """The loop may change it in place, but not while it is also another's."""

    def given(big):
        put = lambda x, n, y: x.at[n % BIG].set(y)  # noqa: E731
        a, b, c = 2 * big, 3 * big, 4 * big

        def two(carry, n):
            x, y = carry
            return (put(x, n, 7.0), put(y, n + 3, x[n + 1])), y[n]

        loops = (
            lax.scan(two, (a, a), jnp.arange(LONG)),
            lax.scan(lambda x, n: (put(x, n + 1, b[n] + 1), x[0]), b, jnp.arange(LONG)),
            lax.scan(lambda x, row: (put(x, 5, row + 1), x[2] + row), c, c),
        )
        return jax.tree.map(lambda x: x[:50], loops)  # in the workspace, not where results lie

    exactly(given, whole(BIG))


@pytest.mark.small("20")
@pytest.mark.parametrize("size", [5, 20, 90])
def test_small_arrays_that_lie_in_memory_are_swapped_with_those_in_registers(size):
    def swapped(x, i):
        placed = jnp.zeros(size).at[i].set(3.0).at[i + 1].add(1.0)

        def body(carry, n):
            a, b = carry
            return (a.at[(n + i) % size].add(b[n % size]), a), b[1]

        def turn(carry, n):
            a, b = carry
            return (b, a), a[n % size]

        return (
            lax.scan(body, (placed, x), jnp.arange(8), unroll=1),
            lax.scan(turn, (placed, x), jnp.arange(600)),
        )

    exactly(swapped, whole(size, most=3), np.array([0, 1, 3, 2, 0, 3, 1]))


# --- where sums fuse with products --------------------------------------------------------------


def test_a_time_that_is_counted_is_rounded_before_anything_is_taken_from_it():
    """1000 · 5e-5 is 0.05 in floating point; less 0.05 in one rounding it would be -3e-18."""

    def begins(at, n):
        return n * 5e-5 - at >= 0, lax.fori_loop(0, n, lambda k, c: c + (k * 5e-5 >= at), 0)

    at = 0.05 + 5e-5 * np.arange(MEMBERS)
    steps = np.array([next(n for n in range(990, 1020) if n * 5e-5 >= t) for t in at])
    begun, count = natively(begins, at, steps)
    assert begun.all()
    assert not natively(begins, at, steps - 1)[0].any()
    counted = [sum(k * 5e-5 >= t for k in range(n)) for t, n in zip(at, steps, strict=True)]
    np.testing.assert_array_equal(count, counted)  # by Python: XLA may round once


def test_a_product_less_itself_is_zero():
    x, y = np.random.default_rng(1).normal(size=(2, MEMBERS))
    assert not natively(lambda x, y: x * y - y * x, x, y)[0].any()


# --- while and cond -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, BIG])
def test_a_while_loop_ends_for_each_member_by_itself(size):
    def loop(n, x):
        def going(c):
            return c[0] < n

        def body(c):
            k, a, b = c
            return k + 1, b.at[k % size].add(1), a

        return lax.while_loop(going, body, (0, x, 2 * x))

    x = whole(size)
    exactly(loop, np.array([0, 1, 5, 2, 0, 9, 3]), x)
    exactly(loop, np.array(4), x, shared=[True, False])
    exactly(loop, np.array(0), x, shared=[True, False])


def test_a_while_loop_inside_a_while_loop_and_inside_a_scan():
    def collatz(n):
        def steps(n):
            half = lambda n: jnp.where(n % 2 == 0, n // 2, 3 * n + 1)  # noqa: E731
            return lax.while_loop(lambda c: c[0] > 1, lambda c: (half(c[0]), c[1] + 1), (n, 0))[1]

        def outer(c):
            n, total, table = c
            return n - 1, total + steps(n), table.at[n].set(steps(n))

        alone = lax.while_loop(lambda c: c[0] > 0, outer, (n, 0, jnp.zeros(120, int)))
        return alone, lax.scan(lambda c, k: (c + steps(k + n), steps(k)), 0, jnp.arange(LONG))

    exactly(collatz, np.array([1, 7, 3, 12, 9, 2, 27]))


def test_fori_loops_with_ends_known_later():
    def sums(n, x):
        return lax.fori_loop(0, n, lambda k, s: s + x[k % 3], 0.0), lax.fori_loop(
            2, 600, lambda k, s: s + x[k % 3] * (k % 2), 0.0
        )

    exactly(sums, np.array([0, 1, 5, 100, 0, 9, 3]), whole(3))


@pytest.mark.small("2-300", "3-3")
@pytest.mark.parametrize("size", [3, BIG])
@pytest.mark.parametrize("branches", [2, 3])
def test_branches_by_an_index_that_members_share_or_not(size, branches):
    def choose(i, x, y):
        cases = [
            lambda x, y: (x + y, 1.0, y),
            lambda x, y: (x.at[2].set(7.0), y[0], x),
            lambda x, y: (jnp.zeros_like(x), jnp.sum(x[:3]), y),
        ]
        return lax.switch(i, cases[:branches], x, y), lax.cond(
            i > 0, lambda: x[0], lambda: y[1] + i
        )

    x, y = whole(size), whole(size, seed=2)
    exactly(choose, np.array([-3, 0, 1, 2, 7, 1, 0]), x, y)
    for index in (-1, 1, 5):
        exactly(choose, np.array(index), x, y, shared=[True, False, False], singles=1)
    exactly(choose, np.array([-3, 0, 1, 2, 7, 1, 0]), x[0], y[0], shared=[False, True, True])


def test_a_loop_that_would_never_end_for_a_member_that_is_not_there_ends():
    """Lanes go along through branches and passes that are not theirs."""

    def guarded(n):
        down = lambda n: lax.while_loop(lambda c: c != 1, lambda c: c - 2, n)  # noqa: E731
        branch = lax.cond(n % 2 == 0, lambda n: n, down, n)

        def body(c):
            left, total = c
            ends = lax.while_loop(lambda k: k * left < 12, lambda k: k + 1, 0)
            return left - 1, total + ends

        return branch, lax.while_loop(lambda c: c[0] > 0, body, (n, 0))

    exactly(guarded, np.arange(MEMBERS) + 2)


# --- calls --------------------------------------------------------------------------------------


@jax.custom_jvp
def _own_slope(x):
    return x * 3


_own_slope.defjvp(lambda p, t: (p[0] * 3, t[0] * 5))


@jax.custom_vjp
def _own_pull(x):
    return x * 4


_own_pull.defvjp(lambda x: (x * 4, None), lambda _, g: (g * 7,))


@jax.custom_batching.custom_vmap
def _own_batch(x, y):
    return x * y


@_own_batch.def_vmap
def _(size, batched, x, y):
    return x * y, True


def calls(x, y):
    """Each kind of call, and the derivatives that two of them bring along."""
    solved = lax.custom_linear_solve(
        lambda v: 2 * v, x, lambda _, b: b / 2, lambda _, b: b / 2, symmetric=True
    )
    return [
        jax.jit(lambda a, b: (b, a, a + b))(x, y),
        _own_slope(x),
        _own_pull(x),
        _own_batch(x, y),
        jax.checkpoint(lambda a: a * a)(x),
        jax.remat(lambda a: a + y)(x),
        solved,
        jax.jvp(_own_slope, (x,), (y,))[1],
        jax.vjp(_own_pull, x)[1](y),
        kept(x),
        jax.grad(lambda a: jnp.sum(jax.checkpoint(lambda b: b * b * y)(a)))(x),
        lax.optimization_barrier((x, y)),
        lax.stop_gradient(x),
        inside_jax(lambda a, b: (a + b, a))(x, y),
        jax.closure_convert(lambda a: a - 1, x)[0](x),
    ]


def test_calls_are_what_they_call():
    exactly(calls, whole(3), whole(3, seed=2))
    exactly(lambda x, y: calls(x, y)[:4], whole(BIG), whole(BIG, seed=2))
