"""d figure / d parameter, through the simulator.

A batch of members is one program: forward differentiation of each run, as many directions as there
are dimensions, so that no sample of a run has to be kept for the way back. What was differentiated
is kept beside the store: whoever goes on from there reads it.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.fitting.model import in_double
from mime.optimise.figures import figure
from mime.running.identity import digest
from mime.running.recording import labels, sample_times
from mime.running.simulation import Simulation
from mime.scenarios.fields import split_field, unit_factor
from mime.scenarios.merits import Comparison, Merit
from mime.studies.dimensions import Space
from mime.studies.evaluations import Keeper
from mime.studies.experiment import Experiment
from mime.studies.expression import differences, traced
from mime.studies.objectives import Aim
from mime.studies.region import replace
from mime.studies.study import Study

WITHOUT = {
    "settling_time": "it is the time of a sample, and jumps from one to the next",
    "time_of_max": "it is the time of a sample, and jumps from one to the next",
    "count": "it is a whole number",
}
"""Kinds of figures that have no slope, and why."""


def obstacles(study: Study, space: Space, aim: Aim) -> list[str]:
    """Why a study cannot be searched by gradients; nothing when it can."""
    found = []
    if len(aim.objectives) > 1:
        found.append("there are several objectives, and a slope for each")
    lanes = study.experiments[0].lanes
    for place in space.free:
        dimension = space.dimensions[place]
        name = dimension.names[0]
        if dimension.kind in ("whole", "entries"):
            found.append(f"{name} has no values in between")
        elif lanes[name].road == "seed":
            found.append(f"{name} is a seed")
    merits = {merit.name: merit for merit in study.experiments[0].merits}
    kinds = {name: merits[name].kind for name in aim.figures}
    found += [f"{n!r} is a {k}: {WITHOUT[k]}" for n, k in kinds.items() if k in WITHOUT]
    found += [
        f"{text!r} is no limit by <= or >=" for text in space.constraints if not differences(text)
    ]
    return found


class Slopes:
    """The slopes of figures, and of what constraints compare, by all dimensions."""

    def __init__(self, study: Study, space: Space, aim: Aim, keeper: Keeper):
        self._experiment, self._space, self._keeper = study.experiments[0], space, keeper
        merits = {merit.name: merit for merit in self._experiment.merits}
        self._merits = [merits[name] for name in aim.figures]
        self.differences = [part for text in space.constraints for part in differences(text)]
        """Expressions of parameters that are at most 0 in members that may be."""

    def at(self, points: np.ndarray, addresses: np.ndarray) -> np.ndarray:
        """(member, figures and differences, dimensions), at (member, dimensions) values.

        addresses    of the members, by which slopes are kept
        """
        rows = [*(merit.name for merit in self._merits), *self.differences]
        names = [name for dimension in self._space.dimensions for name in dimension.names]
        about = json.dumps([rows, names])
        file = self._keeper.slopes(digest(addresses.tobytes(), about)[:16])
        shape = len(points), len(rows), len(self._space.dimensions)
        if file is not None and (kept := _read(file, shape)) is not None:
            return kept
        with jax.enable_x64(True):
            found = np.asarray(self._program(points))
        if file is not None:
            content = io.BytesIO()
            np.savez(content, slopes=found, addresses=addresses, about=np.array(about))
            replace(file, content.getvalue())
        return found

    @cached_property
    def _program(self) -> Any:
        """Compiled: slopes of a batch of points."""
        simulation = in_double(self._experiment.simulation)
        return jax.jit(jax.vmap(jax.jacfwd(partial(self._values, simulation))))

    def _values(self, simulation: Simulation, point: Any) -> Any:
        """Figures and differences of one member."""
        experiment = self._experiment
        numbers = self._space.traced(point)
        lanes = {name: value for name, value in numbers.items() if name in experiment.lanes}
        values = figures_of(experiment, simulation, self._merits, lanes)
        return jnp.stack([*values, *(traced(text, numbers) for text in self.differences)])


def figures_of(
    experiment: Experiment,
    simulation: Simulation,
    merits: Sequence[Merit],
    lanes: Mapping[str, Any],
) -> list[Any]:
    """Figures of one member, each in its unit, as differentiable functions of what varies.

    simulation    the experiment's, in double precision
    lanes         numbers of all lanes of the experiment, which may be traced
    """
    given = experiment.arguments(lanes)
    own = simulation.with_parameters(given["parameters"])
    _, recorded = own.rollout(
        own.init_state(given["initial_state"]),
        given["inputs"],
        steps=experiment.steps,
        record=_record(merits),
        every=experiment.every,
    )
    count = experiment.steps // experiment.every
    time_s = sample_times(0, experiment.every, count, simulation.timestep)
    units, _ = labels(simulation.nodes, simulation.select(_record(merits)))
    values = []
    for merit in merits:
        node, field, _ = split_field(merit.field)
        factor = unit_factor(merit.own_unit(units[node][field]), merit.unit)
        values.append(factor * figure(merit, time_s, recorded))
    return values


def _record(merits: Sequence[Merit]) -> list[str]:
    names = [merit.field for merit in merits]
    names += [merit.reference for merit in merits if isinstance(merit, Comparison)]
    return list(dict.fromkeys(name.partition("[")[0] for name in names))


def _read(file: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    """Slopes that were kept; None where they are not there, or damaged."""
    try:
        with np.load(file, allow_pickle=False) as kept:
            slopes = kept["slopes"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    return slopes if slopes.shape == shape else None
