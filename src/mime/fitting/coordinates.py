"""The unknowns of a fit in order: parameters, states at the start, then what sensors add."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mime._text import nearest, quoted
from mime.core.address import find
from mime.core.arguments import instance, mapping, texts
from mime.core.problem import InputError, ParameterError
from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.unknown import Coordinate, Unknown
from mime.running.simulation import Simulation


def coordinates(
    simulation: Simulation,
    unknowns: Mapping[str, Unknown | float | None] | Sequence[str],
    experiments: Sequence[Experiment],
) -> tuple[Coordinate, ...]:
    """All unknowns; an `InputError` says which is none of the graph's."""
    if not isinstance(unknowns, Mapping):
        unknowns = dict.fromkeys(texts("unknowns", unknowns))
    found = [
        _parameter(simulation, address, _as_unknown(address, given))
        for address, given in mapping("unknowns", unknowns, "{'node.parameter': Unknown()}").items()
    ]
    found += [c for number, e in enumerate(experiments) for c in _starts(number, e)]
    sensors: dict[str, list[tuple[Experiment, Sensor]]] = {}
    for experiment in experiments:
        for sensor in experiment.sensors:
            sensors.setdefault(sensor.field, []).append((experiment, sensor))
    found += [c for field, of in sensors.items() for c in _sensing(field, of)]
    if not found:
        raise InputError("unknowns: nothing to look for", place=("unknowns",))
    return tuple(found)


def _as_unknown(address: str, given: Any) -> Unknown:
    if given is None:
        return Unknown()
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Unknown(float(given))
    return instance(f"unknowns[{address!r}]", given, Unknown)


def _parameter(simulation: Simulation, address: str, unknown: Unknown) -> Coordinate:
    at = ("unknowns", address)
    node, _, rest = address.partition(".")
    if node not in simulation.nodes:
        raise InputError(
            f"unknowns: no node {node!r}{nearest(node, simulation.nodes)} "
            f"({quoted(simulation.nodes)}); write 'node.parameter'",
            place=at,
        )
    try:
        simulation.wiring.refuse_derived({node: {rest: None}})
        leaf = find(simulation.nodes[node], rest)
    except ParameterError as error:
        raise InputError(f"unknowns: {address}: {error}", place=at) from None
    value = leaf.of(simulation.nodes[node])
    if value is None or np.shape(value) != ():
        what = "absent" if value is None else f"of shape {np.shape(value)}"
        raise InputError(
            f"unknowns: {address} is {what}; an unknown is one number that the model has", place=at
        )
    spec = leaf.spec
    lows = [bound for bound in (spec.above, spec.at_least) if bound is not None] if spec else []
    low = max(lows, default=-np.inf)
    high = spec.at_most if spec is not None and spec.at_most is not None else np.inf
    unit = spec.unit if spec else _entry_unit(simulation.nodes[node], rest)
    return _coordinate(address, unit, "parameter", unknown, float(value), low, high, (address,))


def _entry_unit(node: Any, address: str) -> str:
    """The unit of `link[NAME].mass_kg`."""
    group, _, field = address.partition("[")
    entries = node.named_entries().get(group, {}).get(field.partition("].")[2])
    return entries.unit if entries is not None else ""


def _coordinate(
    name: str,
    unit: str,
    kind: str,
    unknown: Unknown,
    own: float,
    low: float,
    high: float,
    key: tuple[Any, ...],
    scale: float | None = None,
) -> Coordinate:
    start = own if unknown.start is None else unknown.start
    if unknown.between is not None:
        low, high = max(low, unknown.between[0]), min(high, unknown.between[1])
    is_log = low >= 0 and scale is None
    if not low <= start <= high or (is_log and start <= 0):
        sign = "> 0" if is_log and start <= 0 else f"from {low:g} to {high:g}"
        raise InputError(
            f"unknowns: {name} starts at {start:g} {unit}, and must be {sign}. "
            "Give Unknown(start=...)",
            place=("unknowns", name),
        )
    size = scale or abs(start) or unknown.std or 1.0
    return Coordinate(
        name, unit, kind, is_log, size, start, low, high, unknown.std, unknown.prior, key
    )


def _starts(number: int, experiment: Experiment) -> Iterator[Coordinate]:
    for start in experiment.starts:
        if not isinstance(start.value, Unknown):
            continue
        index = f"[{','.join(map(str, start.index))}]" if start.index else ""
        name = f"{experiment.name}: {start.node}.{start.field}{index} at the start"
        spreads = [
            np.std(s.measured)
            for s in experiment.sensors
            if s.place.node == start.node and s.place.spec.unit == start.unit
        ]
        scale = float(max([*spreads, abs(start.value.start or 0.0), start.value.std or 0.0])) or 1.0
        key = number, start.node, start.field, start.index
        yield _coordinate(
            name, start.unit, "initial", start.value, 0.0, -np.inf, np.inf, key, scale
        )


def _sensing(field: str, of: Sequence[tuple[Experiment, Sensor]]) -> Iterator[Coordinate]:
    """A sensor's delay, offset and gain, the same in all experiments."""
    channels = [sensor.place.channel for _, sensor in of]
    rows = min(channel.delay for channel in channels)
    if rows:
        period = min(experiment.period_s for experiment, _ in of)
        between = -rows * period, rows * period
        yield Coordinate(
            f"{field} delay", "s", "delay", False, period, 0.0, *between, None, True, (field,)
        )
    unit = of[0][1].place.spec.unit
    if any(channel.offset for channel in channels):
        scale = float(np.std(np.concatenate([sensor.measured for _, sensor in of])))
        ends = -np.inf, np.inf
        yield Coordinate(
            f"{field} offset", unit, "offset", False, scale, 0.0, *ends, None, True, (field,)
        )
    if any(channel.gain for channel in channels):
        yield Coordinate(
            f"{field} gain", "", "gain", True, 1.0, 1.0, 0.0, np.inf, None, True, (field,)
        )
