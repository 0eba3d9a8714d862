"""The plots that a scenario asks for: fields over time or over others, units on all axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mime.running.trajectory import Trajectory
from mime.scenarios.fields import component_names, is_unit_known, split_field, unit_factor
from mime.scenarios.merits import pick, unit_of
from mime.scenarios.scenario import Scenario
from mime.scenarios.tables import PlotTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_LINES = 12
_MOST_POINTS = 20_000


def draw_plot(scenario: Scenario, plot: PlotTable, trajectory: Trajectory, title: str) -> "Figure":
    """A plot as the scenario's table describes it."""
    if plot.drawing is not None:
        return scenario.drawings[plot.drawing].draw(trajectory)
    fields = plot.fields or []
    return draw_fields(
        trajectory, fields, title, against=plot.over(), minus=plot.minus or [], unit=plot.unit
    )


def draw_fields(
    trajectory: Trajectory,
    fields: Sequence[str],
    title: str = "",
    *,
    against: Sequence[str] = (),
    minus: Sequence[str] = (),
    unit: str | None = None,
) -> "Figure":
    """One figure: neighbours of the same unit share an axis.

    `against` and `minus` are empty or have one field for each; `unit` replaces the fields' own.
    """
    from matplotlib.figure import Figure

    groups: list[list[int]] = []
    for index, name in enumerate(fields):
        if groups and unit_of(trajectory, fields[groups[-1][0]]) == unit_of(trajectory, name):
            groups[-1].append(index)
        else:
            groups.append([index])
    height = 1.0 + 2.0 * len(groups) + (1.5 if against else 0.0)
    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    for axis, group in zip(axes, groups, strict=True):
        names, taken, over = (
            [of[i] for i in group] if of else [] for of in (fields, minus, against)
        )
        _draw(axis, trajectory, names, taken, over, unit)
        axis.grid(alpha=0.3)
    if against:
        _label_against(axes, trajectory, fields, against, unit)
    else:
        axes[-1].set_xlabel("time [s]")
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _draw(
    axis: Any,
    trajectory: Trajectory,
    names: list[str],
    minus: list[str],
    against: list[str],
    unit: str | None,
) -> None:
    own = unit_of(trajectory, names[0])
    thin = slice(None, None, max(1, len(trajectory.time) // _MOST_POINTS))
    columns = [_columns(trajectory, name, unit) for name in names]
    labels = [component_names(name, _shape(trajectory, name)) for name in names]
    # Fields alike are drawn over each other: one colour per component, later ones dashed.
    alike = len(names) > 1 and len({len(found) for found in labels}) == 1 and len(labels[0]) > 1
    count = 0
    for index, values in enumerate(columns):
        x = trajectory.time if not against else _columns(trajectory, against[index], unit)[0]
        if minus:
            others = _columns(trajectory, minus[index], unit)
            values = [a - b for a, b in zip(values, others, strict=True)]
            taken = component_names(minus[index], _shape(trajectory, minus[index]))
            labels[index] = [f"{a} - {b}" for a, b in zip(labels[index], taken, strict=True)]
        for place, (line, label) in enumerate(zip(values, labels[index], strict=True)):
            colour = f"C{place if alike else count}"
            style = "--" if index and (alike or against) else "-"
            axis.plot(x[thin], line[thin], style, color=colour, linewidth=1.3, label=label)
            count += 1
    short = names[0].rpartition(".")[2].partition("[")[0] if len(names) == 1 and not minus else ""
    shown = unit if unit and is_unit_known(own, unit) else own
    axis.set_ylabel(f"{short}\n[{shown or '1'}]".strip(), fontsize=9)
    if 1 < count <= _MOST_LINES:
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        axis.legend(fontsize=7, **(beside if count > 4 else {}))
    elif len(names) == 1:
        axis.set_title(names[0], fontsize=8, loc="left")


def _columns(trajectory: Trajectory, name: str, unit: str | None) -> list[np.ndarray]:
    """Every number that a name stands for, over time, in the unit asked for if it can be."""
    values = pick(trajectory, name)
    its = unit_of(trajectory, name)
    scale = unit_factor(its, unit) if is_unit_known(its, unit) else 1.0
    return list(scale * values.reshape(len(values), -1).T)


def _shape(trajectory: Trajectory, name: str) -> tuple[int, ...]:
    node, field, _ = split_field(name)
    return trajectory[node][field].shape[1:]


def _label_against(
    axes: Any, trajectory: Trajectory, fields: Sequence[str], against: Sequence[str], unit: Any
) -> None:
    own = unit_of(trajectory, against[0])
    names = dict.fromkeys(against)
    words = next(iter(names)) if len(names) == 1 else " / ".join(names)
    alike = all(unit_of(trajectory, name) == own for name in fields)
    axes[-1].set_xlabel(f"{words} [{(unit if alike else None) or own or '1'}]")
    if alike:
        for axis in axes:
            axis.set_aspect("equal", adjustable="datalim")
