"""`mime tune TUNE`"""

from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import FAILED, OK, UserMistakeError
from mime.commands.run import AllowCode, Debug

TUNING, GAINS, REPORT = "tuning.json", "gains.toml", "report.html"


def tune(
    file: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="TUNE", help="a file like tune.toml")
    ],
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help="folder (mime_output/NAME)")
    ] = None,
    allow_code: AllowCode = False,
    quiet: Annotated[bool, tyro.conf.arg(help="print nothing but errors")] = False,
    debug: Debug = False,
) -> int:
    """Tune gains over a batch of plants; write tuning.json, gains.toml and report.html."""
    del debug  # `main` looks for it
    from mime.commands.output import open_folder, write_bytes
    from mime.fitting.result import FitError
    from mime.tuning.file import load_tune

    loaded = load_tune(file, allow_code=allow_code)
    folder = out or Path("mime_output") / (file.stem.strip(". ") or "unnamed")
    names = [TUNING, GAINS, REPORT]
    with open_folder(folder) as files:
        files.refuse_foreign(names)
        try:
            found = loaded.run(progress=not quiet)
        except FitError as error:
            raise UserMistakeError(str(error)) from error
        files.claim(names)
        found.save(folder / TUNING)
        write_bytes(folder / GAINS, found.to_toml().encode())
        write_bytes(folder / REPORT, found.report().encode())
    if not quiet:
        print(f"{loaded.title}\n{found}\nreport: {folder / REPORT}")
    return OK if found.is_complete and found.keeps_limits and found.is_stable else FAILED
