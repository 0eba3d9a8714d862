"""Plots of recorded fields: over time or over others, units on all axes, components by name.

`mime plot`, `trajectory.plot` and the plots of a scenario are all drawn here.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from mime.core.arguments import text, texts
from mime.core.problem import InputError
from mime.reporting.components import Component, components, field_shape, samples
from mime.running.trajectory import Trajectory
from mime.scenarios.fields import is_unit_known, unit_factor
from mime.scenarios.merits import unit_of
from mime.scenarios.scenario import Scenario
from mime.scenarios.tables import PlotTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mime.reporting.picture import Picture

_MOST_LINES = 12
_MOST_COMPONENTS = 40
"""Of a field that nobody asked for by name: a map of walls is no curve."""
_MOST_POINTS = 20_000
_MOST_MEMBERS = 100
_LARGEST = 1e300
"""What an axis can show: its length and its margins must be numbers too."""


def plot_run(
    run: Trajectory,
    fields: Sequence[str | Sequence[str]],
    title: str,
    against: str | Sequence[str],
    unit: str | None,
) -> "Picture":
    """What `trajectory.plot` draws; what cannot be is an `InputError`."""
    names = [name for entry in fields for name in _listed("fields", entry)] or curves_of(run)
    over = _listed("against", against)
    if title:
        text("title", title)
    if unit is not None:
        text("unit", unit)
    if len(over) not in (0, 1, len(names)):
        words = f"against must be one field or one for each of the {len(names)}, got {len(over)}"
        raise InputError(words, place=("against",))
    over = over * len(names) if len(over) == 1 else over
    try:
        _refuse_unit(run, names, unit)
        return draw_fields(run, names, title, against=over, unit=unit)
    except (KeyError, IndexError, ValueError) as error:
        raise InputError(f"fields: {error.args[0]}", place=("fields",)) from error


def curves_of(run: Trajectory) -> list[str]:
    """The recorded fields that are few enough numbers to be curves."""
    names = [f"{node}.{field}" for node in run.fields for field in run.fields[node]]
    return [name for name in names if np.prod(field_shape(run, name)) <= _MOST_COMPONENTS]


def draw_plot(scenario: Scenario, plot: PlotTable, trajectory: Trajectory, title: str) -> "Figure":
    """A plot as the scenario's table describes it."""
    if plot.drawing is not None:
        with plain_text():
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
) -> "Picture":
    """One figure: neighbours of the same units share axes, and each unit has its own.

    `against` and `minus` are empty or have one field for each; `unit` replaces the fields' own.
    """
    with plain_text():
        return _figure(trajectory, fields, title, against, minus, unit)


def plain_text() -> AbstractContextManager[None]:
    """Within it, a dollar sign in a title or a name is a dollar sign and begins no formula."""
    import matplotlib

    return matplotlib.rc_context({"text.parse_math": False, "text.usetex": False})


