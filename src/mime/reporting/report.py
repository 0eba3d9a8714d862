"""`report.html`: one page with all of a run, no other file needed."""

import platform
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version

import mime
from mime.control.kinematics import KinematicTree
from mime.control.kinematics.report import HEADINGS, report_rows
from mime.core.monitor import LimitExceeded
from mime.core.node import Node
from mime.reporting.html import Markup, embedded, folded, image, page, table
from mime.reporting.numbers import figure_cells, with_unit
from mime.reporting.tables import (
    JOINT_NUMBERS,
    JOINTS,
    PARAMETERS,
    joint_rows,
    parameter_rows,
    trees_of,
)
from mime.scenarios.merits import FigureOfMerit
from mime.scenarios.scenario import Scenario

_HOW_TO_READ = (
    "<p class=dim>Nodes stand in the order in which a step visits them. What one feeds to another "
    "is in its row and the other's column; dashed is the value of the step before.</p>"
)


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
        parts += ["<h2>Figures of merit</h2>", figures_of_merit(figures)]
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
        picture = image(graph, "the graph of nodes and edges")
        parts += ["<h2>Graph</h2>", f"<div class=scroll>{picture}</div>", _HOW_TO_READ]
    parts.append("<h2>Parameters</h2>")
    parts += [_robot(*found) for found in trees_of(scenario.simulation.nodes.values())]
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
    parts.append(folded("scenario file", f"<pre>{escape(scenario.text)}</pre>"))
    return page(scenario.title, "\n".join(parts))


def _robot_files(nodes: Iterable[Node]) -> list[str]:
    """What is not simulated as it is written, or worth a note, in each robot's file."""
    trees = (getattr(node, "tree", None) for node in nodes)
    robots = {tree.source: tree for tree in trees if isinstance(tree, KinematicTree)}
    parts = []
    for source, tree in robots.items():
        if rows := report_rows(tree.report):
            parts += [f"<h2>Report on {escape(source)}</h2>", table(HEADINGS, rows)]
    return parts


def figures_of_merit(figures: Sequence[FigureOfMerit]) -> str:
    """The table of the figures, with what became of their limits."""
    rows = [[*figure_cells(figure), _verdict(figure)] for figure in figures]
    return table(["figure", "value", "limits", ""], rows, [1])


_VERDICTS = {"ok": "ok", "outside": "outside its limits", "unfinished": "unfinished"}


def _verdict(figure: FigureOfMerit) -> str:
    kind = figure.verdict
    return _coloured(kind, _VERDICTS[kind]) if kind in _VERDICTS else kind


def verdict_words(figures: Sequence[FigureOfMerit]) -> str:
    """Of all figures together: `4 ok`, `1 outside: overshoot`."""
    found = []
    for kind in _VERDICTS:
        names = [figure.name for figure in figures if figure.verdict == kind]
        named = "" if kind == "ok" else f": {', '.join(names)}"
        found += [_coloured(kind, f"{len(names)} {kind}{named}")] if names else []
    return Markup(", ".join(found))


def _coloured(kind: str, words: str) -> Markup:
    return Markup(f"<span class={kind}>{escape(words)}</span>")


def _parameters(node: Node) -> str:
    kind = f"<span class=dim>{escape(type(node).__name__)}</span>"
    rows = parameter_rows(node)
    return f"<h3>{escape(node.name)} {kind}</h3>" + table(PARAMETERS, rows, [1], stacked=True)


def _robot(names: Sequence[str], tree: KinematicTree) -> str:
    """The numbers of a robot, once, for all nodes that know it."""
    title = f"Robot {tree.name}, as {' and '.join(names)} know{'s' * (len(names) == 1)} it"
    return folded(title, table(JOINTS, joint_rows(tree), JOINT_NUMBERS))


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
