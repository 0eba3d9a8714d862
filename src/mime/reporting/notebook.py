"""What a notebook shows of a node, a graph, a result, a robot, a motor's sheet, a scenario.

Pieces of HTML without a style sheet: they take the colours of the notebook, light or dark. All
words of users are escaped by `html`.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from mime.control.kinematics.report import HEADINGS, report_rows
from mime.control.kinematics.tree import KinematicTree
from mime.core.node import Node
from mime.core.problem import GraphError
from mime.nodes.actuation.motor.datasheet import Datasheet
from mime.reporting.graph_picture import draw_graph, draw_program
from mime.reporting.html import Markup, folded, image, png_bytes, table
from mime.reporting.numbers import number
from mime.reporting.plots import plain_text
from mime.reporting.tables import (
    JOINT_NUMBERS,
    JOINTS,
    PARAMETERS,
    joint_rows,
    parameter_rows,
    trees_of,
)
from mime.running.graph import GraphManager
from mime.running.simulation import Simulation
from mime.running.trajectory import Trajectory
from mime.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 60
_MOST_NODES = 20
"""In a picture that one can still read in a notebook."""
_MOST_CURVES = 8
_SPARK = (180, 32)
"""Pixels of a small plot."""
_COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")


def node_html(node: Node) -> str:
    """A node's parameters with units; its inputs, fluxes and state folded away."""
    summary = f" {node.meta.summary}" if node.meta else ""
    parts = [_heading(node.name, type(node).__name__, f"every {node.timestep:g} s.{summary}")]
    parts += [_rows(PARAMETERS, parameter_rows(node), [1])]
    parts += [folded(f"robot {tree.name}", _joints(tree)) for _, tree in trees_of([node])]
    specs: dict[str, Any] = {
        "inputs": node.boundary_input_spec(),
        "fluxes": node.boundary_flux_spec(),
        "state": node.state_spec(),
    }
    for title, fields in specs.items():
        rows = [
            (name, " x ".join(map(str, f.shape)) or "scalar", f.unit or "1", f.description)
            for name, f in fields.items()
        ]
        headings = ("name", "shape", "unit", "meaning")
        parts += [folded(f"{title} ({len(rows)})", _rows(headings, rows))] if rows else []
    return "".join(parts)


def graph_html(graph: GraphManager) -> str:
    """The picture of a graph; what keeps it from being compiled, where something does."""
    words = repr(graph).partition("\n")[0].partition(": ")[2]
    heading = _heading("", "GraphManager", words)
    try:
        return heading + _picture(graph.compile(), {})
    except GraphError as error:
        nodes = list(graph.nodes.values())
        return f"{heading}{_nodes(nodes)}<pre>{escape(str(error))}</pre>"


def simulation_html(simulation: Simulation) -> str:
    """Nodes, their timesteps, what computes them, and the picture of the graph."""
    words = repr(simulation).partition("\n")[0].partition(": ")[2]
    heading = _heading("", "Simulation", f"{words}; {simulation.backend}")
    nodes = [simulation.nodes[name] for name in simulation.wiring.order]
    return heading + _picture(simulation, {}) + folded(f"nodes ({len(nodes)})", _nodes(nodes))


def scenario_html(scenario: Scenario) -> str:
    """A scenario's title, its description and its graph."""
    simulation = scenario.tables.simulation
    words = f"{simulation.duration:g} s in {scenario.steps:,} steps. {scenario.tables.description}"
    picture = _image(draw_graph(scenario)) if len(scenario.graph.nodes) <= _MOST_NODES else ""
    nodes = [scenario.simulation.nodes[name] for name in scenario.simulation.wiring.order]
    return _heading(scenario.title, "Scenario", words) + picture + _nodes(nodes)


def trajectory_html(run: Trajectory) -> str:
    """What is recorded, with its range and a small plot; limits that were passed."""
    words = repr(run).partition("\n")[0].removeprefix("Trajectory(").removesuffix(")")
    rows = [
        _field_row(run, node, field, values)
        for node, fields in run.fields.items()
        for field, values in fields.items()
    ]
    headings = ("field", "", "least", "largest", "unit", "shape", "meaning")
    parts = [_heading("", "Trajectory", words), _rows(headings, rows, [2, 3])]
    parts += [f"<p>{escape(str(warning))}</p>" for warning in run.warnings[:8]]
    lost = [f"member {k}: {where}" for k, where in list(run.diverged.items())[:8]]
    return "".join([*parts, *(f"<p>{escape(line)}</p>" for line in lost)])


