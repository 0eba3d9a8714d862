"""The command line: `mime cache`, `mime version`."""

import sys
from typing import Annotated

import tyro

import mime
from mime.core.cache import cache_bytes, cache_folder, clear_cache, enable_compilation_cache


def cache(clear: Annotated[bool, tyro.conf.arg(help="remove the kept programs")] = False) -> None:
    """Show where compiled programs are kept and how large they are, or remove them."""
    if clear:
        print(f"removed {clear_cache() / 1e6:.1f} MB from {cache_folder()}")
    else:
        print(f"{cache_folder()}: {cache_bytes() / 1e6:.1f} MB of compiled programs")


def version() -> None:
    """Print the version."""
    print(f"mime {mime.__version__}")


def main() -> None:
    """Entry point of the `mime` command."""
    enable_compilation_cache()
    if sys.argv[1:] == ["--version"]:
        sys.argv[1:] = ["version"]
    tyro.extras.subcommand_cli_from_dict({"cache": cache, "version": version}, prog="mime")
