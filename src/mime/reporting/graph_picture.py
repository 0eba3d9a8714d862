"""A graph as a picture and as text: nodes in the order in which a step visits them.

In the picture nodes stand on the diagonal of a table, in that order. What node i feeds to node j is
written in row i and column j, so that no label can meet another: above the diagonal what is handed
on in the same step, below it what is fed back.
"""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from mime.core.program import Program
from mime.core.wiring import Edge
from mime.reporting.plots import plain_text
from mime.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from mime.reporting.picture import Picture

_NAME, _KIND, _WORDS = 10.0, 7.5, 7.0
"""Points: letters of a node's name, of its type, and of the rest."""
_PAD, _GAP = 7.0, 9.0
"""Points from words to the edge of their box, and from a box to the next."""
_MARGIN = 6.0
_INK, _BOX, _EDGE, _INPUT = "#444444", "#eaf1fb", "#3b6ea8", "#a04000"


def graph_text(scenario: Scenario) -> str:
    """Nodes in order, edges, inputs and groups, one per line."""
    simulation = scenario.simulation
    lines = [f"{scenario.title}: {scenario.steps} steps of {simulation.timestep:g} s", "", "nodes"]
    lines += [
        f"  {name}  {type(simulation.nodes[name]).__name__}, every "
        f"{simulation.nodes[name].timestep:g} s"
        for name in simulation.wiring.order
    ]
    if scenario.tables.inputs:
        lines += ["", "inputs"]
        lines += [f"  {table.kind} -> {name}" for name, table in scenario.tables.inputs.items()]
    if simulation.wiring.edges:
        lines += ["", "edges"]
        lines += [
            f"  {edge}{_transform(edge)}{' (of the step before)' if edge.delay else ''}"
            for edge in simulation.wiring.edges
        ]
    for group in simulation.wiring.groups:
        lines += ["", f"coupling group {group.name}: {group.method}, {', '.join(group.members)}"]
    return "\n".join(lines)


def draw_graph(scenario: Scenario) -> "Picture":
    """The graph of a scenario, with the kinds of its inputs."""
    kinds = {name: table.kind for name, table in scenario.tables.inputs.items()}
    return draw_program(scenario.simulation, kinds)


def draw_program(program: Program, inputs: Mapping[str, str] | None = None) -> "Picture":
    """Nodes on the diagonal; dashed lines carry the value of the step before.

    `inputs`: what drives `node.field` from outside.
    """
    with plain_text():
        return _draw(program, inputs or {})


@dataclasses.dataclass(frozen=True)
class _Words:
    """Lines of text in a cell, and how much room they take, in points."""

    lines: tuple[tuple[str, float, str, str], ...]
    """Text, size, colour, weight."""
    delay: bool = False

    @property
    def width(self) -> float:
        return max(_width(text, size) for text, size, _, _ in self.lines) + 2 * _PAD

    @property
    def height(self) -> float:
        return sum(1.35 * size for _, size, _, _ in self.lines) + _PAD


