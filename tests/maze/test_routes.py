"""Routes: breadth-first search and Dijkstra against exhaustive search, and the compiled planner
against Dijkstra. Times of straights come from the speed that the distance equation gives.
"""

from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

from compiling import QUICK
from mime import ParameterError
from mime.maze import (
    EAST,
    NORTH,
    Maze,
    MazeError,
    SpeedProfile,
    fastest_headings,
    fastest_route,
    flood_fill,
    random_maze,
    route_along,
    shortest_route,
)
from sizes import sized

CELL = 0.18
PROFILE = SpeedProfile(0.5, 2.0, 5.0, 200.0, 0.3)
SLOW_TURNS = SpeedProfile(0.15, 3.0, 10.0, 500.0, 0.1)
fill = jax.jit(flood_fill)
plan = jax.jit(fastest_headings, static_argnames="max_length", compiler_options=QUICK)


def ramp(rise, a, j):
    return rise / a + a / j if rise >= a * a / j else 2 * np.sqrt(rise / j)


def straight_time(d, v0, vf, profile):
    """Up to vm and down again, vm from d = (v0 + vm)/2 T(vm - v0) + (vm + vf)/2 T(vm - vf)."""
    if d == 0:
        return 0.0
    v, a, j = profile.top_speed_m_per_s, profile.acceleration_m_per_s2, profile.jerk_m_per_s3

    def distance(vm):
        return (v0 + vm) / 2 * ramp(vm - v0, a, j) + (vm + vf) / 2 * ramp(vm - vf, a, j)

    if distance(v) <= d:
        return ramp(v - v0, a, j) + ramp(v - vf, a, j) + (d - distance(v)) / v
    vm = brentq(lambda vm: distance(vm) - d, max(v0, vf), v, xtol=1e-15)
    return ramp(vm - v0, a, j) + ramp(vm - vf, a, j)


def time_of(maze, headings, profile):
    """By the model, written out move by move."""
    turns = abs(headings[0] - maze.start_heading) % 4
    time = profile.pivot_time_s * min(turns, 4 - turns)
    length, speed = 0.5, 0.0
    for before, after in pairwise(headings):
        if before == after:
            length += 1
            continue
        time += straight_time(length * CELL, speed, profile.turn_speed_m_per_s, profile)
        time += np.pi / 4 * CELL / profile.turn_speed_m_per_s
        length, speed = 0.0, profile.turn_speed_m_per_s
    return time + straight_time((length + 0.5) * CELL, speed, 0.0, profile)


def all_routes(maze):
    """Every way to a first goal that enters no cell twice."""

    def go_on(cells, headings):
        if cells[-1] in maze.goals:
            yield headings
            return
        for heading in range(4):
            following = maze.neighbour(cells[-1], heading)
            if following and following not in cells and not maze.has_wall(cells[-1], heading):
                yield from go_on([*cells, following], [*headings, heading])

    return go_on([maze.start], [])


def compiled_headings(maze, targets, profile, max_length=300):
    walls, start = (maze.horizontal, maze.vertical), (maze.start, maze.start_heading)
    return plan(*walls, *start, targets, profile, max_length=max_length)


def compiled_route(maze, profile):
    headings, count = compiled_headings(maze, maze.goal_mask(), profile)
    assert np.all(headings[int(count) :] == -1)
    return route_along(maze, headings[: int(count)].tolist(), profile)


@pytest.mark.small("slow turns")
@pytest.mark.parametrize("profile", [PROFILE, SLOW_TURNS], ids=["quick", "slow turns"])
def test_the_fastest_route_beats_every_other_one(profile):
    for seed in range(sized(12, small=5)):
        maze = random_maze(seed, 6, 4 + seed % 2, loops=0.5)
        best = min(time_of(maze, headings, profile) for headings in all_routes(maze))
        route = fastest_route(maze, profile)
        # 1e-9: bisection and Newton's method both end within rounding of the same root
        assert route.time_s == pytest.approx(best, abs=1e-9)
        assert route.time_s == pytest.approx(time_of(maze, route.headings, profile), abs=1e-9)


@pytest.mark.soak("mazes that go through vmap are held against Dijkstra too")
@pytest.mark.slow
def test_the_compiled_planner_is_as_fast_as_dijkstra():
    for seed in range(sized(50, small=6)):
        maze = random_maze(seed, 10, 10, loops=0.2)
        profile = (PROFILE, SLOW_TURNS)[seed % 2]
        expected = fastest_route(maze, profile)
        route = compiled_route(maze, profile)
        assert route.cells[-1] in maze.goals
        assert route.time_s == pytest.approx(expected.time_s, abs=1e-9)


@pytest.mark.soak("rectangles go through vmap below")
def test_the_compiled_planner_runs_rectangles():
    for seed in range(8):
        maze = random_maze(seed, 6, 4, loops=0.3).rotated(2 * (seed % 2))
        expected = fastest_route(maze, PROFILE)
        assert compiled_route(maze, PROFILE).time_s == pytest.approx(expected.time_s, abs=1e-9)


def test_turning_the_maze_does_not_change_the_time():
    maze = random_maze(0, 6, 4, loops=0.3)
    times = [fastest_route(maze.rotated(k), PROFILE).time_s for k in range(4)]
    assert times == pytest.approx([times[0]] * 4, abs=1e-12)


def test_slow_turns_make_a_longer_way_the_faster_one():
    found = [
        len(fastest_route(maze, SLOW_TURNS).cells) - len(shortest_route(maze))
        for maze in (random_maze(seed, 10, 10, loops=0.3) for seed in range(20))
    ]
    assert min(found) >= 0
    assert max(found) > 0


