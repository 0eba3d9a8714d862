"""`mime fit FIT`"""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import FAILED, OK
from mime.commands.run import AllowCode, Debug
from mime.commands.search import REPORT, Out, Quiet, folder_of, search


def fit(
    file: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="FIT", help="a file like fit.toml")
    ],
    out: Out = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Find unknown parameters from logs; write fit.json and report.html to a folder."""
    del debug  # `main` looks for it
    from mime.fitting.file import load_fit
    from mime.fitting.result import Fit
    from mime.fitting.words import headline

    loaded, folder = load_fit(file, allow_code=allow_code), folder_of(file, out)
    found = search(loaded.lenient, folder, quiet, {"fit.json": Fit.save})
    words = f"{loaded.title}\n{found}\nreport: {folder / REPORT}"
    if loaded.table.strict and not found.is_explained:
        print(words, file=sys.stderr)
        return FAILED
    if not quiet:
        print(words)
    elif not found.is_explained:
        print(headline(found), file=sys.stderr)
    return OK if found.is_complete else FAILED
