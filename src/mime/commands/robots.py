"""What the commands that read a robot's file share: their options, and the reading."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import tyro

from mime._text import brief
from mime.commands import UserMistakeError

if TYPE_CHECKING:
    from mime.control.kinematics import KinematicTree

SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class RobotOptions:
    """How a robot's file is read; the words are those of `parse_robot`."""

    on_problem: Annotated[
        Literal["warn", "refuse", "mend"], tyro.conf.arg(help="what a robot's file has wrong")
    ] = "warn"
    search_path: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="DIR", help="folders of a robot's packages")
    ] = ()
    base: Annotated[
        Literal["fixed", "floating"] | None, tyro.conf.arg(help="of a robot; default: the file's")
    ] = None
    subtree: Annotated[
        str | None, tyro.conf.arg(metavar="ROOT[:TIP]", help="the part of a robot that is wanted")
    ] = None
    lock: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(metavar="JOINT=VALUE", help="hold a joint, rad or m; again for the next one"),
    ] = ()
    open_loops: Annotated[bool, tyro.conf.arg(help="cut closed loops of a robot")] = False
    xacro: Annotated[
        bool,
        tyro.conf.arg(help="expand the robot's file, whatever its suffix: it is code, and is run"),
    ] = False
    arg: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(metavar="NAME=VALUE", help="of an <xacro:arg>; again for the next one"),
    ] = ()


Robot = Annotated[RobotOptions, tyro.conf.OmitArgPrefixes]
AS_IT_SAYS = RobotOptions()


def read_robot(file: Path, options: RobotOptions) -> "KinematicTree":
    """The robot of a file, by the words of the command line."""
    from mime.control.kinematics import parse_robot, parse_xacro

    subtree = None
    if options.subtree is not None:
        root, colon, tip = options.subtree.partition(":")
        subtree = {"root": root, **({"tip": tip} if colon else {})}
    parse = parse_xacro if options.xacro else parse_robot
    return parse(
        file,
        base=options.base,
        on_problem=options.on_problem,
        search_path=options.search_path,
        arguments=dict(_pair("--arg", "prefix=left_", words, str) for words in options.arg),
        subtree=subtree,
        lock=dict(_pair("--lock", "finger=0.02", words, float) for words in options.lock),
        open_loops=options.open_loops,
    )


def _pair(
    option: str, example: str, words: str, kind: Callable[[str], _Value]
) -> tuple[str, _Value]:
    name, equals, value = words.partition("=")
    try:
        if name and equals:
            return name, kind(value)
    except ValueError:
        pass
    raise UserMistakeError(f"{option} takes words such as {example}; got {brief(words, 60)}")
