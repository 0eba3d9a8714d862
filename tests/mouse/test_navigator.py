"""What the mouse does next, on beliefs made by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compiling import QUICK
from mime.maze import (
    EAST,
    NORTH,
    SOUTH,
    WEST,
    Belief,
    Maze,
    SpeedProfile,
    fastest_route,
    full_belief,
    random_maze,
    route_along,
    unknown_belief,
)
from mime.maze.belief import OPEN, UNKNOWN, WALL
from mime.mouse import Strategy, legs, navigator
from mime.mouse.legs import CURVE, CURVE_LENGTH, PIVOT, REST, STRAIGHT
from mime.mouse.navigator import CENTRE, DONE, EDGE, RACE, RETURN, SEARCH, STUCK, TURNED, World

N, CELL = 6, 0.18
EXPLORING, RACING = SpeedProfile(0.5, 0.5, 4.0, 400.0), SpeedProfile(0.6, 2.0, 5.0, 400.0)
YES, NO = 3.0, -3.0  # votes for and against a wall


def world(goals=((0, 5),), start=(N - 1, 0)):
    mask = np.zeros((N, N), bool)
    mask[tuple(zip(*goals))] = True
    start_cell, heading = jnp.asarray(start, jnp.int32), jnp.int32(NORTH)
    sizes = (N, N, CELL, start_cell, heading)
    return World(*sizes, jnp.asarray(mask), EXPLORING, RACING, 8.0, 100.0)


@partial(jax.jit, compiler_options=QUICK)
def _next(plan, start, goals):
    return navigator.next_leg(plan, world()._replace(start=start, goals=goals), Strategy())


def step(plan, where=None):
    where = where or world()
    plan = plan._replace(place=jnp.int32(plan.place))  # of one type, for one program
    return _next(plan, where.start, where.goals)


def plan(cell, heading, belief=None, evidence=(0.0, 0.0, 0.0), where=None, **fields):
    """At the edge of a cell, about to enter it."""
    belief = belief or unknown_belief(N, N)
    made = navigator.standing(where or world(), belief, True, jnp.float64)
    fields = {name: jnp.int32(value) for name, value in fields.items()}
    return made._replace(
        cell=jnp.array(cell, jnp.int32),
        heading=jnp.int32(heading),
        evidence=jnp.array(evidence),
        **fields,
    )


def facts(p):
    """Kind, turn, length, place, cell, heading."""
    leg = p.leg
    numbers = float(leg.turn), float(leg.length), int(p.place), tuple(p.cell.tolist())
    return int(leg.kind), *numbers, int(p.heading)


def speeds(leg):
    """At both ends."""
    start, end = (speed_at(leg, time) for time in (0.0, jnp.sum(leg.segment_times)))
    return float(start), float(end)


@jax.jit
def speed_at(leg, time):
    return legs.follow(leg, jnp.zeros(3), time, CELL)[1].v


def test_it_begins_at_rest_in_the_start_cell_whose_three_walls_it_knows():
    where = world()
    made = navigator.standing(where, unknown_belief(N, N), True, jnp.float64)
    assert facts(made) == (STRAIGHT, 0.0, 0.5 * CELL, EDGE, (N - 2, 0), NORTH)
    assert speeds(made.leg) == pytest.approx((0.0, 0.5), abs=1e-12)
    np.testing.assert_allclose(made.origin, [0.5 * CELL, (N - 0.5) * CELL, 1.5 * np.pi])
    expected = unknown_belief(N, N)
    expected = Belief(
        expected.horizontal.at[N - 1, 0].set(OPEN), expected.vertical.at[N - 1, 1].set(WALL)
    )
    jax.tree.map(np.testing.assert_array_equal, made.belief, expected)


@pytest.mark.parametrize("heading", range(4))
@pytest.mark.parametrize(("place", "back"), [(EDGE, 0.5), (CENTRE, 0.0), (TURNED, 0.0)])
def test_legs_begin_at_the_edge_or_the_centre_of_their_cell(heading, place, back):
    pose = navigator.pose_at(
        world(), jnp.array([2, 4], jnp.int32), jnp.int32(heading), place, jnp.float64
    )
    down, right = ((0, 1), (1, 0), (0, -1), (-1, 0))[heading]
    expected = [(4.5 - back * right) * CELL, (2.5 - back * down) * CELL, heading * np.pi / 2]
    np.testing.assert_allclose(pose, expected, atol=1e-15)


def test_it_goes_straight_on_where_it_can():
    after = step(plan((3, 5), NORTH, evidence=(YES, NO, YES)))
    assert facts(after) == (STRAIGHT, 0.0, CELL, EDGE, (2, 5), NORTH)
    assert speeds(after.leg) == pytest.approx((0.5, 0.5), abs=1e-12)
    np.testing.assert_allclose(after.origin[:2], [5.5 * CELL, 4 * CELL])


@pytest.mark.parametrize(
    ("evidence", "turn", "cell", "heading"),
    [((YES, YES, NO), 1.0, (2, 3), EAST), ((NO, YES, YES), -1.0, (2, 1), WEST)],
    ids=["right", "left"],
)
def test_it_takes_a_curve_to_the_only_open_side(evidence, turn, cell, heading):
    after = step(plan((2, 2), NORTH, evidence=evidence))
    assert facts(after) == (CURVE, turn, pytest.approx(CURVE_LENGTH * CELL), EDGE, cell, heading)
    assert speeds(after.leg) == pytest.approx((0.5, 0.5), abs=1e-12)


def test_in_a_dead_end_it_stops_turns_round_and_leaves():
    stopping = step(plan((2, 2), NORTH, evidence=(YES, YES, YES)))
    assert facts(stopping) == (STRAIGHT, 0.0, 0.5 * CELL, CENTRE, (2, 2), NORTH)
    assert speeds(stopping.leg) == pytest.approx((0.5, 0.0), abs=1e-12)
    turning = step(stopping)
    assert facts(turning) == (PIVOT, 1.0, pytest.approx(np.pi), TURNED, (2, 2), SOUTH)
    np.testing.assert_allclose(turning.origin, [2.5 * CELL, 2.5 * CELL, 1.5 * np.pi])
    leaving = step(turning)
    assert facts(leaving) == (STRAIGHT, 0.0, 0.5 * CELL, EDGE, (3, 2), SOUTH)
    assert speeds(leaving.leg) == pytest.approx((0.0, 0.5), abs=1e-12)
    assert int(leaving.phase) == SEARCH


def test_votes_are_noted_once_and_then_forgotten():
    after = step(plan((2, 2), EAST, evidence=(NO, 0.0, YES)))
    belief = unknown_belief(N, N)
    assert int(after.belief.horizontal[2, 2]) == OPEN  # left of east is north
    assert int(after.belief.vertical[2, 3]) == UNKNOWN
    assert int(after.belief.horizontal[3, 2]) == WALL
    changed = np.sum(after.belief.horizontal != belief.horizontal) + np.sum(
        after.belief.vertical != belief.vertical
    )
    assert changed == 2 + 2  # and the two inner walls of the start cell
    assert np.all(np.asarray(after.evidence) == 0.0)


def test_in_the_centre_and_in_the_race_votes_count_for_nothing():
    for fields in ({"place": CENTRE}, {"place": TURNED}, {"phase": RACE}, {"phase": DONE}):
        before = plan((2, 2), EAST, evidence=(YES, YES, YES), **fields)
        jax.tree.map(np.testing.assert_array_equal, step(before).belief, before.belief)


def test_in_the_goal_it_turns_to_the_way_back():
    after = step(plan((0, 5), NORTH, evidence=(YES, YES, YES)))
    assert int(after.phase) == RETURN
    assert facts(after) == (STRAIGHT, 0.0, 0.5 * CELL, CENTRE, (0, 5), NORTH)
    after = step(plan((0, 5), EAST, evidence=(YES, YES, NO)))
    assert int(after.phase) == RETURN
    assert facts(after)[0] == CURVE


def test_beside_the_goal_it_goes_on_searching():
    after = step(plan((1, 5), NORTH, evidence=(YES, NO, YES)))
    assert int(after.phase) == SEARCH


def test_at_home_it_stops_and_prepares_the_race():
    maze = random_maze(11, N, N)
    where = world(maze.goals)
    before = plan(maze.start, SOUTH, full_belief(maze), where=where, phase=RETURN)
    stopping = step(before, where)
    assert int(stopping.phase) == RETURN
    assert facts(stopping) == (STRAIGHT, 0.0, 0.5 * CELL, CENTRE, maze.start, SOUTH)
    turning = step(stopping, where)
    assert int(turning.phase) == RACE
    assert facts(turning) == (PIVOT, 1.0, pytest.approx(np.pi), TURNED, maze.start, NORTH)
    route = fastest_route(maze, RACING)
    assert tuple(turning.route[: int(turning.moves)].tolist()) == route.headings


@pytest.mark.parametrize("seed", range(6))
def test_the_legs_of_the_race_are_the_route(seed):
    maze = random_maze(seed, N, N)
    where = world(maze.goals)
    at = plan(maze.start, SOUTH, full_belief(maze), where=where, phase=RETURN, place=CENTRE)
    made, cells = [], [maze.start]
    for _ in range(2 * N * N):
        at = step(at, where)
        if int(at.phase) == DONE:
            break
        assert int(at.phase) == RACE
        made.append(at.leg)
        end = tuple(at.cell.tolist())
        while cells[-1] != end:  # a straight passes several
            ahead = np.sign(np.subtract(end, cells[-1]))
            cells.append(tuple((cells[-1] + ahead).tolist()))
        if int(at.leg.kind) != PIVOT:
            np.testing.assert_allclose(
                run_to_end(at.leg, at.origin),
                navigator.pose_at(where, at.cell, at.heading, at.place, jnp.float64)[:2],
                atol=1e-5,  # 200 chords of a curve
            )
    route = route_along(maze, fastest_route(maze, RACING).headings, RACING)
    assert tuple(cells) == route.cells
    assert facts(at)[0] == REST
    kinds = [int(leg.kind) for leg in made]
    assert kinds[0] == PIVOT
    turns = {1.0: "right", -1.0: "left"}
    curves = [turns[float(leg.turn)] for leg in made if int(leg.kind) == CURVE]
    assert curves == [s.kind for s in route.segments if s.kind in turns.values()]
    # The route's turns are quarter circles, the mouse's a little longer.
    longer = len(curves) * (CURVE_LENGTH - np.pi / 4) * CELL
    length = sum(float(leg.length) for leg in made[1:])
    assert length == pytest.approx(route.length_m + longer, abs=1e-12)
    straights = [s for s in route.segments if s.kind == "straight"]
    times = [float(jnp.sum(leg.segment_times)) for leg in made if int(leg.kind) == STRAIGHT]
    assert times == pytest.approx([s.time_s for s in straights], rel=1e-9)


@partial(jax.jit, static_argnames="steps")
def _end(leg, pose, steps):
    def tick(carry, _):
        leg, reference = legs.follow(*carry, dt, CELL)
        return (leg, reference.pose), None

    dt = jnp.sum(leg.segment_times) / steps
    return jax.lax.scan(tick, (leg, pose), None, length=steps)[0][1]


def run_to_end(leg, pose):
    return np.asarray(_end(leg, pose, 200))[:2]


def closed_goal():
    belief = unknown_belief(N, N)
    return Belief(belief.horizontal.at[1, 5].set(WALL), belief.vertical.at[0, 5].set(WALL))


def test_with_no_way_to_the_goal_it_stops_and_stays():
    at = step(plan((3, 3), NORTH, closed_goal()))
    assert int(at.phase) == STUCK
    assert facts(at) == (STRAIGHT, 0.0, 0.5 * CELL, CENTRE, (3, 3), NORTH)
    assert speeds(at.leg) == pytest.approx((0.5, 0.0), abs=1e-12)
    for _ in range(2):
        at = step(at)
        assert int(at.phase) == STUCK
        assert facts(at)[0] == REST
        assert facts(at)[3:] == (CENTRE, (3, 3), NORTH)


def test_with_no_way_known_from_the_centre_it_stays():
    at = step(plan((3, 3), NORTH, closed_goal(), place=CENTRE))
    assert int(at.phase) == STUCK
    assert facts(at)[0] == REST


def test_without_a_route_that_was_seen_there_is_no_race():
    at = step(plan((N - 1, 0), SOUTH, phase=RETURN, place=CENTRE))
    assert int(at.phase) == STUCK
    assert facts(at)[0] == REST


def test_a_side_that_is_known_is_never_overwritten():
    """All sides of all cells, from all beliefs to all sightings."""
    rng = np.random.default_rng(0)
    note = jax.jit(navigator._note)
    for value in (UNKNOWN, OPEN, WALL):
        for cell in [(0, 0), (2, 3), (N - 1, N - 1), (N - 1, 0), (0, 4)]:
            for heading in range(4):
                before = Belief(
                    rng.integers(0, 3, (N + 1, N), np.int8), rng.integers(0, 3, (N, N + 1), np.int8)
                )
                (r, c), expected = cell, [before.horizontal.copy(), before.vertical.copy()]
                index = ((r, c + 1), (r + 1, c), (r, c), (r, c))[heading]
                side = expected[1 - heading % 2]
                if side[index] == UNKNOWN:
                    side[index] = value
                got = note(
                    jax.tree.map(jnp.asarray, before),
                    jnp.array(cell, jnp.int32),
                    jnp.int32(heading),
                    jnp.int8(value),
                )
                np.testing.assert_array_equal(got.horizontal, expected[0])
                np.testing.assert_array_equal(got.vertical, expected[1])


def test_sides_are_those_of_the_maze():
    maze = random_maze(4, N, N)
    belief = Belief(jnp.zeros((N + 1, N), jnp.int8), jnp.zeros((N, N + 1), jnp.int8))
    note = jax.jit(navigator._note)
    for row in range(N):
        for col in range(N):
            for heading in range(4):
                seen = WALL if maze.has_wall((row, col), heading) else OPEN
                cell = jnp.array([row, col], jnp.int32)
                belief = note(belief, cell, jnp.int32(heading), jnp.int8(seen))
    jax.tree.map(np.testing.assert_array_equal, belief, full_belief(maze))


def test_an_empty_maze_has_the_goal_in_sight_after_one_curve():
    """From the start to a goal in the far corner: flood fill needs no wall to be seen."""
    maze = Maze.empty(N, N, goals=[(0, 5)])
    at, cells = plan((N - 2, 0), NORTH), []
    for _ in range(12):
        at = step(at._replace(evidence=jnp.array([NO, NO, NO])))
        cells.append(tuple(at.cell.tolist()))
        if int(at.phase) == RETURN:
            break
    assert (0, 5) in cells
    assert len(cells) <= len(maze.goals) + 2 * (N - 1)
