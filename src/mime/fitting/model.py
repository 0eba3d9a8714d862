"""What the sensors would read, as a pure function of the unknowns; residuals and exact Jacobians.

    reading(t_k) = gain y(t_k - delay) + offset        residual = reading - measured

The simulation runs on a grid of steps that divides the log's period. Within an interval between two
rows inputs are constant and y is smooth: the polynomial through its samples there gives y at any
time, and its derivative by the delay. Across rows, where inputs jump, no polynomial goes.

Experiments of one kind are simulated side by side, as elements of a batch (`groups.py`).
"""

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mime.fitting.experiment import Experiment, Sensor
from mime.fitting.groups import Group, groups_of, rows_of, stacked
from mime.fitting.parameters import assembled
from mime.fitting.rates import SAMPLES, kept_every
from mime.fitting.rates import first_fineness as first_fineness
from mime.fitting.rates import with_timestep as with_timestep
from mime.fitting.sampled import sampled_nodes
from mime.fitting.unknown import Coordinate
from mime.fitting.windows import Slot as Slot
from mime.fitting.windows import Windows
from mime.running.simulation import Simulation

Data = dict[str, Any]
"""Inputs, rows and measurements of all experiments: what two logs of one kind differ in."""
Normal = dict[str, tuple[np.ndarray, ...]]
"""r·r, Jᵀr and JᵀJ by field: all that a step of Levenberg and Marquardt needs."""
_WIDE = 8
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
    windows: Windows | None = None
    """Where experiments are windows of logs: what is known of the states that they start from."""
    extrapolates: bool = False
    """Readings are 2 y(h) - y(2 h): without the error of first order of a step h."""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """What is measured, each once, in order of first mention."""
        logs = () if self.windows is None else self.windows.logs  # a window may lack a sensor
        return tuple(dict.fromkeys(s.field for e in (*logs, *self.experiments) for s in e.sensors))

    @property
    def count(self) -> int:
        """Of all rows of all sensors."""
        return sum(len(s.measured) for e in self.experiments for s in e.sensors)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Experiments that are simulated side by side."""
        return groups_of(self.experiments)

    @property
    def is_wide(self) -> bool:
        """Experiments side by side fill the vectors of a processor, so that starts need not."""
        return min(len(g.members) for g in self.groups) >= _WIDE

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Numbers of the state that some experiment starts with, each once."""
        if self.windows is not None:
            return self.windows.slots
        starts = [(s.node, s.field, s.index) for e in self.experiments for s in e.starts]
        return tuple(dict.fromkeys(starts))

    @cached_property
    def data(self) -> Data:
        """What the logs say."""
        found: Data = {"inputs": self.inputs([e.inputs(self.fineness) for e in self.experiments])}
        found["starts"] = self._starts()
        if self.windows is not None:
            first = np.array(self.windows.first) * self.fineness
            found["carried"] = {**self.windows.carried, "step": np.round(first).astype(np.int32)}
            found["free"] = self.windows.is_free.astype(float)
        found["positions"] = [rows_of(self.experiments, g) for g in self.groups]
        found["settings"] = [
            np.array([[*self.experiments[i].settings.values()] for i in g.members], float)
            for g in self.groups
        ]
        found["rows"] = self._rows()
        measured: dict[str, list[np.ndarray]] = {field: [] for field in self.fields}
        for e in self.experiments:
            for s in e.sensors:
                measured[s.field].append(s.measured)
        found["measured"] = {field: np.concatenate(parts) for field, parts in measured.items()}
        return jax.device_put({**found, "counted": self.counted(1.0)})

    def inputs(self, of_each: Sequence[Any]) -> list[Any]:
        """Inputs of every step of every experiment, group by group; shorter ones hold the last."""
        steps = self.fineness
        return [stacked([of_each[i] for i in g.members], g.intervals * steps) for g in self.groups]

    def _starts(self) -> np.ndarray:
        """The state at the first row of every experiment, (experiments, slots)."""
        if self.windows is not None:
            return self.windows.starts
        own = {name: self.simulation.nodes[name].initial_state() for name, _, _ in self.slots}
        default = [float(np.asarray(own[node][field])[i]) for node, field, i in self.slots]
        found = np.tile(np.array(default, float), (len(self.experiments), 1))
        for e, row in zip(self.experiments, found, strict=True):
            for s in e.starts:
                if isinstance(s.value, float):
                    row[self.slots.index((s.node, s.field, s.index))] = s.value
        return found

    def _rows(self) -> dict[str, np.ndarray]:
        """Where each row of a field is among the readings of all groups, one after the other."""
        places: dict[str, dict[tuple[int, int], np.ndarray]] = {f: {} for f in self.fields}
        used = dict.fromkeys(self.fields, 0)
        for g in self.groups:
            sensors = [self.experiments[i].sensors for i in g.members]
            for j, same in enumerate(zip(*sensors, strict=True)):
                most = max(len(s.positions) for s in same)
                for i, s in zip(g.members, same, strict=True):
                    places[s.field][i, j] = used[s.field] + np.arange(len(s.positions))
                    used[s.field] += most
        return {
            field: np.concatenate([at[key] for key in sorted(at)]) for field, at in places.items()
        }

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
        if len(z) > 1 and not self.is_wide:
            sums = self.programs.normal(z, data)
        else:  # by the program that the best start needs in any case
            each = [_normal_sums(*self.linearised(row), data) for row in z]
            sums = jax.tree.map(lambda *x: np.stack(x), *each)
        return {field: tuple(map(np.asarray, found)) for field, found in sums.items()}

    def linearised(self, z: np.ndarray) -> tuple[Any, Any]:
        """Residuals and their Jacobian by z, by field; initial states as they are now."""
        if self.windows is None:
            return self.programs.linearised(z, self.data)
        residual, jacobian = self.programs.by_states(z, self.windows.starts, self.data)
        return residual, {field: J[:, : len(z)] for field, J in jacobian.items()}

    def readings(self, z: Any, data: Data) -> dict[str, Array]:
        """What the sensors would read in their rows, by field, all experiments in a row."""
        if not self.extrapolates:
            return self._readings(z, data)
        coarse = dataclasses.replace(self, fineness=self.fineness // 2, extrapolates=False)
        other = {**data, "inputs": jax.tree.map(lambda x: x[:, ::2], data["inputs"])}
        if "carried" in data:
            other["carried"] = {**data["carried"], "step": data["carried"]["step"] // 2}
        double = coarse.readings(z, other)
        return {f: 2.0 * y - double[f] for f, y in self._readings(z, data).items()}

    def _readings(self, z: Any, data: Data) -> dict[str, Array]:
        """Those of one run of each experiment."""
        values = [c.value(z[i]) for i, c in enumerate(self.coordinates)]
        pairs = list(zip(self.coordinates, values, strict=True))
        parameters = assembled(self.simulation, self.coordinates, values)
        sensing = {(c.kind, c.key[0]): v for c, v in pairs if c.kind in SENSING}
        starts = self.with_unknown_starts(data["starts"], values)
        found: dict[str, list[Array]] = {field: [] for field in self.fields}
        for g, *of_group in zip(
            self.groups, data["inputs"], data["positions"], data["settings"], strict=True
        ):
            first = self.experiments[g.members[0]]

            def read(
                start: Any, carried: Any, inputs: Any, positions: Any, own: Any,
                first: Any = first, g: Group = g,
            ) -> list[Array]:  # fmt: skip
                return self._read(first, g.intervals, parameters, sensing, start, carried, inputs,
                                  positions, own)  # fmt: skip

            at = np.array(g.members)
            carried = jax.tree.map(lambda x, at=at: x[at], data.get("carried"))
            args = (starts[at], carried, *of_group)
            if len(g.members) == 1:
                made = read(*jax.tree.map(lambda x: x[0], args))
            else:
                made = jax.vmap(read)(*args)
            for sensor, reading in zip(first.sensors, made, strict=True):
                found[sensor.field].append(reading.reshape(-1))
        return {f: jnp.concatenate(parts)[data["rows"][f]] for f, parts in found.items()}

    def with_unknown_starts(self, starts: Any, values: Sequence[Any]) -> Any:
        """States at the first row, (experiments, slots), those set that are unknown by name."""
        for c, value in zip(self.coordinates, values, strict=True):
            if c.kind == "initial":
                starts = starts.at[c.key[0], self.slots.index(c.key[1:])].set(value)
        return starts

    def _read(
        self,
        first: Experiment,
        intervals: int,
        parameters: Mapping[str, Any],
        sensing: Mapping[tuple[str, str], Any],
        start: Any,
        carried: Any,
        inputs: Any,
        positions: Sequence[Any],
        settings: Any,
    ) -> list[Array]:
        """The readings of one experiment of a group, whose first one has all that they share."""
        steps = self.fineness
        simulation = with_timestep(self.simulation, first.period_s / steps)
        of_log = dict(zip(first.settings, settings, strict=True))
        simulation = simulation.with_parameters({**parameters, **of_log})
        every = kept_every(steps) if first.is_uniform else 1
        _, recorded = simulation.rollout(
            first_state(simulation, self.slots, start, carried),
            inputs,
            steps=intervals * steps,
            record=record_of(first),
            every=every,
        )
        return [
            _reading(first, sensor, at, recorded, sensing, steps // every)
            for sensor, at in zip(first.sensors, positions, strict=True)
        ]

    def residuals(self, z: Any, data: Data) -> dict[str, Array]:
        """Readings less what was measured, by field, all experiments in a row."""
        readings = self.readings(z, data)
        return {field: readings[field] - data["measured"][field] for field in self.fields}

    @cached_property
    def reduced(self) -> dict[Any, Any]:
        """The last minima over the initial states of windows (`states.py`)."""
        return {}

    @cached_property
    def programs(self) -> "Programs":
        """The compiled functions; those of an earlier model that differs in its data only."""
        key = self.key
        if key not in _programs:
            _programs[key] = Programs(self)
            while len(_programs) > _KEPT:
                _programs.pop(next(iter(_programs)))
        return _programs[key]

    @property
    def key(self) -> Hashable:
        """All that the programs are made of."""
        leaves, structure = jax.tree.flatten(self.simulation)
        shape = [
            (
                (e.period_s, e.is_uniform, *e.settings, *e.driven),
                tuple((s.place, len(s.positions)) for s in e.sensors),
            )
            for e in self.experiments
        ]
        numbers = tuple((type(x), np.asarray(x).tobytes()) for x in leaves)
        unknowns = tuple((c.kind, c.is_log, c.scale, c.key) for c in self.coordinates)
        how = self.groups, self.slots, unknowns, self.fineness, self.windows is None
        return structure, numbers, tuple(shape), *how, self.extrapolates

    @property
    def whole(self) -> "Model":
        """Its logs, with the same rows in the same order: to split residuals by, not to simulate.

        Of windows the logs that they are of.
        """
        if self.windows is None:
            return self
        return dataclasses.replace(self, experiments=self.windows.logs, windows=None)

    def finer(self, times: int = 2) -> "Model":
        """The same with steps half as long, or so many times shorter."""
        return dataclasses.replace(self, fineness=times * self.fineness)

    def extrapolated(self) -> "Model":
        """The same without the error of first order of its steps."""
        return dataclasses.replace(self, extrapolates=True)

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

        def by_states(z: Array, starts: Array, data: Data) -> tuple[Any, Any]:
            def residuals(both: Array) -> tuple[Any, Any]:
                own = starts + both[len(z) :][None, :] * data["free"]
                found = model.residuals(both[: len(z)], {**data, "starts": own})
                return found, found

            at = jnp.concatenate([z, jnp.zeros(starts.shape[1])])
            jacobian, residual = jax.jacfwd(residuals, has_aux=True)(at)
            return residual, jacobian

        self.by_states = jax.jit(by_states)
        """Residuals from these starts; their Jacobian by z, and each row's by its own start."""
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


def record_of(experiment: Experiment) -> dict[str, list[str]]:
    """The fields that its sensors see, by node."""
    record: dict[str, list[str]] = {}
    for sensor in experiment.sensors:
        names = record.setdefault(sensor.place.node, [])
        names += [sensor.place.name] if sensor.place.name not in names else []
    return record


SENSING = ("delay", "offset", "gain")


def initial_state(simulation: Simulation, slots: Sequence[Slot], values: Any) -> Any:
    """`{node: {field: value}}` of the state at the first row."""
    initial: dict[str, dict[str, Any]] = {}
    for (node, field, index), value in zip(slots, values, strict=True):
        fields = initial.setdefault(node, {})
        if field not in fields:
            fields[field] = jnp.asarray(simulation.nodes[node].initial_state()[field], float)
        fields[field] = fields[field].at[index].set(value) if index else value
    return initial


def first_state(simulation: Simulation, slots: Sequence[Slot], start: Any, carried: Any) -> Any:
    """The state before the first step; `carried` is that of a run that was there before.

    Fluxes of physics are those of the state; what sampled nodes hold is carried, as is their phase.
    """
    initial = initial_state(simulation, slots, start)
    if carried is None:
        return simulation.init_state(initial)
    whole: dict[str, dict[str, Any]] = {}
    for node, fields in carried["nodes"].items():
        own = {f: x for f, x in fields.items() if jnp.issubdtype(x.dtype, jnp.floating)}
        for own_node, field, index in slots:
            if own_node == node:
                own[field] = (
                    jnp.asarray(own[field]).at[index].set(jnp.asarray(initial[node][field])[index])
                )
        whole[node] = own
    state = simulation.init_state(whole)
    nodes = {
        name: {field: whole[name].get(field, carried["nodes"][name][field]) for field in fields}
        for name, fields in state.nodes.items()
    }
    kept = sampled_nodes(simulation)
    # A node that fired in every step of that run fires in the first one here, and needs none.
    held = {n: carried["held"].get(n, own) if n in kept else own for n, own in state.held.items()}
    return dataclasses.replace(state, step=carried["step"], nodes=nodes, held=held)


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
