"""`mime fit FIT`"""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import FAILED, OK, UserMistakeError
from mime.commands.run import AllowCode, Debug

FIT, REPORT = "fit.json", "report.html"


def fit(
    file: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="FIT", help="a file like fit.toml")
    ],
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help="folder (mime_output/NAME)")
    ] = None,
    allow_code: AllowCode = False,
    quiet: Annotated[bool, tyro.conf.arg(help="print nothing but errors")] = False,
    debug: Debug = False,
) -> int:
    """Find unknown parameters from logs; write fit.json and report.html to a folder."""
    del debug  # `main` looks for it
    from mime.commands.output import open_folder, write_bytes
    from mime.fitting.file import load_fit
    from mime.fitting.log import LogError

    loaded = load_fit(file, allow_code=allow_code)
    folder = out or Path("mime_output") / (file.stem.strip(". ") or "unnamed")
    with open_folder(folder) as files:
        files.refuse_foreign([FIT, REPORT])
        try:
            found = loaded.run(progress=not quiet)
        except LogError as error:
            raise UserMistakeError(str(error)) from error
        files.claim([FIT, REPORT])
        found.save(folder / FIT)
        write_bytes(folder / REPORT, found.report().encode())
    if found.is_explained:
        if not quiet:
            print(f"{loaded.title}\n{found}\nreport: {folder / REPORT}")
        return OK
    print(f"{loaded.title}\n{found}", file=sys.stderr)
    return FAILED
