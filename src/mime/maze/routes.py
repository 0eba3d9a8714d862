"""Routes to the goal: the shortest in cells, the fastest for a mouse that slows down to turn."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mime.control.s_curve import Number, check_limits, s_curve
from mime.core.node import ParameterError, Problem, Scalar
from mime.core.parameters import known
from mime.maze.grid import Cell, MazeError
from mime.maze.maze import Maze


class SpeedProfile(eqx.Module):
    """How fast a mouse drives: S-curves on straights, turns at one speed. A pytree of numbers.

    It drives from cell edge to cell edge. A turn is a quarter circle of radius cell/2, of length
    pi/4 cell. The first straight starts from rest in the centre of a cell, the last one ends so.
    """

    turn_speed_m_per_s: Number = 0.5
    """The speed along the quarter circle."""
    top_speed_m_per_s: Number = 2.0
    acceleration_m_per_s2: Number = 5.0
    jerk_m_per_s3: Number = 200.0
    pivot_time_s: Number = 0.25
    """The time of a quarter turn on the spot, before the first move only."""

    def __check_init__(self) -> None:
        limits = {name: getattr(self, name) for name in self.__dataclass_fields__}
        check_limits(**limits)
        v_turn, v_top = self.turn_speed_m_per_s, self.top_speed_m_per_s
        if known(v_turn, v_top) and np.any(np.asarray(v_turn) > np.asarray(v_top)):
            message = f"must be at most top_speed_m_per_s = {v_top}, got {v_turn}"
            raise ParameterError("", [Problem(("turn_speed_m_per_s",), message)])


class MoveTimes(NamedTuple):
    """Times in s, by the number n of cells passed straight through between two turns.

    Infinite where a straight is too short to change the speed in.
    """

    first: Float[Array, " n"]
    """n + 1/2 cells from rest to a turn."""
    middle: Float[Array, " n"]
    """n cells from turn to turn."""
    last: Float[Array, " n"]
    """n + 1/2 cells from a turn to rest."""
    whole: Float[Array, " n"]
    """n + 1 cells from rest to rest."""
    turn: Scalar
    pivot: Scalar


@eqx.filter_jit
def move_times(profile: SpeedProfile, num: int, cell_size_m: Number) -> MoveTimes:
    """The times for n = 0 ... num - 1."""
    v_turn = jnp.asarray(profile.turn_speed_m_per_s, float)
    limits = profile.top_speed_m_per_s, profile.acceleration_m_per_s2, profile.jerk_m_per_s3

    def straight(length: Scalar, v0: Scalar, vf: Scalar) -> Scalar:
        curve = s_curve(length, *limits, v0, vf)
        return jnp.where(length > 0, jnp.where(curve.feasible, curve.duration, jnp.inf), 0.0)

    n, at_rest, turning = jnp.arange(num, dtype=float), jnp.zeros(num), jnp.full(num, v_turn)
    first, middle, last, whole = jnp.split(
        jax.vmap(straight)(  # all in one: an S-curve is a large program
            jnp.concatenate([n + 0.5, n, n + 0.5, n + 1.0]) * cell_size_m,
            jnp.concatenate([at_rest, turning, turning, at_rest]),
            jnp.concatenate([turning, turning, at_rest, at_rest]),
        ),
        4,
    )
    turn = jnp.asarray(jnp.pi / 4 * cell_size_m / v_turn)
    return MoveTimes(first, middle, last, whole, turn, jnp.asarray(profile.pivot_time_s, float))


@dataclass(frozen=True)
class Segment:
    """A part of a route: "pivot", "straight", "left" or "right"."""

    kind: str
    length_m: float
    time_s: float


@dataclass(frozen=True)
class Route:
    """A way through a maze: its cells, and how they are driven."""

    cells: tuple[Cell, ...]
    headings: tuple[int, ...]
    """The heading of each move from cell to cell."""
    segments: tuple[Segment, ...]

    @property
    def time_s(self) -> float:
        return sum((segment.time_s for segment in self.segments), 0.0)

    @property
    def length_m(self) -> float:
        return sum((segment.length_m for segment in self.segments), 0.0)


def shortest_route(maze: Maze) -> tuple[Cell, ...]:
    """The cells from the start to the nearest goal, both included: breadth-first search."""
    came_from: dict[Cell, Cell | None] = {maze.start: None}
    queue = deque([maze.start])
    while queue:
        cell = queue.popleft()
        if cell in maze.goals:
            return tuple(reversed(list(_trace(came_from, cell))))
        for heading in range(4):
            following = maze.neighbour(cell, heading)
            if following and following not in came_from and not maze.has_wall(cell, heading):
                came_from[following] = cell
                queue.append(following)
    raise AssertionError("a Maze's goals can be reached")


def _trace(came_from: dict[Cell, Cell | None], cell: Cell | None) -> Iterator[Cell]:
    while cell is not None:
        yield cell
        cell = came_from[cell]


def fastest_route(maze: Maze, profile: SpeedProfile | None = None) -> Route:
    """The route of the least time: Dijkstra's algorithm over (cell, heading) just after a turn.

    An edge is n cells straight on and a turn. The route ends in the first goal that it enters.
    """
    profile = profile or SpeedProfile()
    if maze.start in maze.goals:
        return Route((maze.start,), (), ())
    times = _times_for(maze, profile)
    best: dict[_Node, float] = {_START: 0.0}
    came_from: dict[_Node, tuple[_Node, list[int]]] = {}
    queue: list[tuple[float, _Node]] = [(0.0, _START)]
    while queue:
        time, node = heappop(queue)
        if node == _GOAL:
            return route_along(maze, _headings_to(came_from, node), profile)
        if time > best[node]:
            continue
        for cost, following, headings in _edges(maze, node, times):
            if time + cost < best.get(following, np.inf):
                best[following] = time + cost
                came_from[following] = node, headings
                heappush(queue, (time + cost, following))
    raise MazeError(
        f"no route that {profile} can drive: half a cell of {maze.cell_size_m:g} m is too short to "
        "get from rest to turn_speed_m_per_s and back. Lower it, or raise acceleration and jerk"
    )


_Node = tuple[int, int, int]
"""Row, column and heading on the edge of a cell, after a turn; or one of these two:"""
_START: _Node = (-1, -1, -1)
_GOAL: _Node = (-2, -2, -2)


def _edges(maze: Maze, node: _Node, times: Any) -> Iterator[tuple[float, _Node, list[int]]]:
    if node != _START:
        row, col, heading = node
        yield from _runs(maze, (row, col), heading, 0.0, times.middle, times.last, times.turn, [])
        return
    for heading in range(4):
        entered = maze.neighbour(maze.start, heading)
        if entered and not maze.has_wall(maze.start, heading):
            pivot = times.pivot * _quarter_turns(maze.start_heading, heading)
            runs = times.first, times.whole, times.turn
            yield from _runs(maze, entered, heading, pivot, *runs, [heading])


def _runs(
    maze: Maze,
    cell: Cell,
    heading: int,
    before: float,
    to_turn: list[float],
    to_stop: list[float],
    turn_time: float,
    headings: list[int],
) -> Iterator[tuple[float, _Node, list[int]]]:
    """All that can follow when `cell` is entered: stop in a goal, or turn somewhere ahead."""
    for n in range(len(to_turn)):
        if cell in maze.goals:
            yield before + to_stop[n], _GOAL, headings
            return
        for turned in ((heading + 1) % 4, (heading - 1) % 4):
            following = maze.neighbour(cell, turned)
            if following and not maze.has_wall(cell, turned):
                yield before + to_turn[n] + turn_time, (*following, turned), [*headings, turned]
        ahead = maze.neighbour(cell, heading)
        if ahead is None or maze.has_wall(cell, heading):
            return
        cell, headings = ahead, [*headings, heading]


def _headings_to(came_from: dict[_Node, tuple[_Node, list[int]]], node: _Node) -> list[int]:
    headings: list[int] = []
    while node != _START:
        node, added = came_from[node]
        headings = added + headings
    return headings


def route_along(maze: Maze, headings: Sequence[int], profile: SpeedProfile | None = None) -> Route:
    """The route from the start that makes these moves from cell to cell, at rest in the end."""
    times = _times_for(maze, profile or SpeedProfile())
    cells = [maze.start]
    for k, heading in enumerate(headings):
        following = maze.neighbour(cells[-1], heading)
        if following is None or maze.has_wall(cells[-1], heading):
            raise MazeError(f"move {k}, heading {heading}, runs into a wall of cell {cells[-1]}")
        cells.append(following)
    runs = [(heading, len(list(run))) for heading, run in groupby(headings)]
    quarter_turns = _quarter_turns(maze.start_heading, runs[0][0]) if runs else 0
    segments = [Segment("pivot", 0.0, times.pivot * quarter_turns)] if quarter_turns else []
    for k, (heading, moves) in enumerate(runs):
        is_first, is_last = k == 0, k == len(runs) - 1
        kind = ("middle", "last", "first", "whole")[2 * is_first + is_last]
        length = (moves - 1 + 0.5 * is_first + 0.5 * is_last) * maze.cell_size_m
        if length:
            time = getattr(times, kind)[moves - 1]
            segments.append(Segment("straight", length, time))
        if not is_last:
            turn = (runs[k + 1][0] - heading) % 4
            if turn == 2:
                raise MazeError(f"after heading {heading} a mouse in motion cannot turn back")
            arc = np.pi / 4 * maze.cell_size_m
            segments.append(Segment("right" if turn == 1 else "left", arc, times.turn))
    return Route(tuple(cells), tuple(int(heading) for heading in headings), tuple(segments))


def _times_for(maze: Maze, profile: SpeedProfile) -> Any:
    """`MoveTimes` of floats and lists of floats."""
    times = move_times(profile, max(maze.rows, maze.cols), maze.cell_size_m)
    return jax.tree.map(lambda t: t.tolist(), times)


def _quarter_turns(heading: int, other: int) -> int:
    return min((heading - other) % 4, (other - heading) % 4)
