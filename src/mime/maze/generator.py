"""Random mazes by the rules of the contests."""

import numpy as np
from jaxtyping import Bool, Int

from mime.core.arguments import real, whole
from mime.maze.grid import NORTH, STEPS, MazeError, default_goals
from mime.maze.maze import Maze


def random_maze(
    seed: int, rows: int = 16, cols: int = 16, loops: float = 0.08, winding: float = 0.85
) -> Maze:
    """A maze by contest rules: a random spanning tree of the cells, with some more walls removed.

    The start is the south-west corner, facing north, closed on its three other sides. The goal is
    the centre (see `default_goals`), an open room with one entrance. Every inner post holds a wall,
    except the one amid the goal. Each cell can be reached.

    `loops` is the share of the walls left by the tree that fall, as far as posts allow. The tree
    grows from its newest cell with the probability `winding`, else from any: 1 gives long winding
    corridors, 0 short dead ends. The same seed gives the same maze.
    """
    seed, rows, cols = whole("seed", seed), whole("rows", rows), whole("cols", cols)
    loops, winding = real("loops", loops), real("winding", winding)
    if not (3 <= rows <= 32 and 3 <= cols <= 32):
        raise MazeError(
            f"random_maze needs 3 to 32 rows and columns, for a start and a goal room apart from "
            f"it; got {rows} x {cols}"
        )
    for name, share in (("loops", loops), ("winding", winding)):
        if not 0 <= share <= 1:
            raise MazeError(f"{name} must be from 0 to 1, got {share}")
    rng = np.random.default_rng(seed)
    start = (rows - 1, 0)
    room = np.zeros((rows, cols), bool)
    room[tuple(zip(*default_goals(rows, cols)))] = True
    free = ~room
    free[start] = False
    horizontal, vertical = np.ones((rows + 1, cols), bool), np.ones((rows, cols + 1), bool)
    horizontal[1:-1] = ~(room[:-1] & room[1:])
    vertical[:, 1:-1] = ~(room[:, :-1] & room[:, 1:])
    _open_spanning_tree(horizontal, vertical, free, winding, rng)
    horizontal[start] = False
    doors = _edges_where(room[:-1] ^ room[1:], room[:, :-1] ^ room[:, 1:])
    is_vertical, row, col = doors[rng.integers(len(doors))]
    (horizontal, vertical)[is_vertical][row, col] = False
    _open_loops(horizontal, vertical, free, loops, rng)
    return Maze(horizontal, vertical, start, NORTH, name=f"random {seed}")


def _open_spanning_tree(
    horizontal: np.ndarray,
    vertical: np.ndarray,
    cells: Bool[np.ndarray, "rows cols"],
    winding: float,
    rng: np.random.Generator,
) -> None:
    """Join the cells by a growing tree."""
    unvisited = set(map(tuple, np.argwhere(cells).tolist()))
    active = [sorted(unvisited)[rng.integers(len(unvisited))]]
    unvisited.remove(active[0])
    while active:
        k = len(active) - 1 if rng.random() < winding else int(rng.random() * len(active))
        row, col = active[k]
        ways = [way for way in STEPS if (row + way[0], col + way[1]) in unvisited]
        if not ways:
            active.pop(k)
            continue
        down, right = ways[int(rng.random() * len(ways))]
        if right:
            vertical[row, col + (right > 0)] = False
        else:
            horizontal[row + (down > 0), col] = False
        active.append((row + down, col + right))
        unvisited.remove(active[-1])


def _open_loops(
    horizontal: np.ndarray,
    vertical: np.ndarray,
    cells: Bool[np.ndarray, "rows cols"],
    share: float,
    rng: np.random.Generator,
) -> None:
    """Let a share of the walls between the cells fall, none of them the last one of a post."""
    standing = _edges_where(
        cells[:-1] & cells[1:] & horizontal[1:-1], cells[:, :-1] & cells[:, 1:] & vertical[:, 1:-1]
    )
    to_fall = round(share * len(standing))
    walls_of_post = post_walls(horizontal, vertical)
    for k in rng.permutation(len(standing)):
        is_vertical, row, col = standing[k]
        posts = ([row, row + is_vertical], [col, col + 1 - is_vertical])
        if to_fall and walls_of_post[posts].min() > 1:
            (horizontal, vertical)[is_vertical][row, col] = False
            walls_of_post[posts] -= 1
            to_fall -= 1


def post_walls(
    horizontal: Bool[np.ndarray, "edges cols"], vertical: Bool[np.ndarray, "rows lines"]
) -> Int[np.ndarray, "edges lines"]:
    """The number of walls that each post holds; [r, c] is the post north-west of cell (r, c)."""
    counts = np.zeros((horizontal.shape[0], vertical.shape[1]), int)
    counts[:, :-1] += horizontal
    counts[:, 1:] += horizontal
    counts[:-1] += vertical
    counts[1:] += vertical
    return counts


def _edges_where(across: np.ndarray, along: np.ndarray) -> list[tuple[int, int, int]]:
    """(0, row, col) of inner horizontal edges and (1, row, col) of vertical ones, where true."""
    horizontal = [(0, row + 1, col) for row, col in np.argwhere(across).tolist()]
    return horizontal + [(1, row, col + 1) for row, col in np.argwhere(along).tolist()]
