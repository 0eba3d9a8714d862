"""The `mime` command: finds the subcommand, and tells what went wrong without a traceback."""

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import mime
from mime._text import nearest
from mime.commands import (
    BROKEN_PIPE,
    FAILED,
    INTERRUPTED,
    MISTAKE,
    OK,
    RunFailedError,
    UserMistakeError,
)
from mime.core.problem import listed
from mime.scenarios.source import ScenarioError
from mime.xla.cache import cache_bytes, cache_folder, clear_cache, enable_compilation_cache


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `mime` command. Ends with `SystemExit` unless all went well."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            code = version() if words in (["--version"], ["-V"]) else _run(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough, as in `mime list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python says it again
        code = BROKEN_PIPE
    if code != OK:
        sys.exit(code)


def _run(words: list[str]) -> int:
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are files: no window system is asked
    enable_compilation_cache()
    return _guarded(words, debug="--debug" in words)


def cache(clear: bool = False) -> int:
    """Show where compiled programs are kept and how large they are, or remove them.

    :param clear: remove the kept programs
    """
    if clear:
        print(f"removed {clear_cache() / 1e6:.1f} MB from {cache_folder()}")
    else:
        print(f"{cache_folder()}: {cache_bytes() / 1e6:.1f} MB of compiled programs")
    return OK


def version() -> int:
    """Print the version."""
    print(f"mime {mime.__version__}")
    return OK


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print a completion script: `mime completion bash > ~/.bash_completion.d/mime`.

    It knows the names of commands, options, scenarios, nodes, motors and robots.

    :param shell: your shell
    """
    from mime.commands.completion import script

    tyros = io.StringIO()
    with contextlib.redirect_stdout(tyros), contextlib.suppress(SystemExit):
        _dispatch(["--tyro-print-completion", "bash"])
    print(script(shell, tyros.getvalue(), _commands()), end="")
    return OK


def _commands() -> dict[str, Callable[..., Any]]:
    """The subcommands by name. They load here, since `mime --version` needs none of them."""
    from mime.commands.demo import demo
    from mime.commands.design import design
    from mime.commands.fit import fit
    from mime.commands.graph import graph, plot
    from mime.commands.listing import list_
    from mime.commands.new_node import new_node
    from mime.commands.new_scenario import new_scenario
    from mime.commands.optimise import optimise
    from mime.commands.run import run
    from mime.commands.show import show
    from mime.commands.sweep import sweep
    from mime.commands.tune import tune
    from mime.commands.verify import verify
    from mime.commands.view import view

    return {
        "run": run,
        "list": list_,
        "show": show,
        "graph": graph,
        "plot": plot,
        "view": view,
        "fit": fit,
        "sweep": sweep,
        "optimise": optimise,
        "design": design,
        "tune": tune,
        "demo": demo,
        "verify": verify,
        "new-scenario": new_scenario,
        "new-node": new_node,
        "completion": completion,
        "cache": cache,
        "version": version,
    }


def _dispatch(words: Sequence[str]) -> int:
    """Run the command that the words name; its exit code."""
    import tyro

    commands = _commands()
    if words and not words[0].startswith("-") and words[0] not in commands:
        near = nearest(words[0], commands)
        raise UserMistakeError(
            f"there is no command {words[0]!r}{near}. The commands are {', '.join(commands)}; "
            "`mime --help` says what they do."
        )
    return tyro.extras.subcommand_cli_from_dict(
        commands,
        prog="mime",
        description="Simulate electromechanical robots from scenario files. "
        "`mime --version` or `mime -V` prints the version.",
        args=list(words),
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def _guarded(words: list[str], debug: bool) -> int:
    """Run a command; say what went wrong in a line or two. With `debug`, let it out."""
    try:
        with warnings.catch_warnings():
            setattr(warnings, "showwarning", _show_warning)  # noqa: B010  mypy forbids the plain way
            return _dispatch(words)
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, ScenarioError, UserMistakeError, RunFailedError, OSError) as error:
        if debug:
            raise
        print(_words(error), file=sys.stderr)
        codes = {KeyboardInterrupt: INTERRUPTED, RunFailedError: FAILED}
        return next((code for kind, code in codes.items() if isinstance(error, kind)), MISTAKE)


def _words(error: BaseException) -> str:
    if isinstance(error, ScenarioError):
        count = len(error.problems)
        heading = f"{error.file}: {count} problem{'s' if count > 1 else ''}"
        return listed(heading, error.problems, bullet="  ")
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "interrupted; nothing was kept"
    return str(error)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
