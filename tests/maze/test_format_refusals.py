"""What is no maze is refused, with the place in the file; what a format cannot hold, too."""

import pytest

from maze.samples import EMPTY_MZ, EMPTY_MZ_LINE, NUM, TEXT
from mime.maze import EAST, Maze, MazeError, maze_text, random_maze, read_maze, write_maze
from mime.maze.formats import (
    format_maz,
    format_mz,
    format_num,
    format_text,
    parse_maz,
    parse_mz,
    parse_num,
    parse_text,
)


def edited(lines, number, text):
    lines = list(lines)
    lines[number - 1] = text
    return "\n".join(lines)


ROWS = TEXT.splitlines()
SEALED = Maze.empty(16, 16).cell_walls()[::-1].T.copy()
SEALED[0, 0] |= 2
SEALED[1, 0] |= 8
MAZ = SEALED.ravel().tolist()


def maz_with(at, value):
    data = list(MAZ)
    data[at] = value
    return bytes(data)


def closed_room(write):
    """A maze file whose goal, the one centre cell, is walled in."""
    walls = Maze.empty(3, 3).cell_walls()
    walls[1, 1] = 15
    walls[0, 1] |= 4
    walls[2, 1] |= 1
    walls[1, 0] |= 2
    walls[1, 2] |= 8
    return write(Maze.from_cells(walls, goals=[(0, 0)]))


def unmarked(maze):
    return maze_text(maze).replace("G", " ")


REFUSALS = {
    "mz lines": (parse_mz, "\n".join(EMPTY_MZ[1:]), "has 15 lines, expected 16"),
    "mz ragged": (
        parse_mz,
        edited(EMPTY_MZ, 3, EMPTY_MZ_LINE[:-2]),
        r"line 3 \(row 2\) has 31 characters, expected 33",
    ),
    "mz character": (
        parse_mz,
        edited(EMPTY_MZ, 4, "| x " + EMPTY_MZ_LINE[4:]),
        r"line 4, character 3, cell \(3, 1\): got 'x', expected '|' or ' ' or '_'",
    ),
    "mz pipe for a south wall": (
        parse_mz,
        edited(EMPTY_MZ, 4, "||" + EMPTY_MZ_LINE[2:]),
        r"line 4, character 2, cell \(3, 0\): got '\|', expected '_' or ' '",
    ),
    "mz open east": (
        parse_mz,
        edited(EMPTY_MZ, 2, EMPTY_MZ_LINE[:-1] + " "),
        r"line 2: the boundary is open on the east side of cell \(1, 15\)",
    ),
    "mz open south": (
        parse_mz,
        edited(EMPTY_MZ, 16, EMPTY_MZ_LINE),
        r"line 16: the boundary is open on the south side of cell \(15, 0\)",
    ),
    "mz start closed in": (
        parse_mz,
        edited(EMPTY_MZ, 1, "|_|" + EMPTY_MZ_LINE[3:]),
        r"line 1: the start, cell \(0, 0\), has walls on all four sides",
    ),
    "text lines": (parse_text, "\n".join(ROWS[:-1]), r"has 4 lines, expected 2 rows \+ 1"),
    "text empty": (parse_text, "", r"has 0 lines, expected 2 rows \+ 1"),
    "text width": (
        parse_text,
        edited(ROWS, 1, ROWS[0] + "-"),
        r"line 1 has 14 characters, expected 4 columns \+ 1",
    ),
    "text ragged": (
        parse_text,
        edited(ROWS, 4, ROWS[3][:-2]),
        r"line 4 \(row 1\) has 11 characters, expected 13",
    ),
    "text too long": (
        parse_text,
        edited(ROWS, 2, ROWS[1] + "|"),
        r"line 2 \(row 0\) has 14 characters, expected 13",
    ),
    "text character": (
        parse_text,
        TEXT.replace("G", "X"),
        r"line 2, character 7, cell \(0, 1\): got 'X', expected 'S' or 'G' or ' '",
    ),
    "text post": (
        parse_text,
        edited(ROWS, 3, "o   x---o   o"),
        r"line 3, character 5, cell \(1, 1\): got 'x', expected 'o' or '\+'",
    ),
    "text half a wall": (
        parse_text,
        edited(ROWS, 3, "o   o-- o   o"),
        r"line 3, cell \(1, 1\): the wall is '-- ', expected '---' or three blanks",
    ),
    "text two starts": (
        parse_text,
        TEXT.replace("G", "S"),
        r"lines 2, 4: S marks the cells \[\(0, 1\), \(1, 0\)\], expected one",
    ),
    "text open boundary": (
        parse_text,
        edited(ROWS, 4, ROWS[3][:-1] + " "),
        r"line 4: the boundary is open on the east side of cell \(1, 2\)",
    ),
    "text unreachable": (
        parse_text,
        closed_room(unmarked),
        r"line 4: the goal \(1, 1\) cannot be reached from the start \(2, 0\)",
    ),
    "maz length": (parse_maz, bytes(255), "has 255 bytes, expected 256"),
    "maz first byte": (
        parse_maz,
        maz_with(0, 0x0D),
        r"byte 0, cell \(15, 0\), is 0x0D, expected 0x0E",
    ),
    "maz byte": (
        parse_maz,
        maz_with(18, 0x1F),
        r"byte 18, cell \(13, 1\), is 0x1F, expected at most 0x0F",
    ),
    "maz disagrees": (
        parse_maz,
        maz_with(18, 0x01),
        r"byte 19: cell \(13, 1\) has a wall on its north side, but cell \(12, 1\) has none",
    ),
    "maz open": (
        parse_maz,
        maz_with(15, 0x08),
        r"byte 15: the boundary is open on the north side of cell \(0, 0\)",
    ),
    "num words": (
        parse_num,
        NUM.replace("1 1 1 1 1 0", "1 1 1 a 1 0"),
        "line 4: is '1 1 1 a 1 0', expected six integers",
    ),
    "num too few": (parse_num, NUM[:-3], "line 6: is '2 1 1 1 0', expected six integers"),
    "num wall": (
        parse_num,
        NUM.replace("1 1 1 1 1 0", "1 1 1 2 1 0"),
        r"line 4: the walls of the cell x = 1, y = 1 are \[1, 2, 1, 0\], expected 0 or 1",
    ),
    "num cell": (parse_num, NUM + "32 0 1 1 1 1\n", "line 7: the cell is x = 32, y = 0, expected"),
    "num duplicate": (
        parse_num,
        NUM + "1 0 1 0 1 1\n",
        "line 7: the cell x = 1, y = 0 is in line 3 already",
    ),
    "num missing": (
        parse_num,
        NUM.replace("1 0 1 0 1 1\n", ""),
        r"no line for the cell x = 1, y = 0, \(1, 1\) by row and column, in a maze of 2 x 3",
    ),
    "num empty": (parse_num, "\n", "has no cells, expected lines of 'X Y N E S W'"),
    "num disagrees": (
        parse_num,
        NUM.replace("1 1 1 1 1 0", "1 1 1 0 1 0"),
        r"line 4: cell \(0, 2\) has a wall on its west side, but cell \(0, 1\) has none",
    ),
    "num open": (
        parse_num,
        NUM.replace("2 1 1 1 0 1", "2 1 0 1 0 1"),
        r"line 6: the boundary is open on the north side of cell \(0, 2\)",
    ),
    "num unreachable": (
        parse_num,
        NUM,
        r"line 3: the goal \(1, 1\) cannot be reached from the start \(1, 0\)",
    ),
}


