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
import numpy as np
from jaxtyping import Array, Float, Int

JOINT_PASSES = 8
"""Passes in which all joints may move; arms on their way were seen to need 3."""
MOST_PASSES = 1000
"""Least-index passes end by themselves; a NaN must end too."""

YIELDING = 0.3
"""What a joint of an arm weighs while the others may yield, as a part of H_jj, roughly. It decides
how far a pivot goes, and nothing about the result.
"""

Solve = Callable[[Array, Array, Array, Array], Array]
Solution = Callable[..., tuple[Array, Array]]


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
    H: Float[Array, "n n"],
    p: Float[Array, " n"],
    lines: FallingLines,
    dt: Any,
    solve: Solve,
    start: Float[Array, " n"],
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """v and τ (n,) after the step; p = H v_free is the momentum that is left without these torques.

    `solve(H, b, added, held)` is x of (H + diag(added)) x = b, with x_j = b_j where j is `held`.
    The search for the segments begins with those of the velocities `start`.
    """

    def solution(
        segment: Array, H: Array, p: Array, lines: FallingLines, dt: Any
    ) -> tuple[Array, Array]:
        """v and τ when each joint is on the line through its segment."""
        upright, at, torque, slope = (on(rows, segment) for rows in lines[2:])
        held = jnp.where(upright, at, 0)
        right = jnp.where(upright, at, p + dt * torque - H @ held)
        v = jnp.where(upright, at, solve(H, right, dt * slope, upright))
        return v, jnp.where(upright, (H @ v - p) / dt, torque - slope * v)

    weight = YIELDING * diagonal(H) / dt
    return on_segments(solution, lines, weight, weight * start, H, p, lines, dt)


def on_segments(
    solution: Solution, lines: FallingLines, weight: Array, start: Array, *arguments: Any
) -> tuple[Array, Array]:
    """The points (v, τ) on `lines` with `(v, τ) = solution(segments, *arguments)`.

    `solution` gives the points when each is on the line through its segment. With any weights > 0,
    weight v - τ only rises along a line, and tells its segments apart; `start` is a guess of it.

    Derivatives are those of `solution` on these segments.
    """
    search = jax.lax.stop_gradient((lines, weight, start))
    return _on_segments(solution, search, arguments)[1]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _on_segments(
    solution: Solution, search: tuple[FallingLines, Array, Array], arguments: tuple[Any, ...]
) -> tuple[Int[Array, " n"], tuple[Array, Array]]:
    """The segments, and the points on them: those of the last pass of the search."""
    lines, weight, start = search
    corners = weight[:, None] * lines.corner_velocity - lines.corner_torque
    before = jnp.concatenate([jnp.full_like(corners[:, :1], -jnp.inf), corners], 1)
    after = jnp.concatenate([corners, jnp.full_like(corners[:, :1], jnp.inf)], 1)

    def segment_of(place: Array) -> Array:
        return jnp.sum((place[:, None] > corners).astype(jnp.int32), 1)

    def better(segment: Array, v: Array, tau: Array) -> Array:
        place = weight * v - tau
        size = jnp.abs(weight * v) + jnp.abs(tau) + jnp.abs(on(lines.torque, segment))
        size = size + jnp.abs(on(lines.slope, segment) * v)
        rounding = 8 * jnp.finfo(v.dtype).eps * v.shape[0] * size
        inside = (place >= on(before, segment) - rounding) & (
            place <= on(after, segment) + rounding
        )
        return jnp.where(inside, segment, segment_of(place))

    def wrong(carry: _Search) -> Array:
        return jnp.any(carry.segment != carry.new) & (carry.passes < MOST_PASSES)

    def pivot(carry: _Search) -> _Search:
        segment, new, passes, _ = carry
        moves = segment != new
        first = moves & (jnp.arange(moves.shape[0]) == jnp.argmax(moves))
        by_one = jnp.where(first, segment + jnp.sign(new - segment), segment)
        segment = jnp.where(passes < JOINT_PASSES, new, by_one)
        points = solution(segment, *arguments)
        return _Search(segment, better(segment, *points), passes + 1, points)

    # The first pass takes the guess as it is.
    guess, none = segment_of(start), jnp.zeros_like(weight)
    begin = _Search(jnp.full_like(guess, -1), guess, jnp.full((), -1, jnp.int32), (none, none))
    found = jax.lax.while_loop(wrong, pivot, begin)
    return found.segment, found.points


@_on_segments.defjvp
def _change(
    solution: Solution, primals: tuple[Any, Any], tangents: tuple[Any, Any]
) -> tuple[Any, Any]:
    segment, points = _on_segments(solution, *primals)
    _, change = jax.jvp(lambda given: solution(segment, *given), primals[1:], tangents[1:])
    no_change = np.zeros(segment.shape, jax.dtypes.float0)
    return (segment, points), (no_change, change)


class _Search(NamedTuple):
    """Where the search for the segments is."""

    segment: Int[Array, " n"]
    new: Int[Array, " n"]
    """The segments on which `points` lie."""
    passes: Int[Array, ""]
    """How many of them there were, without that of the guess."""
    points: tuple[Array, Array]
    """(v, τ) when each joint is on the line through `segment`."""


def diagonal(H: Float[Array, "n n"]) -> Float[Array, " n"]:
    """H_jj"""
    return jnp.sum(jnp.where(jnp.eye(H.shape[0], dtype=bool), H, 0), 1)


@partial(jax.jit, inline=True)  # traced once for each number of segments
def on(entries: Any, segment: Int[Array, " n"]) -> Any:
    """The entry of each joint's segment (n,)."""
    chosen = entries[:, 0]
    for k in range(1, entries.shape[1]):
        chosen = jax.lax.select(segment == k, entries[:, k], chosen)
    return chosen