def _listed(name: str, given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(texts(name, given))


def _refuse_unit(run: Trajectory, names: Sequence[str], unit: str | None) -> None:
    """A unit that none of the fields can be shown in."""
    own = [unit_of(run, name) for name in names]
    if own and not any(is_unit_known(entry, unit) for entry in own):
        unit_factor(own[0], unit)  # says which there are


def _figure(
    trajectory: Trajectory,
    fields: Sequence[str],
    title: str,
    against: Sequence[str],
    minus: Sequence[str],
    unit: str | None,
) -> "Picture":
    from mime.reporting.picture import Picture

    panels = list(_panels(trajectory, fields))
    height = 1.0 + 2.0 * len(panels) + (1.5 if against else 0.0)
    figure = Picture(figsize=(8.0, height), layout="constrained")
    axes = figure.subplots(max(len(panels), 1), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (group, own) in zip(axes, panels):
        names, taken, over = (
            [of[i] for i in group] if of else [] for of in (fields, minus, against)
        )
        _draw(axis, trajectory, names, taken, over, own, unit)
        axis.grid(alpha=0.3)
    if against:
        _label_against(axes, trajectory, fields, against, unit)
    else:
        axes[-1].set_xlabel("time [s]")
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _panels(run: Trajectory, fields: Sequence[str]) -> Iterator[tuple[list[int], str]]:
    """Which fields share axes, and in which unit: metres of a pose apart from its quaternion."""
    groups: list[tuple[list[str], list[int]]] = []
    for index, name in enumerate(fields):
        units = list(dict.fromkeys(component.unit for component in components(run, name)))
        if groups and groups[-1][0] == units:
            groups[-1][1].append(index)
        else:
            groups.append((units, [index]))
    for units, group in groups:
        yield from ((group, unit) for unit in units)


def _draw(
    axis: Any,
    run: Trajectory,
    names: list[str],
    minus: list[str],
    against: list[str],
    own: str,
    unit: str | None,
) -> None:
    found = [[c for c in components(run, name) if c.unit == own] for name in names]
    # Fields alike are drawn over each other: one colour per component, later ones dashed.
    alike = len(names) > 1 and len({len(entry) for entry in found}) == 1 and len(found[0]) > 1
    shown, scale = (unit, unit_factor(own, unit)) if unit and is_unit_known(own, unit) else (own, 1)
    count, cut = 0, False
    for index, name in enumerate(names):
        with np.errstate(over="ignore", invalid="ignore"):
            lines = scale * samples(run, name)[[c.index for c in found[index]]]
            if minus:
                others = [c for c in components(run, minus[index]) if c.unit == own]
                lines = lines - scale * samples(run, minus[index])[[c.index for c in others]]
        cut |= bool(np.any(np.abs(lines) > _LARGEST))
        for place, component in enumerate(found[index]):
            label = _label(name, component, alone=len(names) == 1 and not minus)
            if minus:
                label += f" - {_label(minus[index], others[place], alone=False)}"
            style = {
                "color": f"C{place if alike else count}",
                "linestyle": "--" if index and (alike or against) else "-",
            }
            x = _over(run, against[index], unit) if against else run.time[None]
            _draw_members(axis, x, _drawable(lines[place]), label, style)
            count += 1
    alone = len(names) == 1 and not minus
    short = names[0].rpartition(".")[2].partition("[")[0] if alone else ""
    note = f"\ncut at {_LARGEST:g}" if cut else ""
    axis.set_ylabel(f"{short}\n[{shown or '1'}]{note}".strip(), fontsize=9)
    if 1 < count <= _MOST_LINES:
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        axis.legend(fontsize=7, **(beside if count > 4 else {}))
    members = run.batch_size or 0
    drawn = f", {_MOST_MEMBERS} of {members:,} members" if members > _MOST_MEMBERS else ""
    if alone or drawn:
        whole = names[0].partition("[")[0]
        name = _label(names[0], found[0][0], alone=False) if count == 1 else whole
        axis.set_title(f"{name if alone else ''}{drawn}".lstrip(", "), fontsize=8, loc="left")


def _draw_members(
    axis: Any, x: np.ndarray, lines: np.ndarray, label: str, style: dict[str, Any]
) -> None:
    """One curve for a run; for a batch one for each member, paler the more there are."""
    count, length = lines.shape
    thin = slice(None, None, max(1, length // _MOST_POINTS))
    pale = {} if count == 1 else {"alpha": max(0.15, min(0.9, 6.0 / count))}
    chosen = np.linspace(0, count - 1, min(count, _MOST_MEMBERS)).round().astype(int)
    for k, member in enumerate(chosen):
        name = label if k == 0 else "_"
        width = 1.3 if count == 1 else 0.8
        over = x[member if len(x) > 1 else 0]
        axis.plot(over[thin], lines[member][thin], linewidth=width, label=name, **style, **pale)


def _label(name: str, component: Component, alone: bool) -> str:
    """`shoulder` where the axes name the field, else `arm.joint_angles shoulder`."""
    whole = name.partition("[")[0]
    if not component.label:
        return whole
    if component.label.startswith("["):
        return f"{whole}{component.label.replace(' ', '')}"
    return component.label if alone else f"{whole} {component.label}"


def _over(run: Trajectory, name: str, unit: str | None) -> np.ndarray:
    """(member, sample) of what stands on the other axis."""
    first = components(run, name)[0]
    scale = unit_factor(first.unit, unit) if unit and is_unit_known(first.unit, unit) else 1.0
    with np.errstate(over="ignore"):
        return _drawable(scale * samples(run, name)[first.index])


def _drawable(line: np.ndarray) -> np.ndarray:
    """The line where an axis can show it; longer ones end at its edge."""
    return line if line.dtype.kind in "bui" else np.clip(line, -_LARGEST, _LARGEST)


def _label_against(
    axes: Any, trajectory: Trajectory, fields: Sequence[str], against: Sequence[str], unit: Any
) -> None:
    first = components(trajectory, against[0])[0]
    names = dict.fromkeys(
        _label(name, components(trajectory, name)[0], alone=False) for name in against
    )
    alike = all(components(trajectory, name)[0].unit == first.unit for name in fields)
    shown = (unit if alike else None) or first.unit or "1"
    axes[-1].set_xlabel(f"{' / '.join(names)} [{shown}]")
    if alike:
        for axis in axes:
            axis.set_aspect("equal", adjustable="datalim")
