"""`mime optimise STUDY`"""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import tyro

from mime.commands import FAILED, OK, RunFailedError, UserMistakeError
from mime.commands.run import AllowCode, Debug, Overrides
from mime.commands.sweep import REPORT, RESULT, SMALL_BYTES, NoReport, tell_diverged


def optimise(
    file: Annotated[
        Path, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY", help="a file like study.toml")
    ],
    set: Overrides = (),
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help="folder (mime_output/NAME)")
    ] = None,
    budget: Annotated[int | None, tyro.conf.arg(help="members at most, as of [optimise]")] = None,
    scheduler: Annotated[
        str | None, tyro.conf.arg(metavar="ADDRESS", help="of a Dask cluster: tcp://host:8786")
    ] = None,
    threads: Annotated[int | None, tyro.conf.arg(help="one for each core by default")] = None,
    no_report: NoReport = False,
    allow_code: AllowCode = False,
    quiet: Annotated[bool, tyro.conf.arg(help="print nothing but errors")] = False,
    debug: Debug = False,
) -> int:
    """Look for the best members of a study, each run once; the same command goes on.

    Then write report.html, a page to look at all members on, and members.csv, their table.
    """
    del debug  # `main` looks for it
    from mime.core.problem import InputError
    from mime.studies.file import read_study
    from mime.studies.optimise import build_search, searched
    from mime.studies.optimum import InfeasibleError
    from mime.studies.store import StoreWriteError, StudyError
    from mime.studies.sweep import runner

    described = read_study(file, set, allow_code=allow_code)
    search = build_search(described, {} if budget is None else {"budget": budget})
    folder = out or Path("mime_output") / (file.stem.strip(". ") or "unnamed")
    try:
        found = searched(search, folder, not quiet, runner(scheduler, threads), threads)
    except KeyboardInterrupt as error:
        options = {"--out": out, "--budget": budget, "--scheduler": scheduler}
        raise KeyboardInterrupt(f"{error}.\nGo on with:  {_again(file, set, options)}") from None
    except (InfeasibleError, StoreWriteError) as error:
        raise RunFailedError(f"{file}: {error}") from error
    except (InputError, StudyError) as error:
        raise UserMistakeError(f"{file}: {error}") from error
    small = found.dataset.nbytes <= SMALL_BYTES
    try:
        if small:
            found.save(folder / RESULT)
        if not no_report:
            found.result.report(folder / REPORT)
    except OSError as error:
        raise RunFailedError(f"cannot write to {folder}: {error.strerror or error}") from error
    if not quiet:
        title = found.study.title
        print(str(found).replace(f"StudyOptimum {title!r}", title, 1))
        if found.best is not None:
            values = found.parameters().items()
            again = [word for n, v in values for word in ("--set", f"{n}={_word(v)}")]
            print(f"\nrun it: {shlex.join([*described.command, *again])}")
        print(f"store: {folder}" + (f"\nresult: {folder / RESULT}" if small else ""))
        if not no_report:
            print(f"report: {folder / REPORT}")
    tell_diverged(found.result, sys.stderr)
    return FAILED if found.diverged else OK


def _word(value: Any) -> str:
    """As `--set` reads it back, to the last bit."""
    if isinstance(value, float):
        value = float(value)
        return repr(int(value)) if value.is_integer() else repr(value)
    return str(value)


def _again(file: Path, overrides: tuple[str, ...], options: dict[str, Any]) -> str:
    """The command that goes on."""
    words = ["mime", "optimise", str(file)]
    for override in overrides:
        words += ["--set", override]
    for name, value in options.items():
        words += [name, str(value)] if value is not None else []
    return shlex.join(words)