@pytest.mark.parametrize(("parse", "contents", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_file_that_holds_no_maze_is_refused_by_place(parse, contents, message):
    with pytest.raises(MazeError, match=message) as refusal:
        parse(contents, source="some.file")
    assert str(refusal.value).startswith("some.file: ")


def test_a_given_goal_outside_is_refused():
    with pytest.raises(MazeError, match=r"^<num>: the goal \(9, 9\) is outside the maze of 2 x 3"):
        parse_num(NUM, goals=[(9, 9)])


WRITING = {
    "mz size": (format_mz, random_maze(0, 8, 8), ".mz holds mazes of 16 x 16 cells.*8 x 8"),
    "mz start": (
        format_mz,
        random_maze(0),
        r".mz holds mazes that start at \(0, 0\) facing east, this one starts at \(15, 0\) facing",
    ),
    "mz goals": (
        format_mz,
        Maze.empty(16, 16, start=(0, 0), start_heading=EAST, goals=[(3, 3)]),
        r".mz holds no goals: .*this maze has \(\(3, 3\),\)",
    ),
    "maz size": (format_maz, random_maze(0, 16, 15), ".maz holds mazes of 16 x 16 cells"),
    "maz start": (format_maz, random_maze(0).rotated(1), ".maz holds mazes that start at"),
    "maz open start": (format_maz, Maze.empty(16, 16), "are 0x0C, not 0x0E"),
    "num start": (format_num, random_maze(0).rotated(2), ".num holds mazes that start at"),
    "num goals": (format_num, Maze.empty(4, 4, goals=[(0, 0)]), ".num holds no goals"),
    "text heading": (format_text, random_maze(0).rotated(1), "cannot hold a start that faces east"),
    "text start in goal": (
        format_text,
        Maze.empty(4, 4, goals=[(3, 0), (0, 0)]),
        r"cannot hold a start that is a goal too, cell \(3, 0\)",
    ),
}


@pytest.mark.parametrize(("write", "maze", "message"), WRITING.values(), ids=WRITING)
def test_a_maze_that_a_format_cannot_hold_is_not_written(write, maze, message):
    with pytest.raises(MazeError, match=message):
        write(maze)


def test_a_refused_maze_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "kept.maz"
    path.write_bytes(b"before")
    with pytest.raises(MazeError):
        write_maze(Maze.empty(3, 3), path)
    assert path.read_bytes() == b"before"


def test_unknown_formats_and_contents_are_refused(tmp_path):
    path = tmp_path / "maze.xyz"
    path.write_text("hello")
    with pytest.raises(
        MazeError, match=r"neither its suffix nor its contents.*'mz', 'text', 'maz'"
    ):
        read_maze(path)
    with pytest.raises(MazeError, match=r"unknown maze format 'numb' \(did you mean 'num'\?\)"):
        read_maze(path, format="numb")
    with pytest.raises(MazeError, match=r"the suffix is none of '\.mz', '\.txt'"):
        write_maze(Maze.empty(3, 3), path)
    path = tmp_path / "binary.num"
    path.write_bytes(b"0 0 1 \xff")
    with pytest.raises(MazeError, match=r"binary.num: byte 6 is 0xFF, expected plain ASCII"):
        read_maze(path)
    with pytest.raises(FileNotFoundError):
        read_maze(tmp_path / "absent.mz")