def tree_html(tree: KinematicTree) -> str:
    """Joints with limits and masses; what of the file is not simulated as it is written."""
    mass = number(float(np.sum(tree.masses)), 4)
    words = f"{tree.num_joints} joints on {tree.base} {tree.root_link_name}, {mass} kg move"
    parts = [_heading(tree.name, "KinematicTree", words), _joints(tree)]
    if rows := report_rows(tree.report):
        parts.append(folded(f"report ({len(rows)})", _rows(HEADINGS, rows)))
    return "".join(parts)


def datasheet_html(sheet: Datasheet) -> str:
    """The figures of a motor with units, and those that contradict each other."""
    rows = [(name, number(value, 6), unit) for name, (value, unit) in sheet.figures().items()]
    parts = [_heading("", "Datasheet", sheet.source), table(("figure", "value", "unit"), rows, [1])]
    parts += [f"<p>{escape(words)}</p>" for words in sheet.contradictions()]
    return "".join(parts)


def _heading(name: str, kind: str, words: str) -> str:
    title = f"<b>{escape(name)}</b> " if name else ""
    return f"<p>{title}<code>{escape(kind)}</code> {escape(words)}</p>"


def _rows(headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: Any = ()) -> str:
    """A table, or the first rows of a long one."""
    more = f"<p>... and {len(rows) - _MOST_ROWS} more</p>" if len(rows) > _MOST_ROWS else ""
    return table(headings, rows[:_MOST_ROWS], numeric) + more


def _joints(tree: KinematicTree) -> str:
    return _rows(JOINTS, joint_rows(tree), JOINT_NUMBERS)


def _nodes(nodes: Sequence[Node]) -> str:
    rows = [(node.name, type(node).__name__, f"{node.timestep:g} s") for node in nodes]
    return _rows(("node", "type", "every"), rows)


def _picture(simulation: Simulation, inputs: dict[str, str]) -> str:
    if not simulation.nodes or len(simulation.nodes) > _MOST_NODES:
        return ""
    return _image(draw_program(simulation, inputs))


def _image(figure: "Figure") -> str:
    with plain_text():
        return f'<div style="overflow-x: auto">{image(png_bytes(figure, 90), "the graph")}</div>'


def _field_row(run: Trajectory, node: str, field: str, values: np.ndarray) -> tuple[str, ...]:
    shape = " x ".join(map(str, values.shape))
    ends = [number(end, 4) for end in (values.min(), values.max())] if values.size else ["", ""]
    lines = values[None] if run.batch_size is None else values
    unit, meaning = run.units[node][field] or "1", run.descriptions[node][field]
    return (f"{node}.{field}", _spark(lines), *ends, unit, shape, meaning)


def _spark(values: np.ndarray) -> Markup:
    """(member, time, ...) as a small plot: of each curve the least and largest in every pixel."""
    curves = np.moveaxis(values.reshape(*values.shape[:2], -1), 1, 2)
    curves = curves.reshape(-1, values.shape[1]).astype(float)
    shown = curves[np.linspace(0, len(curves) - 1, min(len(curves), _MOST_CURVES)).astype(int)]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.min(shown, initial=np.inf), np.max(shown, initial=-np.inf)
        if not (np.isfinite(low) and np.isfinite(high) and np.isfinite(high - low)):
            return Markup("")
    width, height = _SPARK
    lines = [
        f'<polyline fill="none" stroke="{_COLOURS[k % len(_COLOURS)]}" points="{points}"/>'
        for k, points in enumerate(_points(curve, low, high) for curve in shown)
    ]
    box = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Markup(f"<svg {box}>{''.join(lines)}</svg>")


def _points(curve: np.ndarray, low: float, high: float) -> str:
    width, height = _SPARK
    pieces = np.array_split(curve, min(len(curve), width))
    ends = [(k, value) for k, piece in enumerate(pieces) for value in (piece.min(), piece.max())]
    span = high - low or 1.0
    step = width / max(len(pieces) - 1, 1)
    across = height - 4
    return " ".join(f"{k * step:.1f},{2 + across * (high - v) / span:.1f}" for k, v in ends)