def test_the_shortest_route_is_as_long_as_the_flood_says():
    for seed in range(20):
        maze = random_maze(seed, 12, 9)
        cells = shortest_route(maze)
        distances = fill(maze.horizontal, maze.vertical, maze.goal_mask())
        assert len(cells) - 1 == distances[maze.start]
        assert cells[0] == maze.start
        assert cells[-1] in maze.goals
        for here, there in pairwise(cells):
            ways = [h for h in range(4) if maze.neighbour(here, h) == there]
            assert not maze.has_wall(here, ways[0])


def test_a_route_is_made_of_half_cells_straights_and_quarter_circles():
    maze = Maze.empty(3, 6, goals=[(0, 3)])
    route = fastest_route(maze, PROFILE)
    kinds = [segment.kind for segment in route.segments]
    assert kinds == ["straight", "right", "straight"]
    lengths = [segment.length_m / CELL for segment in route.segments]
    assert lengths == pytest.approx([1.5, np.pi / 4, 2.5])
    assert route.length_m == pytest.approx(sum(lengths) * CELL)
    assert route.cells[0] == (2, 0)
    assert route.cells[-1] == (0, 3)
    assert route.headings == (NORTH, NORTH, EAST, EAST, EAST)


def test_a_straight_route_is_driven_from_rest_to_rest():
    maze = Maze.empty(1, 6, start_heading=EAST, goals=[(0, 5)])
    route = fastest_route(maze, PROFILE)
    assert [segment.kind for segment in route.segments] == ["straight"]
    assert route.time_s == pytest.approx(straight_time(5 * CELL, 0.0, 0.0, PROFILE), abs=1e-9)
    assert compiled_route(maze, PROFILE) == route


def test_a_mouse_that_faces_a_wall_turns_on_the_spot_first():
    ahead = Maze.empty(1, 6, start_heading=EAST, goals=[(0, 5)])
    for heading, quarter_turns in ((NORTH, 1), (1, 1), (2, 2)):
        maze = Maze.empty(1, 6, start_heading=heading, goals=[(0, 5)])
        route = fastest_route(maze, PROFILE)
        assert route.segments[0].kind == "pivot"
        extra = quarter_turns * PROFILE.pivot_time_s
        assert route.time_s == pytest.approx(fastest_route(ahead, PROFILE).time_s + extra)
        assert compiled_route(maze, PROFILE).time_s == pytest.approx(route.time_s)


def test_at_the_goal_there_is_nothing_to_drive():
    maze = Maze.empty(1, 6, goals=[(0, 0)])
    route = fastest_route(maze, PROFILE)
    assert (route.cells, route.segments, route.time_s, route.length_m) == (((0, 0),), (), 0, 0)
    assert compiled_route(maze, PROFILE) == route
    assert shortest_route(maze) == ((0, 0),)


def test_no_route_and_too_long_a_route_have_the_count_minus_one():
    maze = Maze.empty(1, 6, goals=[(0, 5)])
    for targets, max_length, expected in (
        (np.zeros((1, 6), bool), 300, -1),
        (maze.goal_mask(), 300, 5),
        (maze.goal_mask(), 4, -1),
    ):
        headings, count = compiled_headings(maze, targets, PROFILE, max_length)
        assert count == expected
        assert np.sum(headings == EAST) == max(expected, 0)
        assert np.sum(headings == -1) == max_length - max(expected, 0)


def test_the_compiled_planner_goes_through_vmap():
    mazes = [random_maze(seed, 4, 6, loops=0.3) for seed in range(8)]
    stacked = [
        np.stack(x) for x in zip(*((m.horizontal, m.vertical, m.goal_mask()) for m in mazes))
    ]
    over_mazes = jax.vmap(
        lambda h, v, t: plan(h, v, (3, 0), NORTH, t, PROFILE, max_length=40), in_axes=0
    )
    for maze, headings, count in zip(mazes, *over_mazes(*stacked)):
        route = route_along(maze, headings[: int(count)].tolist(), PROFILE)
        assert route.time_s == pytest.approx(fastest_route(maze, PROFILE).time_s, abs=1e-9)


def test_a_turn_speed_out_of_reach_leaves_straight_routes_only():
    wild = SpeedProfile(1.9, 2.0, 1.0, 100.0)
    with pytest.raises(MazeError, match=r"half a cell of 0.18 m is too short to"):
        fastest_route(Maze.empty(2, 6, goals=[(0, 1)]), wild)
    straight = Maze.empty(6, 1, goals=[(3, 0)])
    assert fastest_route(straight, wild).headings == (NORTH, NORTH)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"turn_speed_m_per_s": 3.0},
            "turn_speed_m_per_s must be at most top_speed_m_per_s = 2.0, got 3.0",
        ),
        ({"jerk_m_per_s3": 0.0}, "jerk_m_per_s3 must be finite and > 0, got 0.0"),
        ({"acceleration_m_per_s2": -1.0}, "acceleration_m_per_s2 must be finite and > 0, got -1.0"),
    ],
)
def test_speeds_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        SpeedProfile(**arguments)


def test_routes_through_walls_and_sudden_reversals_are_refused():
    maze = Maze.empty(2, 6, goals=[(0, 1)])
    with pytest.raises(MazeError, match=r"move 1, heading 3, runs into a wall of cell \(0, 0\)"):
        route_along(maze, [NORTH, NORTH], PROFILE)
    with pytest.raises(MazeError, match="a mouse in motion cannot turn back"):
        route_along(maze, [NORTH, 1], PROFILE)
