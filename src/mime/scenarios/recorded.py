"""What a run records: what is asked for, and what plots and figures of merit need."""

from collections.abc import Mapping
from typing import Any

from mime._text import nearest, quoted
from mime.core.recorder import GROUP_FIELDS, default_fields, field_specs
from mime.running.simulation import Simulation
from mime.scenarios.assemblies import Drawing
from mime.scenarios.fields import picked_shape, split_field
from mime.scenarios.merits import Comparison
from mime.scenarios.problems import Path_, Source
from mime.scenarios.tables import PlotTable, ScenarioTables
from mime.scenarios.units import factor, is_known

Entry = tuple[tuple[int, ...], str]
"""Shape and unit of a field, or of a part of it."""


def recorded_fields(
    tables: ScenarioTables,
    simulation: Simulation,
    drawings: Mapping[str, Drawing],
    source: Source,
) -> list[str]:
    """The fields that were asked for, and those that plots and figures of merit need."""
    wanted: dict[str, None] = {}
    given = tables.simulation.record
    if given is None:
        for name, node in simulation.nodes.items():
            wanted |= {f"{name}.{field}": None for field in default_fields(node)}
        for group in simulation.wiring.groups:
            wanted |= {f"{group.name}.{field}": None for field in GROUP_FIELDS}
    for index, field in enumerate(given or []):
        if "[" in field:
            source.add(("simulation", "record", index), "a field is recorded whole, without [...]")
        else:
            _checked(field, simulation, ("simulation", "record", index), source, wanted)
    for index, plot in enumerate(tables.plots):
        if plot.drawing is None:
            _check_plot(plot, simulation, ("plots", index), source, wanted)
        else:
            _check_drawing(plot, drawings, ("plots", index), source, wanted)
    for index, merit in enumerate(tables.figures_of_merit):
        path: Path_ = ("figures_of_merit", index)
        entry = _checked(merit.field, simulation, (*path, "field"), source, wanted)
        if entry is not None:
            _check_unit(merit.own_unit(entry[1]), merit.unit, path, source)
        if entry is not None and entry[0] and merit.needs_one_component:
            source.add(
                (*path, "field"),
                f"{merit.kind} is of one component, got shape {entry[0]}: add [component]",
            )
        if isinstance(merit, Comparison):
            other = _checked(merit.reference, simulation, (*path, "reference"), source, wanted)
            if entry is not None and other is not None:
                _check_alike(entry, other, (*path, "reference"), source)
    return list(wanted)


def _checked(
    name: str, simulation: Simulation, path: Path_, source: Source, wanted: dict[str, None]
) -> Entry | None:
    """What a field's name stands for."""
    try:
        node, field, index = split_field(name)
    except ValueError as error:
        source.add(path, str(error))
        return None
    groups = {group.name: GROUP_FIELDS for group in simulation.wiring.groups}
    known: dict[str, Any] = {**groups, **simulation.nodes}
    if node not in known:
        source.add(path, f"no node {node!r}{nearest(node, known)} (nodes: {quoted(known)})")
        return None
    specs: Any = groups.get(node) or field_specs(simulation.nodes[node])
    if field not in specs:
        source.add(
            path,
            f"{node!r} has no field {field!r}{nearest(field, specs)} (fields: {quoted(specs)})",
        )
        return None
    wanted[f"{node}.{field}"] = None
    if node in groups:
        return (), "1"
    shape, unit = specs[field].shape, specs[field].unit
    if index is None:
        return shape, unit
    picked = picked_shape(shape, index)
    if picked is None:
        component = name[name.index("[") :]
        source.add(path, f"{node}.{field} has shape {shape}; there is no component {component}")
        return None
    return picked, unit


def _check_plot(
    plot: PlotTable, simulation: Simulation, path: Path_, source: Source, wanted: dict[str, None]
) -> None:
    if plot.fields is None:
        source.add(path, "key 'fields' is missing (or 'drawing', of an assembly)")
        return
    entries = [
        _checked(field, simulation, (*path, "fields", place), source, wanted)
        for place, field in enumerate(plot.fields)
    ]
    units = [entry[1] for entry in entries if entry is not None]
    if units and not any(is_known(unit, plot.unit) for unit in units):
        _check_unit(units[0], plot.unit, path, source)
    for key, others in (("against", plot.over()), ("minus", plot.minus or [])):
        if others and len(others) != len(entries):
            source.add((*path, key), f"must be one for each of {len(entries)} fields, got {others}")
            continue
        many = isinstance(getattr(plot, key), list)
        for place, (name, entry) in enumerate(zip(others, entries)):
            at: Path_ = (*path, key, place) if many else (*path, key)
            other = _checked(name, simulation, at, source, wanted)
            if other is not None and key == "against" and other[0]:
                source.add(at, f"must be one component, got shape {other[0]}: add [component]")
            elif other is not None and key == "minus" and entry is not None:
                _check_alike(entry, other, at, source)


def _check_drawing(
    plot: PlotTable,
    drawings: Mapping[str, Drawing],
    path: Path_,
    source: Source,
    wanted: dict[str, None],
) -> None:
    for key in ("fields", "against", "minus", "unit"):
        if getattr(plot, key) is not None:
            source.add((*path, key), "a drawing has its own: take the key out")
    if plot.drawing in drawings:
        wanted |= dict.fromkeys(drawings[str(plot.drawing)].fields)
    else:
        near = nearest(str(plot.drawing), drawings)
        words = f"no drawing {plot.drawing!r}{near} (drawings: {quoted(drawings)})"
        source.add((*path, "drawing"), words)


def _check_alike(entry: Entry, other: Entry, path: Path_, source: Source) -> None:
    if entry != other:
        words = f"has shape {other[0]} in {other[1]!r}, the field {entry[0]} in {entry[1]!r}"
        source.add(path, words)


def _check_unit(unit: str, wanted: str | None, path: Path_, source: Source) -> None:
    try:
        factor(unit, wanted)
    except ValueError as error:
        source.add((*path, "unit"), str(error))
