"""Robots of others, in packages that the tests or the benchmarks install, and how MIME takes them.

`tools/robot_table.py` writes what is found here into docs/robot_survey.md.
"""

import re
import sysconfig
import warnings
from pathlib import Path
from typing import NamedTuple

from mime.control.kinematics import RobotFileError, parse_robot

SITE = Path(sysconfig.get_paths()["purelib"])
"""Where the packages of this environment are."""
FOLDERS = {
    "example-robot-data": "cmeel.prefix/share/example-robot-data/robots",
    "frax": "frax/assets",
    "gymnasium": "gymnasium",
    "dm_control": "dm_control",
    "mujoco": "mujoco",
}


class Verdict(NamedTuple):
    """How a file is taken."""

    status: str
    """loads, loads with a warning, kinematics, refused"""
    words: str


def robots(site: Path = SITE) -> dict[str, Path]:
    """Every URDF and MJCF in the packages of an environment: `panda/urdf/panda.urdf`, ..."""
    found = {}
    for package, folder in FOLDERS.items():
        for file in sorted((site / folder).rglob("*")):
            if file.suffix == ".urdf" or (file.suffix == ".xml" and _is_mjcf(file)):
                found[f"{package}/{file.relative_to(site / folder)}"] = file
    return found


def _is_mjcf(file: Path) -> bool:
    return "<mujoco" in file.read_text(errors="replace")


def verdict(file: Path) -> Verdict:
    """MIME's word on a file, read as it is by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MuJoCo's, on files that are old
        try:
            tree = parse_robot(file)
        except RobotFileError as error:
            return Verdict("refused", _brief(finding.what for finding in error.findings))
    reported = [finding.words for finding in tree.report if finding.kind == "reported"]
    if any(finding.rule == "no mass" for finding in tree.report):
        return Verdict("kinematics", _joints(tree))
    if not reported:
        return Verdict("loads", _joints(tree))
    return Verdict("loads with a warning", f"{_joints(tree)}; {_brief(reported)}")


def _joints(tree) -> str:
    return f"{tree.num_joints} joints" + " on a floating base" * (tree.base == "floating")


def _brief(words) -> str:
    first, *others = dict.fromkeys(without_folders(" ".join(word.split())) for word in words)
    return first[:160] + (f"; and {len(others)} more" if others else "")


def without_folders(words: str) -> str:
    """The words with the names of files and folders alone: no path of this machine."""
    quoted = re.sub(r"'/[^']*?([^/' ]*)'", r"'\1'", words)
    return re.sub(r"/\S*/([^/\s]+)", r"\1", quoted) if "/site-packages" in quoted else quoted
