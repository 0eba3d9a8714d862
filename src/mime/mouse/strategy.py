"""Decides where to go next: the part of a mouse that a team replaces with its own."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Bool, Int32

from mime.maze.belief import Belief, optimistic_walls, pessimistic_walls
from mime.maze.flood_fill import next_heading
from mime.maze.racing import fastest_headings
from mime.maze.routes import SpeedProfile

Targets = Bool[Array, "rows cols"]


class Strategy(eqx.Module):
    """Flood fill. Derive from it, override what you do differently, and give it to the mouse.

    Both methods are traced into the mouse's program: pure functions of arrays, with `jnp.where`
    and `lax` loops in place of `if` and `while`. Cells are (row, column), headings 0 to 3: east,
    south, west, north. Fields that you add are parameters of your strategy.
    """

    def explore(
        self, belief: Belief, cell: Int32[Array, "2"], heading: Any, targets: Targets
    ) -> Int32[Array, ""]:
        """The heading in which to leave `cell`, or -1 when there is no way and the mouse stops.

        The mouse enters the cell (or stands in it) facing `heading`, on its way to the `targets`:
        the goal while it searches, the start on its way back. The belief has the cell's walls.

        This one takes the shortest way as if everything unknown were open.
        """
        return next_heading(*optimistic_walls(belief), targets, cell, heading)

    def race(
        self,
        belief: Belief,
        start: Int32[Array, "2"],
        heading: Any,
        targets: Targets,
        profile: SpeedProfile,
        cell_size_m: float,
    ) -> tuple[Int32[Array, " max_length"], Int32[Array, ""]]:
        """The headings of all moves of the speed run, from cell to cell, and how many there are.

        This one takes the fastest way through cells that were seen.
        """
        rows, cols = targets.shape
        return fastest_headings(
            *pessimistic_walls(belief), start, heading, targets, profile, rows * cols, cell_size_m
        )
