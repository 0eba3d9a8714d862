"""`mime show MODEL`: the joints of a robot, and what of its file is not simulated as written."""

import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from mime.commands import UserMistakeError
from mime.commands.robots import RobotOptions, read_robot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mime.control.kinematics import Finding, KinematicTree

_KINDS = ("revolute", "prismatic", "continuous")


def bundled_models() -> dict[str, Path]:
    """The robots that come with MIME, by name."""
    from mime.models import model_names, model_path

    return {name: model_path(name) for name in model_names()}


def joint_count(urdf: Path) -> int:
    """Joints of a bundled URDF that move; JAX is not asked."""
    joints = ElementTree.parse(urdf).getroot().findall("joint")
    return sum(joint.get("type") != "fixed" for joint in joints)


def described_models() -> dict[str, Any]:
    """What the package `robot_descriptions` knows, by name; nothing where it is not installed.

    Its list alone is imported. To import a robot's own module is to download that robot.
    """
    if find_spec("robot_descriptions") is None:
        return {}
    found: dict[str, Any] = import_module("robot_descriptions._descriptions").DESCRIPTIONS
    return {name: robot for name, robot in found.items() if robot.has_urdf or robot.has_mjcf}


def described_words(robot: Any) -> str:
    """One line on a robot of `robot_descriptions`."""
    makes = [getattr(robot, "robot", ""), getattr(robot, "maker", "")]
    joints = getattr(robot, "dof", None)
    kinds = [kind for kind in ("URDF", "MJCF") if getattr(robot, f"has_{kind.lower()}")]
    words = [*filter(None, makes), *([f"{joints} joints"] if joints else []), " and ".join(kinds)]
    return ", ".join(words)


def show_described(name: str, robot: Any) -> None:
    """How a robot of `robot_descriptions` is loaded: MIME downloads nothing by itself."""
    kind = "URDF" if robot.has_urdf else "MJCF"
    print(f"{name}: {described_words(robot)}, of the package robot_descriptions.\n")
    print("It is downloaded when its module is first imported:\n")
    print(f"    from robot_descriptions import {name} as robot")
    print("    from mime import parse_robot\n")
    search = ", search_path=[robot.PACKAGE_PATH]"
    print(f"    tree = parse_robot(robot.{kind}_PATH{search})")


def show_file(file: Path, options: RobotOptions) -> None:
    """Joints, limits, masses and report of a robot's file."""
    from mime.control.kinematics import RobotFileError, RobotFileWarning

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RobotFileWarning)  # the table says it
            tree = read_robot(file, options)
    except RobotFileError as error:
        if len(error.findings) > 1:
            _show_report(error.findings)
        raise UserMistakeError(str(error)) from error
    except ValueError as error:
        raise UserMistakeError(str(error)) from error
    _show_tree(tree)


def _show_tree(tree: "KinematicTree") -> None:
    from rich.table import Table
    from rich.text import Text

    from mime.reporting.numbers import number
    from mime.reporting.summary import wide_console

    console = wide_console()
    mass = number(float(tree.masses.sum()), 4)
    words = f"{tree.num_joints} joints on {tree.root_link_name!r}, {mass} kg move"
    console.print(Text.assemble((tree.name, "bold"), f"  {words}"), soft_wrap=True)
    console.print(tree.source, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for heading in ("joint", "type", "moves", "kg", "lower", "upper", "effort", "velocity"):
        table.add_column(
            heading, justify="left" if heading in ("joint", "type", "moves") else "right"
        )
    for i, joint in enumerate(tree.link_joint_names):
        c = tree.coordinate_idxs[i]
        mimics = joint != tree.joint_names[c]
        limits = [*tree.joint_limits[c], tree.effort_limits[c], tree.velocity_limits[c]]
        shown = ["" if mimics else number(float(limit), 4) for limit in limits]
        kind = f"mimics {tree.joint_names[c]}" if mimics else _KINDS[tree.joint_kinds[i]]
        cells = [joint, kind, tree.link_names[i], number(float(tree.masses[i]), 4), *shown]
        table.add_row(*map(Text, cells))
    console.print()
    console.print(table)
    console.print("\nrad, rad/s and N·m; m, m/s and N where a joint slides")
    _show_report(tree.report)


def _show_report(findings: "Sequence[Finding]") -> None:
    """The table of what is worth a word in a file."""
    from rich.table import Table
    from rich.text import Text

    from mime.control.kinematics.report import HEADINGS, report_rows
    from mime.reporting.summary import wide_console

    console = wide_console()
    console.print()
    if not findings:
        console.print("report: the file is simulated as it is written")
        return
    table = Table(title="report", title_justify="left", box=None, pad_edge=False)
    table.title_style = "bold"
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("class", "line"))
    for row in report_rows(findings):
        table.add_row(*map(Text, row))
    console.print(table)
