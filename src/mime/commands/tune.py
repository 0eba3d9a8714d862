"""`mime tune TUNE`"""

from pathlib import Path
from typing import Annotated

import tyro

from mime.commands import FAILED, OK
from mime.commands.run import AllowCode, Debug
from mime.commands.search import REPORT, Out, Quiet, folder_of, search


def tune(
    file: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="TUNE", help="a file like tune.toml")
    ],
    out: Out = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Tune gains over a batch of plants; write tuning.json, gains.toml and report.html."""
    del debug  # `main` looks for it
    from mime.commands.output import write_bytes
    from mime.tuning.file import load_tune
    from mime.tuning.result import Tuning

    def write_gains(found: Tuning, path: Path) -> None:
        write_bytes(path, found.to_toml().encode())

    loaded, folder = load_tune(file, allow_code=allow_code), folder_of(file, out)
    files = {"tuning.json": Tuning.save, "gains.toml": write_gains}
    found = search(loaded, folder, quiet, files)
    if not quiet:
        print(f"{loaded.title}\n{found}\nreport: {folder / REPORT}")
    return OK if found.is_complete and found.keeps_limits and found.is_stable else FAILED
