"""Gradients through loops of a kernel are those of plain JAX, to rounding, and keep only states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from compiling import QUICK
from mime.native.compiled import inside_jax
from mime.native.jaxprs import kept
from mime.native.kernel import Kernel

X, C = np.array([0.4, -0.2, 0.9]), np.array([1.5, 0.3])
U = np.random.default_rng(5).normal(size=(12, 3))


def one_loop(x, c, u):
    """Constants, inputs, outputs, an integer that counts and a state that nothing moves."""

    def body(carry, u):
        n, x, still = carry
        x = x + 0.1 * jnp.sin(x[::-1]) * c[0] - 0.05 * u * c[1] + 0.01 * still * n
        return (n + 1, x, still * 0.5), (x[0] * x[1], n)

    return lax.scan(body, (jnp.int32(0), x, jnp.ones_like(x)), u)


def backwards(x, c, u):
    return lax.scan(lambda x, u: (jnp.tanh(x * c[0] + u), x[0] * c[1]), x, u, reverse=True)


def branches(x, c, u):
    """A branch that is taken now and then, with a loop and constants inside."""
    table = jnp.asarray(np.linspace(0.5, 1.5, 3))

    def hit(x):
        return lax.fori_loop(0, 4, lambda k, y: 0.3 * jnp.cos(y * table) * c[0] + 0.1 * x * k, x)

    def body(x, u):
        x = x + 0.2 * u
        x = lax.cond(x[0] > 0.3, hit, lambda x: x * c[1], x)
        x = lax.switch(jnp.int32(jnp.sum(x) > 0), [lambda x: x, lambda x: 0.9 * x + c[0]], x)
        return x, jnp.sum(x)

    return lax.scan(body, x, u)


def nested(x, c, u):
    """Samples of several steps, in segments that are recomputed: as `rollout` makes them."""

    def step(x, u):
        return x + 0.1 * jnp.sin(x) * c[0] + 0.1 * u * c[1]

    one = jax.checkpoint(step, policy=jax.checkpoint_policies.save_only_these_names("mime_kept"))

    def sample(x, u):
        x, _ = lax.scan(lambda x, u: (one(x, u), None), x, u)
        return x, x * c[0]

    segment = jax.checkpoint(lambda x, u: lax.scan(sample, x, u))
    return lax.scan(segment, x, u.reshape(2, 3, 2, 3))


def inner_loops(x, c, u):
    """Loops in a loop that keep what they need, their results used in curved ways."""

    def body(x, u):
        y, track = lax.scan(lambda y, w: (y * jnp.cos(w * c[1]), y * y), x, jnp.outer(u, X))
        return jnp.sin(y) * c[0], jnp.exp(0.1 * track)

    return lax.scan(body, x, u)


@jax.custom_jvp
def rooted(x, c):
    """y with y³ + c y = x, by Newton."""
    return lax.fori_loop(0, 6, lambda _, y: y - (y**3 + c * y - x) / (3 * y**2 + c), x)


@rooted.defjvp
def _(primals, tangents):
    (x, c), (dx, dc) = primals, tangents
    y = kept(rooted(x, c))
    return y, (dx - y * dc) / (3 * y**2 + c)


def own_rule(x, c, u):
    return lax.scan(lambda x, u: (rooted(x + u, c[0]) + c[1] * x, rooted(x, 2.0)), x, u)


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, jnp.cos(x)), lambda kept, bar: (2 * bar + 0.0 * kept,))


def own_reverse(x, c, u):
    return lax.scan(lambda x, u: (doubled(x) * 0.4 + u, jnp.sum(x) * c), x, u)


@jax.jit
def part(x, c):
    for _ in range(8):
        x = x + 0.01 * jnp.sin(x * c)
    return x


def shared(x, c, u):
    """A function that is called often stays one function."""

    def body(x, u):
        return part(part(part(part(x, c[0]), c[1]), c[0]) + u, 0.3), part(u, c[1])

    return lax.scan(body, x, u)


def elements(x, c, u):
    """Operations of many kinds."""

    def body(x, u):
        i = jnp.argmax(u)
        y = jnp.clip(x, -0.8, 0.8) + jnp.maximum(x, u) * jnp.minimum(u, c[0]) + jnp.abs(x) ** 1.5
        y = y.at[i].add(c[1]) + jnp.arctan2(x, u + 3.0) + lax.dynamic_slice(y, (i // 2,), (1,))
        z = jnp.concatenate([y, x])[::2] @ jnp.outer(x, u) + jnp.where(u > 0, x, y[::-1])
        return jnp.tanh(z) + jnp.cumsum(u) * lax.stop_gradient(x), (jnp.sqrt(1 + y * y), i)

    return lax.scan(body, x, u)


LOOPS = [
    one_loop,
    backwards,
    branches,
    nested,
    inner_loops,
    own_rule,
    own_reverse,
    shared,
    elements,
]


def total(function):
    def of(x, c, u):
        leaves = [
            y for y in jax.tree.leaves(function(x, c, u)) if jnp.issubdtype(y.dtype, jnp.floating)
        ]
        return sum(jnp.sum(jnp.sin(y + 0.1)) for y in leaves)

    return of


def by_xla(function):
    """Plain JAX, with no kernel in it."""
    return jax.jit(function, compiler_options=QUICK)


def agree(mine, plain, rtol=1e-11):
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(plain), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        # A dozen passes of some dozen roundings each, in another order.
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("loop", "moving"), [(one_loop, (0,)), (one_loop, (1,)), *((loop, (0, 1, 2)) for loop in LOOPS)]
)
def test_gradients_are_those_of_plain_jax(loop, moving):
    mine = jax.jit(jax.grad(total(inside_jax(loop)), moving))(X, C, U)
    agree(mine, by_xla(jax.grad(total(loop), moving))(X, C, U))


@pytest.mark.small("branches")
@pytest.mark.parametrize("loop", [one_loop, branches, nested, own_rule])
def test_batches_of_gradients_are_those_of_plain_jax(loop):
    many = X + np.linspace(-1, 1, 5)[:, None]

    def gradients(function):
        return jax.vmap(jax.grad(total(function), (0, 1)), (0, None, None))

    mine = jax.jit(gradients(inside_jax(loop)))(many, C, U)
    agree(mine, by_xla(gradients(loop))(many, C, U))


@pytest.mark.small("inner_loops")
@pytest.mark.parametrize("loop", [one_loop, branches, nested, inner_loops, own_rule])
def test_second_derivatives_are_those_of_plain_jax(loop):
    mine, plain = total(inside_jax(loop)), total(loop)
    agree(jax.jit(jax.hessian(mine))(X, C, U), by_xla(jax.hessian(plain))(X, C, U))
    # reverse of reverse
    twice = lambda f: jax.jacrev(jax.grad(f), 1)  # noqa: E731
    agree(jax.jit(twice(mine))(X, C, U), by_xla(twice(plain))(X, C, U))


def test_single_precision_stays_single():
    args = [x.astype(np.float32) for x in (X, C, U)]
    mine = jax.jit(jax.grad(total(inside_jax(one_loop)), (0, 1)))(*args)
    agree(mine, by_xla(jax.grad(total(one_loop), (0, 1)))(*args), rtol=1e-4)


def test_results_that_nobody_looks_at_cost_no_array():
    x, c, u = (jax.ShapeDtypeStruct(np.shape(a), float) for a in (X, C, U))
    kernel = Kernel(jax.make_jaxpr(one_loop)(x, c, u))
    forward = kernel.forward((True, True, False))
    reverse = forward.reverse((True, True, False))
    assert sorted(a.shape for a in forward.kept_avals) == [(12,), (12, 3), (12, 3)]
    assert len(reverse.in_avals) == 3 + 3 + 2


def kept_shapes(function, *args):
    kernel = Kernel(jax.make_jaxpr(function)(*args))
    moving = tuple(jnp.issubdtype(a.dtype, jnp.floating) for a in kernel.in_avals)
    return sorted(a.shape for a in kernel.forward(moving).kept_avals)


def test_a_loop_keeps_its_states_and_what_is_called_kept():
    assert kept_shapes(backwards, X, C, U) == [(12, 3)]
    # With the states, the solutions of both equations: the reverse solves none of them again.
    assert kept_shapes(own_rule, X, C, U) == [(12, 3)] * 3


def test_a_branch_keeps_nothing():
    table, states = (3,), (12, 3)
    assert kept_shapes(branches, X, C, U) == [table, states]


def test_segments_that_are_recomputed_keep_one_state_each():
    states, inputs = (2, 3), (2, 3, 2, 3)
    assert kept_shapes(nested, X, C, U) == [states, inputs]
