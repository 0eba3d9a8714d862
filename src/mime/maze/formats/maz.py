"""`.maz`: one byte per cell."""

import numpy as np

from mime.maze.formats.shared import (
    SIZE,
    Goals,
    build,
    refuse_goals,
    refuse_start,
    refuse_unless_sixteen,
    stem,
)
from mime.maze.grid import EAST_BIT, NORTH, SOUTH_BIT, WEST_BIT, MazeError
from mime.maze.maze import Maze

_FIRST_BYTE = EAST_BIT | SOUTH_BIT | WEST_BIT


def parse_maz(data: bytes, goals: Goals = None, source: str = "<maz>") -> Maze:
    """256 bytes, the one at 16 x + y for the cell x from the west and y from the south.

    Bits N = 1, E = 2, S = 4, W = 8. The start is the first cell, facing north, closed on its other
    sides: the first byte is 0x0E.
    """
    if len(data) != SIZE**2:
        raise MazeError(
            f"{source}: has {len(data)} bytes, expected {SIZE**2}, one for each of {SIZE} x "
            f"{SIZE} cells"
        )
    if data[0] != _FIRST_BYTE:
        raise MazeError(
            f"{source}: byte 0, cell {(SIZE - 1, 0)}, is 0x{data[0]:02X}, expected 0x0E: the start "
            "has walls to the east, south and west. Is this a .maz file, with bits N = 1, E = 2, "
            "S = 4, W = 8?"
        )
    for k, byte in enumerate(data):
        if byte > 15:
            cell = (SIZE - 1 - k % SIZE, k // SIZE)
            raise MazeError(
                f"{source}: byte {k}, cell {cell}, is 0x{byte:02X}, expected at most 0x0F: the sum "
                "of N = 1, E = 2, S = 4, W = 8"
            )
    walls = np.frombuffer(data, np.uint8).astype(int).reshape(SIZE, SIZE).T[::-1]
    return build(
        source,
        lambda cell: f"byte {SIZE * cell[1] + SIZE - 1 - cell[0]}",
        lambda: Maze.from_cells(walls, goals=goals, name=stem(source)),
    )


def format_maz(maze: Maze) -> bytes:
    """The contents of a `.maz` file."""
    refuse_unless_sixteen(maze, ".maz")
    refuse_start(maze, ".maz", (SIZE - 1, 0), NORTH)
    refuse_goals(maze, ".maz")
    data = maze.cell_walls()[::-1].T.astype(np.uint8).tobytes()
    if data[0] != _FIRST_BYTE:
        raise MazeError(
            ".maz cannot hold this maze: its start needs walls to the east, south and west and "
            f"none to the north; the walls of cell {maze.start} are 0x{data[0]:02X}, not 0x0E"
        )
    return data
