"""The curves that a page shows, from names of fields as scenarios and people write them."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from mime.replay.content import Curve, Plot, component_labels
from mime.running.trajectory import Trajectory
from mime.scenarios.fields import is_unit_known, picked_shape, split_field, unit_factor
from mime.scenarios.merits import unit_of
from mime.scenarios.tables import PlotTable


def plots_of_fields(run: Trajectory, fields: Sequence[str]) -> list[Plot]:
    """A plot for each field."""
    return [plot for name in fields for plot in _plots(run, [name], "", None)]


def plots_of_scenario(run: Trajectory, tables: Iterable[PlotTable]) -> list[Plot]:
    """The plots over time that a scenario asks for; what is drawn over others is not of them."""
    found: list[Plot] = []
    for table in tables:
        if table.fields and not table.against:
            found += _plots(run, table.fields, table.title, table.unit, table.minus or [])
    return found


def _plots(
    run: Trajectory, fields: Sequence[str], title: str, unit: str | None, minus: Sequence[str] = ()
) -> list[Plot]:
    """Neighbours of one unit share a plot; later ones alike are dashed, in the same colours."""
    found: list[Plot] = []
    for k, name in enumerate(fields):
        curves = _curves(run, name, unit, minus[k] if minus else None)
        last = found[-1] if found else None
        if last is not None and last.curves[0].unit == curves[0].unit:
            alike = len(last.curves) % len(curves) == 0 and len(curves) > 1
            more = [
                dataclasses.replace(c, dashed=alike, colour=i if alike else len(last.curves) + i)
                for i, c in enumerate(curves)
            ]
            found[-1] = Plot(last.title, (*last.curves, *more))
        else:
            words = title or name
            found.append(Plot(f"{words} [{curves[0].unit or '1'}]", tuple(curves)))
    return [_labelled(plot) for plot in found]


def _labelled(plot: Plot) -> Plot:
    """Where a plot has several fields, each curve says of which it is."""
    if len({curve.field for curve in plot.curves}) == 1:
        return plot
    curves = [dataclasses.replace(c, label=f"{c.label} {c.field}".strip()) for c in plot.curves]
    return Plot(plot.title, tuple(curves))


def _curves(run: Trajectory, name: str, unit: str | None, minus: str | None) -> list[Curve]:
    own = unit_of(run, name)
    known = unit is not None and is_unit_known(own, unit)
    shown, scale = (unit or "", unit_factor(own, unit)) if known else (own, 1.0)
    node, field, _ = split_field(name)
    whole = f"{node}.{field}"
    labels = component_labels(run.drawing.names, whole, _shape(run, name), own)
    others = _indices(run, minus) if minus else None
    taken = ".".join(split_field(minus)[:2]) if minus else ""
    return [
        Curve(
            whole,
            i,
            labels[i] or field,
            shown,
            scale,
            None if others is None else (taken, others[k]),
        )
        for k, i in enumerate(_indices(run, name))
    ]


def _shape(run: Trajectory, name: str) -> tuple[int, ...]:
    node, field, _ = split_field(name)
    return run[node][field].shape[1 if run.batch_size is None else 2 :]


def _indices(run: Trajectory, name: str) -> list[int]:
    """The flat indices of the components that a name stands for."""
    shape, index = _shape(run, name), split_field(name)[2]
    if index is not None and picked_shape(shape, index) is None:
        raise IndexError(f"{name}: no such component; the field has shape {shape}")
    return np.arange(int(np.prod(shape))).reshape(shape)[index or ()].ravel().tolist()
