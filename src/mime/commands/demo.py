"""`mime demo`: every bundled scenario, and one page with their pictures."""

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from mime.commands import FAILED, OK, RunFailedError
from mime.commands.run import Debug

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mime.commands.execution import Outcome
    from mime.scenarios.merits import FigureOfMerit
    from mime.scenarios.scenario import Scenario


def demo(
    out: Annotated[Path, tyro.conf.arg(metavar="DIR", help="folder")] = Path("mime_demo"),
    debug: Debug = False,
) -> int:
    """Run all bundled scenarios and write one page with their pictures."""
    del debug  # `main` looks for it
    from mime.commands.execution import command_line, execute
    from mime.commands.output import CHECKPOINT, open_folder, write_bytes
    from mime.reporting.html import page
    from mime.reporting.overview import overview
    from mime.reporting.summary import figures_table, wide_console
    from mime.scenarios.bundled import bundled_scenarios
    from mime.scenarios.scenario import load_scenario

    console = wide_console()
    index, picture = "index.html", "overview.png"
    with open_folder(out) as files:
        files.claim([index, picture])
        files.remove([index])  # of an earlier demo: until this one has ended there is no page
    sections, failed, pictures = [], [], []
    verdicts: list[tuple[str, str, list[FigureOfMerit] | None]] = []
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
            heading = f'<h2 id="{escape(name)}">{escape(scenario.title)}</h2>'
            sections.append(f"{heading}<p>failed: {escape(str(error))}</p>")
            verdicts.append((name, scenario.title, None))
            continue
        if not outcome.ok:
            failed.append(name)
        console.print(figures_table(outcome.figures))
        sections.append(_section(name, scenario, outcome))
        verdicts.append((name, scenario.title, outcome.figures))
        pictures += [(scenario.title, png) for _, png in outcome.plots[:1]]
    with open_folder(out) as files:
        files.claim([index, picture])
        if pictures:
            write_bytes(out / picture, overview(pictures))
        body = "\n".join([_contents(verdicts), *sections])
        write_bytes(out / index, page("MIME: bundled scenarios", body).encode())
    console.print(f"\nall of it: {os.path.abspath(out / index)}", soft_wrap=True)
    if failed:
        console.print(f"failed: {', '.join(failed)}", soft_wrap=True)
    return FAILED if failed else OK


def _contents(verdicts: "Sequence[tuple[str, str, Sequence[FigureOfMerit] | None]]") -> str:
    """All scenarios at a glance: a link to each, and what became of its limits."""
    from mime.reporting.html import Markup, table
    from mime.reporting.report import verdict_words

    rows = [
        [
            Markup(f'<a href="#{escape(name)}">{escape(title)}</a>'),
            Markup("<span class=outside>failed</span>") if found is None else verdict_words(found),
        ]
        for name, title, found in verdicts
    ]
    return table(["scenario", "limits"], rows)


def _still(outcome: "Outcome") -> bytes | None:
    """A picture of what there is to see, as a PNG; None where there is nothing."""
    from mime.replay.still import still
    from mime.reporting.html import png_bytes

    return png_bytes(still(outcome.trajectory)) if outcome.trajectory.drawing else None


def _section(name: str, scenario: "Scenario", outcome: "Outcome") -> str:
    from mime.reporting.html import image
    from mime.reporting.report import figures_of_merit

    picture = "".join(image(png, title) for title, png in outcome.plots[:1])
    if seen := _still(outcome):
        link = f"{name}/report.html#replay"
        still = image(seen, f"{scenario.title}: a still of the run", "picture")
        picture = f'<a href="{link}">{still}</a><p><a href="{link}">Watch it</a></p>{picture}'
    return (
        f'<h2 id="{name}"><a href="{name}/report.html">{escape(scenario.title)}</a></h2>'
        f"<p>{escape(scenario.tables.description)}</p>"
        f"{picture}"
        f"{figures_of_merit(outcome.figures)}<pre>mime run {name}</pre>"
    )
