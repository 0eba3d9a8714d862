"""Pieces of a page: tables, pictures, things folded away. All words are escaped here."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --dim: #666; --rule: #ddd }
:root { --code: #f4f4f4; --link: #0b57d0; --good: #17703a; --bad: #b3261e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #17191c; --dim: #a0a0a0; --rule: #3a3d42 }
  :root { --code: #22252a; --link: #8ab4f8; --good: #7ccf95; --bad: #ff8a80 }
  img.plot { filter: invert(.9) hue-rotate(180deg) }
  img.picture { filter: brightness(.85) }
}
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
body { max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: break-word }
h1 { font-size: 1.6rem; line-height: 1.25 }
h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid var(--rule) }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem }
a { color: var(--link) }
.scroll { overflow-x: auto; max-width: 100% }
table { border-collapse: collapse }
td, th { padding: .15rem .9rem .15rem 0; text-align: left; vertical-align: top }
th { font-weight: 600; border-bottom: 1px solid var(--rule) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
img { max-width: 100%; height: auto; border-radius: 4px }
.scroll img { max-width: none }
iframe { width: 100%; height: 36rem; max-height: 90vh; border: 1px solid #8886; border-radius: 4px }
pre { background: var(--code); padding: .8rem; overflow: auto; font-size: 13px }
figure { margin: 1rem 0 }
summary { cursor: pointer; margin: .4rem 0 }
.dim { color: var(--dim) }
.ok { color: var(--good) }
.outside, .unfinished { color: var(--bad); font-weight: 600 }
@media (max-width: 500px) {
  body { padding: 0 .6rem; margin-top: .6rem; font-size: 14px }
  td, th { padding-right: .5rem }
  h1 { font-size: 1.3rem }
  iframe { height: 42rem }
  figure { overflow-x: auto }
  figure img { max-width: none; width: 36rem }
  .stack tr { display: flex; flex-wrap: wrap; gap: 0 .6rem; padding: .25rem 0 }
  .stack tr:first-child { display: none }
  .stack td { padding: 0 }
  .stack td:first-child, .stack td:nth-child(4) { flex: 1 0 100% }
  .stack td:nth-child(4) { color: var(--dim) }
  .stack td.n { text-align: left; white-space: normal }
}
"""


def page(title: str, body: str) -> str:
    """A whole page: it loads nothing, and fits a phone as well as a wall."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def png_bytes(figure: "Figure", dpi: int = 110) -> bytes:
    """A figure as a PNG, the same bytes for the same figure."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
    return file.getvalue()


def image(png: bytes, words: str, kind: str = "plot") -> str:
    """A PNG inside the page. A plot turns dark with the page; a `picture` keeps its colours."""
    data = base64.b64encode(png).decode()
    return f'<img class="{kind}" alt="{escape(words)}" src="data:image/png;base64,{data}">'


def embedded(html: str, words: str) -> str:
    """A page inside the page, apart from it: neither's style or script reaches the other."""
    return f'<iframe title="{escape(words)}" allow="fullscreen" srcdoc="{escape(html)}"></iframe>'


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[int] = (),
    stacked: bool = False,
) -> str:
    """An HTML table of cells that are escaped here; a `Markup` is taken as it is.

    One that is `stacked` has four columns, with a name first and its meaning last; on a phone these
    stand above and below the others.
    """
    sides = [" class=n" if i in numeric else "" for i in range(len(headings))]
    lines = [f"<div class=scroll><table{' class=stack' if stacked else ''}>"]
    if any(headings):
        cells = (f"<th{side}>{escape(name)}</th>" for side, name in zip(sides, headings))
        lines += ["<tr>", *cells, "</tr>"]
    for row in rows:
        cells = (f"<td{side}>{_cell(cell)}</td>" for side, cell in zip(sides, row, strict=True))
        lines += ["<tr>", *cells, "</tr>"]
    return "".join([*lines, "</table></div>"])


class Markup(str):
    """A piece of a page that is no text of a user's: it was made here, and escaped."""


def folded(title: str, *parts: str, is_open: bool = False) -> str:
    """Parts that are shown when the title is clicked."""
    start = "<details open>" if is_open else "<details>"
    return f"{start}<summary>{escape(title)}</summary>{''.join(parts)}</details>"


def _cell(cell: str) -> str:
    return cell if isinstance(cell, Markup) else escape(cell)
