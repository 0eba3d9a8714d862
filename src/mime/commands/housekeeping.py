"""`mime cache` and `mime version`"""

from typing import Annotated

import tyro

import mime
from mime.commands.errors import OK
from mime.xla.cache import cache_bytes, cache_folder, clear_cache


def cache(clear: Annotated[bool, tyro.conf.arg(help="remove the kept programs")] = False) -> int:
    """Show where compiled programs are kept and how large they are, or remove them."""
    if clear:
        print(f"removed {clear_cache() / 1e6:.1f} MB from {cache_folder()}")
    else:
        print(f"{cache_folder()}: {cache_bytes() / 1e6:.1f} MB of compiled programs")
    return OK


def version() -> int:
    """Print the version."""
    print(f"mime {mime.__version__}")
    return OK
