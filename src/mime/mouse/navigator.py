"""What to do when a leg is over: note the walls, ask the strategy, plan the next leg.

The mouse decides at the edge of a cell, before it enters: its sensors see all three walls of the
cell ahead from there. It then passes straight through, takes a curve, or stops in the centre and
turns on the spot.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8, Int32

from mime.maze.belief import OPEN, UNKNOWN, WALL, Belief
from mime.maze.grid import STEPS
from mime.maze.routes import SpeedProfile
from mime.mouse import legs
from mime.mouse.legs import CURVE, CURVE_LENGTH, PIVOT, REST, STRAIGHT, Leg
from mime.mouse.strategy import Strategy
from mime.xla.when import when

SEARCH, RETURN, RACE, DONE, STUCK = range(5)
"""The phases of a run."""
EDGE, CENTRE, TURNED = range(3)
"""Places where a leg ends: at a cell's edge, at rest in its centre, turned on the spot there."""


class Plan(NamedTuple):
    """What the mouse is doing and what it knows; part of the brain's state."""

    phase: Int[Array, ""]
    place: Int[Array, ""]
    """Where the leg ends: EDGE, CENTRE or TURNED."""
    cell: Int32[Array, "2"]
    """(row, column) of the cell that it then enters or stands in."""
    heading: Int32[Array, ""]
    """East, south, west, north at the end of the leg."""
    belief: Belief
    evidence: Float[Array, "3"]
    """Votes for walls left, ahead and right of the cell to be entered, less votes against."""
    route: Int8[Array, " moves"]
    """Headings of the speed run."""
    straight: Int32[Array, " moves"]
    """The number of moves from each on that go in the same direction."""
    moves: Int32[Array, ""]
    move: Int32[Array, ""]
    """The number of moves of the route (`moves`), and the next one (`move`)."""
    leg: Leg
    origin: Float[Array, "3"]
    """x, y, heading at the start of the leg."""


class World(NamedTuple):
    """What does not change: the maze's size, the contest's rules, how fast to go."""

    rows: int
    cols: int
    cell_size_m: float
    start: Int32[Any, "2"]
    start_heading: Any
    goals: Bool[Any, "rows cols"]
    explore: SpeedProfile
    race: SpeedProfile
    pivot_rate_rad_per_s: Any
    pivot_acceleration_rad_per_s2: Any


def standing(world: World, belief: Belief, closed: bool, dtype: Any) -> Plan:
    """The plan in the start cell, about to leave; with `closed` its other sides are walls."""
    cell, heading = jnp.asarray(world.start, jnp.int32), jnp.asarray(world.start_heading, jnp.int32)
    for side in (1, 2, 3) if closed else ():
        belief = _note(belief, cell, (heading + side) % 4, jnp.asarray(WALL, jnp.int8))
    belief = _note(belief, cell, heading, jnp.asarray(OPEN, jnp.int8))
    length = world.rows * world.cols
    v = jnp.asarray(world.explore.turn_speed_m_per_s, dtype)
    return Plan(
        phase=jnp.int32(SEARCH),
        place=jnp.int32(EDGE),
        cell=cell + _step(heading),
        heading=heading,
        belief=belief,
        evidence=jnp.zeros(3, dtype),
        route=jnp.zeros(length, jnp.int8),
        straight=jnp.zeros(length, jnp.int32),
        moves=jnp.int32(0),
        move=jnp.int32(0),
        leg=legs.plan(*_straight(world.explore, 0.5 * world.cell_size_m, 0.0, v)),
        origin=pose_at(world, cell, heading, CENTRE, dtype),
    )


def pose_at(
    world: World, cell: Int32[Array, "2"], heading: Any, place: Any, dtype: Any
) -> Float[Array, "3"]:
    """x, y, heading of the middle of a cell, or of the edge over which it is entered."""
    angle = heading * (0.5 * jnp.pi)
    back = jnp.where(place == EDGE, 0.5, 0.0)
    row, col = (jnp.asarray(c, dtype) + 0.5 for c in jnp.unstack(cell))
    x, y = col - back * jnp.cos(angle), row - back * jnp.sin(angle)
    return jnp.stack([x * world.cell_size_m, y * world.cell_size_m, jnp.asarray(angle, dtype)])


