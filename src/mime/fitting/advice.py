"""What one more sensor would tell: the information of the same experiment with it in the log.

F = JᵀJ over the noise, and F + J_sᵀ J_s / sigma_s² with sensor s
"""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from mime.core.recorder import field_specs
from mime.fitting.channel import Channel, place
from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.model import Model
from mime.fitting.parameters import KINDS
from mime.fitting.rank import Rank, rank_of

Known = tuple[tuple[str, float], ...]
"""Names of parameters, each with half of its 95 % interval, in logarithms."""
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
        names = ", ".join(f"{name} ± {100 * half:.2g} %" for name, half in self.known)
        return f"with {self.field} in the log, at {100 * self.noise:.2g} % noise: {names}"


def advice(
    model: Model,
    z: np.ndarray,
    noise: Mapping[str, float],
    jacobian: np.ndarray,
    rank: Rank,
    turn: np.ndarray,
) -> Advice | None:
    """The sensor that makes the most parameters known; None if none does."""
    open_ = [
        j
        for j, kind in enumerate(rank.kinds())
        if kind in ("combination", "unknown") and model.coordinates[j].kind == "parameter"
    ]
    extended = _with_others(model)
    if not open_ or extended is None:
        return None
    readings, slopes = extended.programs.linearised(z, extended.data)
    spreads = {s.field: np.std(s.measured) for e in model.experiments for s in e.sensors}
    part = float(np.median([noise[field] / spreads[field] for field in model.fields]))
    is_log = np.array([c.is_log and c.kind != "body" for c in model.coordinates])
    best: Advice | None = None
    for field in extended.fields:
        spread = float(np.std(readings[field]))
        if not spread > 0 or not np.isfinite(slopes[field]).all():
            continue
        then = _rank_with(
            jacobian,
            np.asarray(slopes[field]) @ turn / (part * spread),
            np.gradient(np.asarray(readings[field])) / (part * spread),
            is_log,
            rank,
        )
        kinds, halves = then.kinds(), then.half_widths
        known = [j for j in open_ if kinds[j] == "known"]
        told = tuple((model.coordinates[j].name, float(halves[j])) for j in known)
        if known and (best is None or _is_better(told, best.known)):
            best = Advice(field, part, told)
    return best


def _is_better(new: Known, old: Known) -> bool:
    """More is known, or as much twice as well; else the first stays, and states come first."""
    return len(new) > len(old) or (
        len(new) == len(old) and sum(half for _, half in new) < 0.5 * sum(half for _, half in old)
    )


def _rank_with(
    jacobian: np.ndarray, more: np.ndarray, by_delay: np.ndarray, is_log: np.ndarray, rank: Rank
) -> Rank:
    """The rank with the rows of a sensor more, whose delay is unknown too: one more column."""
    late = np.concatenate([np.zeros(len(jacobian)), by_delay])
    both = np.column_stack([np.concatenate([jacobian, more]), late])
    return rank_of(both, np.append(is_log, False), np.append(rank.at_bound, False), rank.quantile)


def _with_others(model: Model) -> Model | None:
    """The first experiment with every sensor that the nodes of the unknowns could have besides."""
    first = model.experiments[0]
    positions = first.sensors[0].positions
    zeros = np.zeros(len(positions))
    sensors = tuple(
        Sensor(field, place(model.simulation, field, Channel(field, delay=0)), positions, zeros)
        for field in _others(model, first)
    )
    if not sensors:
        return None
    return dataclasses.replace(model, experiments=(dataclasses.replace(first, sensors=sensors),))


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
