"""`mime.design`: the experiment to run next, by gradient through the simulator.

    maximise  log det F_parameters      F = JᵀJ over the noise, delays and offsets projected out
    over      u(t) = limit tanh(sum a_k B_k(t))     B: harmonics of 1 / T and a constant, or splines

D-optimal: the volume of the intervals, whatever units the parameters have. Limits of other fields
(amperes, speed) are limits of the optimiser, and at the end the input shrinks until it keeps them.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np

from mime._files import write_atomically
from mime._text import quoted
from mime.core.arguments import instance, mapping, real, whole, wrong
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.channel import Channel, place
from mime.fitting.coordinates import coordinates
from mime.fitting.experiment import Experiment, experiment
from mime.fitting.log import Log
from mime.fitting.model import Model, first_fineness, in_double, initial_state, with_timestep
from mime.fitting.parameters import KINDS, assembled
from mime.fitting.rank import Rank, rank_of
from mime.fitting.solve import prior_of
from mime.fitting.unknown import Unknown
from mime.optimise.descent import minimise
from mime.running.progress import Progress, check_progress, progress_bar
from mime.running.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROUNDS, _PASSES = 60, 4
SHAPES = ("fourier", "spline")


@dataclasses.dataclass(frozen=True)
class Outlook:
    """What an input of that length would tell."""

    log_det: float
    """Of the information on the parameters, in their coordinates."""
    half: Mapping[str, float]
    """Half of each parameter's 95 % interval, in its coordinate: relative for positive ones."""
    inputs: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict, repr=False)
    """The input itself, by field, in its own unit."""


