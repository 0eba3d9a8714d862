"""Mazes in files: Smartmouse's `.mz`, the community's text, `.maz` and `.num`.

No format holds dimensions, and only text holds goals: without them it is the centre.
"""

from mime.maze.formats.files import FORMATS, read_maze, write_maze
from mime.maze.formats.maz import format_maz, parse_maz
from mime.maze.formats.num import format_num, parse_num
from mime.maze.formats.smartmouse import format_mz, parse_mz
from mime.maze.formats.text import format_text, parse_text

__all__ = [
    "FORMATS",
    "format_maz",
    "format_mz",
    "format_num",
    "format_text",
    "parse_maz",
    "parse_mz",
    "parse_num",
    "parse_text",
    "read_maze",
    "write_maze",
]
