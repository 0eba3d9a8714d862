"""`mime run SCENARIO`"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from mime.commands import FAILED, OK

if TYPE_CHECKING:
    from mime.running.trajectory import Trajectory
    from mime.scenarios.merits import FigureOfMerit

Scenario = Annotated[
    str, tyro.conf.Positional, tyro.conf.arg(metavar="SCENARIO", help="file or bundled name")
]
Overrides = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="NODE.PARAMETER=VALUE", help="instead of the file's value"),
]
AllowCode = Annotated[
    bool, tyro.conf.arg(help="let it name nodes by file, FILE.py:CLASS: they are executed")
]
Debug = Annotated[bool, tyro.conf.arg(help="show the traceback of an error")]


def run(
    scenario: Scenario,
    set: Overrides = (),
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help="folder (mime_output/NAME)")
    ] = None,
    resume: Annotated[bool, tyro.conf.arg(help="go on from the folder's checkpoint")] = False,
    checkpoint_seconds: Annotated[
        float, tyro.conf.arg(help="at least how often progress is kept")
    ] = 10.0,
    allow_code: AllowCode = False,
    quiet: Annotated[bool, tyro.conf.arg(help="print nothing but errors")] = False,
    debug: Debug = False,
) -> int:
    """Run a scenario; write result.nc, plots and report.html to a folder."""
    del debug  # `main` looks for it
    from mime.commands.execution import command_line, execute
    from mime.commands.output import REPORT
    from mime.reporting.summary import fields_table, figures_table, wide_console
    from mime.scenarios.bundled import find_scenario
    from mime.scenarios.scenario import load_scenario

    loaded = load_scenario(find_scenario(scenario), set, allow_code=allow_code)
    # `...toml` has the stem `..`, which is another folder than a run's own.
    folder = out or Path("mime_output") / (loaded.name.strip(". ") or "unnamed")
    command = command_line(scenario, set, out) + " --allow-code" * allow_code
    console = wide_console()
    console.quiet = quiet

    def tell(trajectory: "Trajectory", figures: "list[FigureOfMerit]") -> None:
        simulation = loaded.tables.simulation
        console.print(f"{loaded.title}: {simulation.duration:g} s in {loaded.steps:,} steps\n")
        console.print(fields_table(trajectory, loaded.never()))
        if figures:
            console.print()
            console.print(figures_table(figures))

    outcome = execute(
        loaded,
        folder,
        command,
        resume=resume,
        progress=not quiet,
        checkpoint_seconds=checkpoint_seconds,
        tell=tell,
    )
    console.print(f"\nreport: {folder / REPORT}", soft_wrap=True)
    outside = [figure.name for figure in outcome.figures if figure.reached and not figure.ok]
    missing = [figure.name for figure in outcome.figures if figure.limits and not figure.reached]
    end = f"not reached in {loaded.tables.simulation.duration:g} s"
    for words, names in (("outside its limits", outside), (end, missing)):
        if names:
            print(f"{words}: {', '.join(names)}", file=sys.stderr)
    if outcome.ok:
        return OK
    for words in outcome.failures:
        print(words, file=sys.stderr)
    return FAILED
