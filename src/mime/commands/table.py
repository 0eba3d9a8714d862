"""The subcommands by name."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import tyro

from mime.commands.demo import demo
from mime.commands.graph import graph, plot
from mime.commands.housekeeping import cache, version
from mime.commands.listing import list_
from mime.commands.new_node import new_node
from mime.commands.run import run
from mime.commands.show import show
from mime.commands.verify import verify


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], tyro.conf.Positional, tyro.conf.arg(help="your shell")
    ],
) -> int:
    """Print a completion script: `mime completion bash > ~/.bash_completion.d/mime`."""
    return dispatch(["--tyro-print-completion", shell])


COMMANDS: dict[str, Callable[..., Any]] = {
    "run": run,
    "list": list_,
    "show": show,
    "graph": graph,
    "plot": plot,
    "demo": demo,
    "verify": verify,
    "new-node": new_node,
    "completion": completion,
    "cache": cache,
    "version": version,
}


def dispatch(words: Sequence[str]) -> int:
    """Run the command that the words name; its exit code."""
    return tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="mime",
        description="Simulate electromechanical robots from scenario files.",
        args=list(words),
        config=(tyro.conf.FlagCreatePairsOff,),
    )
