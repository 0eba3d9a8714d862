"""What a study keeps of each member: figures of merit, and fields at a stride; checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from mime._text import nearest, quoted
from mime.core.problem import Place
from mime.core.recorder import GROUP_FIELDS, field_specs
from mime.running.simulation import Simulation
from mime.scenarios.fields import picked_shape, split_field, unit_factor
from mime.scenarios.merits import MERITS, Comparison, Merit
from mime.scenarios.source import Source, shown
from mime.scenarios.validation import validated

FIGURES = "figures_of_merit"


def own_figures(tables: Sequence[Any], simulation: Simulation, source: Source) -> list[Merit]:
    """`[[figures_of_merit]]` of a study, as those of a scenario; what is wrong is noted."""
    found = []
    for index, table in enumerate(tables):
        at: Place = (FIGURES, index)
        if not isinstance(table, Mapping):
            source.add(at, f"must be a table, got {shown(table)}")
            continue
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in MERITS:
            near = nearest(str(kind), MERITS)
            words = f"must be one of {quoted(sorted(MERITS))}, got {shown(kind)}{near}"
            source.add((*at, "kind"), words)
            continue
        merit = validated(MERITS[kind], table, source, at)
        if merit is not None and not source.wrong(*at):
            check_figure(merit, simulation, source, at)
            found.append(merit)
    return found


def check_figure(merit: Merit, simulation: Simulation, source: Source, at: Place) -> None:
    """Note a figure whose field is not there, or that it cannot be taken of."""
    entry = find_field(merit.field, simulation, source, (*at, "field"))
    if entry is None:
        return
    shape, unit = entry
    if shape and merit.needs_one_component:
        words = f"{merit.kind} is of one component, got shape {shape}: add [component]"
        source.add((*at, "field"), words)
    try:
        unit_factor(merit.own_unit(unit), merit.unit)
    except ValueError as error:
        source.refuse((*at, "unit"), error)
    if isinstance(merit, Comparison):
        other = find_field(merit.reference, simulation, source, (*at, "reference"))
        if other is not None and other != entry:
            words = f"has shape {other[0]} in {other[1]!r}, the field {shape} in {unit!r}"
            source.add((*at, "reference"), words)


def find_field(
    name: str, simulation: Simulation, source: Source, at: Place, whole: bool = False
) -> tuple[tuple[int, ...], str] | None:
    """Shape and unit of what a field's name stands for; None when nothing, which is noted."""
    try:
        node, field, index = split_field(name)
    except ValueError as error:
        source.refuse(at, error)
        return None
    groups = [group.name for group in simulation.wiring.groups]
    known = [*simulation.nodes, *groups]
    if node not in known:
        source.add(at, f"no node {node!r}{nearest(node, known)} (nodes: {quoted(known)})")
        return None
    specs: Any = GROUP_FIELDS if node in groups else field_specs(simulation.nodes[node])
    if field not in specs:
        words = f"{node!r} has no field {field!r}{nearest(field, specs)}"
        source.add(at, f"{words} (fields: {quoted(specs)})")
        return None
    if node in groups:
        return (), "1"
    shape, unit = specs[field].shape, specs[field].unit
    if index is None:
        return shape, unit
    picked = None if whole else picked_shape(shape, index)
    if picked is None:
        words = "a field is kept whole, without [...]" if whole else f"{node}.{field} has {shape}"
        source.add(at, words)
        return None
    return picked, unit
