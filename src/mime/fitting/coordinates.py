"""The unknowns of a fit in order: parameters, states at the start, then what sensors add."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mime._text import quoted
from mime.core.arguments import instance, mapping, texts
from mime.core.problem import InputError
from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.parameters import coordinate, parameter_coordinates
from mime.fitting.unknown import Coordinate, Unknown
from mime.running.simulation import Simulation


def coordinates(
    simulation: Simulation,
    unknowns: Mapping[str, Unknown | float | None] | Sequence[str],
    experiments: Sequence[Experiment],
) -> tuple[Coordinate, ...]:
    """All unknowns; an `InputError` says which is none of the graph's."""
    if not isinstance(unknowns, Mapping):
        names = texts("unknowns", unknowns)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(
                f"{quoted(twice)} is there twice", place=("unknowns",), label="unknowns:"
            )
        unknowns = dict.fromkeys(names)
    found = [
        c
        for address, given in mapping("unknowns", unknowns, "{'node.parameter': Unknown()}").items()
        for c in parameter_coordinates(simulation, address, _as_unknown(address, given))
    ]
    _refuse_twice(list(unknowns), found)
    _refuse_set(list(unknowns), found, experiments)
    found += [c for number, e in enumerate(experiments) for c in _starts(number, e)]
    sensors: dict[str, list[tuple[Experiment, Sensor]]] = {}
    for experiment in experiments:
        for sensor in experiment.sensors:
            sensors.setdefault(sensor.field, []).append((experiment, sensor))
    found += [c for field, of in sensors.items() for c in _sensing(field, of)]
    if not found:
        raise InputError("nothing to look for", place=("unknowns",), label="unknowns:")
    return tuple(found)


def _refuse_twice(addresses: Sequence[str], found: Sequence[Coordinate]) -> None:
    names = [c.name for c in found]
    wholes = {c.key[0] for c in found if c.kind == "body"}
    twice = {name for name in names if names.count(name) > 1}
    twice |= {a for a in addresses for whole in wholes if a.startswith(f"{whole}.")}
    if twice:
        raise InputError(
            f"{quoted(sorted(twice))} is there twice, by itself and in a whole",
            place=("unknowns",),
            label="unknowns:",
        )


def _refuse_set(
    addresses: Sequence[str], found: Sequence[Coordinate], experiments: Sequence[Experiment]
) -> None:
    """What a log sets is no unknown: it would be looked for in the other logs alone."""
    names = {*addresses, *(c.name for c in found)}
    for experiment in experiments:
        for address in experiment.settings:
            if address in names or any(address.startswith(f"{name}.") for name in names):
                raise InputError(
                    f"{address} is unknown, and the log {experiment.name!r} sets it to "
                    f"{experiment.settings[address]:g}. Leave it out of one of them",
                    place=("unknowns",),
                    label="unknowns:",
                )


def _as_unknown(address: str, given: Any) -> Unknown:
    if given is None:
        return Unknown()
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Unknown(float(given))
    return instance(f"unknowns[{address!r}]", given, Unknown)


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
        yield coordinate(name, start.unit, "initial", start.value, 0.0, -np.inf, np.inf, key, scale)


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
    if any(channel.offset is True for channel in channels):
        scale = float(np.std(np.concatenate([sensor.measured for _, sensor in of])))
        ends = -np.inf, np.inf
        yield Coordinate(
            f"{field} offset", unit, "offset", False, scale, 0.0, *ends, None, True, (field,)
        )
    if any(channel.gain is True for channel in channels):
        yield Coordinate(
            f"{field} gain", "", "gain", True, 1.0, 1.0, 0.0, np.inf, None, True, (field,)
        )
