"""A graph as a picture and as text: nodes in the order in which a step visits them."""

from typing import TYPE_CHECKING, Any

from mime.core.wiring import Edge
from mime.running.simulation import Simulation
from mime.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOX, _PITCH, _ROW = 2.4, 5.0, 1.9
_INCHES = 0.55
Point = tuple[float, float]


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


def draw_graph(scenario: Scenario) -> "Figure":
    """Boxes are nodes, with their inputs; dashed arrows carry the value of the step before."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    simulation = scenario.simulation
    place = _places(simulation)
    columns = 1 + max(column for column, _ in place.values())
    rows = 1 + max(row for _, row in place.values())
    ends = {(edge.source, edge.target) for edge in simulation.wiring.edges}
    back = any(place[a][0] >= place[b][0] for a, b in ends)
    low = -1.4 - (1.0 if back else 0.0)
    width, height = (columns - 1) * _PITCH + _BOX + 1.0, (rows - 1) * _ROW + 1.6 - low
    figure = Figure(figsize=(max(width, 5.0) * _INCHES, height * _INCHES), layout="constrained")
    axis = figure.subplots()
    axis.set_xlim(-_BOX / 2 - 0.5, (columns - 1) * _PITCH + _BOX / 2 + 0.5)
    axis.set_ylim(-(rows - 1) * _ROW + low, 1.6)
    axis.axis("off")
    for name, node in simulation.nodes.items():
        x, y = _centre(place[name])
        inputs = [
            f"◂ {field}: {scenario.tables.inputs[f'{name}.{field}'].kind}"
            for owner, field in simulation.wiring.external
            if owner == name
        ]
        axis.add_patch(
            FancyBboxPatch(
                (x - _BOX / 2, y - 0.45),
                _BOX,
                0.9,
                boxstyle="round,pad=0.05",
                facecolor="#eaf1fb",
                edgecolor="#3b6ea8",
                zorder=2,
            )
        )
        axis.text(x, y + 0.17, name, ha="center", va="center", fontsize=10, weight="bold")
        axis.text(x, y - 0.2, type(node).__name__, ha="center", va="center", fontsize=7.5)
        if inputs:
            words = "\n".join(inputs)
            axis.text(x, y + 0.6, words, ha="center", va="bottom", fontsize=7, color="#a04000")
    _draw_edges(axis, simulation, place)
    return figure


def _draw_edges(axis: Any, simulation: Simulation, place: dict[str, tuple[int, int]]) -> None:
    from matplotlib.patches import FancyArrowPatch

    bundles: dict[tuple[str, str, bool], list[Edge]] = {}
    for edge in simulation.wiring.edges:
        bundles.setdefault((edge.source, edge.target, edge.delay), []).append(edge)
    taken = [(*_centre(at), _BOX, 1.0) for at in place.values()]
    depth = 0
    # Arrows ahead are short: their labels have the first choice.
    ahead = sorted(bundles, key=lambda ends: place[ends[1]][0] <= place[ends[0]][0])
    for source, target, delay in ahead:
        edges = bundles[source, target, delay]
        (x0, y0), (x1, y1) = _centre(place[source]), _centre(place[target])
        if x1 > x0:
            start, end, bend = (x0 + _BOX / 2, y0), (x1 - _BOX / 2, y1), 0.0
        else:
            start, end = (x0, y0 - 0.5), (x1, y1 - 0.5)
            bend = -(0.9 + 0.45 * depth) / max(abs(x0 - x1), 1.0)
            depth += 1
        axis.add_patch(
            FancyArrowPatch(
                start,
                end,
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>",
                mutation_scale=11,
                linestyle="--" if delay else "-",
                color="#555555",
                shrinkA=2,
                shrinkB=2,
                zorder=1,
            )
        )
        words = "\n".join(_label(edge) for edge in edges)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
        style = {"ha": "center", "va": "center", "fontsize": 6.5, "bbox": box, "zorder": 4}
        axis.text(*_free_place(start, end, bend, words, taken), words, **style)


def _free_place(
    start: Point,
    end: Point,
    bend: float,
    words: str,
    taken: list[tuple[float, float, float, float]],
) -> Point:
    """Where on the arrow, its middle first, a label covers no box and no other label."""
    lines = words.splitlines()
    width, height = 0.125 * max(map(len, lines)), 0.24 * len(lines)
    dx, dy = end[0] - start[0], end[1] - start[1]
    turn = (start[0] + dx / 2 + bend * dy, start[1] + dy / 2 - bend * dx)  # of a quadratic Bézier
    places = []
    for s in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8):
        a, b, c = (1 - s) ** 2, 2 * s * (1 - s), s**2
        places.append(
            (a * start[0] + b * turn[0] + c * end[0], a * start[1] + b * turn[1] + c * end[1])
        )
    free = [
        (x, y)
        for x, y in places
        if all(
            abs(x - u) > (width + w) / 2 or abs(y - v) > (height + h) / 2 for u, v, w, h in taken
        )
    ]
    x, y = (free or places)[0]
    taken.append((x, y, width, height))
    return x, y


def _label(edge: Edge) -> str:
    name = edge.source_field
    if edge.target_field != edge.source_field:
        name += f" →\n{edge.target_field}"
    return name + _transform(edge)


def _transform(edge: Edge) -> str:
    if edge.transform is None:
        return ""
    component, scale = (getattr(edge.transform, name, None) for name in ("component", "scale"))
    words = "" if component is None else f" [{str(component).strip('()').rstrip(',')}]"
    return words + ("" if scale in (None, 1.0) else f" times {scale:g}")


def _places(simulation: Simulation) -> dict[str, tuple[int, int]]:
    """Column and row of each node: further right than all that it reads in the same step."""
    column: dict[str, int] = {}
    for name in simulation.wiring.order:
        before = [
            column[edge.source]
            for edge in simulation.wiring.edges_into(name)
            if not edge.delay and edge.source in column
        ]
        column[name] = 1 + max(before, default=-1)
    rows: dict[int, int] = {}
    places = {}
    for name, at in column.items():
        places[name] = (at, rows.get(at, 0))
        rows[at] = rows.get(at, 0) + 1
    return places


def _centre(place: tuple[int, int]) -> tuple[float, float]:
    return place[0] * _PITCH, -place[1] * _ROW
