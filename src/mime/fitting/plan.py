"""An experiment with its input left open: from the input's shape to what its log would tell.

    maximise  log det F_parameters      F = JᵀJ over the noise, delays and offsets projected out
    over      u(t) = limit tanh(sum a_k B_k(t))

Limits of other fields (amperes, speed) are limits of the optimiser, and at the end the input
shrinks until it keeps them.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.problem import InputError
from mime.fitting.channel import Channel, Place, place
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import Experiment, experiment
from mime.fitting.log import Log
from mime.fitting.model import Model, first_fineness, initial_state, with_timestep
from mime.fitting.parameters import KINDS, assembled
from mime.fitting.rank import Rank, rank_of, widest_of
from mime.fitting.solve import prior_of
from mime.optimise.descent import minimise
from mime.running.progress import Progress, progress_bar
from mime.running.simulation import Simulation

_ROUNDS, _PASSES = 60, 4


@dataclasses.dataclass(frozen=True)
class Outlook:
    """What an input of that length would tell."""

    log_det: float
    """Of the information on the parameters, in their coordinates."""
    half: Mapping[str, float]
    """Half of each parameter's 95 % interval, in its coordinate: relative for positive ones."""
    inputs: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict, repr=False)
    """The input itself, by field, in its own unit."""


class Plan:
    """The experiment with its input left open: shapes of inputs, from -1 to 1, to information."""

    def __init__(
        self,
        simulation: Simulation,
        driven: Mapping[str, float],
        noise: Mapping[str, float],
        limits: Mapping[str, float],
        unknowns: Any,
        rows: int,
        period_s: float,
        constants: Any = None,
        initial: Any = None,
    ):
        self.part = np.arange(rows) / rows
        self.driven, self.noise, self.limits = driven, noise, limits
        table = {"time": period_s * np.arange(rows + 1)}
        table |= {field: np.zeros(rows + 1) for field in driven}
        table |= {field: np.arange(rows + 1.0) for field in noise}
        columns: dict[str, str | Channel] = {field: field for field in {**driven, **noise}}
        self.watched = {field: _place(simulation, "limits", field) for field in limits}
        for field in noise:
            _place(simulation, "sensors", field)
        for field in driven:
            if not _place(simulation, "inputs", field).is_input:
                raise InputError(
                    f"{field} is no external input of this graph",
                    place=("inputs", field),
                    label="inputs:",
                )
        log = Log(table, name="design", initial=initial or {})
        made: Experiment = experiment(simulation, log, columns, constants)
        found = coordinates(simulation, unknowns, [made])
        self.model = Model(simulation, (made,), found, first_fineness(simulation, [made]))
        nothing = jax.tree.map(jnp.zeros_like, self.model.data["measured"])
        self.data = {**self.model.data, "measured": nothing}  # residuals are readings then
        self.z = prior_of(self.model).centre
        late = [c.kind == "delay" for c in found]
        self.z[late] = 0.5  # rows: at none the slope by the delay is another on either side
        self.is_parameter = np.array([c.kind in KINDS for c in found])
        self.widest = widest_of(found, self.z)

    def inputs(self, shapes: Any) -> list[dict[str, dict[str, Any]]]:
        """Inputs of every step; shapes has a row for each driven field."""
        held = jax.tree.map(lambda x: x[0], self.model.data["inputs"][0])
        found: dict[str, dict[str, Any]] = {node: dict(fields) for node, fields in held.items()}
        for shape, (field, largest) in zip(shapes, self.driven.items(), strict=True):
            where = place(self.model.simulation, field, field)
            values = jnp.repeat(largest * shape, self.model.fineness)
            node = found.setdefault(where.node, {})
            if where.index:
                all_ = (slice(None), *where.index)
                node[where.name] = jnp.asarray(node[where.name]).at[all_].set(values)
            else:
                node[where.name] = values
        return [found]

    def seen(self, shapes: Any) -> tuple[Any, Any]:
        """Readings and their Jacobian, by field."""
        data = {**self.data, "inputs": self.model.inputs(self.inputs(shapes))}

        def twice(z: Any) -> tuple[Any, Any]:
            readings = self.model.residuals(z, data)
            return readings, readings

        jacobian, readings = jax.jacfwd(twice, has_aux=True)(jnp.asarray(self.z))
        return readings, jacobian

    def beyond(self, shapes: Any) -> Any:
        """Every field with a limit over that limit, in every step (limits, steps)."""
        if not self.limits:
            return jnp.zeros((0, 1))
        found = self.model.coordinates
        amounts = [c.value(z) for c, z in zip(found, self.z, strict=True)]
        values = assembled(self.model.simulation, found, amounts)
        made, inputs = self.model.experiments[0], self.inputs(shapes)[0]
        step = made.period_s / self.model.fineness
        simulation = with_timestep(self.model.simulation, step).with_parameters(values)
        _, recorded = simulation.rollout(
            simulation.init_state(
                initial_state(simulation, self.model.slots, self.data["starts"][0])
            ),
            inputs,
            steps=made.intervals * self.model.fineness,
            record=list(dict.fromkeys(f"{w.node}.{w.name}" for w in self.watched.values())),
        )
        parts = [
            jnp.abs(where.of(recorded[where.node][where.name])) / self.limits[field]
            for field, where in self.watched.items()
        ]
        return jnp.stack(parts)

    def cost(self, shapes: Any) -> Any:
        """-log det of the information on the parameters."""
        _, jacobian = self.seen(shapes)
        F = sum(jacobian[f].T @ jacobian[f] / sigma**2 for f, sigma in self.noise.items())
        cost = -jnp.linalg.slogdet(F)[1]
        if not self.is_parameter.all():
            rest = np.flatnonzero(~self.is_parameter)
            cost = cost + jnp.linalg.slogdet(F[np.ix_(rest, rest)])[1]
        return cost

    def ends(
        self, waves: np.ndarray, count: int, random: np.random.Generator, progress: Progress
    ) -> tuple[list[np.ndarray], bool]:
        """The end of every descent; an `InputError` when no input tells the unknowns apart."""
        size = len(self.driven), len(waves)

        def problem(a: Any) -> tuple[Any, Any]:
            shapes = jnp.tanh(a.reshape(size) @ waves)
            return self.cost(shapes), self.beyond(shapes).ravel() - 1.0

        square = np.where(self.part < 0.5, 1.5, -1.5)  # near a step, which is no bad start
        near, *_ = np.linalg.lstsq(waves.T, square, rcond=None)
        starts = random.normal(0.0, 1.0 / np.sqrt(len(waves)), (count, size[0] * size[1]))
        starts[0] = np.tile(near, size[0]) + 0.1 * starts[0]
        for a in starts:
            self._refuse_open(self.rank(np.tanh(a.reshape(size) @ waves)))
        with progress_bar(_ROUNDS * _PASSES, 0, progress) as tell:
            ends = minimise(problem, starts, rounds=_ROUNDS, passes=_PASSES, tell=tell)

        def kept(a: np.ndarray) -> np.ndarray:
            return self.kept(np.tanh(a.reshape(size) @ waves))

        # The last points are a little beyond the limits, and shrink by that.
        pairs = [(kept(a), kept(b)) for a, b in zip(ends.x, ends.last, strict=True)]
        found = [max(pair, key=lambda shapes: self.outlook(shapes).log_det) for pair in pairs]
        return found, ends.is_complete

    def rank(self, shapes: np.ndarray) -> Rank:
        """What that input would tell."""
        _, jacobian = self._compiled(shapes)
        J = np.concatenate([np.asarray(jacobian[f]) / s for f, s in self.noise.items()])
        return rank_of(J, self.widest, np.zeros(len(self.z), bool), 1.96)

    def outlook(self, shapes: np.ndarray) -> Outlook:
        """log det and intervals of that input."""
        rank, names = self.rank(shapes), [c.name for c in self.model.coordinates]
        halves = rank.half_widths
        chosen = np.flatnonzero(self.is_parameter)
        inputs = {f: m * shape for shape, (f, m) in zip(shapes, self.driven.items(), strict=True)}
        told = {names[j]: float(halves[j]) for j in chosen}
        return Outlook(rank.log_det(self.is_parameter), told, inputs)

    def kept(self, shapes: np.ndarray) -> np.ndarray:
        """The same, smaller where fields would pass their limits."""
        over = np.inf
        while over > 1.0:
            over = float(np.asarray(self._peaks(shapes)).max(initial=0.0))
            shapes = shapes if over <= 1.0 else shapes * max(0.5, 0.999 / over)
        return shapes

    def refuse_hopeless(self) -> None:
        """An `InputError` where a limit is passed without any input."""
        ratios = np.asarray(self._peaks(np.zeros((len(self.driven), len(self.part)))))
        for ratio, (field, limit) in zip(ratios, self.limits.items(), strict=True):
            if not ratio < 1.0:
                raise InputError(
                    f"{field} reaches {ratio * limit:.4g} without any input, and may reach "
                    f"{limit:g}; start elsewhere, or allow more",
                    place=("limits", field),
                    label="limits:",
                )

    def reached(self, shapes: np.ndarray) -> dict[str, tuple[float, float, str]]:
        """What the fields with limits reach."""
        peaks = np.asarray(self._peaks(shapes))
        return {
            field: (float(peak * limit), limit, self.watched[field].spec.unit)
            for peak, (field, limit) in zip(peaks, self.limits.items(), strict=True)
        }

    @cached_property
    def _peaks(self) -> Callable[[Any], Any]:
        return jax.jit(lambda shapes: jnp.max(self.beyond(shapes), axis=1))

    @cached_property
    def _compiled(self) -> Callable[[Any], Any]:
        return jax.jit(self.seen)

    def _refuse_open(self, rank: Rank) -> None:
        names = [c.name for c in self.model.coordinates]
        parts = np.linalg.norm(rank.directions[:, rank.is_zero], axis=1)
        open_ = [name for name, part in zip(names, parts, strict=True) if part > 1e-3]
        if open_:
            raise InputError(
                f"no input tells {', '.join(open_)} apart with these sensors; log another field, "
                "or leave one of them out of the unknowns",
                place=("unknowns",),
            )


def _place(simulation: Simulation, argument: str, field: str) -> Place:
    """A field of the graph; what is wrong with it stands in that argument."""
    try:
        return place(simulation, field, field)
    except InputError as error:
        words = error.problems[0].message
        raise InputError(words, place=(argument, field), label=f"{argument}:") from None
