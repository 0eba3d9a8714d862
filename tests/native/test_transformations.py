"""A kernel under each transformation of JAX is plain JAX, to rounding; and where there is no
machine code, XLA computes the same.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import jaxpr_as_fun

from compiling import QUICK
from mime.native import kernel as kernels
from mime.native.compiled import inside_jax
from mime.native.machine import NativeError, host, why_off


def swing(q, p):
    """A few steps of a pendulum on a moving pivot: a loop, a branch, an indexed table."""

    def body(carry, n):
        q, v = carry
        pull = lax.cond(q[0] > 0.3, lambda x: jnp.sin(x), lambda x: x - x**3 / 6, q)
        v = v - 0.1 * pull * p[0] + 0.01 * p[n % 2 + 1]
        q = q + 0.1 * v
        return (q, v), jnp.tanh(q[0] * v[1])

    (q, v), track = lax.scan(body, (q, jnp.zeros_like(q)), jnp.arange(30))
    return jnp.concatenate([q, v]), track


native = inside_jax(swing)
Q, P = np.array([0.4, -0.2]), np.array([1.5, 0.3, -0.4])
MANY_Q = np.random.default_rng(1).normal(size=(5, 2))
MANY_P = np.random.default_rng(2).normal(size=(3, 3))


def total(function):
    return lambda q, p: jnp.sum(function(q, p)[0] ** 2) + jnp.sum(jnp.cos(function(q, p)[1]))


def scanned(function):
    def loop(q, p):
        return lax.scan(lambda c, _: (function(c, p)[0][:2], c), q, None, length=3)

    return loop


TRANSFORMATIONS = {
    "plain": (lambda f: f, Q, P),
    "jit": (jax.jit, Q, P),
    "vmap": (lambda f: jax.vmap(f, (0, None)), MANY_Q, P),
    "vmap of the other": (lambda f: jax.vmap(f, (None, 0)), Q, MANY_P),
    "vmap along the last axis": (lambda f: jax.jit(jax.vmap(f, (1, None), 1)), MANY_Q.T, P),
    "vmap of vmap": (lambda f: jax.vmap(jax.vmap(f, (None, 0)), (0, None)), MANY_Q, MANY_P),
    "vmap of vmap of both": (
        lambda f: jax.vmap(jax.vmap(f), (0, None)),
        np.stack([MANY_Q[:3], 2 * MANY_Q[:3]]),
        MANY_P,
    ),
    "jvp": (lambda f: lambda q, p: jax.jvp(f, (q, p), (q + 1, 2 * p)), Q, P),
    "vjp": (lambda f: lambda q, p: jax.vjp(f, q, p)[1]((jnp.ones(4), jnp.ones(30))), Q, P),
    "grad": (lambda f: jax.grad(total(f), (0, 1)), Q, P),
    "jacfwd": (lambda f: jax.jacfwd(f, 1), Q, P),
    "jacrev": (lambda f: jax.jit(jax.jacrev(f, (0, 1))), Q, P),
    "vmap of grad": (lambda f: jax.vmap(jax.grad(total(f), 1), (0, None)), MANY_Q, P),
    "grad of vmap": (
        lambda f: jax.grad(lambda q, p: jnp.sum(jax.vmap(total(f), (0, None))(q, p)), (0, 1)),
        MANY_Q,
        P,
    ),
    "vmap of hessian": (lambda f: jax.vmap(jax.hessian(total(f)), (0, None)), MANY_Q, P),
    "inside a scan": (scanned, Q, P),
    "grad of a scan of it": (
        lambda f: jax.jit(jax.grad(lambda q, p: jnp.sum(scanned(f)(q, p)[1]), (0, 1))), Q, P
    ),
    "checkpoint": (
        lambda f: jax.grad(lambda q, p: jnp.sum(jax.checkpoint(f)(q, p)[0]), (0, 1)), Q, P
    ),
    "no members": (lambda f: jax.jit(jax.vmap(f, (0, None))), MANY_Q[:0], P),
    "closed over a traced value": (
        lambda f: jax.grad(lambda q, p: jnp.sum(inside_jax(lambda x: f(x, p)[0] * p[0])(q)), 1),
        Q,
        P,
    ),
}  # fmt: skip


def by_xla(function):
    """Plain JAX, with no kernel in it."""
    return jax.jit(function, compiler_options=QUICK)


def agree(mine, plain):
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(plain), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        # 30 steps of a dozen roundings each, in another order, and their second derivatives.
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


# Each rule once, and where two of them meet.
RULES = ["plain", "jit", "vmap of vmap of both", "jvp", "jacrev", "vmap of grad", "no members"]
RULES += ["grad of a scan of it", "closed over a traced value"]


@pytest.mark.small(*RULES)
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_kernel_under_a_transformation_is_plain_jax(name):
    transform, *args = TRANSFORMATIONS[name]
    mine = transform(native) if name in ("plain", "vmap") else jax.jit(transform(native))
    agree(mine(*args), by_xla(transform(swing))(*args))


@pytest.mark.soak("derivatives are those of plain JAX above")
def test_derivatives_agree_with_central_differences():
    h, value = 1e-6, jax.jit(total(native))
    slope = jax.jit(jax.grad(total(native)))(Q, P)
    for k in range(2):
        step = h * np.eye(2)[k]
        central = (value(Q + step, P) - value(Q - step, P)) / (2 * h)
        assert abs(slope[k] - central) < 1e-8  # h² and the rounding over h


def test_a_primitive_without_a_rule_sends_the_whole_function_to_xla():
    def sorts(x):
        return jnp.sort(jnp.sin(x)), x + 1

    x = np.array([3.0, 1.0, 2.0])
    kernel = kernels.Kernel(jax.make_jaxpr(sorts)(x))
    assert kernel.why_not() == "there is no rule for sort"
    agree(jax.jit(inside_jax(sorts))(x), sorts(x))
    agree(jax.vmap(inside_jax(sorts))(np.stack([x, -x])), jax.vmap(sorts)(np.stack([x, -x])))


@pytest.mark.small("jit")
@pytest.mark.parametrize("name", ["plain", "jit", "vmap of grad"])
def test_code_that_cannot_be_compiled_is_computed_by_xla(name, monkeypatch):
    def refuse(text, functions):
        raise NativeError("no memory for code")

    def own(q, p):  # a function of its own: another one's code may be known already
        return swing(q * 1.25, p)

    monkeypatch.setattr(kernels, "compile_ir", refuse)
    monkeypatch.setattr(kernels, "_loaded", {})
    transform, *args = TRANSFORMATIONS[name]
    agree(transform(inside_jax(own))(*args), by_xla(transform(own))(*args))


@pytest.mark.parametrize(
    ("variable", "value", "why", "lanes"),
    [
        ("MIME_NATIVE", "off", "the environment says MIME_NATIVE=off", None),
        ("MIME_NATIVE_FEATURES", "-avx,-avx2,-fma,-avx512f", None, (2, False)),
    ],
)
def test_without_native_code_and_without_avx_the_results_are_the_same(
    variable, value, why, lanes, monkeypatch
):
    def own(q, p):  # a function of its own: another one's code may be known already
        return swing(q * 0.75, p)

    monkeypatch.setenv(variable, value)
    assert why_off() == why
    if lanes:
        assert (host().lanes(64), host().has_fma) == lanes
    for name in ("vmap", "grad"):
        transform, *args = TRANSFORMATIONS[name]
        agree(jax.jit(transform(inside_jax(own)))(*args), by_xla(transform(own))(*args))


def test_what_was_traced_before_native_code_was_switched_off_is_computed_by_xla(monkeypatch):
    def lowered():
        return jax.jit(jaxpr_as_fun(traced)).lower(Q, P).as_text()

    traced = jax.make_jaxpr(native)(Q, P)
    assert "custom_call" in lowered()
    monkeypatch.setenv("MIME_NATIVE", "off")
    assert "custom_call" not in lowered()


def test_a_slip_of_the_compiler_goes_to_xla_unless_tests_ask_for_it(monkeypatch):
    def slip(*_):
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr("mime.native.kernel.kernel_text", slip)
    monkeypatch.setenv("MIME_NATIVE", "on")
    f = inside_jax(lambda x: x * 3.0)
    np.testing.assert_array_equal(f(jnp.arange(4.0)), 3.0 * np.arange(4.0))
    monkeypatch.setenv("MIME_NATIVE", "strict")
    with pytest.raises(ZeroDivisionError, match="a slip"):
        inside_jax(lambda x: x * 5.0)(jnp.arange(4.0))
