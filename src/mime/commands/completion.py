"""`mime completion bash|zsh|fish`"""

from typing import Annotated, Literal

import tyro


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], tyro.conf.Positional, tyro.conf.arg(help="your shell")
    ],
) -> int:
    """Print a completion script: `mime completion bash > ~/.bash_completion.d/mime`."""
    from mime.commands.table import dispatch

    return dispatch(["--tyro-print-completion", shell])
