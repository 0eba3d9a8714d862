"""Distances to the goal by breadth-first search on bitboards: a row of cells is a word of bits."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int, Int32, Shaped, UInt32

from mime.maze.grid import MAX_SIZE, STEPS, MazeError

HorizontalWalls = Shaped[ArrayLike, "edges cols"]
VerticalWalls = Shaped[ArrayLike, "rows lines"]
Targets = Shaped[ArrayLike, "rows cols"]
CellIndex = Int[ArrayLike, "2"] | Sequence[Any]
Words = UInt32[Array, " rows"]

UNREACHABLE = -1
"""The distance of a cell from which no way leads to a goal."""


def flood_fill(
    horizontal: HorizontalWalls, vertical: VerticalWalls, targets: Targets
) -> Int32[Array, "rows cols"]:
    """d(cell) = 0 at the targets, else 1 + min over open sides of d(neighbour), in cells.

    It is -1 (`UNREACHABLE`) where no target can be reached. Walls are those of `Maze`, bool or 0.0
    and 1.0; the boundary counts as closed. `jax.jit` and `jax.vmap` go through.

    The wave V of visited cells is one word per row. One level is V | V << 1 | V >> 1 | V up |
    V down, where open; what is new in level d has the distance d, kept as one word per row for each
    binary digit of d - 1.
    """
    horizontal, vertical, targets = check_walls(horizontal, vertical, targets)
    rows, cols = targets.shape
    visited, east, south = _bitboards(horizontal, vertical, targets)
    num_digits = max(1, (rows * cols - 1).bit_length())

    def two_levels(state: Any) -> Any:
        wave, digits, pair, _ = state
        odd = _grown(wave, east, south)
        even = _grown(odd, east, south)
        new = even & ~wave
        high = [
            digit | jnp.where(pair >> k & 1, new, jnp.zeros_like(new))
            for k, digit in enumerate(digits[1:])
        ]
        return even, (digits[0] | (even & ~odd), *high), pair + 1, jnp.any(new != 0)

    digits = (jnp.zeros_like(visited),) * num_digits
    state = (visited, digits, jnp.int32(0), jnp.bool_(True))
    wave, digits, _, _ = jax.lax.while_loop(lambda state: state[3], two_levels, state)
    d = 1 + sum(_unpack(digit, cols).astype(jnp.int32) << k for k, digit in enumerate(digits))
    d = jnp.where(_unpack(wave, cols), d, UNREACHABLE)
    return jnp.where(targets, 0, d)


def next_heading(
    horizontal: HorizontalWalls,
    vertical: VerticalWalls,
    targets: Targets,
    cell: CellIndex,
    heading: Int[ArrayLike, ""],
) -> Int32[Array, ""]:
    """The heading from `cell` to the open neighbour that is nearest to the targets.

    Among equals straight on goes first, then right, left, back. The result is -1 at a target, and
    where no target can be reached. The wave stops when it touches a neighbour of the cell.
    """
    horizontal, vertical, targets = check_walls(horizontal, vertical, targets)
    rows, cols = targets.shape
    visited, east, south = _bitboards(horizontal, vertical, targets)
    row, col = (jnp.asarray(x, jnp.int32) for x in (cell[0], cell[1]))  # type: ignore[index]
    here = jnp.where(jnp.arange(rows) == row, jnp.uint32(1) << col.astype(jnp.uint32), 0)
    here = here.astype(jnp.uint32)
    neighbours = _grown(here, east, south) & ~here

    def grow(state: tuple[Words, Bool[Array, ""]]) -> tuple[Words, Bool[Array, ""]]:
        one = _grown(state[0], east, south)
        two = jnp.where(jnp.any(one & neighbours), one, _grown(one, east, south))
        return two, jnp.any(two != state[0])

    def far_and_growing(state: tuple[Words, Bool[Array, ""]]) -> Bool[Array, ""]:
        return state[1] & ~jnp.any(state[0] & neighbours)

    already = jnp.any(visited & here)
    wave, _ = jax.lax.while_loop(far_and_growing, grow, (visited, ~already))
    nearest = wave & neighbours

    def touched(step: tuple[int, int]) -> Bool[Array, ""]:
        there = (jnp.arange(rows) == row + step[0]) & (nearest != 0)
        # A neighbour beyond the edge has no bit: `neighbours` holds none.
        bit = jnp.uint32(1) << jnp.clip(col + step[1], 0, MAX_SIZE - 1).astype(jnp.uint32)
        inside = (col + step[1] >= 0) & (col + step[1] < cols)
        return inside & jnp.any(there & (nearest & bit != 0))

    order = (jnp.asarray(heading, jnp.int32) + jnp.array([0, 1, 3, 2], jnp.int32)) % 4
    choices = jnp.stack([touched(step) for step in STEPS])[order]
    best = order[jnp.argmax(choices)]
    return jnp.where(jnp.any(choices) & ~already, best, -1)


def _grown(wave: Words, east: Words, south: UInt32[Array, " _"]) -> Words:
    """The wave one level later. `east`: open to the next column; `south`: to the next row."""
    nothing = jnp.zeros_like(wave[:1])
    down = jnp.concatenate([nothing, wave[:-1] & south])
    up = jnp.concatenate([wave[1:] & south, nothing])
    return wave | (wave & east) << 1 | wave >> 1 & east | down | up


def _bitboards(
    horizontal: Bool[Array, "_ cols"], vertical: Bool[Array, "rows _"], targets: Bool[Array, "_ _"]
) -> tuple[Words, Words, UInt32[Array, " _"]]:
    return _pack(targets), _pack(~vertical[:, 1:-1]), _pack(~horizontal[1:-1])


def _pack(bits: Bool[Array, "rows cols"]) -> Words:
    """One word per row; column c is bit c."""
    weights = jnp.uint32(1) << jnp.arange(bits.shape[1], dtype=jnp.uint32)
    return jnp.sum(jnp.where(bits, weights[None], jnp.uint32(0)), axis=1, dtype=jnp.uint32)


def _unpack(words: Words, cols: int) -> Bool[Array, "rows cols"]:
    columns = jnp.arange(cols, dtype=jnp.uint32)
    return (words[:, None] >> columns[None] & 1).astype(bool)


def check_walls(horizontal: Any, vertical: Any, targets: Any) -> tuple[Array, Array, Array]:
    """The walls and targets as bool arrays; shapes that do not fit together are refused."""
    horizontal, vertical, targets = (
        x.astype(bool) if isinstance(x, jax.Array) else jax.device_put(np.asarray(x, bool))
        for x in (horizontal, vertical, targets)
    )
    rows, cols = targets.shape
    if horizontal.shape != (rows + 1, cols) or vertical.shape != (rows, cols + 1):
        raise MazeError(
            f"targets of shape {targets.shape} need horizontal walls of shape {(rows + 1, cols)} "
            f"and vertical walls of shape {(rows, cols + 1)}, got {horizontal.shape} and "
            f"{vertical.shape}"
        )
    if not (1 <= rows <= MAX_SIZE and 1 <= cols <= MAX_SIZE):
        raise MazeError(f"a maze has 1 to {MAX_SIZE} rows and columns, got {rows} x {cols}")
    return horizontal, vertical, targets
