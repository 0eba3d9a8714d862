"""The servos of an arm over one implicit step, within their torques and speeds.

    H (v - v_free) = dt τ,     τ_j = clip(b_j - K_j v_j, ±T_j),     |v_j| <= V_j

At its speed limit a servo brakes, and that is all as long as its torque suffices
(`mime.control.servo_lines`). Large joints can whip a small one beyond its limit although it brakes
with all it has. Then the others give way: of all torques within ±T that keep |v| <= V those are
taken that are nearest to the law, in the sense in which the law itself is a minimum,

    min over |τ| <= T, |v(τ)| <= V of   ½ dt τᵀ H⁻¹ τ + v_freeᵀ τ + Σ (½ τ_j² - b_j τ_j) / K_j

    τ_j = clip(b_j - K_j w_j, ±T_j),     H (w - v) = dt μ,     0 <= |μ_j|  ⊥  V_j - |v_j| >= 0

so a servo acts as if its joint moved with w. These are 2 n falling lines, of (w, τ) and (v, -μ),
solved as those of one joint each. The lines of μ are not quite upright, which makes the solution
unique where no torques keep the limits (something from outside pushes): then it is the one that
misses them least. A joint that is beyond its limit when the step begins need only not get faster.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mime.control.falling_torques import (
    YIELDING,
    FallingLines,
    Solve,
    diagonal,
    implicit_step,
    on,
    on_segments,
)
from mime.control.positive_definite import solve as solve_dense
from mime.control.servo_lines import ServoLaw, servo_lines


def servo_step(
    H: Float[Array, "n n"],
    p: Float[Array, " n"],
    v_now: Float[Array, " n"],
    law: ServoLaw,
    dt: Any,
    solve: Solve,
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """v and the servos' torques (n,).

    p = H v_free is the momentum after the step without servos and dry friction.
    """
    v, total = implicit_step(H, p, law.lines(), dt, solve, v_now)
    tau = law.torque(v, total)
    V = jnp.maximum(law.V, jnp.abs(v_now))
    # Friction stays what it was before the others gave way.
    pushed = p if law.friction is None else p + dt * (total - tau)
    beyond = jnp.any(jnp.abs(v) > V * (1 + 8 * jnp.finfo(v.dtype).eps))
    return jax.lax.cond(
        beyond, lambda: _giving_way(H, pushed, law._replace(V=V), dt, (v, tau)), lambda: (v, tau)
    )


@partial(jax.jit, inline=True)  # traced once for each number of joints
def _giving_way(
    H: Array, p: Array, law: ServoLaw, dt: Any, guess: tuple[Array, Array]
) -> tuple[Array, Array]:
    b, K, T, V = law[:4]
    n, eps = H.shape[0], jnp.finfo(H.dtype).eps
    steep = diagonal(H) / (dt * jnp.sqrt(eps))
    finite = jnp.isfinite(V)
    at = jnp.where(finite, V, 0)
    limits = _limit_lines(jnp.where(finite, V, jnp.inf), at * steep, jnp.where(finite, steep, 0))
    both = servo_lines(b, K, T, jnp.full_like(V, jnp.inf)), limits
    lines = FallingLines(*(jnp.concatenate(rows) for rows in zip(*both, strict=True)))

    def solution(
        segment: Array, H: Array, p: Array, lines: FallingLines, dt: Any
    ) -> tuple[Array, Array]:
        """(w, v) and (τ, -μ);   y = w - v."""
        torque, slope = on(lines.torque, segment), on(lines.slope, segment)
        K, c = jnp.diag(dt * slope[:n]), jnp.diag(dt * slope[n:])
        A = jnp.concatenate([jnp.concatenate([H + K, K], 1), jnp.concatenate([-c, H], 1)])
        rest = jnp.concatenate([p + dt * torque[:n], -dt * torque[n:]])
        found = solve_dense(A, rest[:, None])[:, 0]
        points = jnp.concatenate([found[:n] + found[n:], found[:n]])
        return points, torque - slope * points

    weight = jnp.tile(YIELDING * diagonal(H) / dt, 2)
    v, tau = guess
    start = weight * jnp.tile(v, 2) - jnp.concatenate([tau, jnp.zeros_like(tau)])
    points, torques = on_segments(solution, lines, weight, start, H, p, lines, dt)
    v = points[n:]
    # Where the limit can be kept it is missed by the steepness only.
    near = jnp.abs(v) < V * (1 + jnp.sqrt(eps) * 1e3)
    return jnp.where(near, jnp.clip(v, -V, V), v), torques[:n]


def _limit_lines(V: Array, offset: Array, steep: Array) -> FallingLines:
    """-μ over v: 0 within ±V, and steep beyond."""
    zero = jnp.zeros_like(V)
    none, no = jnp.full_like(V, jnp.inf), jnp.zeros_like(V, dtype=bool)
    columns = (
        (-none, -V, V, none),
        (zero, zero, zero, zero),
        (no,) * 5,
        (zero,) * 5,
        (zero, -offset, zero, offset, zero),
        (zero, steep, zero, steep, zero),
    )
    return FallingLines(*(jnp.stack(column, 1) for column in columns))