def next_leg(plan: Plan, world: World, strategy: Strategy) -> Plan:
    """The plan after a leg is over."""
    dtype = plan.origin.dtype
    origin = pose_at(world, plan.cell, plan.heading, plan.place, dtype)
    plan = plan._replace(origin=origin)
    exploring = plan.phase <= RETURN
    plan = _look_around(plan, exploring & (plan.place == EDGE))
    at_goal = jnp.asarray(world.goals)[plan.cell[0], plan.cell[1]]
    found = (plan.phase == SEARCH) & at_goal
    plan = plan._replace(phase=jnp.where(found, RETURN, plan.phase))
    home = (plan.phase == RETURN) & jnp.all(plan.cell == jnp.asarray(world.start, jnp.int32))
    plan = when(home & (plan.place == CENTRE), lambda p: _prepare_race(p, world, strategy), plan)
    raced = _race_move(plan, world)
    explored = _explore_move(plan, world, strategy, home)
    plan, order = _choose(plan.phase >= RACE, raced, explored)
    return plan._replace(leg=legs.plan(*order))


class Order(NamedTuple):
    """The leg to be planned: the arguments of `legs.plan`."""

    kind: Any
    turn: Any
    length: Any
    v0: Any
    vf: Any
    v_max: Any
    a_max: Any
    j_max: Any


def _explore_move(plan: Plan, world: World, strategy: Strategy, home: Any) -> tuple[Plan, Order]:
    to_start = jnp.zeros((world.rows, world.cols), bool)
    to_start = to_start.at[world.start[0], world.start[1]].set(True)
    targets = jnp.where(plan.phase == SEARCH, jnp.asarray(world.goals), to_start)
    asked = (plan.phase <= RETURN) & ~home & (plan.place != TURNED)
    chosen = when(
        asked,
        lambda _: strategy.explore(plan.belief, plan.cell, plan.heading, targets).astype(jnp.int32),
        plan.heading,
    )
    stuck = asked & (chosen < 0)
    turn = (chosen - plan.heading) % 4
    cell_size_m = world.cell_size_m
    v = jnp.asarray(world.explore.turn_speed_m_per_s, plan.origin.dtype)
    at_edge = plan.place == EDGE
    stops = at_edge & (home | stuck | (turn == 2))
    curves = at_edge & ~stops & (turn != 0)
    pivots = plan.place == CENTRE
    leaves = plan.place == TURNED
    sign = jnp.where(turn == 3, -1.0, 1.0).astype(v.dtype)
    order = _straight(world.explore, cell_size_m, v, v)
    for chosen_kind, other in (
        (stops, _straight(world.explore, 0.5 * cell_size_m, v, 0.0)),
        (curves, _curve(world.explore, cell_size_m, sign, v)),
        (leaves, _straight(world.explore, 0.5 * cell_size_m, 0.0, v)),
        (pivots, _pivot(world, sign, jnp.where(turn == 2, jnp.pi, 0.5 * jnp.pi))),
        (pivots & (turn == 0), _pivot(world, sign, jnp.zeros_like(v))),
        (pivots & stuck, _REST),
    ):
        order = _choose(chosen_kind, other, order)
    heading = jnp.where(stops | stuck, plan.heading, chosen)
    moves_on = ~stops & ~pivots
    plan = plan._replace(
        phase=jnp.where(stuck, STUCK, plan.phase),
        place=jnp.where(stops, CENTRE, jnp.where(pivots, TURNED, EDGE)),
        cell=plan.cell + jnp.where(moves_on, _step(heading), 0),
        heading=heading,
    )
    return plan, order


def _prepare_race(plan: Plan, world: World, strategy: Strategy) -> Plan:
    """Choose the route of the speed run; it begins in the start cell, facing anywhere."""
    goals = jnp.asarray(world.goals)
    headings, count = strategy.race(
        plan.belief, plan.cell, plan.heading, goals, world.race, world.cell_size_m
    )
    headings = headings.astype(jnp.int32)

    def count_same(later: tuple[Any, Any], heading: Any) -> tuple[tuple[Any, Any], Any]:
        same = jnp.where(heading == later[0], later[1] + 1, 1)
        return (heading, same), same

    straight = jax.lax.scan(count_same, (jnp.int32(-2), jnp.int32(0)), headings, reverse=True)[1]
    return plan._replace(
        phase=jnp.where(count > 0, RACE, STUCK).astype(plan.phase.dtype),
        route=headings.astype(jnp.int8),
        straight=straight,
        moves=count,
        move=jnp.int32(0),
    )


