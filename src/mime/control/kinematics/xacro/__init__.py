"""xacro: URDF with macros, expanded by `xacrodoc`.

Such a file is code. It is expanded when it was asked for by name, and in no other case.
"""

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mime._files import read_plain
from mime._text import brief, nearest, shortened
from mime.control.kinematics.packages import Packages
from mime.control.kinematics.part import Part
from mime.control.kinematics.report import Finding, Findings, checked_base, checked_choice
from mime.control.kinematics.tree import KinematicTree
from mime.control.kinematics.urdf import UrdfError, tree_of
from mime.control.kinematics.urdf.xml import MOST_BYTES, parsed_xml
from mime.core.arguments import mapping
from mime.core.arguments import path as path_of

__all__ = ["expand_xacro", "parse_xacro"]

SUFFIX = ".xacro"
_CHILD = Path(__file__).with_name("child.py")
_MOST_SECONDS = 60.0
_FIND = re.compile(r"\$\(find\s+([^)\s]+)\s*\)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def parse_xacro(
    path: str | os.PathLike,
    *,
    arguments: Mapping[str, Any] | None = None,
    base: str | None = None,
    on_problem: str = "warn",
    search_path: Sequence[str | os.PathLike] = (),
    subtree: Part = None,
    lock: Mapping[str, Any] | None = None,
    open_loops: bool = False,
) -> KinematicTree:
    """xacro file -> `KinematicTree`. The file is code, and is run: read it first.

    `arguments`: values of its `<xacro:arg>`. The rest is as in `parse_urdf`; lines in messages and
    in `tree.report` are those of the expanded text, which `expand_xacro` gives.
    """
    path = path_of("path", path)
    checked_choice(on_problem)
    checked_base(base)
    packages = Packages.of(path, search_path)
    found = Findings(on_problem)
    text = _expanded(path, arguments, packages, found)
    robot = parsed_xml(text.encode(), Path(f"{path} (expanded)"), found)
    tree = tree_of(robot, packages, found, base, open_loops, subtree, lock)
    return dataclasses.replace(tree, source=str(path))


def expand_xacro(
    path: str | os.PathLike,
    *,
    arguments: Mapping[str, Any] | None = None,
    search_path: Sequence[str | os.PathLike] = (),
) -> str:
    """The URDF that a xacro file stands for. The file is code, and is run: read it first."""
    path = path_of("path", path)
    return _expanded(path, arguments, Packages.of(path, search_path), Findings())


def _expanded(
    path: Path, arguments: Mapping[str, Any] | None, packages: Packages, found: Findings
) -> str:
    """The text, by a process that may read in the folders of the file and of its packages."""
    given = mapping("arguments", arguments, '{"prefix": "left_"}')
    if find_spec("xacrodoc") is None:
        message = "xacro is expanded by xacrodoc. Install it: pip install 'mime-sim[xacro]'."
        raise UrdfError(path, message)
    try:
        named = _FIND.findall(read_plain(path, MOST_BYTES).decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UrdfError(path, f"cannot be read ({reason}). Check the path.") from error
    folders = {name: places[0] for name in named if (places := packages.found(name))}
    values = {name: str(value) for name, value in given.items()}
    while True:
        answer = _ask(path, values, packages, folders)
        missing, undefined = answer.get("missing"), answer.get("undefined")
        if missing is not None and missing not in folders:
            if not (places := packages.found(missing)):
                message = f"package {brief(missing, 60)} not found in {packages.places()}. "
                raise UrdfError(path, f"{message}Give the folder that holds it as search_path.")
            folders[missing] = places[0]
            continue
        default = answer.get("declared", {}).get(undefined)
        if undefined is None or undefined in values or default is None or "$" in default:
            break
        values[undefined] = default
        words = f"argument {undefined!r} is used before its <xacro:arg>"
        how = f"its default is taken, {brief(default, 60)}"
        found.add("argument", Finding(str(path), None, words, how))
    _refuse(path, given, answer)
    for line in _plain(answer["warnings"]).splitlines():
        if line.strip():
            dropped = "matched no files" in line
            finding = Finding(str(path), None, f"brings a warning of xacro's: {brief(line, 300)}")
            found.add("include" if dropped else "warning", finding)
    return answer["text"]


def _refuse(path: Path, given: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Raises what is wrong: an argument that the file needs or does not have, or all else."""
    declared: dict[str, str | None] = answer.get("declared", {})
    used: list[str] = answer.get("used", [])
    known = [*declared, *(name for name in used if name not in declared)]
    free = [name for name in declared if declared[name] is not None and name not in given]
    free.sort(key=lambda name: not (declared[name] and declared[name] in answer.get("error", "")))
    takes = shortened(", ".join(f"{name} = {brief(declared[name], 40)}" for name in free), 900)
    also = f" It also takes: {takes}." if takes else ""
    strange = [name for name in given if known and name not in known]
    near = nearest(strange[0], known) if strange else ""
    if strange and (near or "error" not in answer):
        raise UrdfError(path, f"has no argument {brief(strange[0], 60)}{near}.{also}")
    if answer.get("undefined"):
        undeclared = (name for name in used if declared.get(name) is None and name not in given)
        names = list(dict.fromkeys([answer["undefined"], *undeclared]))
        needs = ", ".join(
            f"{name} (no default)" if name not in free else f"{name} (used before its default)"
            for name in names
        )
        message = f"{path.name} needs arguments: {shortened(needs, 400)}."
        raise UrdfError(path, f"{message}{also} {_how_to_pass(names)}")
    if "error" in answer:
        words = shortened(" ".join(_plain(answer["error"]).split()), 800)
        message = f"cannot be expanded by xacro: {words}"
        if takes:
            message += f". It takes arguments: {takes}. {_how_to_pass(free)}"
        raise UrdfError(path, message)


def _how_to_pass(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!r}: ..." for name in names[:3])
    return f"Pass arguments={{{shown}}}, or --arg {names[0]}=VALUE on the command line."


def _plain(words: str) -> str:
    return _COLOURS.sub("", words)


def _ask(
    path: Path, arguments: Mapping[str, str], packages: Packages, folders: Mapping[str, Path]
) -> dict[str, Any]:
    folder = path.resolve().parent
    sources = [source for place in folders.values() for source in packages.sources(place)]
    readable = [*packages.readable_by_code, *folders.values(), *sources]
    question = {
        "file": str(path.resolve()),
        "folder": str(folder),
        "arguments": dict(arguments),
        "packages": {name: str(place) for name, place in folders.items()},
        "readable": [str(place) for place in readable],
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_CHILD)],
            input=json.dumps(question),
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=_MOST_SECONDS,
            check=False,
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"error": f"it took more than {_MOST_SECONDS:g} s; do its macros end?"}
    except ValueError:  # it was stopped by the limits on memory and time
        return {"error": f"it ended without an answer (exit code {done.returncode})"}
