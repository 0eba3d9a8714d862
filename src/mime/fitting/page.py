"""The report page of a fit: one file, no other needed."""

from html import escape
from typing import TYPE_CHECKING

from mime.fitting.picture import picture
from mime.fitting.words import advices, combined, headline, remarks, unexplained, verdict
from mime.reporting.html import image, page, png_bytes, table
from mime.reporting.report import versions

if TYPE_CHECKING:
    from mime.fitting.result import Fit


def report_page(fit: "Fit", title: str) -> str:
    """What is known, what is known only together, what is left, and pictures of it."""
    parts: list[str] = []
    if not fit.is_explained:
        lines = [headline(fit), *unexplained(fit)]
        parts.append(f"<pre>{escape(chr(10).join(lines))}</pre>")
    rows = [[e.name, verdict(e), f"{e.start:.4g} {e.unit}"] for e in fit.estimates]
    parts += ["<h2>Unknowns</h2>", table(["unknown", "95 % interval", "start"], rows)]
    if fit.combinations:
        rows = [[c.name, combined(c), ", ".join(c.unknowns)] for c in fit.combinations]
        parts += ["<h2>Known only together</h2>", table(["", "95 % interval", "of"], rows)]
    parts += [f"<p>{escape(line)}</p>" for line in advices(fit)]
    if fit.trade_offs:
        rows = [[a, b, f"{r:.3f}"] for a, b, r in fit.trade_offs]
        parts += ["<h2>Trade-offs</h2>", table(["", "", "correlation"], rows, [2])]
    rows = [[field, f"{s:.3g} {unit}"] for field, (s, unit) in fit.noise.items()]
    parts += ["<h2>Noise</h2>", table(["sensor", "standard deviation"], rows)]
    rows = [
        [
            check.log,
            check.field,
            f"{check.over_noise:.2f}",
            f"{check.probability:.2g}",
            f"{100 * check.foretold:.2g} %",
            "explained" if check.is_explained else "; ".join(check.seen),
        ]
        for check in (*fit.checks, *fit.held_out)
    ]
    headings = ["log", "sensor", "left / noise", "white with probability", "has a pattern", ""]
    parts += ["<h2>What is left</h2>", table(headings, rows, [2, 3, 4])]
    parts.append(f"<figure>{image(png_bytes(picture(fit)), 'log, model and residuals')}</figure>")
    parts += ["<h2>How</h2>", *(f"<p>{escape(line)}</p>" for line in remarks(fit))]
    parts.append(table(["", ""], [[name, value] for name, value in versions().items()]))
    return page(title, "\n".join(parts))
