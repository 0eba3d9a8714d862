"""Fixed-point iteration of a coupling group, differentiable by the implicit function theorem.

    x* = G(x*, p)        dx*/dp = (I - dG/dx)^-1 dG/dp

x holds the fluxes that the group's members pass to each other within one step. The loop that finds
x* is not differentiated: memory and cost of a gradient do not depend on the number of iterations.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from mime.core.wiring import CouplingGroup


class CouplingReport(eqx.Module):
    """How the iteration of a group went: in the last step, and the failures so far."""

    iterations: Int[Array, ""]
    """Evaluations of the group in the last step."""
    residual: Float[Array, ""]
    """max |G(x) - x| / (1 + |x|) in the last step."""
    failures: Int[Array, ""]
    """Steps that ended above the tolerance."""
    first_failure: Int[Array, ""]
    """Index of the first such step, -1 when there was none."""

    @staticmethod
    def start() -> "CouplingReport":
        """The report before the first step."""
        zero = jnp.zeros((), jnp.int32)
        return CouplingReport(zero, jnp.zeros(()), zero, zero - 1)

    def after(
        self, step: Int[Array, ""], iterations: Array, residual: Array, converged: Bool[Array, ""]
    ) -> "CouplingReport":
        """The report one step later."""
        failed = ~converged
        first = jnp.where(failed & (self.first_failure < 0), step, self.first_failure)
        return CouplingReport(
            iterations.astype(jnp.int32),
            residual.astype(self.residual.dtype),
            self.failures + failed.astype(jnp.int32),
            first.astype(jnp.int32),
        )


def tolerance_of(group: CouplingGroup, dtype: Any) -> float:
    """The group's tolerance, or what the precision comfortably reaches."""
    if group.tolerance is not None:
        return group.tolerance
    return 1e-9 if jnp.finfo(dtype).bits == 64 else 1e-5


def fixed_point(
    g: Callable[[Any], Any], guess: Any, group: CouplingGroup
) -> tuple[Any, Int[Array, ""], Float[Array, ""], Bool[Array, ""]]:
    """x* = G(x*): the fluxes, the number of evaluations, the residual, whether it converged."""
    x0, unravel = ravel_pytree(guess)
    if x0.size == 0:  # members that pass nothing to each other within a step
        return guess, jnp.ones((), jnp.int32), jnp.zeros(()), jnp.ones((), bool)
    tolerance = tolerance_of(group, x0.dtype)

    def residual_vector(x: Array) -> Array:
        return ravel_pytree(g(unravel(x)))[0].astype(x.dtype) - x

    def solve(f: Callable[[Array], Array], x: Array) -> tuple[Array, tuple[Array, Array]]:
        r = f(x)
        one = jnp.ones((), x.dtype)
        x, r, _, count, size = jax.lax.while_loop(
            lambda carry: (carry[4] > tolerance) & (carry[3] < group.max_iterations),
            lambda carry: _iterate(f, group.acceleration == "aitken", *carry),
            (x, r, one, one, _size(r, x)),  # the count is a float: custom_root differentiates aux
        )
        return x, (count, size)

    def tangent_solve(linear: Callable[[Array], Array], y: Array) -> Array:
        return jnp.linalg.solve(jax.jacobian(linear)(jnp.zeros_like(y)), y)

    x, (count, size) = jax.lax.custom_root(residual_vector, x0, solve, tangent_solve, has_aux=True)
    count, size = jax.lax.stop_gradient((count, size))
    # A NaN residual ends the loop but has not converged: compare so that NaN gives False.
    return unravel(x), count.astype(jnp.int32), size, size <= tolerance


def _size(r: Array, x: Array) -> Array:
    return jnp.max(jnp.abs(r) / (1 + jnp.abs(x)))


def _iterate(
    f: Callable[[Array], Array],
    aitken: bool,
    x: Array,
    r: Array,
    omega: Array,
    count: Array,
    size: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """x <- x + omega r, with Aitken's omega <- -omega r.(r' - r)/|r' - r|^2 when asked for."""
    x_next = x + omega * r
    r_next = f(x_next)
    if aitken:
        change = r_next - r
        norm2 = jnp.vdot(change, change)
        moved = norm2 > 0
        omega = jnp.where(moved, -omega * jnp.vdot(r, change) / jnp.where(moved, norm2, 1), omega)
    return x_next, r_next, omega, count + 1, _size(r_next, x_next)
