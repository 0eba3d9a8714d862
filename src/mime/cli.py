"""The `mime` command: calls a subcommand, and tells what went wrong without a traceback."""

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import mime
from mime.commands.errors import (
    FAILED,
    INTERRUPTED,
    MISTAKE,
    OK,
    RunFailedError,
    UserMistakeError,
)
from mime.scenarios.problems import ScenarioError
from mime.xla.cache import enable_compilation_cache


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `mime` command. Ends with `SystemExit` unless all went well."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"mime {mime.__version__}")
        return
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are files: no window system is asked
    enable_compilation_cache()
    code = _guarded(words, debug="--debug" in words)
    if code != OK:
        sys.exit(code)


def _guarded(words: list[str], debug: bool) -> int:
    """Run a command; say what went wrong in a line or two. With `debug`, let it out."""
    from mime.commands.table import dispatch

    try:
        with warnings.catch_warnings():
            setattr(warnings, "showwarning", _show_warning)  # noqa: B010  mypy forbids the plain way
            return dispatch(words)
    except (KeyboardInterrupt, ScenarioError, UserMistakeError) as error:
        if debug:
            raise
        return _say(_words(error), INTERRUPTED if isinstance(error, KeyboardInterrupt) else MISTAKE)
    except (RunFailedError, OSError) as error:
        if debug:
            raise
        return _say(str(error), FAILED if isinstance(error, RunFailedError) else MISTAKE)


def _words(error: BaseException) -> str:
    if isinstance(error, ScenarioError):
        count = len(error.problems)
        heading = f"{error.file}: {count} problem{'s' if count > 1 else ''}"
        return "\n".join([heading, *(f"  {problem}" for problem in error.problems)])
    return str(error) or "interrupted; nothing was kept"


def _say(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
