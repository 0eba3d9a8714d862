"""What one more sensor, a longer log or another input would tell: information of the same graph.

F = JᵀJ over the noise      F + J_sᵀ J_s / sigma_s²    with sensor s besides
                            k F                        with k logs like it
                            J'ᵀJ'                      with another input, J' its Jacobian
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mime.core.recorder import field_specs
from mime.fitting.channel import Channel, place
from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.model import Model
from mime.fitting.parameters import KINDS
from mime.fitting.rank import Rank, rank_of
from mime.fitting.unknown import WIDEST

Known = tuple[tuple[str, float], ...]
"""Names of parameters, each with half of its 95 % interval, in logarithms."""
_MOST_LOGS = 100
_MEASURABLE = ("rad", "rad/s", "A", "N·m", "m", "m/s", "°C")


@dataclasses.dataclass(frozen=True)
class Advice:
    """A sensor to add, and what would be known then."""

    field: str
    noise: float
    """Of that sensor, over the spread of its signal: as that of the sensors there are."""
    known: Known
    """Parameters that would become known."""

    def __str__(self) -> str:
        noise = f"{100 * self.noise:.2g} % noise"
        return f"with {self.field} in the log, at {noise}: {_told(self.known)}"


@dataclasses.dataclass(frozen=True)
class Longer:
    """The same experiment several times, and what would be known then."""

    times: int
    known: Known

    def __str__(self) -> str:
        return f"with {self.times} such logs: {_told(self.known)}"


@dataclasses.dataclass(frozen=True)
class OtherInput:
    """An input between the same limits, as long as the log, and what it would tell better."""

    shape: str
    known: Known

    def __str__(self) -> str:
        return f"with {self.shape} as input, between the same limits: {_told(self.known)}"


def _told(known: Known) -> str:
    return ", ".join(f"{name} ± {100 * half:.2g} %" for name, half in known)


def advice(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    jacobian: np.ndarray,
    rank: Rank,
    turn: np.ndarray,
) -> Advice | None:
    """The sensor that makes the most parameters known; None if none does."""
    open_ = _open(model, rank)
    extended = _with_others(model)
    if not open_ or extended is None:
        return None
    readings, slopes = extended.programs.linearised(z, extended.data)
    spreads = dict.fromkeys(model.fields, 0.0)
    for e in model.whole.experiments:
        for s in e.sensors:
            spreads[s.field] = max(spreads[s.field], float(np.std(s.measured)))
    part = float(np.median([noise[field] / spreads[field] for field in model.fields]))
    best: Advice | None = None
    for field in extended.fields:
        spread = float(np.std(readings[field]))
        if not spread > 0 or not np.isfinite(slopes[field]).all():
            continue
        then = _rank_with(
            jacobian,
            np.asarray(slopes[field]) @ turn / (part * spread),
            np.gradient(np.asarray(readings[field])) / (part * spread),
            rank,
        )
        kinds, halves = then.kinds(), then.half_widths
        known = [j for j in open_ if kinds[j] == "known"]
        told = tuple((model.coordinates[j].name, float(halves[j])) for j in known)
        if known and (best is None or _is_better(told, best.known)):
            best = Advice(field, part, told)
    return best


def _open(model: Model, rank: Rank) -> list[int]:
    """Parameters that are not known one by one."""
    kinds = rank.kinds()
    return [
        j
        for j, c in enumerate(model.coordinates)
        if kinds[j] in ("combination", "unknown") and c.kind == "parameter"
    ]


def longer(model: Model, rank: Rank) -> Longer | None:
    """How many logs like these make more known: half-widths fall with the root of their number."""
    halves = rank.half_widths
    need = {j: (halves[j] / rank.widest[j]) ** 2 for j in _open(model, rank)}
    near = {j: times for j, times in need.items() if times <= _MOST_LOGS}
    if not near:
        return None
    times = int(np.ceil(max(near.values())))
    known = ((model.coordinates[j].name, float(halves[j] / np.sqrt(times))) for j in near)
    return Longer(times, tuple(known))


def other_input(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    priors: np.ndarray,
    rank: Rank,
    turn: np.ndarray,
) -> OtherInput | None:
    """The one of a few inputs that makes more known, or the worst known twice as well."""
    open_, halves = _open(model, rank), rank.half_widths
    parameters = [j for j, c in enumerate(model.coordinates) if c.kind == "parameter"]
    told = [j for j in parameters if rank.kinds()[j] == "known"]
    best: OtherInput | None = None
    for name, shape in _SHAPES.items():
        inputs = model.inputs([_driven(model, e, shape) for e in model.experiments])
        data = {**model.data, "inputs": inputs}
        _, slopes = model.programs.linearised(z, data)
        J = np.concatenate([np.asarray(slopes[f]) @ turn / noise[f] for f in model.fields])
        J = np.concatenate([J, priors])
        if not np.isfinite(J).all():
            continue
        then = rank_of(J, rank.widest, rank.at_bound, rank.quantile)
        kinds, widths = then.kinds(), then.half_widths
        gained = [j for j in open_ if kinds[j] == "known"]
        lost = [j for j in told if kinds[j] != "known"]
        if not open_ and told:
            worst = max(told, key=lambda j: halves[j])
            gained = [worst] if widths[worst] < 0.5 * halves[worst] else []
        known = tuple((model.coordinates[j].name, float(widths[j])) for j in gained)
        if known and not lost and (best is None or _is_better(known, best.known)):
            best = OtherInput(name.format(**_band(model.experiments[0])), known)
    return best


def _band(experiment: Experiment) -> dict[str, str]:
    """The lowest and the highest frequency of a chirp: a period a log, ten rows a period."""
    lowest = 1.0 / (experiment.intervals * experiment.period_s)
    return {"low": f"{lowest:.2g}", "high": f"{0.1 / experiment.period_s:.2g}"}


def _square(part: np.ndarray, number: int) -> np.ndarray:
    return np.where((part * 2**number) % 1.0 < 0.5, 1.0, -1.0)


def _chirp(part: np.ndarray, number: int) -> np.ndarray:
    cycles = 0.1 * len(part)
    return np.sin(2 * np.pi * (part + 0.5 * (cycles - 1.0) * part**2) + 0.5 * np.pi * number)


def _random(part: np.ndarray, number: int) -> np.ndarray:
    signs = np.random.default_rng(number).choice([-1.0, 1.0], len(part) // 10 + 1)
    return np.repeat(signs, 10)[: len(part)]


_SHAPES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "one step each way": _square,
    "a chirp from {low} to {high} Hz": _chirp,
    "random steps of 10 rows": _random,
}


def _driven(
    model: Model, experiment: Experiment, shape: Callable[[np.ndarray, int], np.ndarray]
) -> dict[str, dict[str, np.ndarray]]:
    """Inputs of every step: of that shape between the limits of the log; constants stay."""
    part = np.arange(experiment.intervals) / experiment.intervals
    found: dict[str, dict[str, np.ndarray]] = {}
    number = 0
    for (node, field), rows in experiment.driven.items():
        values = np.empty((experiment.intervals, *rows.shape[1:]))
        for index in np.ndindex(rows.shape[1:]):
            at: Any = (slice(None), *index)
            one = rows[at]
            middle, size = 0.5 * (one.max() + one.min()), 0.5 * np.ptp(one)
            values[at] = middle + size * shape(part, number)
            number += int(size > 0)
        found.setdefault(node, {})[field] = np.repeat(values, model.fineness, axis=0)
    return found


def _is_better(new: Known, old: Known) -> bool:
    """More is known, or as much twice as well; else the first stays, and states come first."""
    return len(new) > len(old) or (
        len(new) == len(old) and sum(half for _, half in new) < 0.5 * sum(half for _, half in old)
    )


def _rank_with(jacobian: np.ndarray, more: np.ndarray, by_delay: np.ndarray, rank: Rank) -> Rank:
    """The rank with the rows of a sensor more, whose delay is unknown too: one more column."""
    late = np.concatenate([np.zeros(len(jacobian)), by_delay])
    both = np.column_stack([np.concatenate([jacobian, more]), late])
    return rank_of(
        both, np.append(rank.widest, WIDEST), np.append(rank.at_bound, False), rank.quantile
    )


def _with_others(model: Model) -> Model | None:
    """The first experiment with every sensor that the nodes of the unknowns could have besides."""
    first = model.experiments[0]
    positions = first.sensors[0].positions
    zeros, rows = np.zeros(len(positions)), first.sensors[0].lines
    sensors = tuple(
        Sensor(
            field, place(model.simulation, field, Channel(field, delay=0)), positions, zeros, rows
        )
        for field in _others(model, first)
    )
    if not sensors:
        return None
    windows = None if model.windows is None else model.windows.only([0])
    alone = dataclasses.replace(first, sensors=sensors)
    if windows is not None:
        windows = dataclasses.replace(windows, logs=(alone,))
    return dataclasses.replace(model, experiments=(alone,), windows=windows)


def _others(model: Model, experiment: Experiment) -> Iterator[str]:
    """Single numbers of the nodes with unknowns, states first, that are not measured yet."""
    nodes = dict.fromkeys(c.key[0].partition(".")[0] for c in model.coordinates if c.kind in KINDS)
    measured = {sensor.field for sensor in experiment.sensors}
    for name in nodes:
        node = model.simulation.nodes[name]
        specs = field_specs(node)
        inputs = node.boundary_input_spec()
        for field in dict.fromkeys([*node.state_fields(), *node.boundary_flux_spec()]):
            spec = specs[field]
            is_measurable = spec.shape == () and spec.unit in _MEASURABLE and field not in inputs
            if is_measurable and f"{name}.{field}" not in measured:
                yield f"{name}.{field}"
