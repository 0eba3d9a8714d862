"""`mime sweep STUDY`"""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import tyro

from mime.commands import FAILED, OK, RunFailedError, UserMistakeError
from mime.commands.run import AllowCode, Debug, Overrides

if TYPE_CHECKING:
    from mime.studies.result import StudyResult

RESULT, REPORT = "result.nc", "report.html"
SMALL_BYTES = 10**8
"""A study that is written as one NetCDF file, too."""
_MOST_NAMED = 10
NoReport = Annotated[bool, tyro.conf.arg(help="leave out report.html, members.csv and replays")]


def sweep(
    file: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY", help="a file like study.toml")
    ],
    set: Overrides = (),
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help="folder (mime_output/NAME)")
    ] = None,
    scheduler: Annotated[
        str | None, tyro.conf.arg(metavar="ADDRESS", help="of a Dask cluster: tcp://host:8786")
    ] = None,
    threads: Annotated[int | None, tyro.conf.arg(help="one for each core by default")] = None,
    no_report: NoReport = False,
    allow_code: AllowCode = False,
    quiet: Annotated[bool, tyro.conf.arg(help="print nothing but errors")] = False,
    debug: Debug = False,
) -> int:
    """Run the members of a study that its folder does not hold yet; the same command goes on.

    Then write report.html, a page to look at all members on, and members.csv, their table.
    """
    del debug  # `main` looks for it
    from mime.studies import sweep as sweeping
    from mime.studies.file import load_study
    from mime.studies.store import StoreWriteError, StudyError

    study = load_study(file, set, allow_code=allow_code)
    folder = out or Path("mime_output") / (file.stem.strip(". ") or "unnamed")
    try:
        result = sweeping.sweep(
            study, out=folder, client=scheduler, threads=threads, progress=not quiet
        )
    except KeyboardInterrupt as error:
        again = command_line(file, set, out, scheduler)
        raise KeyboardInterrupt(f"{error}.\nGo on with:  {again}") from None
    except StoreWriteError as error:
        raise RunFailedError(str(error)) from error
    except StudyError as error:
        raise UserMistakeError(str(error)) from error
    small = result.dataset.nbytes <= SMALL_BYTES
    try:
        if small:
            result.save(folder / RESULT)
        if not no_report:
            result.report(folder / REPORT)
    except OSError as error:
        raise RunFailedError(f"cannot write to {folder}: {error.strerror or error}") from error
    if not quiet:
        _tell(result)
        print(f"\nstore: {folder}" + (f"\nresult: {folder / RESULT}" if small else ""))
        if not no_report:
            print(f"report: {folder / REPORT}")
    tell_diverged(result, sys.stderr)
    return FAILED if result.diverged else OK


def tell_diverged(result: "StudyResult", file: TextIO) -> None:
    """Name members that left the finite numbers, the first of them."""
    for member, where in list(result.diverged.items())[:_MOST_NAMED]:
        print(f"member {member} diverged: {where}", file=file)
    if (more := len(result.diverged) - _MOST_NAMED) > 0:
        print(f"and {more:,} more: `diverged` of the dataset", file=file)


def _tell(result: "StudyResult") -> None:
    """How many members there are, and between which values each figure lies."""
    import numpy as np
    from rich.table import Table

    from mime.reporting.summary import wide_console

    dataset = result.dataset
    size = dataset.sizes["member"]
    counts = f"{result.computed:,} computed, {result.reused:,} there before"
    table = Table("figure", "smallest", "median", "largest", "unit", "at the smallest")
    for name, values in dataset.data_vars.items():
        if values.dims != ("member",):
            continue
        numbers = values.values
        if np.isnan(numbers).all():
            table.add_row(str(name), "-", "-", "-", values.attrs["units"], "not reached")
            continue
        least = int(np.nanargmin(numbers))
        at = f"member {least}"
        cells = (f"{f(numbers):.6g}" for f in (np.nanmin, np.nanmedian, np.nanmax))
        table.add_row(str(name), *cells, values.attrs["units"], at)
    console = wide_console()
    console.print(f"{result.title}: {size:,} members, {counts}\n")
    console.print(table)


def command_line(
    file: Path, overrides: tuple[str, ...], folder: Path | None, scheduler: str | None
) -> str:
    """The command that goes on."""
    words = ["mime", "sweep", str(file)]
    for override in overrides:
        words += ["--set", override]
    words += ["--out", str(folder)] if folder is not None else []
    words += ["--scheduler", scheduler] if scheduler is not None else []
    return shlex.join(words)
