"""What the commands that read a robot's file share: their options, and the reading."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from mime._text import brief
from mime.commands import UserMistakeError

if TYPE_CHECKING:
    from mime.control.kinematics import KinematicTree

SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro")
OnProblem = Annotated[
    Literal["warn", "refuse", "mend"], tyro.conf.arg(help="what a robot's file has wrong")
]
SearchPath = Annotated[
    tuple[str, ...], tyro.conf.arg(metavar="DIR", help="folders of a robot's packages")
]
Xacro = Annotated[
    bool, tyro.conf.arg(help="expand the robot's file, whatever its suffix: it is code, and is run")
]
XacroArguments = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="NAME=VALUE", help="of an <xacro:arg>; again for the next one"),
]


def read_robot(
    file: Path,
    on_problem: str,
    search_path: tuple[str, ...] = (),
    xacro: bool = False,
    arguments: tuple[str, ...] = (),
) -> "KinematicTree":
    """The robot of a file, by the words of the command line."""
    from mime.control.kinematics import parse_robot, parse_xacro

    given = dict(map(_argument, arguments))
    if xacro:
        return parse_xacro(file, arguments=given, on_problem=on_problem, search_path=search_path)
    return parse_robot(file, on_problem=on_problem, search_path=search_path, arguments=given)


def _argument(words: str) -> tuple[str, str]:
    name, equals, value = words.partition("=")
    if not name or not equals:
        raise UserMistakeError(f"--arg takes NAME=VALUE, as prefix=left_; got {brief(words, 60)}")
    return name, value
