"""What the sensors would read, as a pure function of the unknowns; residuals and exact Jacobians.

    reading(t_k) = gain y(t_k - delay) + offset        residual = reading - measured

The simulation runs on a grid of steps that divides the log's period. Within an interval between two
rows inputs are constant and y is smooth: the polynomial through its samples there gives y at any
time, and its derivative by the delay. Across rows, where inputs jump, no polynomial goes.
"""

import dataclasses
import math
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.parameters import assembled
from mime.fitting.rates import SAMPLES
from mime.fitting.rates import first_fineness as first_fineness
from mime.fitting.rates import with_timestep as with_timestep
from mime.fitting.unknown import Coordinate
from mime.running.simulation import Simulation

Data = dict[str, Any]
"""Inputs, rows and measurements of all experiments: what two logs of one kind differ in."""
Normal = dict[str, tuple[np.ndarray, ...]]
"""r·r, Jᵀr and JᵀJ by field: all that a step of Levenberg and Marquardt needs."""
_KEPT = 16
"""Compiled programs that are kept for the next fit of the same model to logs of the same shape."""


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """The readings of all experiments as a function of the coordinates z."""

    simulation: Simulation
    """In double precision, with its own timestep."""
    experiments: tuple[Experiment, ...]
    coordinates: tuple[Coordinate, ...]
    fineness: int
    """Steps of an interval, a multiple of `SAMPLES`."""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """What is measured, each once, in order of first mention."""
        return tuple(dict.fromkeys(s.field for e in self.experiments for s in e.sensors))

    @cached_property
    def data(self) -> Data:
        """What the logs say."""
        inputs = [e.inputs(self.fineness) for e in self.experiments]
        positions = [[s.positions for s in e.sensors] for e in self.experiments]
        measured = [[s.measured for s in e.sensors] for e in self.experiments]
        found = {"inputs": inputs, "positions": positions, "measured": measured}
        found["settings"] = [np.array([*e.settings.values()], float) for e in self.experiments]
        return jax.device_put({**found, "counted": self.counted(1.0)})

    def counted(self, part: float) -> dict[str, np.ndarray]:
        """Which rows of each field, all experiments in a row, are in the first part of a log."""
        found: dict[str, list[np.ndarray]] = {field: [] for field in self.fields}
        for e in self.experiments:
            for s in e.sensors:
                found[s.field].append(s.positions <= part * e.positions[-1])
        return {field: np.concatenate(used) for field, used in found.items()}

    def normal(self, z: np.ndarray, counted: Mapping[str, np.ndarray]) -> Normal:
        """r·r, Jᵀr and JᵀJ by field of these rows, for every row of z."""
        data = {**self.data, "counted": counted}
        if len(z) > 1:
            sums = self.programs.normal(z, data)
        else:  # by the program that the best start needs in any case
            residual, jacobian = self.programs.linearised(z[0], self.data)
            sums = jax.tree.map(lambda x: x[None], _normal_sums(residual, jacobian, data))
        return {field: tuple(map(np.asarray, found)) for field, found in sums.items()}

    def readings(self, z: Any, data: Data) -> list[list[Array]]:
        """What every sensor of every experiment would read in its rows."""
        values = [c.value(z[i]) for i, c in enumerate(self.coordinates)]
        pairs = list(zip(self.coordinates, values, strict=True))
        parameters = assembled(self.simulation, self.coordinates, values)
        sensing = {(c.kind, c.key[0]): v for c, v in pairs if c.kind in SENSING}
        found = []
        for number, experiment in enumerate(self.experiments):
            steps = self.fineness
            simulation = with_timestep(self.simulation, experiment.period_s / steps)
            settings = dict(zip(experiment.settings, data["settings"][number], strict=True))
            simulation = simulation.with_parameters({**parameters, **settings})
            own = {c.key[1:]: v for c, v in pairs if c.kind == "initial" and c.key[0] == number}
            every = steps // SAMPLES if experiment.is_uniform else 1
            _, recorded = simulation.rollout(
                simulation.init_state(initial_state(simulation, experiment, own)),
                data["inputs"][number],
                steps=experiment.intervals * steps,
                record=_record(experiment),
                every=every,
            )
            rows = zip(experiment.sensors, data["positions"][number], strict=True)
            found.append(
                [
                    _reading(experiment, sensor, positions, recorded, sensing, steps // every)
                    for sensor, positions in rows
                ]
            )
        return found

    def residuals(self, z: Any, data: Data) -> dict[str, Array]:
        """Readings less what was measured, by field, all experiments in a row."""
        parts: dict[str, list[Array]] = {field: [] for field in self.fields}
        readings = self.readings(z, data)
        for experiment, made, known in zip(
            self.experiments, readings, data["measured"], strict=True
        ):
            for sensor, reading, values in zip(experiment.sensors, made, known, strict=True):
                parts[sensor.field].append(reading - values)
        return {field: jnp.concatenate(found) for field, found in parts.items()}

    @cached_property
    def programs(self) -> "Programs":
        """The compiled functions; those of an earlier model that differs in its data only."""
        key = self._key()
        if key not in _programs:
            _programs[key] = Programs(self)
            while len(_programs) > _KEPT:
                _programs.pop(next(iter(_programs)))
        return _programs[key]

    def _key(self) -> Hashable:
        """All that the programs are made of."""
        leaves, structure = jax.tree.flatten(self.simulation)
        shape = [
            (
                (e.period_s, e.intervals, e.is_uniform, e.starts, *e.settings, *e.driven),
                tuple((s.place, len(s.positions)) for s in e.sensors),
            )
            for e in self.experiments
        ]
        numbers = tuple((type(x), np.asarray(x).tobytes()) for x in leaves)
        unknowns = tuple((c.kind, c.is_log, c.scale, c.key) for c in self.coordinates)
        return structure, numbers, tuple(shape), unknowns, self.fineness

    def finer(self, times: int = 2) -> "Model":
        """The same with steps half as long, or so many times shorter."""
        return dataclasses.replace(self, fineness=times * self.fineness)

    def split(self, by_field: Mapping[str, Any]) -> list[list[np.ndarray]]:
        """Values of all rows by field as values by experiment and sensor."""
        used = dict.fromkeys(self.fields, 0)
        found: list[list[np.ndarray]] = []
        for experiment in self.experiments:
            found.append([])
            for sensor in experiment.sensors:
                first = used[sensor.field]
                used[sensor.field] = first + len(sensor.positions)
                values = np.asarray(by_field[sensor.field])
                found[-1].append(values[first : used[sensor.field]])
        return found


class Programs:
    """The functions of a model that are compiled, each when it is first called."""

    def __init__(self, model: Model):
        def linearised(z: Array, data: Data) -> tuple[Any, Any]:
            def twice(z: Array) -> tuple[Any, Any]:
                residual = model.residuals(z, data)
                return residual, residual

            jacobian, residual = jax.jacfwd(twice, has_aux=True)(z)
            return residual, jacobian

        def of_z(z: Array, data: Data) -> Any:
            residual, jacobian = linearised(z, data)
            return normal_sums(residual, jacobian, data)

        def of_member(z: Array, measured: Any, data: Data) -> Any:
            return of_z(z, {**data, "measured": measured})

        self.residuals = jax.jit(model.residuals)
        """Residuals by field."""
        self.linearised = jax.jit(linearised)
        """Residuals and their Jacobian, by field."""
        self.normal = jax.jit(jax.vmap(of_z, in_axes=(0, None)))
        """`Normal` for many z at once."""
        self.normal_of_many = jax.jit(jax.vmap(of_member, in_axes=(0, 0, None)))
        """The same, each z with measurements of its own."""


_programs: dict[Hashable, Programs] = {}


def normal_sums(residual: Any, jacobian: Any, data: Data) -> Any:
    """r·r, Jᵀr and JᵀJ by field, of the rows that are counted; the others may be anything."""
    found = {}
    for field, used in data["counted"].items():
        r = jnp.where(used, residual[field], 0.0)
        J = jnp.where(used[:, None], jacobian[field], 0.0)
        found[field] = r @ r, J.T @ r, J.T @ J
    return found


_normal_sums = jax.jit(normal_sums)


def _record(experiment: Experiment) -> dict[str, list[str]]:
    record: dict[str, list[str]] = {}
    for sensor in experiment.sensors:
        names = record.setdefault(sensor.place.node, [])
        names += [sensor.place.name] if sensor.place.name not in names else []
    return record


SENSING = ("delay", "offset", "gain")


def initial_state(simulation: Simulation, experiment: Experiment, unknown: Any) -> Any:
    """`{node: {field: value}}` of the state at the first row."""
    initial: dict[str, dict[str, Any]] = {}
    for start in experiment.starts:
        key = start.node, start.field, start.index
        fields = initial.setdefault(start.node, {})
        if start.field not in fields:
            fields[start.field] = simulation.nodes[start.node].initial_state()[start.field]
        value = unknown.get(key, start.value)
        fields[start.field] = (
            jnp.asarray(fields[start.field]).at[start.index].set(value) if start.index else value
        )
    return {
        node: {field: jnp.asarray(value, float) for field, value in fields.items()}
        for node, fields in initial.items()
    }


def _reading(
    experiment: Experiment,
    sensor: Sensor,
    positions: Array,
    recorded: Any,
    sensing: Any,
    samples: int,
) -> Array:
    y = sensor.place.of(recorded[sensor.place.node][sensor.place.name])
    delay = sensing.get(("delay", sensor.field), 0.0) / experiment.period_s
    degree = SAMPLES if experiment.is_uniform else 1
    y = _between(y, positions - delay, samples, degree)
    gain = sensing.get(("gain", sensor.field), 1.0)
    return gain * y + sensing.get(("offset", sensor.field), 0.0)


def _between(y: Array, position: Array, samples: int, degree: int) -> Array:
    """y at positions (in intervals); y[n] is its sample at (n + 1) / samples.

    The polynomial of `degree` through a piece's samples, by Lagrange; a piece has `degree` samples.
    """
    x = position * samples / degree  # in pieces
    last = len(y) // degree - 1
    piece = jnp.clip(jnp.floor(jax.lax.stop_gradient(x)), 1, last).astype(int)
    u = (x - piece) * degree
    nodes = range(degree + 1)
    value = jnp.zeros_like(x)
    for i in nodes:
        weight = math.prod((u - k) / (i - k) for k in nodes if k != i)
        value = value + weight * y[piece * degree - 1 + i]
    return value


def in_double(simulation: Simulation) -> Simulation:
    """The same graph with all its numbers in double precision."""

    def widened(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array | np.ndarray) and leaf.dtype == np.float32:
            return leaf.astype(np.float64)
        return leaf

    return jax.tree.map(widened, simulation)
