"""`mime design DESIGN`"""

from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import FAILED, OK
from mime.commands.run import AllowCode, Debug
from mime.commands.search import REPORT, Out, Quiet, folder_of, search

CSV = "input.csv"


def design(
    file: Annotated[
        Path,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="DESIGN", help="a file like fit.toml with a table [design]"),
    ],
    out: Out = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Design the experiment to run next; write input.csv and report.html to a folder."""
    del debug  # `main` looks for it
    from mime.fitting.design_file import load_design

    loaded, folder = load_design(file, allow_code=allow_code), folder_of(file, out, "_design")
    found = search(loaded, folder, quiet, {CSV: lambda found, path: found.to_csv(path)})
    if not quiet:
        print(f"{loaded.title}\n{found}\ninput: {folder / CSV}\nreport: {folder / REPORT}")
    return OK if found.is_complete else FAILED
