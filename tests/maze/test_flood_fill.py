"""Flood fill against SciPy's breadth-first search, on whole, partly known and turned mazes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import lil_array
from scipy.sparse.csgraph import shortest_path

from mime.maze import (
    UNREACHABLE,
    Maze,
    MazeError,
    flood_fill,
    full_belief,
    next_heading,
    optimistic_walls,
    pessimistic_walls,
    random_maze,
    unknown_belief,
)
from mime.maze.belief import OPEN, UNKNOWN, WALL, Belief
from mime.maze.grid import STEPS

fill = jax.jit(flood_fill)
fill_many = jax.jit(jax.vmap(flood_fill))
headings_many = jax.jit(jax.vmap(next_heading, in_axes=(None, None, None, 0, 0)))


def scipy_distances(horizontal, vertical, targets):
    """From a last, added node that is one step before every target."""
    rows, cols = targets.shape
    graph = lil_array((rows * cols + 1, rows * cols + 1))
    for row in range(rows):
        for col in range(cols):
            here = row * cols + col
            if col + 1 < cols and not vertical[row, col + 1]:
                graph[here, here + 1] = 1
            if row + 1 < rows and not horizontal[row + 1, col]:
                graph[here, here + cols] = 1
            if targets[row, col]:
                graph[here, rows * cols] = 1
    distances = shortest_path(
        graph.tocsr(), method="D", directed=False, unweighted=True, indices=rows * cols
    )
    distances = distances[:-1].reshape(rows, cols) - 1
    return np.where(np.isfinite(distances), distances, UNREACHABLE)


def random_walls(rng, rows, cols, share):
    horizontal, vertical = rng.random((rows + 1, cols)), rng.random((rows, cols + 1))
    return horizontal < share, vertical < share


def random_targets(rng, rows, cols, num):
    targets = np.zeros((rows, cols), bool)
    targets[rng.integers(rows, size=num), rng.integers(cols, size=num)] = True
    return targets


@pytest.mark.small(
    "0.0-shape1", "0.0-shape5", "0.3-shape1", "0.3-shape5", "0.5-shape1", "0.5-shape5"
)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 1), (5, 9), (16, 16), (32, 32)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
def test_distances_equal_those_of_scipy(shape, share):
    rng = np.random.default_rng(0)
    walls = *random_walls(rng, *shape, share), random_targets(rng, *shape, 2)
    assert np.array_equal(fill(*walls), scipy_distances(*walls))


def test_the_longest_corridor_in_32_by_32_counts_to_1023():
    horizontal, vertical = np.ones((33, 32), bool), np.zeros((32, 33), bool)
    horizontal[1:-1:2, -1] = horizontal[2:-1:2, 0] = False
    targets = np.zeros((32, 32), bool)
    targets[0, 0] = True
    distances = np.array(fill(horizontal, vertical, targets))
    distances[1::2] = distances[1::2, ::-1]
    assert np.array_equal(distances.ravel(), np.arange(1024))


def test_a_batch_of_contest_mazes_equals_scipy():
    mazes = [random_maze(seed) for seed in range(40)]
    walls = [(maze.horizontal, maze.vertical, maze.goal_mask()) for maze in mazes]
    for distances, one in zip(fill_many(*map(np.stack, zip(*walls))), walls):
        assert np.array_equal(distances, scipy_distances(*one))


def test_beliefs_with_unknown_walls_equal_scipy_both_ways():
    rng = np.random.default_rng(1)
    for seed in range(10):
        maze = random_maze(seed, 8, 11)
        truth = full_belief(maze)
        start = unknown_belief(8, 11)
        seen = [rng.random(edges.shape) < 0.6 for edges in truth]
        belief = Belief(*(jnp.where(k, t, u) for k, t, u in zip(seen, truth, start)))
        goals = maze.goal_mask()
        for walls in (optimistic_walls(belief), pessimistic_walls(belief)):
            expected = scipy_distances(*map(np.asarray, walls), goals)
            assert np.array_equal(fill(*walls, goals), expected)
        hopeful, true, safe = (
            np.array(fill(*walls, goals))[maze.start]
            for walls in (
                optimistic_walls(belief),
                (maze.horizontal, maze.vertical),
                pessimistic_walls(belief),
            )
        )
        assert hopeful <= true
        assert safe == UNREACHABLE or safe >= true


def test_at_first_only_the_boundary_is_known():
    belief = unknown_belief(2, 3)
    assert belief.horizontal.dtype == jnp.int8
    assert belief.horizontal.tolist() == [[WALL] * 3, [UNKNOWN] * 3, [WALL] * 3]
    assert belief.vertical.tolist() == [[WALL, UNKNOWN, UNKNOWN, WALL]] * 2
    empty = Maze.empty(2, 3)
    for walls, expected in zip(optimistic_walls(belief), (empty.horizontal, empty.vertical)):
        assert np.array_equal(walls, expected)
    assert all(walls.all() for walls in pessimistic_walls(belief))
    assert full_belief(empty).horizontal.tolist()[1] == [OPEN] * 3


def test_walls_of_zeros_and_ones_do_as_well():
    maze = random_maze(4)
    walls = maze.wall_parameters()
    assert np.array_equal(
        fill(walls["horizontal_walls"], walls["vertical_walls"], maze.goal_mask()),
        fill(maze.horizontal, maze.vertical, maze.goal_mask()),
    )


@pytest.mark.parametrize("shape", [(16, 16), (6, 13)])
def test_turning_the_maze_turns_the_distances(shape):
    maze = random_maze(7, *shape)
    distances = fill(maze.horizontal, maze.vertical, maze.goal_mask())
    for k in range(4):
        turned = maze.rotated(k)
        expected = np.rot90(distances, -k)
        assert np.array_equal(
            fill(turned.horizontal, turned.vertical, turned.goal_mask()), expected
        )


def expected_heading(distances, horizontal, vertical, cell, heading):
    """By the rule: the nearest open neighbour; straight, right, left, back among equals."""
    if distances[cell] <= 0:
        return -1
    rows, cols = distances.shape
    ways = []
    for order, turn in enumerate((0, 1, 3, 2)):
        way = (heading + turn) % 4
        row, col = cell[0] + STEPS[way][0], cell[1] + STEPS[way][1]
        edges = (vertical, horizontal)[way % 2]
        wall = edges[max(cell[0], row), col] if way % 2 else edges[row, max(cell[1], col)]
        if 0 <= row < rows and 0 <= col < cols and not wall:
            ways.append((distances[row, col], order, way))
    return min(ways)[2]


@pytest.mark.small("shape2")
@pytest.mark.parametrize("shape", [(1, 6), (6, 7), (32, 32)])
def test_the_next_heading_goes_down_the_distances(shape):
    rng = np.random.default_rng(2)
    for share in (0.0, 0.3):
        rows, cols = shape
        horizontal, vertical = random_walls(rng, rows, cols, share)
        horizontal[[0, -1]] = vertical[:, [0, -1]] = True
        targets = random_targets(rng, rows, cols, 2)
        distances = np.array(fill(horizontal, vertical, targets))
        states = [(row, col, h) for row in range(rows) for col in range(cols) for h in range(4)]
        cells, headings = np.array(states)[:, :2], np.array(states)[:, 2]
        found = headings_many(horizontal, vertical, targets, cells, headings)
        for (row, col, h), way in zip(states, found.tolist()):
            assert way == expected_heading(distances, horizontal, vertical, (row, col), h)


def test_following_the_headings_leads_to_the_goal_in_as_many_steps():
    step = jax.jit(next_heading)
    maze = random_maze(9)
    walls = maze.horizontal, maze.vertical, maze.goal_mask()
    cell, heading, steps = maze.start, maze.start_heading, 0
    while cell not in maze.goals:
        heading = int(step(*walls, cell, heading))
        assert not maze.has_wall(cell, heading)
        cell, steps = maze.neighbour(cell, heading), steps + 1
    assert steps == fill(*walls)[maze.start]
    assert step(*walls, cell, heading) == -1


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(MazeError, match=r"need horizontal walls of shape \(4, 3\)"):
        flood_fill(np.ones((3, 3)), np.ones((3, 4)), np.ones((3, 3)))
    with pytest.raises(MazeError, match="1 to 32 rows and columns, got 33 x 2"):
        flood_fill(np.ones((34, 2)), np.ones((33, 3)), np.ones((33, 2)))
