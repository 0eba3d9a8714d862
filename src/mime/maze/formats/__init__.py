"""Mazes in files: Smartmouse's `.mz`, the community's text, `.maz` and `.num`.

No format holds dimensions, and only text holds goals: without them it is the centre.
"""

from mime.maze.formats.files import FORMATS as FORMATS
from mime.maze.formats.files import read_maze as read_maze
from mime.maze.formats.files import write_maze as write_maze
from mime.maze.formats.maz import format_maz as format_maz
from mime.maze.formats.maz import parse_maz as parse_maz
from mime.maze.formats.num import format_num as format_num
from mime.maze.formats.num import parse_num as parse_num
from mime.maze.formats.smartmouse import format_mz as format_mz
from mime.maze.formats.smartmouse import parse_mz as parse_mz
from mime.maze.formats.text import format_text as format_text
from mime.maze.formats.text import parse_text as parse_text
