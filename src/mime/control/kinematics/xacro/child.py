"""Expands a xacro file in a process of its own, which may read in a few folders and nothing else.

A xacro file is code: its expressions find a way to all of Python. An audit hook refuses every
event but those that expanding takes: no other folder, no writing, no process, no socket, no
module. It stands in the way of accidents and of plain attacks; it is no prison.

standard input    {"file", "folder", "arguments", "packages": {name: folder}, "readable": [...]}
standard output   {"text"}, or {"missing": package}, or {"undefined": argument, "error": words},
                  or {"error": words}; with it "warnings", "declared": {argument: default or None}
                  of all <xacro:arg> of the file and its includes, and "used": [argument]

It is run as a script, and imports nothing of MIME.
"""

import contextlib
import io
import json
import os
import re
import sys
from html import unescape
from typing import Any, NoReturn
from xml.dom import expatbuilder

HARMLESS = {"compile", "exec", "object.__getattr__", "object.__setattr__", "builtins.id"}
LOOKING = {"open", "os.listdir", "os.scandir", "glob.glob", "glob.glob/2"}
MOST_BYTES, MOST_SECONDS = 2**32, 60
REFUSED: list[str] = []
"""What the file tried and may not; it is told even where the file went on without."""


class MissingPackageError(Exception):
    """`$(find NAME)` of a package whose folder is not known."""


def main() -> None:
    """Answer the one question on standard input."""
    question = json.load(sys.stdin)
    answer: dict[str, Any] = {}
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            answer["text"] = _expanded(question)
    except (Exception, RecursionError) as error:
        cause: Any = error
        while getattr(cause, "exc", None) is not None:  # xacro wraps what went wrong
            cause = cause.exc
        if isinstance(cause, MissingPackageError):
            answer = {"missing": str(cause)}
        else:
            answer = {"error": f"{type(cause).__name__}: {error}"}
        if type(cause).__name__ == "ArgException":
            answer["undefined"] = str(cause)
    if REFUSED:
        answer = {"error": REFUSED[0]}
    answer |= {"warnings": said.getvalue()} | _arguments(question["file"])
    json.dump(answer, sys.stdout)


def _expanded(question: dict[str, Any]) -> str:
    import xacro
    import xacrodoc
    import yaml

    def find(package: str) -> str:
        try:
            return question["packages"][package]
        except KeyError:
            raise MissingPackageError(package) from None

    def refuse(*_: object) -> NoReturn:
        raise ValueError("a DOCTYPE or ENTITY declaration; MIME expands no entities")

    xacrodoc.packages.get_path = find
    setattr(expatbuilder.ExpatBuilder, "start_doctype_decl_handler", refuse)  # noqa: B010
    del xacro, yaml  # loaded now: nothing can be later
    os.chdir(question["folder"])
    text = open(question["file"], encoding="utf-8").read()  # noqa: SIM115
    _limit()
    sys.addaudithook(_guard([os.path.realpath(folder) for folder in question["readable"]]))
    document = xacrodoc.XacroDoc.from_string(
        text, subargs=question["arguments"], resolve_packages=False
    )
    return document.dom.toprettyxml(indent="  ")


_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DECLARED = re.compile(r"<xacro:arg\s([^>]*)>")
_ATTRIBUTE = re.compile(r"(name|default)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_USED = re.compile(r"\$\(arg\s+([^)\s]+)\s*\)|xacro\.arg\(\s*['\"]([^'\"]+)")


def _arguments(file: str) -> dict[str, Any]:
    """The arguments that the file and its includes declare and use, as far as they were read."""
    included = list(getattr(sys.modules.get("xacro"), "all_includes", ()))
    declared: dict[str, str | None] = {}
    used: dict[str, None] = {}
    for name in dict.fromkeys([file, *map(str, included)]):
        try:
            text = _COMMENT.sub("", open(name, encoding="utf-8").read())  # noqa: SIM115
        except (OSError, ValueError):
            continue
        for attributes in _DECLARED.findall(text):
            found = {key: one or other for key, one, other in _ATTRIBUTE.findall(attributes)}
            argument, default = found.get("name", ""), found.get("default")
            if declared.get(argument) is None:
                declared[argument] = None if default is None else unescape(default)
        used |= dict.fromkeys(one or other for one, other in _USED.findall(text))
    return {"declared": declared, "used": list(used)}


def _limit() -> None:
    """Bounds on memory and time, where the system has them; and no byte is written to a file."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _guard(readable: list[str]) -> Any:
    """The hook; `path` and the like are bound here, where the code of the file does not reach."""
    realpath, separator = os.path.realpath, os.sep
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in HARMLESS:
            return
        if event in LOOKING and isinstance(arguments[0], str | os.PathLike):
            # A pattern of glob is judged by the folder before its first wildcard.
            place = os.fspath(arguments[0]).partition("*")[0] if "glob" in event else arguments[0]
            place = realpath(place)
            inside = any(place == top or place.startswith(top + separator) for top in readable)
            writes = event == "open" and bool((arguments[2] or 0) & writing)
            if inside and not writes:
                return
        what = f"{event} {arguments[0]!r}" if arguments else event
        REFUSED.append(f"{what[:300]} is not allowed while a xacro file is expanded")
        raise PermissionError(REFUSED[-1])

    return hook


if __name__ == "__main__":
    main()
