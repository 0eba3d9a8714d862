"""The report page of a tuning: one file, no other needed."""

from html import escape
from typing import TYPE_CHECKING

from mime.reporting.html import image, page, png_bytes, table
from mime.reporting.report import versions
from mime.tuning.picture import picture
from mime.tuning.words import after, both, heading, limits_of, margin, remarks

if TYPE_CHECKING:
    from mime.tuning.result import Tuning


def report_page(tuning: "Tuning", title: str) -> str:
    """Gains, figures and margins before and after, and pictures of the runs."""
    rows = [[g.name, f"{g.before:.4g} {g.unit}", after(g)] for g in tuning.gains]
    parts = [f"<p>{escape(heading(tuning))}</p>", "<h2>Gains</h2>"]
    parts.append(table(["gain", "before", "after"], rows))
    rows = [
        [f.name, f.unit or "1", both(f, 0), both(f, 1), limits_of(f, tuning)]
        for f in tuning.figures
    ]
    headings = ["figure", "unit", "before: nominal (worst)", "after: nominal (worst)", "limits"]
    parts += ["<h2>Figures</h2>", table(headings, rows)]
    rows = [[m.loop, margin(m.before), margin(m.after)] for m in tuning.margins]
    parts += ["<h2>Margins where the run ends, worst plant</h2>"]
    parts.append(table(["loop", "before", "after"], rows))
    parts.append(f"<figure>{image(png_bytes(picture(tuning)), 'runs before and after')}</figure>")
    parts += ["<h2>For the scenario file</h2>", f"<pre>{escape(tuning.to_toml())}</pre>"]
    parts += ["<h2>How</h2>", *(f"<p>{escape(line)}</p>" for line in remarks(tuning))]
    parts.append(table(["", ""], [[name, value] for name, value in versions().items()]))
    return page(title, "\n".join(parts))
