"""From columns of parameters to what is kept of each member, as `run_batch` makes them.

The time axis lives only here, in the memory of a few members: see `parts`.
"""

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from mime.core.problem import InputError
from mime.core.signals import Inputs
from mime.running.batch import DivergenceWarning, batch_of
from mime.running.checkpoint import fingerprint
from mime.running.identity import digest
from mime.running.precision import precision_of
from mime.running.recording import labels, sample_bytes, sample_times
from mime.running.simulation import Simulation
from mime.running.trajectory import Divergence, Trajectory
from mime.running.variants import Variants
from mime.scenarios.fields import split_field
from mime.scenarios.merits import Comparison, Merit
from mime.scenarios.waveforms import Waveform
from mime.studies import waves
from mime.studies.parts import Reduction, in_parts
from mime.studies.versions import versions

_CHUNK_BYTES = 2**27
"""Of recorded samples in memory. More members a chunk gain less than a tenth."""
_MOST_IN_CHUNK = 2**14

Road = Literal["parameter", "initial", "input", "waveform", "seed"]


class Lane(NamedTuple):
    """How a column reaches the members of a batch: as which argument of `run_batch`."""

    road: Road
    node: str
    field: str
    key: str = ""
    """Of a waveform."""


class Kept(NamedTuple):
    """What is kept of some members."""

    arrays: dict[str, np.ndarray]
    """By name, member axis first: a number for each figure, samples for each field."""
    diverged: dict[int, Divergence]


