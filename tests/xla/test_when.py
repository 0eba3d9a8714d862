"""`when`: the value of `jnp.where` of the whole, at the price of the members in need."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mime.xla.when import when

CONDITIONS = jnp.array([True, False, False, True, False])
VALUES = {"count": jnp.arange(5, dtype=jnp.int32), "x": jnp.linspace(0.5, 2.5, 15).reshape(5, 3)}


def change(value):
    return {"count": value["count"] * 2 + 1, "x": jnp.sin(value["x"]) + value["count"]}


def assert_same(got, expected):
    """Equal to one rounding: a fused program may round a sum once less."""
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-15)


def choose(condition, new, old):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b).astype(b.dtype), new, old)


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_alone_it_is_a_conditional(condition, wrap):
    value = jax.tree.map(lambda x: x[3], VALUES)
    got = wrap(lambda c, v: when(c, change, v))(jnp.bool_(condition), value)
    assert_same(got, change(value) if condition else value)


def test_in_a_batch_it_equals_the_choice_after_the_whole_computation():
    got = jax.jit(jax.vmap(lambda c, v: when(c, change, v)))(CONDITIONS, VALUES)
    assert_same(got, jax.vmap(lambda c, v: choose(c, change(v), v))(CONDITIONS, VALUES))


@pytest.mark.parametrize("condition", [True, False])
def test_a_batch_may_share_the_condition(condition):
    got = jax.vmap(lambda v: when(jnp.bool_(condition), change, v))(VALUES)
    assert_same(got, jax.vmap(change)(VALUES) if condition else VALUES)


def test_a_batch_may_share_the_value_or_a_part_of_it():
    one = jax.tree.map(lambda x: x[1], VALUES)
    got = jax.vmap(lambda c: when(c, change, one))(CONDITIONS)
    assert_same(got, jax.vmap(lambda c: choose(c, change(one), one))(CONDITIONS))

    def mixed(c, x):
        return when(c, change, {"count": one["count"], "x": x})

    def full(c, x):
        value = {"count": one["count"], "x": x}
        return choose(c, change(value), value)

    assert_same(jax.vmap(mixed)(CONDITIONS, VALUES["x"]), jax.vmap(full)(CONDITIONS, VALUES["x"]))


def test_what_change_refers_to_may_belong_to_the_member_or_to_all():
    mine, shared = jnp.arange(5.0) * 10, jnp.array([1.0, 2.0, 3.0])
    index = jnp.array([2, 0, 1, 1, 2])

    def one(c, x, mine, i):
        return when(c, lambda x: x * shared + mine + shared[i], x)

    got = jax.jit(jax.vmap(one))(CONDITIONS, VALUES["x"], mine, index)
    full = VALUES["x"] * shared[None] + mine[:, None] + shared[index][:, None]
    assert_same(got, jnp.where(CONDITIONS[:, None], full, VALUES["x"]))


def test_it_nests():
    inner_conditions = jnp.array([True, True, False, False, True])

    def one(c, d, value):
        offset = value["x"][0]

        def outer(value):
            value = change(value)
            return when(d, lambda v: v | {"x": v["x"] - offset}, value)

        return when(c, outer, value)

    def full(c, d, value):
        new = change(value)
        new = choose(d, new | {"x": new["x"] - value["x"][0]}, new)
        return choose(c, new, value)

    got = jax.jit(jax.vmap(one))(CONDITIONS, inner_conditions, VALUES)
    assert_same(got, jax.vmap(full)(CONDITIONS, inner_conditions, VALUES))
    first = jax.tree.map(lambda x: x[0], VALUES)
    assert_same(
        one(jnp.bool_(True), jnp.bool_(True), first), full(jnp.bool_(True), jnp.bool_(True), first)
    )


def test_batches_of_batches_are_the_same():
    conditions = jnp.stack([CONDITIONS, ~CONDITIONS])
    values = jax.tree.map(lambda x: jnp.stack([x, x + 1]), VALUES)
    one, full = (lambda c, v: when(c, change, v)), (lambda c, v: choose(c, change(v), v))
    got, expected = (jax.vmap(jax.vmap(f))(conditions, values) for f in (one, full))
    assert_same(got, expected)


def test_it_works_inside_a_scan_inside_a_batch():
    def run(use, start):
        def step(x, i):
            x = use(jnp.sin(x) > 0.5, lambda x: x * 0.5 + i, x)
            return x + 0.3, x

        return jax.lax.scan(step, start, jnp.arange(20.0))[1]

    def whole(condition, change, value):
        return jnp.where(condition, change(value), value)

    starts = jnp.linspace(0.0, 3.0, 7)
    got, expected = (
        jax.jit(jax.vmap(lambda x, use=use: run(use, x)))(starts) for use in (when, whole)
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12)  # twenty steps of rounding


def test_results_take_the_types_of_the_value():
    value = {"count": jnp.int8(3), "flag": jnp.bool_(False), "x": jnp.float32(0.5)}

    def widens(value):
        return {"count": jnp.int32(7), "flag": jnp.int32(1), "x": jnp.float64(0.25)}

    expected = {"count": jnp.int8(7), "flag": jnp.bool_(True), "x": jnp.float32(0.25)}
    assert_same(when(jnp.bool_(True), widens, value), expected)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), value)
    got = jax.vmap(lambda c, v: when(c, widens, v))(jnp.array([False, True]), batch)
    assert_same(got, jax.tree.map(lambda a, b: jnp.stack([a, b]), value, expected))


@pytest.mark.small("needy1", "needy3")
@pytest.mark.parametrize("needy", [[], [1], [0, 3], [0, 1, 2, 3, 4]])
def test_only_the_members_that_need_it_are_computed(needy):
    computed = []

    def observed(value):
        jax.debug.callback(lambda count: computed.append(int(count)), value["count"])
        return change(value)

    conditions = jnp.zeros(5, bool).at[jnp.array(needy, int)].set(True)
    got = jax.jit(jax.vmap(lambda c, v: when(c, observed, v)))(conditions, VALUES)
    jax.effects_barrier()
    assert sorted(computed) == needy
    assert_same(got, jax.vmap(lambda c, v: choose(c, change(v), v))(conditions, VALUES))
