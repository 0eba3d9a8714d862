"""`mime design DESIGN`"""

from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import FAILED, OK
from mime.commands.run import AllowCode, Debug

CSV, REPORT = "input.csv", "report.html"


def design(
    file: Annotated[
        Path,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="DESIGN", help="a file like fit.toml with a table [design]"),
    ],
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help="folder (mime_output/NAME)")
    ] = None,
    allow_code: AllowCode = False,
    quiet: Annotated[bool, tyro.conf.arg(help="print nothing but errors")] = False,
    debug: Debug = False,
) -> int:
    """Design the experiment to run next; write input.csv and report.html to a folder."""
    del debug  # `main` looks for it
    from mime.commands.output import open_folder, write_bytes
    from mime.fitting.design_file import load_design

    loaded = load_design(file, allow_code=allow_code)
    folder = out or Path("mime_output") / f"{file.stem.strip('. ') or 'unnamed'}_design"
    with open_folder(folder) as files:
        files.refuse_foreign([CSV, REPORT])
        found = loaded.run(progress=not quiet)
        files.claim([CSV, REPORT])
        found.to_csv(folder / CSV)
        write_bytes(folder / REPORT, found.report().encode())
    if not quiet:
        print(f"{loaded.title}\n{found}\ninput: {folder / CSV}\nreport: {folder / REPORT}")
    return OK if found.is_complete else FAILED