class Variable(NamedTuple):
    """One thing that is kept: a figure, or a field over time."""

    name: str
    shape: tuple[int, ...]
    """Of one member."""
    dtype: np.dtype
    unit: str
    description: str


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A graph, its inputs, how long it runs, and what is kept; all but what varies."""

    simulation: Simulation
    steps: int
    inputs: Inputs
    initial_state: Mapping[str, Mapping[str, Any]]
    every: int
    """Steps from one sample to the next, for figures."""
    merits: tuple[Merit, ...]
    fields: tuple[str, ...]
    """Fields that are kept over time."""
    keep_every: int
    """Steps from one kept sample to the next; a multiple of `every`."""
    lanes: Mapping[str, Lane]
    """What varies inside a batch, by name."""
    waveforms: Mapping[str, Waveform] = dataclasses.field(default_factory=dict)
    """By `node.field`, the tables of inputs over time whose keys vary inside a batch."""

    @property
    def record(self) -> list[str]:
        """The fields that figures and kept samples need, whole."""
        names = [merit.field for merit in self.merits]
        names += [m.reference for m in self.merits if isinstance(m, Comparison)]
        parts = [split_field(name)[:2] for name in (*names, *self.fields)]
        return list(dict.fromkeys(".".join(part) for part in parts))

    def chunk_members(self, most: int) -> int:
        """How many of `most` members make a chunk: those whose samples take 128 MB, and a whole
        number of vector registers.
        """
        simulation = self.simulation
        selection = simulation.select(self.record)
        size = sample_bytes(simulation.nodes, selection) * (self.steps // self.every)
        room = min(_CHUNK_BYTES // max(size, 1), _MOST_IN_CHUNK, 2 ** (most - 1).bit_length())
        return max(room // 64 * 64, min(max(room, 1), 64))

    def variables(self) -> list[Variable]:
        """What is kept of a member, in order."""
        simulation = self.simulation
        units, descriptions = labels(simulation.nodes, simulation.select(self.record))
        found = []
        for merit in self.merits:
            node, field, _ = split_field(merit.field)
            unit = merit.unit or merit.own_unit(units[node][field])
            found.append(
                Variable(merit.name, (), np.dtype(float), unit, f"{merit.kind} of {merit.field}")
            )
        for name, shape, kind in self._samples():
            node, field, _ = split_field(name)
            about = units[node][field], descriptions[node][field]
            found.append(Variable(name, (len(self.times), *shape), kind, *about))
        return found

    def _samples(self) -> Iterator[tuple[str, tuple[int, ...], np.dtype]]:
        """Name, shape and type of a sample of each kept field."""
        simulation = self.simulation
        with precision_of(simulation):
            state = simulation.init_state(self.initial_state)

            def first(state: Any) -> Any:
                return simulation.rollout(state, self.inputs, 1, record=list(self.fields))[1]

            shapes = jax.eval_shape(first, state) if self.fields else {}
        for name in self.fields:
            node, field, _ = split_field(name)
            one = shapes[node][field]
            yield name, one.shape[1:], np.dtype(one.dtype)

    @property
    def versions(self) -> dict[str, str]:
        """Of packages and processor, which decide the last bit of a result."""
        return versions(self.simulation.backend.native)

    @property
    def times(self) -> np.ndarray:
        """Seconds of the kept samples."""
        count = self.steps // self.keep_every
        return sample_times(0, self.keep_every, count, self.simulation.timestep)

    def run(self, columns: Mapping[str, np.ndarray], threads: int | None = None) -> Kept:
        """Run some members, a row of the columns each, and keep what is wanted of them."""
        simulation = self.simulation
        with warnings.catch_warnings(), precision_of(simulation):
            warnings.simplefilter("ignore", DivergenceWarning)  # members are named in the result
            job = batch_of(
                simulation,
                self.steps,
                self.every,
                simulation.select(self.record),
                batch_size=len(next(iter(columns.values()))) if columns else 1,
                threads=threads,
                **self.arguments(columns),
            )
            kept = Reduction(self.merits, self.fields, self.keep_every // self.every, job)
            diverged = in_parts(job, kept.take)
        for values in kept.arrays.values():
            values[list(diverged)] = np.nan
        return Kept(kept.arrays, diverged)

    def run_one(self, columns: Mapping[str, np.ndarray]) -> Trajectory:
        """One member, a row of the columns, with all that a run records by default."""
        simulation = self.simulation
        names = [f"{node}.{field}" for node, fields in simulation.select(None) for field in fields]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)
            batch = simulation.run_batch(
                steps=self.steps,
                record=list(dict.fromkeys([*names, *self.record])),
                every=self.every,
                batch_size=1,
                progress=False,
                **self.arguments(columns),
            )
        return first_of(batch)

    def check(self, columns: Mapping[str, np.ndarray]) -> None:
        """Refuse values that no member can have, before the first one runs."""
        for (node, field), names in self._varied_waveforms(columns).items():
            numbers = {key: columns[name] for key, name in names.items()}
            waves.check(self.waveforms[f"{node}.{field}"], node, field, numbers, self.simulation)
        given = self.arguments(columns)
        size = len(next(iter(columns.values()))) if columns else 1
        with precision_of(self.simulation):
            named = given["parameters"], given["initial_state"], given["inputs"]
            Variants(self.simulation, self.steps, *named, size)

    def arguments(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The columns as `run_batch` takes them; or numbers of one member, which may be traced."""
        parameters: dict[str, Any] = {}
        initial = {node: dict(fields) for node, fields in self.initial_state.items()}
        inputs = {node: dict(fields) for node, fields in self.inputs.items()}
        for name, column in columns.items():
            road, node, field, _ = self.lanes[name]
            if road == "parameter":
                parameters[f"{node}.{field}"] = column
            elif road == "seed":
                initial.setdefault(node, {})["key"] = _keys(name, column)
            elif road == "initial":
                initial.setdefault(node, {})[field] = column
            elif road == "input":
                size = self.simulation.nodes[node].boundary_input_spec()[field].shape
                inputs.setdefault(node, {})[field] = self._of_members(waves.spread(column, size))
        for (node, field), names in self._varied_waveforms(columns).items():
            numbers = {key: columns[name] for key, name in names.items()}
            inputs[node][field] = waves.of_members(
                self.waveforms[f"{node}.{field}"], inputs[node][field], numbers
            )
        return {"parameters": parameters, "initial_state": initial, "inputs": inputs}

    def _varied_waveforms(self, names: Iterable[str]) -> dict[tuple[str, str], dict[str, str]]:
        """Of each input over time whose keys vary: the name of the column of each key."""
        found: dict[tuple[str, str], dict[str, str]] = {}
        for name in names:
            road, node, field, key = self.lanes[name]
            if road == "waveform":
                found.setdefault((node, field), {})[key] = name
        return found

    def _of_members(self, column: Any) -> Any:
        """An input's constants so that `run_batch` takes them for members, not for times: one of a
        single member is a number, and as many as there are steps are written for each step.
        """
        if not np.ndim(column) or len(column) not in (1, self.steps):
            return column
        return column[0] if len(column) == 1 else np.repeat(column[:, None], self.steps, axis=1)

    def print(self) -> str:
        """A digest of all that decides a member's result, but what varies."""
        simulation = self.simulation
        with precision_of(simulation):
            parts = fingerprint(
                simulation,
                simulation.init_state(self.initial_state),
                simulation.signals(self.inputs, self.steps),
                simulation.select(self.record),
                self.every,
            )
        for part, words in parts.items():
            if words.startswith("calls Python"):
                raise InputError(
                    f"the {part} {words}: nobody can tell what that computes, so its members have "
                    "no address. Write it with jax.numpy"
                )
        kept = [merit.model_dump_json() for merit in self.merits]
        lanes = sorted(f"{name} {tuple(lane)}" for name, lane in self.lanes.items())
        native = simulation.backend.native
        rest = repr((self.steps, kept, self.fields, self.keep_every, lanes, native))
        return digest(*parts.values(), rest, repr(self.versions))


def first_of(batch: Trajectory) -> Trajectory:
    """The first member of a batch as a run of its own; `diverged` says if it left the numbers."""
    own = {node: {f: v[0] for f, v in fields.items()} for node, fields in batch.fields.items()}
    parameters = {
        node: {p: v[0] if (node, p) in batch.varied else v for p, v in given.items()}
        for node, given in batch.parameters.items()
    }
    return dataclasses.replace(
        batch,
        fields=own,
        parameters=parameters,
        varied=(),
        batch_size=None,
        final_state=jax.tree.map(lambda x: x[0] if np.ndim(x) else x, batch.final_state),
    )


def _keys(name: str, seeds: np.ndarray) -> np.ndarray:
    """(member, 2) words, or (2,) of one: the keys that a node makes of such seeds."""
    whole = np.asarray(seeds, dtype=np.int64)
    if (whole != seeds).any() or whole.min() < 0 or whole.max() >= 2**32:
        raise InputError("a seed is a whole number from 0 to 4294967295", place=("vary", name))
    return np.stack([np.zeros_like(whole), whole], axis=-1).astype(np.uint32)
