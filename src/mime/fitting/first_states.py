"""Initial states of windows beforehand: what the log tells of them, and how well.

    measured states       the row of the log, its width the noise of the sensor
    rates of those        the slope of a local parabola, with its standard error
    all others            what the simulation has there (`carried.py`), the width their spread in it

States without a unit, and times, are as the simulation has them: counts, phases, random numbers.
So is what sampled nodes hold.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.node import traced_fluxes
from mime.fitting.channel import Place
from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.explanation import resolution
from mime.fitting.windows import Slot
from mime.running.simulation import Simulation

_RATES = {"rad": "rad/s", "m": "m/s"}
_FIXED = ("", "s")
"""Units of states that may not be anything: phases, counts, random keys, quaternions and times."""
_NEIGHBOURS = (3, 6, 12, 25)
"""Rows on either side that a local polynomial may take."""
_FEWEST = 5
_LEAST = 1e-3
"""The least width of a prior, over the spread of the signal."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """A number of the state that a sensor reads, or the rate of one."""

    slot: Slot
    sensor: Sensor
    slope: float
    """reading = slope state + shift"""
    shift: float
    is_rate: bool
    noise: float
    """Of the sensor."""
    spread: float
    """Of its signal."""


def measured_slots(
    simulation: Simulation, e: Experiment, logs: Sequence[Experiment]
) -> dict[Slot, Measured]:
    """States that a log tells directly: those that sensors read, and rates of angles and places.

    logs   all of them: where a sensor does not move in one, its noise is that of the others
    """
    found: dict[Slot, Measured] = {}
    for s in e.sensors:
        if (read := _read(simulation, s.place)) is not None:
            noise, spread = _noise_and_spread([s])
            if not spread > 0:
                others = [o for log in logs for o in log.sensors if o.field == s.field]
                noise, spread = _noise_and_spread(others)
            one = Measured(read[0], s, read[1], read[2], False, noise, spread)
            found.setdefault(read[0], one)
    for own in list(found.values()):
        node, field, index = own.slot
        if (rate := _rate_of(simulation, node, field)) is not None:
            slot = node, rate, index
            found.setdefault(slot, dataclasses.replace(own, slot=slot, shift=0.0, is_rate=True))
    return found


def _noise_and_spread(sensors: Sequence[Sensor]) -> tuple[float, float]:
    """The largest of these."""
    return max(map(noise_of, sensors)), max(float(np.std(s.measured)) for s in sensors)


def _read(simulation: Simulation, place: Place) -> tuple[Slot, float, float] | None:
    """The one state that a field reads, if it is linear in that and in nothing else."""
    node = simulation.nodes[place.node]
    if place.name in node.state_spec():
        return (place.node, place.name, place.index), 1.0, 0.0
    inputs = {name: spec.default_value(float) for name, spec in node.boundary_input_spec().items()}
    state = {name: jnp.asarray(value) for name, value in node.initial_state().items()}
    names = [name for name, value in state.items() if jnp.issubdtype(value.dtype, jnp.floating)]

    def flux(own: Any) -> Any:
        made = traced_fluxes(node, {**state, **own}, inputs, node.timestep)
        return jnp.asarray(made[place.name])[place.index]

    random = np.random.default_rng(0)
    own = {name: state[name] for name in names}
    other = {name: x + 0.1 * random.uniform(size=x.shape) for name, x in own.items()}
    here, there = (jax.jit(jax.jacfwd(flux))(x) for x in (own, other))
    felt = [(name, tuple(map(int, at))) for name in names for at in np.argwhere(here[name])]
    if len(felt) != 1 or not all(np.allclose(here[n], there[n]) for n in names):
        return None
    name, index = felt[0]
    slope = float(here[name][index])
    shift = float(flux(own)) - slope * float(own[name][index])
    return (place.node, name, index), slope, shift


def _rate_of(simulation: Simulation, node: str, field: str) -> str | None:
    """The field of the node that is the rate of this one; of several that most alike in name."""
    spec = simulation.nodes[node].state_spec()
    wanted = _RATES.get(spec[field].unit)
    rates = [n for n, s in spec.items() if s.unit == wanted and s.shape == spec[field].shape]
    if wanted is None or not rates:
        return None
    return max(rates, key=lambda name: _alike(field, name))


def _alike(one: str, other: str) -> int:
    """Letters that two names begin with together."""
    same = [a == b for a, b in zip(one, other, strict=False)]
    return same.index(False) if False in same else len(same)


def free_slots(simulation: Simulation) -> list[Slot]:
    """Numbers of the state that may be anything: angles, speeds, currents, integrals."""
    found: list[Slot] = []
    for name, node in simulation.nodes.items():
        spec = node.state_spec()
        for field in node.state_fields():
            entry = spec[field]
            if entry.unit not in _FIXED and len(entry.shape) <= 1 and "pose" not in field:
                found += [(name, field, index) for index in np.ndindex(entry.shape)]
    return found


def told_by_log(own: Measured, e: Experiment, position: float) -> tuple[float, float]:
    """A state and its standard deviation at a position of the log, from the rows near it."""
    s = own.sensor
    noise, spread = own.noise, own.spread
    value, slope, slope_std = _local(s.positions, s.measured, position, noise)
    channel = s.place.channel
    if own.is_rate:
        return slope / e.period_s / own.slope, slope_std / e.period_s / abs(own.slope)
    nearest = int(np.argmin(np.abs(s.positions - position)))
    if abs(s.positions[nearest] - position) < 0.5:
        value = float(s.measured[nearest] + slope * (position - s.positions[nearest]))
        width = max(noise, _LEAST * spread)
    else:  # before the first row, or where rows are missing
        width = max(abs(value - s.measured[nearest]), spread)
    width = float(np.hypot(width, channel.delay * slope))  # rows that the sensor may be late
    if channel.gain is True or channel.offset is True:
        width = max(width, spread)
    return (value - own.shift) / own.slope, width / abs(own.slope)


def noise_of(s: Sensor) -> float:
    """What was said; else from third differences, no less than rounding leaves."""
    if s.place.channel.noise is not None:
        return s.place.channel.noise * abs(s.place.factor)
    third = np.diff(s.measured, 3) / np.sqrt(20.0)
    robust = 1.4826 * float(np.median(np.abs(third))) if len(third) else 0.0
    step = resolution(s.measured) / np.sqrt(12.0)
    return max(robust, step, 1e-9 * float(np.std(s.measured)))


def _local(
    positions: np.ndarray, values: np.ndarray, at: float, noise: float
) -> tuple[float, float, float]:
    """Value and slope there by a parabola, and the standard deviation of the slope.

    Of several numbers of rows that with the least deviation: of noise, of what is cubic, and of
    what the fewest rows do not have.
    """
    near = int(np.searchsorted(positions, at))
    best, fewest = None, None
    for rows in _NEIGHBOURS:
        low, high = max(near - rows, 0), min(near + rows + 1, len(positions))
        if high - low < _FEWEST:
            low = max(min(low, len(positions) - _FEWEST), 0)
            high = min(low + _FEWEST, len(positions))
        x = positions[low:high] - at
        scale = float(np.max(np.abs(x))) or 1.0
        u = np.vander(x / scale, min(4, len(x)), increasing=True)
        cubic, *_ = np.linalg.lstsq(u, values[low:high], rcond=None)
        square = u[:, :3]
        parabola, *_ = np.linalg.lstsq(square, values[low:high], rcond=None)
        slope = float(parabola[1]) / scale
        error = noise * float(np.sqrt(np.linalg.pinv(square.T @ square)[1, 1])) / scale
        off = abs(float(cubic[1] - parabola[1])) / scale
        fewest = (slope, error) if fewest is None else fewest
        apart = max(abs(slope - fewest[0]) - 2.0 * fewest[1], 0.0)
        std = float(np.linalg.norm([error, off, apart]))
        if best is None or std < best[2]:
            best = float(parabola[0]), slope, std
    assert best is not None, "there are several numbers of rows to try"
    return best
