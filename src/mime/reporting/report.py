"""`report.html`: one page with all of a run, no other file needed."""

import base64
import io
import platform
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

import mime
from mime.control.kinematics import KinematicTree
from mime.core.address import find
from mime.core.monitor import LimitExceeded
from mime.core.node import Node
from mime.reporting.numbers import figure_cells, number, with_unit
from mime.running.recording import parameter_values
from mime.scenarios.merits import FigureOfMerit
from mime.scenarios.node_types import arguments_of
from mime.scenarios.scenario import Scenario

if TYPE_CHECKING:
    import matplotlib.figure

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem }
h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ddd }
table { border-collapse: collapse }
td, th { padding: .15rem .9rem .15rem 0; text-align: left; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
img { max-width: 100% }
iframe { width: 100%; height: 36rem; max-height: 90vh; border: 1px solid #8886; border-radius: 4px }
pre { background: #f6f6f6; padding: .8rem; overflow: auto; font-size: 13px }
figure { margin: 1rem 0 }
.dim { color: #777 }
"""


def png_bytes(figure: "matplotlib.figure.Figure", dpi: int = 110) -> bytes:
    """A figure as a PNG, the same bytes for the same figure."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
    return file.getvalue()


def image(png: bytes, words: str) -> str:
    """A PNG inside the page."""
    data = base64.b64encode(png).decode()
    return f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">'


def embedded(html: str, words: str) -> str:
    """A page inside the page, apart from it: neither's style or script reaches the other."""
    return f'<iframe title="{escape(words)}" allow="fullscreen" srcdoc="{escape(html)}"></iframe>'


def page(title: str, body: str) -> str:
    """A whole page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()
) -> str:
    """An HTML table of cells that are escaped here."""
    lines = ["<table><tr>", *(f"<th>{escape(name)}</th>" for name in headings), "</tr>"]
    for row in rows:
        cells = (
            f"<td{' class=n' if i in numeric else ''}>{escape(cell)}</td>"
            for i, cell in enumerate(row)
        )
        lines += ["<tr>", *cells, "</tr>"]
    return "".join([*lines, "</table>"])


def write_report(
    scenario: Scenario,
    figures: Sequence[FigureOfMerit],
    plots: Sequence[tuple[str, bytes]],
    graph: bytes | None,
    command: str,
    failures: Sequence[str] = (),
    limits: Sequence[LimitExceeded] = (),
    replay: str | None = None,
) -> str:
    """The page of a run: figures of merit, replay, plots, graph, parameters, how to repeat it.

    `failures` say which pictures could not be drawn, and why.
    """
    simulation = scenario.tables.simulation
    parts = [f"<p>{escape(scenario.tables.description)}</p>"]
    if figures:
        rows = [
            [*figure_cells(figure), _verdict(figure) if figure.limits else ""] for figure in figures
        ]
        parts += ["<h2>Figures of merit</h2>", table(["figure", "value", "limits", ""], rows, [1])]
    if limits:
        rows = [
            [w.node, f"{w.what} {w.entry}".strip(), *_values(w), f"{w.time_s:g} s"] for w in limits
        ]
        headings = ["node", "", "largest", "limit", "first beyond it at"]
        parts += ["<h2>Beyond their limits</h2>", table(headings, rows, [2, 3])]
    if replay is not None:
        parts += ['<h2 id="replay">Replay</h2>', embedded(replay, scenario.title)]
    parts += _robot_files(scenario.simulation.nodes.values())
    parts += [f"<figure>{image(png, title)}</figure>" for title, png in plots]
    parts += [f"<p>{escape(words)}</p>" for words in failures]
    if graph is not None:
        parts += ["<h2>Graph</h2>", image(graph, "the graph of nodes and edges")]
    parts.append("<h2>Parameters</h2>")
    parts += [_parameters(node) for node in scenario.simulation.nodes.values()]
    run = [
        ["duration", f"{simulation.duration:g} s"],
        ["timestep", f"{scenario.simulation.timestep:g} s, {scenario.steps} steps"],
        ["precision", simulation.precision],
        ["backend", str(scenario.simulation.backend)],
        ["seed", str(simulation.seed)],
        ["scenario", str(scenario.file)],
        *([name, value] for name, value in versions().items()),
    ]
    parts += ["<h2>Run</h2>", table(["", ""], run), "<h2>Reproduce</h2>"]
    parts.append(f"<pre>{escape(command)}</pre>")
    parts.append(
        f"<details><summary>scenario file</summary><pre>{escape(scenario.text)}</pre></details>"
    )
    return page(scenario.title, "\n".join(parts))


def _robot_files(nodes: Iterable[Node]) -> list[str]:
    """What of each robot's file was mended, and what was left out."""
    trees = (getattr(node, "tree", None) for node in nodes)
    robots = {tree.source: tree for tree in trees if isinstance(tree, KinematicTree)}
    parts = []
    for source, tree in robots.items():
        rows = [
            [finding.briefly, "mended" if finding.mended else "left out"]
            for finding in sorted(tree.report, key=lambda finding: not finding.mended)
        ]
        if rows:
            parts += [f"<h2>Not as written in {escape(source)}</h2>", table(["", ""], rows)]
    return parts


def _verdict(figure: FigureOfMerit) -> str:
    return "ok" if figure.ok else "outside its limits" if figure.reached else "unfinished"


def _values(found: LimitExceeded) -> tuple[str, str]:
    return with_unit(found.value, found.unit), with_unit(found.limit, found.unit)


def versions() -> dict[str, str]:
    """The versions of all that decides a result."""
    found = {"mime": mime.__version__, "Python": platform.python_version()}
    for name in ("jax", "jaxlib", "llvmlite", "numpy", "equinox"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    return {**found, "platform": platform.platform()}


def _parameters(node: Node) -> str:
    specs = node.parameter_specs()
    values: dict[str, Any] = parameter_values({node.name: node})[node.name]
    rows = []
    for name, value in values.items():
        spec = find(node, name).spec
        meaning = [spec.unit, spec.doc] if spec else ["", ""]
        rows.append([name, number(np.asarray(value), 6), *meaning])
    for name in arguments_of(type(node)):
        value = getattr(node, name, None)
        if name not in specs and isinstance(value, str | bool | int | float):
            rows.append([name, number(value), "", ""])
    heading = f"<h3>{escape(node.name)} <span class=dim>{type(node).__name__}</span></h3>"
    return heading + table(["parameter", "value", "unit", "meaning"], rows, [1])