@dataclasses.dataclass(frozen=True)
class Design:
    """An input to run, what it would tell, and what a step and a chirp as long would."""

    time_s: np.ndarray
    inputs: Mapping[str, np.ndarray]
    """By field, in its own unit; each value holds until the next row."""
    outlook: Outlook
    others: Mapping[str, Outlook]
    """`step` and `chirp`, within the same limits."""
    reached: Mapping[str, tuple[float, float, str]]
    """What each field with a limit reaches, the limit, and their unit."""
    is_complete: bool = True
    """False when it was interrupted: the best input until then."""

    def __str__(self) -> str:
        names = list(self.outlook.half)
        width = max(map(len, names))
        columns = {"design": self.outlook, **self.others}
        lines = [f"{'':{width}}  " + "".join(f"{title:>12}" for title in columns)]
        for name in names:
            cells = "".join(f"{100 * found.half[name]:>10.3g} %" for found in columns.values())
            lines.append(f"{name:{width}}  {cells}")
        dets = "".join(f"{found.log_det:>12.2f}" for found in columns.values())
        lines.append(f"{'log det':{width}}  {dets}")
        for field, (value, limit, unit) in self.reached.items():
            lines.append(f"{field} reaches {value:.4g} of {limit:g} {unit}".rstrip())
        if not self.is_complete:
            lines.append("interrupted: the best input until then")
        return "\n".join(lines)

    def gain(self, name: str, other: str) -> float:
        """By which factor the interval of a parameter is narrower than with `step` or `chirp`."""
        return self.others[other].half[name] / self.outlook.half[name]

    def plot(self) -> "Figure":
        """The inputs over time."""
        from mime.fitting.design_page import picture

        return picture(self)

    def report(self) -> str:
        """One HTML page with all of it."""
        from mime.fitting.design_page import report_page

        return report_page(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write time and inputs for the rig."""
        table = np.column_stack([self.time_s, *self.inputs.values()])
        heading = ",".join(["time", *self.inputs])

        def write(part: Path) -> None:
            np.savetxt(part, table, "%.9g", ",", header=heading, comments="")

        write_atomically(path_of("path", path), write)


def design(
    simulation: Simulation,
    inputs: Mapping[str, float],
    sensors: Mapping[str, float],
    unknowns: Mapping[str, Unknown | float | None] | Sequence[str],
    *,
    duration: SupportsFloat,
    period: SupportsFloat,
    limits: Mapping[str, float] | None = None,
    shape: str = "fourier",
    harmonics: SupportsIndex = 10,
    constants: Mapping[str, Mapping[str, Any]] | None = None,
    initial: Mapping[str, float] | None = None,
    starts: SupportsIndex = 4,
    seed: SupportsIndex = 0,
    progress: Progress = False,
) -> Design:
    """The input within limits that tells most of the unknowns.

    simulation       the graph, with the best values of its parameters so far
    inputs           `{"motor.commanded_voltage": 12.0}`: what to drive, and its largest value
    sensors          `{"motor.current": 0.05}`: what will be logged, with its noise, in their units
    unknowns         as in `fit`
    duration         seconds of the experiment, and `period` seconds from row to row of its log
    limits           `{"motor.current": 5.0}`: largest values of other fields
    shape            "fourier", or "spline" for cubic splines
    harmonics        of 1 / duration: the highest frequency is their number times that. A spline
                     has as many pieces as a series of so many harmonics has terms
    constants        `{node: {input: constant}}`, external inputs that are not driven
    initial          `{"motor.angular_velocity": 3.0}`: the state at the start, else at rest
    starts, seed     how many inputs it starts from, and what draws them
    progress         as in `Simulation.run`; Ctrl-C ends it with the best input so far
    """
    instance("simulation", simulation, Simulation)
    period_s = real("period", period, "s", above=0)
    rows = whole("rows", round(real("duration", duration, "s", above=0) / period_s), 20, 1_000_000)
    most = whole("harmonics", harmonics, 1, rows // 4)
    count, random = whole("starts", starts, 1, 1000), np.random.default_rng(whole("seed", seed))
    driven = _positive("inputs", inputs)
    noise, bounds = _positive("sensors", sensors), _positive("limits", limits)
    check_progress(progress)
    if shape not in SHAPES:
        raise wrong("shape", f"one of {quoted(SHAPES)}", shape)
    if not driven or not noise:
        raise InputError("design needs an input to drive and a sensor to log", place=("inputs",))
    log = {"constants": constants, "initial": dict(initial or {})}
    with jax.enable_x64(True):
        plan = _Plan(in_double(simulation), driven, noise, bounds, unknowns, rows, period_s, **log)
        plan.refuse_hopeless()
        waves = basis(shape, plan.part, most)
        best, is_complete = plan.best(waves, count, random, progress)
        chirp = np.sin(2 * np.pi * (plan.part + 0.5 * (most - 1) * plan.part**2))
        step = np.where(plan.part < 0.5, 1.0, -1.0)
        others = {
            name: plan.outlook(plan.kept(np.tile(wave, (len(driven), 1))))
            for name, wave in (("step", step), ("chirp", chirp))
        }
        time = period_s * np.arange(rows)
        outlook, reached = plan.outlook(best), plan.reached(best)
        return Design(time, outlook.inputs, outlook, others, reached, is_complete)


def basis(shape: str, part: np.ndarray, harmonics: int) -> np.ndarray:
    """B_k at parts of the duration (functions, rows): 2 harmonics + 1 of them."""
    if shape == "spline":
        from scipy.interpolate import BSpline

        degree, count = 3, max(2 * harmonics + 1, 4)
        inner = np.linspace(0.0, 1.0, count - degree + 1)
        knots = np.concatenate([np.zeros(degree), inner, np.ones(degree)])
        return np.asarray(BSpline.design_matrix(part, knots, degree).toarray().T)
    angles = 2 * np.pi * np.outer(np.arange(harmonics + 1), part)
    return np.concatenate([np.sin(angles[1:]), np.cos(angles)])


def _positive(name: str, given: Any) -> dict[str, float]:
    found = mapping(name, given, "{'node.field': number}")
    return {field: real(f"{name}[{field!r}]", value, above=0) for field, value in found.items()}


class _Plan:
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
        self.watched = {field: place(simulation, field, field) for field in limits}
        for field in driven:
            if not place(simulation, field, field).is_input:
                raise InputError(
                    f"inputs: {field} is no external input of this graph", place=("inputs", field)
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
        self.is_log = np.array([c.is_log for c in found])

    def inputs(self, shapes: Any) -> list[dict[str, dict[str, Any]]]:
        """Inputs of every step; shapes has a row for each driven field."""
        held = self.model.data["inputs"][0]
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
        data = {**self.data, "inputs": self.inputs(shapes)}

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
            simulation.init_state(initial_state(simulation, made, {})),
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

    def best(
        self, waves: np.ndarray, count: int, random: np.random.Generator, progress: Progress
    ) -> tuple[np.ndarray, bool]:
        """The best of several descents; an `InputError` when no input tells the unknowns apart."""
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
        found = [self.kept(np.tanh(a.reshape(size) @ waves)) for a in ends.x]
        return max(found, key=lambda shapes: self.outlook(shapes).log_det), ends.is_complete

    def rank(self, shapes: np.ndarray) -> Rank:
        """What that input would tell."""
        _, jacobian = self._compiled(shapes)
        J = np.concatenate([np.asarray(jacobian[f]) / s for f, s in self.noise.items()])
        return rank_of(J, self.is_log, np.zeros(len(self.z), bool), 1.96)

    def outlook(self, shapes: np.ndarray) -> Outlook:
        """log det and intervals of that input."""
        rank, names = self.rank(shapes), [c.name for c in self.model.coordinates]
        covariance = rank.covariance[np.ix_(self.is_parameter, self.is_parameter)]
        halves = rank.half_widths
        chosen = np.flatnonzero(self.is_parameter)
        log_det = -np.inf if rank.is_zero.any() else -np.linalg.slogdet(covariance)[1]
        inputs = {f: m * shape for shape, (f, m) in zip(shapes, self.driven.items(), strict=True)}
        return Outlook(float(log_det), {names[j]: float(halves[j]) for j in chosen}, inputs)

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
                    f"limits: {field} reaches {ratio * limit:.4g} without any input, and may reach "
                    f"{limit:g}; start elsewhere, or allow more",
                    place=("limits", field),
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