def _draw(program: Program, inputs: Mapping[str, str]) -> "Picture":
    from mime.reporting.picture import Picture

    order = list(program.wiring.order)
    cells = _cells(program, order, inputs)
    widths, heights = [0.0] * len(order), [0.0] * len(order)
    for (row, column), words in cells.items():
        widths[column] = max(widths[column], words.width)
        heights[row] = max(heights[row], words.height)
    x = [_MARGIN + sum(widths[:k]) + k * _GAP + widths[k] / 2 for k in range(len(order))]
    y = [_MARGIN + sum(heights[:k]) + k * _GAP + heights[k] / 2 for k in range(len(order))]
    width = sum(widths) + (len(order) - 1) * _GAP + 2 * _MARGIN
    height = sum(heights) + (len(order) - 1) * _GAP + 2 * _MARGIN
    figure = Picture(figsize=(width / 72, height / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(height, 0))
    axis.axis("off")
    for (row, column), words in cells.items():
        if row != column:
            size = cells[column, column]
            _draw_way(axis, (x[row], y[row]), (x[column], y[column]), size.height, words.delay)
    for (row, column), words in cells.items():
        _draw_words(axis, x[column], y[row], words, is_node=row == column)
    return figure


def _cells(
    program: Program, order: list[str], inputs: Mapping[str, str]
) -> dict[tuple[int, int], _Words]:
    """What is written in row i and column j: the node where they are the same, else its edges."""
    place = {name: k for k, name in enumerate(order)}
    bundles: dict[tuple[int, int], list[Edge]] = {}
    for edge in program.wiring.edges:
        bundles.setdefault((place[edge.source], place[edge.target]), []).append(edge)
    cells = {}
    for name, k in place.items():
        lines = [(name, _NAME, "black", "bold")]
        lines.append((type(program.nodes[name]).__name__, _KIND, "black", "normal"))
        lines += [
            (f"▸ {field}{_driven(inputs.get(f'{name}.{field}'))}", _WORDS, _INPUT, "normal")
            for owner, field in program.wiring.external
            if owner == name
        ]
        own = bundles.pop((k, k), [])
        lines += [(f"↺ {_label(edge)}", _WORDS, _INK, "normal") for edge in own]
        cells[k, k] = _Words(tuple(lines))
    for at, edges in bundles.items():
        dashed = all(edge.delay for edge in edges)
        before = " (of the step before)"
        lines = [
            (_label(edge) + before * (edge.delay and not dashed), _WORDS, _INK, "normal")
            for edge in edges
        ]
        cells[at] = _Words(tuple(lines), dashed)
    return cells


def _draw_way(
    axis: Any, start: tuple[float, float], end: tuple[float, float], height: float, delay: bool
) -> None:
    """Along the source's row, then along the target's column into its box."""
    above = end[1] > start[1]
    tip = end[1] - height / 2 if above else end[1] + height / 2
    style = {
        "color": _INK,
        "linewidth": 1.0,
        "zorder": 1,
        "linestyle": (0, (4, 3)) if delay else "-",
    }
    axis.plot([start[0], end[0], end[0]], [start[1], start[1], tip], **style)
    head = {"color": _INK, "markersize": 6, "zorder": 3, "linestyle": "none"}
    axis.plot([end[0]], [tip - (3 if above else -3)], "v" if above else "^", **head)


def _draw_words(axis: Any, x: float, y: float, words: _Words, is_node: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    width, height = words.width, words.height
    face, edge = (_BOX, _EDGE) if is_node else ("white", "#bbbbbb")
    corner = x - width / 2 + 2, y - height / 2 + 2
    box: dict[str, Any] = {
        "facecolor": face,
        "edgecolor": edge,
        "linewidth": 1.2 if is_node else 0.6,
        "zorder": 2,
    }
    style = "round,pad=2,rounding_size=2"
    axis.add_patch(FancyBboxPatch(corner, width - 4, height - 4, boxstyle=style, **box))
    top = y - (height - _PAD) / 2
    for text, size, colour, weight in words.lines:
        middle = top + 0.675 * size
        look = {"fontsize": size, "color": colour, "weight": weight, "zorder": 4}
        axis.text(x, middle, text, ha="center", va="center_baseline", **look)
        top += 1.35 * size


@cache
def _width(text: str, size: float) -> float:
    """Points that a line of text takes; small letters on few pixels are a little wider."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    weight = "bold" if size == _NAME else "normal"
    font = get_font(findfont(FontProperties(weight=weight)))
    font.set_size(size, 72)
    font.set_text(text)
    return 1.06 * float(font.get_width_height()[0]) / 64.0


def _driven(kind: str | None) -> str:
    return "" if kind is None else f": {kind}"


def _label(edge: Edge) -> str:
    name = edge.source_field
    if edge.target_field != edge.source_field:
        name += f" → {edge.target_field}"
    return name + _transform(edge)


def _transform(edge: Edge) -> str:
    if edge.transform is None:
        return ""
    component, scale = (getattr(edge.transform, name, None) for name in ("component", "scale"))
    words = "" if component is None else f" [{str(component).strip('()').rstrip(',')}]"
    return words + ("" if scale in (None, 1.0) else f" times {scale:g}")
