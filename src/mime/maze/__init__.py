"""Mazes for micromice: their walls, files and drawings, the way to the goal."""

from mime.maze.belief import (
    Belief,
    full_belief,
    optimistic_walls,
    pessimistic_walls,
    unknown_belief,
)
from mime.maze.drawing import draw, maze_text
from mime.maze.flood_fill import UNREACHABLE, flood_fill, next_heading
from mime.maze.formats import read_maze, write_maze
from mime.maze.generator import random_maze
from mime.maze.grid import EAST, NORTH, SOUTH, WEST, Cell, MazeError, default_goals
from mime.maze.maze import Maze
from mime.maze.racing import fastest_headings
from mime.maze.routes import (
    Route,
    Segment,
    SpeedProfile,
    fastest_route,
    route_along,
    shortest_route,
)

__all__ = [
    "EAST",
    "NORTH",
    "SOUTH",
    "UNREACHABLE",
    "WEST",
    "Belief",
    "Cell",
    "Maze",
    "MazeError",
    "Route",
    "Segment",
    "SpeedProfile",
    "default_goals",
    "draw",
    "fastest_headings",
    "fastest_route",
    "flood_fill",
    "full_belief",
    "maze_text",
    "next_heading",
    "optimistic_walls",
    "pessimistic_walls",
    "random_maze",
    "read_maze",
    "route_along",
    "shortest_route",
    "unknown_belief",
    "write_maze",
]