def _race_move(plan: Plan, world: World) -> tuple[Plan, Order]:
    """The next leg of the route: a whole straight, a curve, or a stop in the goal."""
    profile, cell_size_m = world.race, world.cell_size_m
    v = jnp.asarray(profile.turn_speed_m_per_s, plan.origin.dtype)
    k = jnp.minimum(plan.move, plan.route.shape[0] - 1)
    ahead = plan.route[k].astype(jnp.int32)
    turn = (ahead - plan.heading) % 4
    arrived = plan.move >= plan.moves
    at_centre, turned_round = plan.place == CENTRE, plan.place == TURNED
    over = (plan.phase != RACE) | (at_centre & arrived)
    pivots = at_centre & ~over
    straights = ~over & ~at_centre & (turned_round | arrived | (turn == 0))
    curves = ~over & ~at_centre & ~straights
    n = jnp.where(arrived, 0, plan.straight[k])
    last = plan.move + n >= plan.moves
    halves = jnp.where(turned_round, -1, 0) + jnp.where(last, 1, 0)
    length = (n + 0.5 * halves) * cell_size_m
    sign = jnp.where(turn == 3, -1.0, 1.0).astype(v.dtype)
    v0, vf = jnp.where(turned_round, 0.0, v), jnp.where(last, 0.0, v)
    order = _straight(profile, jnp.where(straights, length, cell_size_m), v0, vf)
    half_turn = jnp.where(turn == 2, jnp.pi, jnp.where(turn == 0, 0.0, 0.5 * jnp.pi))
    for chosen, other in (
        (curves, _curve(profile, cell_size_m, sign, v)),
        (pivots, _pivot(world, sign, half_turn.astype(v.dtype))),
        (over, _REST),
    ):
        order = _choose(chosen, other, order)
    made = jnp.where(straights, n, jnp.where(curves, 1, 0))
    heading = jnp.where((curves | pivots), ahead, plan.heading)
    place = jnp.where(over | (straights & last), CENTRE, jnp.where(pivots, TURNED, EDGE))
    # A straight of n moves that starts at an edge enters n cells more; so does one from the centre.
    finished = (plan.phase == RACE) & over
    plan = plan._replace(
        phase=jnp.where(finished, DONE, plan.phase),
        place=place,
        cell=plan.cell + made * _step(heading),
        heading=heading,
        move=plan.move + made,
    )
    return plan, order


def _straight(profile: SpeedProfile, length: Any, v0: Any, vf: Any) -> Order:
    limits = profile.top_speed_m_per_s, profile.acceleration_m_per_s2, profile.jerk_m_per_s3
    return Order(STRAIGHT, 0.0, length, v0, vf, *limits)


def _curve(profile: SpeedProfile, cell_size_m: float, sign: Any, v: Any) -> Order:
    limits = profile.acceleration_m_per_s2, profile.jerk_m_per_s3
    return Order(CURVE, sign, CURVE_LENGTH * cell_size_m, v, v, v, *limits)


def _pivot(world: World, sign: Any, angle: Any) -> Order:
    rate, acceleration = world.pivot_rate_rad_per_s, world.pivot_acceleration_rad_per_s2
    return Order(PIVOT, sign, angle, 0.0, 0.0, rate, acceleration, 20.0 * acceleration)


_REST = Order(REST, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)


def _look_around(plan: Plan, now: Any) -> Plan:
    """Write what the sensors voted for into the belief, where it was unknown."""
    belief = plan.belief
    for which, side in enumerate((3, 0, 1)):
        votes = plan.evidence[which]
        seen = jnp.where(votes > 0, WALL, jnp.where(votes < 0, OPEN, UNKNOWN)).astype(jnp.int8)
        seen = jnp.where(now, seen, UNKNOWN).astype(jnp.int8)
        belief = _note(belief, plan.cell, (plan.heading + side) % 4, seen)
    return plan._replace(belief=belief, evidence=jnp.zeros_like(plan.evidence))


def _note(belief: Belief, cell: Any, heading: Any, value: Any) -> Belief:
    """The belief with one side of a cell noted, unless it was known or nothing was seen."""
    row, col = cell[0], cell[1]
    upright = (heading % 2) == 0  # walls to the east and west are vertical

    def write(walls: Any, row: Any, col: Any, here: Any) -> Any:
        old = walls.at[row, col].get(mode="clip")
        keep = ~here | (old != UNKNOWN) | (value == UNKNOWN)
        return walls.at[row, col].set(jnp.where(keep, old, value), mode="drop")

    return Belief(
        write(belief.horizontal, row + (heading == 1), col, ~upright),
        write(belief.vertical, row, col + (heading == 0), upright),
    )


def _step(heading: Any) -> Int32[Array, "2"]:
    return jnp.asarray(STEPS, jnp.int32)[heading]


def _choose(condition: Any, a: Any, b: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
