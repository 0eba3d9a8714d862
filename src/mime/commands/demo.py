"""`mime demo`: every bundled scenario, and one page with their pictures."""

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from mime.commands import FAILED, OK, RunFailedError
from mime.commands.run import Debug

if TYPE_CHECKING:
    from mime.commands.execution import Outcome
    from mime.scenarios.scenario import Scenario


def demo(
    out: Annotated[Path, tyro.conf.arg(metavar="DIR", help="folder")] = Path("mime_demo"),
    debug: Debug = False,
) -> int:
    """Run all bundled scenarios and write one page with their pictures."""
    del debug  # `main` looks for it
    from mime.commands.execution import command_line, execute
    from mime.commands.output import CHECKPOINT, open_folder, write_bytes
    from mime.reporting.overview import overview
    from mime.reporting.report import page
    from mime.reporting.summary import figures_table, wide_console
    from mime.scenarios.bundled import bundled_scenarios
    from mime.scenarios.scenario import load_scenario

    console = wide_console()
    index, picture = "index.html", "overview.png"
    with open_folder(out) as files:
        files.claim([index, picture])
        files.remove([index])  # of an earlier demo: until this one has ended there is no page
    sections, failed, pictures = [], [], []
    for name, file in bundled_scenarios().items():
        scenario, folder = load_scenario(file), out / name
        console.print(scenario.title, style="bold")
        # A demo that was stopped starts anew: there is nothing in it worth a question.
        with open_folder(folder) as files:
            files.remove([CHECKPOINT])
        try:
            outcome = execute(scenario, folder, command_line(name, (), None))
        except RunFailedError as error:
            console.print(f"  failed: {error}")
            failed.append(name)
            sections.append(f"<h2>{escape(scenario.title)}</h2><p>failed: {escape(str(error))}</p>")
            continue
        if not outcome.ok:
            failed.append(name)
        console.print(figures_table(outcome.figures))
        sections.append(_section(name, scenario, outcome))
        pictures += [(scenario.title, png) for _, png in outcome.plots[:1]]
    with open_folder(out) as files:
        files.claim([index, picture])
        if pictures:
            write_bytes(out / picture, overview(pictures))
        write_bytes(out / index, page("MIME: bundled scenarios", "\n".join(sections)).encode())
    console.print(f"\nall of it: {os.path.abspath(out / index)}", soft_wrap=True)
    if failed:
        console.print(f"failed: {', '.join(failed)}", soft_wrap=True)
    return FAILED if failed else OK


def _still(outcome: "Outcome") -> bytes | None:
    """A picture of what there is to see, as a PNG; None where there is nothing."""
    from mime.replay.still import still
    from mime.reporting.report import png_bytes

    return png_bytes(still(outcome.trajectory)) if outcome.trajectory.drawing else None


def _section(name: str, scenario: "Scenario", outcome: "Outcome") -> str:
    from mime.reporting.numbers import figure_cells
    from mime.reporting.report import image, table

    rows = [figure_cells(figure) for figure in outcome.figures]
    picture = "".join(image(png, title) for title, png in outcome.plots[:1])
    if seen := _still(outcome):
        link = f"{name}/report.html#replay"
        picture = (
            f'<a href="{link}">{image(seen, f"{scenario.title}: a still of the run")}</a>'
            f'<p><a href="{link}">Watch it</a></p>{picture}'
        )
    return (
        f'<h2><a href="{name}/report.html">{escape(scenario.title)}</a></h2>'
        f"<p>{escape(scenario.tables.description)}</p>"
        f"{picture}"
        f"{table(['figure', 'value', 'limits'], rows, [1])}<pre>mime run {name}</pre>"
    )
