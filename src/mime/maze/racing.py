"""The fastest route inside a compiled program: value iteration on arrays."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Int32

from mime.control.s_curve import Number
from mime.maze.flood_fill import CellIndex, HorizontalWalls, Targets, VerticalWalls, check_walls
from mime.maze.grid import STEPS
from mime.maze.routes import MoveTimes, SpeedProfile, move_times

Bools = Bool[Array, "4 size size"]
Costs = Float[Array, "4 size size"]


class _Grid(NamedTuple):
    """The open sides and goals. In views, heading h points along the last axis; see `_view`."""

    is_open: Bools
    """[h, row, col]: the side that h points to is open. Not a view."""
    goal: Bool[Array, "size size"]
    open_view: Bools
    run_view: Bool[Array, "size 4 size size"]
    """[n, h]: from here n cells can be passed through, none of them a goal."""
    goal_ahead_view: Bool[Array, "size 4 size size"]
    """[n, h]: from here n cells can be passed through, and behind them lies a goal."""


class _Plan(NamedTuple):
    """What to do on entering cell (row, col) with heading h, all [h, row, col]."""

    time: Costs
    passed: Int[Array, "4 size size"]
    """The number of cells to pass straight through."""
    stop: Bools
    """True: then stop, in a goal. False: then turn."""


@partial(jax.jit, static_argnames="max_length")
def fastest_headings(
    horizontal: HorizontalWalls,
    vertical: VerticalWalls,
    start: CellIndex,
    start_heading: Int[ArrayLike, ""],
    targets: Targets,
    profile: SpeedProfile,
    max_length: int,
    cell_size_m: Number = 0.18,
) -> tuple[Int32[Array, " max_length"], Int32[Array, ""]]:
    """The headings of the moves of `fastest_route`, -1 behind the last, and their number.

    The count is 0 at a target, and -1 where there is no route of at most `max_length` moves.

        T(s) = min over n of  t(n) + t_turn + T(s after n cells and a turn),  or  t_last(n)

    for the states s = (row, column, heading) just after a turn, swept over all s until no T
    changes: as often as the longest route has turns.
    """
    horizontal, vertical, targets = check_walls(horizontal, vertical, targets)
    grid = _grid(horizontal, vertical, targets)
    times = move_times(profile, grid.goal.shape[0], cell_size_m)

    def sweep(state: tuple[Costs, Any]) -> tuple[Costs, Any]:
        time = _best_runs(grid, times.middle, times.last, _turn_costs(grid, state[0], times)).time
        return time, jnp.any(time < state[0])

    unknown = jnp.full(grid.is_open.shape, jnp.inf)
    time, _ = jax.lax.while_loop(lambda state: state[1], sweep, (unknown, jnp.bool_(True)))
    turn_costs = _turn_costs(grid, time, times)
    plan = _best_runs(grid, times.middle, times.last, turn_costs)
    first_plan = _best_runs(grid, times.first, times.whole, turn_costs)
    exits = _exit_costs(grid, time)
    turns_right = jnp.roll(exits, -1, axis=0) <= jnp.roll(exits, 1, axis=0)

    row, col = (jnp.asarray(x, jnp.int32) for x in (start[0], start[1]))  # type: ignore[index]
    ways = jnp.arange(4, dtype=jnp.int32)
    turned = (ways - start_heading) % 4
    pivots = times.pivot * jnp.minimum(turned, 4 - turned)
    entered = jax.vmap(partial(_look_ahead, first_plan.time, row, col))(ways)
    start_times = jnp.where(grid.is_open[:, row, col], pivots + entered, jnp.inf)
    heading = jnp.argmin(start_times).astype(jnp.int32)

    def move(state: Any, _: None) -> tuple[Any, Int32[Array, ""]]:
        """The next move goes from (row, col) to `heading`; then `passed` cells are passed."""
        row, col, heading, passed, stop, moving = state
        made = jnp.where(moving, heading, -1)
        row, col = _step(row, col, heading)
        goes_straight = passed > 0
        turned = (heading + jnp.where(turns_right[heading, row, col], 1, 3)) % 4
        passed_then, stop_then = (
            _look_ahead(x, row, col, turned) for x in (plan.passed, plan.stop)
        )
        after = (
            jnp.where(goes_straight, heading, turned),
            jnp.where(goes_straight, passed - 1, passed_then),
            jnp.where(goes_straight, stop, stop_then),
            moving & (goes_straight | ~stop),
        )
        return (row, col, *after), made

    departs = ~grid.goal[row, col] & jnp.isfinite(start_times[heading])
    runs = (_look_ahead(x, row, col, heading) for x in (first_plan.passed, first_plan.stop))
    state = (row, col, heading, *runs, departs)
    (*_, moving), headings = jax.lax.scan(move, state, None, length=max_length)
    arrives = grid.goal[row, col] | (departs & ~moving)
    count = jnp.where(arrives, jnp.sum(headings >= 0, dtype=jnp.int32), -1)
    return jnp.where(arrives, headings, -1), count


def _grid(
    horizontal: Bool[Array, "_ _"], vertical: Bool[Array, "_ _"], targets: Bool[Array, "_ _"]
) -> _Grid:
    """The grid, padded to a square so that it can be turned."""
    rows, cols = targets.shape
    size = max(rows, cols)
    closed = jnp.zeros((size, size), bool)
    east = closed.at[:rows, : cols - 1].set(~vertical[:, 1:-1])
    south = closed.at[: rows - 1, :cols].set(~horizontal[1:-1])
    west, north = (jnp.roll(side, 1, axis) for side, axis in ((east, 1), (south, 0)))
    is_open = jnp.stack([east, south, west, north])
    goal = closed.at[:rows, :cols].set(targets)
    open_view, goal_view = _view(is_open), _view(jnp.stack([goal] * 4))
    passable = _ahead(open_view & ~goal_view, False)
    run = jnp.concatenate([jnp.ones_like(passable[:1]), jnp.cumprod(passable[:-1], 0).astype(bool)])
    return _Grid(is_open, goal, open_view, run, run & _ahead(goal_view, False))


def _best_runs(
    grid: _Grid,
    to_turn: Float[Array, " size"],
    to_stop: Float[Array, " size"],
    turn_costs_view: Costs,
) -> _Plan:
    """min over n of  to_turn[n] + turn_costs(n cells ahead),  or  to_stop[n]  before a goal."""
    to_turn, to_stop = (t[:, None, None, None] for t in (to_turn, to_stop))
    costs = jnp.where(grid.run_view, to_turn + _ahead(turn_costs_view, jnp.inf), jnp.inf)
    costs = jnp.where(grid.goal_ahead_view, to_stop, costs)
    passed = jnp.argmin(costs, axis=0)
    # Not `jnp.min`, which is a call to a library: a loop with one in it is not compiled as a whole.
    time, stop = (
        jnp.take_along_axis(x, passed[None], axis=0)[0] for x in (costs, grid.goal_ahead_view)
    )
    return _Plan(*(_unview(x) for x in (time, passed, stop)))


def _turn_costs(grid: _Grid, time: Costs, times: MoveTimes) -> Costs:
    """A view of the time of a turn in a cell, to the better side, and of all that follows."""
    exits = _exit_costs(grid, time)
    either = jnp.minimum(jnp.roll(exits, -1, axis=0), jnp.roll(exits, 1, axis=0))
    return _view(jnp.where(grid.goal[None], jnp.inf, times.turn + either))


def _exit_costs(grid: _Grid, time: Costs) -> Costs:
    """[h]: the time that remains after a cell is left towards h."""
    next_view = jnp.roll(_view(time), -1, axis=-1)  # what comes round is behind a wall
    return _unview(jnp.where(grid.open_view, next_view, jnp.inf))


def _ahead(view: Array, fill: Any) -> Array:
    """[n]: the view n cells further on, for n = 0 ... size - 1."""
    size = view.shape[-1]
    padded = jnp.pad(view, ((0, 0), (0, 0), (0, size - 1)), constant_values=fill)
    return jnp.stack([padded[..., n : n + size] for n in range(size)])


def _view(x: Array) -> Array:
    """Turn what belongs to heading h back by h quarter turns, so that h points east."""
    return jnp.stack([jnp.rot90(x[h], h) for h in range(4)])


def _unview(x: Array) -> Array:
    return jnp.stack([jnp.rot90(x[h], -h) for h in range(4)])


def _step(row: Array, col: Array, heading: Array) -> tuple[Array, Array]:
    down, right = jnp.array(STEPS, jnp.int32)[heading]
    return row + down, col + right


def _look_ahead(table: Array, row: Array, col: Array, heading: Array) -> Array:
    """The entry for the cell that is entered from (row, col) to `heading`."""
    return table[heading, *_step(row, col, heading)]
