"""Torques that fall with the velocity of their joint, in one implicit step of all joints together.

    H (v - v_free) = dt τ,      (v_j, τ_j) on a line of segments that only falls, for each joint j

A servo pushes less the faster its joint moves towards the goal: a sloping segment. At its torque
limit the line is level, at its speed limit upright; dry friction is upright at v = 0. H is positive
definite and the lines fall, so there is one solution: the minimum of a strictly convex function.

Once it is known on which segment each joint is, the rest is a linear system. The segments are found
by pivoting. Solve for some choice; where the point (v_j, τ_j) comes out beyond an end of its
segment, the solution lies beyond that end (with the other joints free to follow their lines, v_j
rises with τ_j, so that curve crosses the falling line once). In the first passes all such joints
move at once, to where they would be if the others went on as they do. That ends after two or
three passes as a rule, and could run in a circle. So after `JOINT_PASSES` of them only the first
such joint moves, by one segment. Joint j then moves only when those before it have their place for
that choice, always the same way, and so at most as often as its line has segments: this ends with
the solution (Murty's least-index rule, for lines of more than two segments).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

JOINT_PASSES = 8
"""Passes in which all joints may move; arms on their way were seen to need 3."""
MOST_PASSES = 1000
"""Least-index passes end by themselves; a NaN must end too."""

YIELDING = 0.3
"""What a joint of an arm weighs while the others may yield, as a part of H_jj, roughly. It decides
how far a pivot goes, and nothing about the result.
"""

Solve = Callable[[Array, Array], Array]


class FallingLines(NamedTuple):
    """For each of n coordinates m corners, v rising and τ falling, and the m + 1 segments between.

    A segment is upright at `velocity`, or τ = torque - slope v. The first and last have no end.
    """

    corner_velocity: Float[Array, "n m"]
    corner_torque: Float[Array, "n m"]
    upright: Any
    velocity: Float[Array, "n m+1"]
    torque: Float[Array, "n m+1"]
    slope: Float[Array, "n m+1"]


def implicit_step(
    H: Float[Array, "n n"], v_free: Float[Array, " n"], lines: FallingLines, dt: Any, solve: Solve
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """v and τ (n,) after the step; v_free is the result without these torques.

    `solve(A, b)` is A⁻¹ b, of a positive definite A with zeros wherever H has some. Derivatives are
    those of the solution: the search decides only on which segments it is.
    """

    def solution(segment: Array, H: Array, v_free: Array, lines: FallingLines, dt: Any) -> Any:
        """v and τ when each joint is on the line through its segment."""
        upright, at, torque, slope = (on(rows, segment) for rows in lines[2:])
        held = jnp.where(upright, at, 0)
        p = H @ v_free
        both = upright[:, None] | upright[None, :]
        unit = jnp.eye(H.shape[0], dtype=H.dtype)
        A = jnp.where(both, unit, H + jnp.diag(dt * slope))
        v = solve(A, jnp.where(upright, at, p + dt * torque - H @ held))
        v = jnp.where(upright, at, v)
        return v, jnp.where(upright, (H @ v - p) / dt, torque - slope * v)

    fixed = jax.lax.stop_gradient((H, v_free, lines, dt))
    weight = YIELDING * diagonal(fixed[0]) / fixed[3]
    segment = segments(fixed[2], weight, lambda s: solution(s, *fixed), weight * fixed[1])
    return solution(segment, H, v_free, lines, dt)


def segments(
    lines: FallingLines, weight: Array, solution: Callable[[Array], Any], start: Array
) -> Int[Array, " n"]:
    """The segment of each line on which the solution is.

    `solution(segment)` gives the points (v, τ) when each is on the line through its segment. With
    any weights > 0, weight v - τ only rises along a line, and tells its segments apart; `start` is
    a guess of it.
    """
    corners = weight[:, None] * lines.corner_velocity - lines.corner_torque
    before = jnp.concatenate([jnp.full_like(corners[:, :1], -jnp.inf), corners], 1)
    after = jnp.concatenate([corners, jnp.full_like(corners[:, :1], jnp.inf)], 1)

    def segment_of(place: Array) -> Array:
        return jnp.sum((place[:, None] > corners).astype(jnp.int32), 1)

    def better(segment: Array) -> Array:
        v, tau = solution(segment)
        place = weight * v - tau
        size = jnp.abs(weight * v) + jnp.abs(tau) + jnp.abs(on(lines.torque, segment))
        size = size + jnp.abs(on(lines.slope, segment) * v)
        rounding = 8 * jnp.finfo(v.dtype).eps * v.shape[0] * size
        inside = (place >= on(before, segment) - rounding) & (
            place <= on(after, segment) + rounding
        )
        return jnp.where(inside, segment, segment_of(place))

    def wrong(carry: tuple[Array, Array, Array]) -> Array:
        segment, new, count = carry
        return jnp.any(segment != new) & (count < MOST_PASSES)

    def pivot(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        segment, new, count = carry
        moves = segment != new
        first = moves & (jnp.arange(moves.shape[0]) == jnp.argmax(moves))
        by_one = jnp.where(first, segment + jnp.sign(new - segment), segment)
        segment = jnp.where(count < JOINT_PASSES, new, by_one)
        return segment, better(segment), count + 1

    guess, count = segment_of(start), jnp.zeros((), jnp.int32)
    segment, _, _ = jax.lax.while_loop(wrong, pivot, (guess, better(guess), count))
    return segment


def diagonal(H: Float[Array, "n n"]) -> Float[Array, " n"]:
    """H_jj"""
    return jnp.sum(jnp.where(jnp.eye(H.shape[0], dtype=bool), H, 0), 1)


@partial(jax.jit, inline=True)  # traced once for each number of segments
def on(entries: Any, segment: Int[Array, " n"]) -> Any:
    """The entry of each joint's segment (n,)."""
    chosen = entries[:, 0]
    for k in range(1, entries.shape[1]):
        chosen = jnp.where(segment == k, entries[:, k], chosen)
    return chosen
