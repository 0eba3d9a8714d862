"""`mime.tune`: gains of controllers, by gradient through the simulator, for a batch of plants."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, SupportsFloat, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np

from mime.core.arguments import instance, mapping, real, several, whole
from mime.core.problem import InputError
from mime.fitting.model import in_double
from mime.fitting.result import Fit
from mime.optimise.descent import KEPT_BY, Ends, minimise
from mime.running.progress import Progress, check_progress, progress_bar
from mime.running.simulation import Simulation
from mime.scenarios.scenario import Scenario
from mime.tuning.gains import Between, Gains
from mime.tuning.goal import LARGEST, Figures, Goal
from mime.tuning.margins import (
    Loop,
    Margin,
    external_at,
    loops_of,
    margin_of,
    period_of,
    scaled,
    step_matrix,
)
from mime.tuning.plants import Spread, plants
from mime.tuning.result import FigureRow, GainRow, MarginRow, Trace, Tuning
from mime.tuning.start import at_start

_PASSES = 8
_MOST_SAMPLES = 2000
"""Of a field in the pictures."""


def tune(
    simulation: Simulation | Scenario,
    gains: Mapping[str, Between | None] | Sequence[str],
    goals: Sequence[Goal] | Goal,
    *,
    limits: Mapping[str, float] | None = None,
    plants: Fit | Mapping[str, Spread] | None = None,
    members: SupportsIndex = 8,
    duration: SupportsFloat | None = None,
    inputs: Mapping[str, Any] | None = None,
    initial_state: Mapping[str, Mapping[str, Any]] | None = None,
    every: SupportsIndex | None = None,
    starts: SupportsIndex = 4,
    seed: SupportsIndex = 0,
    rounds: SupportsIndex = 60,
    progress: Progress = True,
) -> Tuning:
    """Gains that make the goals small over all plants, within limits; and the margins they leave.

    simulation       the graph with its gains so far, or a scenario, whose run is then the one
    gains            `["motor.velocity_kp", "controller.kp"]`, a list of gains as one number each;
                     or with bounds `{"motor.velocity_kp": (1e-3, 1.0)}`
    goals            `[Goal("rms_error", "arm.joint_angles", "path.desired_joint_angles"), ...]`
    limits           `{"controller.joint_torques": 20.0}`: largest magnitudes, in every plant
    plants           `{"motor.inertia_kg_m2": 0.2}`: spreads (parts, or a pair to be between), or a
                     `Fit`, whose covariance they are drawn from
    members          how many plants; the first is the graph's own
    duration, inputs, initial_state, every    of the run, as in `Simulation.run`
    starts, seed     how many gains it starts from, and what draws them and the plants
    rounds           of each pass of the optimiser, at most
    progress         as in `Simulation.run`; Ctrl-C ends it with the best gains so far
    """
    instance("simulation", simulation, Simulation, Scenario)
    check_progress(progress)
    count = whole("members", members, 1, 10_000)
    tries, most = whole("starts", starts, 1, 1000), whole("rounds", rounds, 1, 100_000)
    random = np.random.default_rng(whole("seed", seed))
    given = [goals] if isinstance(goals, Goal) else several("goals", goals)
    wanted = [instance("goals", goal, Goal) for goal in given]
    for field, largest in mapping("limits", limits, "{'node.field': largest}").items():
        bound = real(f"limits[{field!r}]", largest, above=0)
        wanted.append(Goal(LARGEST, field, at_most=bound))
    if not any(goal.weight for goal in wanted):
        raise InputError(
            "goals: nothing to make small: every goal is a limit. Give one a weight, or one "
            "without limits",
            place=("goals",),
        )
    run = _Run(simulation, duration, inputs, initial_state, every)
    with jax.enable_x64(True):
        bench = _Bench(run, gains, wanted, plants, count, random)
        return _tuned(bench, run.given, tries, most, random, progress)


@dataclasses.dataclass(frozen=True)
class _Side:
    """All plants with one set of gains."""

    figures: np.ndarray
    """(plants, goals)"""
    recorded: Any
    margins: list[list[Margin]]
    """Of each loop, of each plant."""


class _Run:
    """What is simulated: from the scenario, unless it is said."""

    def __init__(
        self, given: Any, duration: Any, inputs: Any, initial_state: Any, every: Any
    ) -> None:
        self.given = given
        scenario = given if isinstance(given, Scenario) else None
        self.simulation: Simulation = scenario.simulation if scenario else given
        if duration is None and scenario is None:
            raise InputError("duration: say how many seconds a run has", place=("duration",))
        table = scenario.tables.simulation if scenario else None
        seconds = table.duration if duration is None and table else real("duration", duration, "s")
        self.steps = self.simulation.count_steps(seconds)
        own = table.every if table else max(1, -(-self.steps // _MOST_SAMPLES))
        self.every = min(own if every is None else whole("every", every, 1), self.steps)
        self.steps -= self.steps % self.every
        self.inputs = scenario.inputs if scenario and inputs is None else inputs
        fresh = scenario is not None and initial_state is None
        self.initial_state = scenario.initial_state if fresh and scenario else initial_state


class _Bench:
    """Runs of all plants as functions of the gains."""

    def __init__(
        self,
        run: _Run,
        gains: Any,
        goals: list[Goal],
        given: Any,
        members: int,
        random: np.random.Generator,
    ):
        self.run = run
        simulation = in_double(run.simulation)
        self.simulation, self.varied = plants(simulation, given, members, random)
        self.gains = Gains(self.simulation, gains)
        both = sorted({g.address for g in self.gains.entries} & set(self.varied))
        if both:
            raise InputError(f"plants: {', '.join(both)} is a gain to tune", place=("plants",))
        self.members = members if self.varied else 1
        every = run.every
        samples = 1 + np.arange(run.steps // every)
        self.time_s = samples * every * self.simulation.timestep
        self.figures = Figures(self.simulation, goals, self.time_s)
        self.loops = loops_of(self.simulation, self.gains.entries)
        self.plants = {a: jnp.asarray(v) for a, v in self.varied.items()}

    def with_gains(self, values: Any, plant: Mapping[str, Any]) -> Simulation:
        """One plant with these gains."""
        return self.simulation.with_parameters({**plant, **self.gains.parameters(values)})

    def one(self, values: Any, plant: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Final state, recorded fields and figures of one plant."""
        simulation = self.with_gains(values, plant)
        first = simulation.init_state(self.run.initial_state)
        state, recorded = simulation.rollout(
            first,
            self.run.inputs,
            steps=self.run.steps,
            record=self.figures.record,
            every=self.run.every,
        )
        outside = external_at(simulation, self.run.inputs, self.run.steps)
        start = at_start(simulation, first, outside(first))
        return state, recorded, self.figures.values(recorded, start)

    def over_plants(self, function: Any, *shared: Any) -> Any:
        """A function of a plant for all of them; `shared` is the same in each."""
        if not self.plants:
            return jax.tree.map(lambda x: x[None], function(*shared, {}))
        axes = (*(None for _ in shared), 0)
        return jax.vmap(function, in_axes=axes)(*shared, self.plants)

    def problem(self, scale: float) -> Any:
        """Cost and excess of limits as a function of the gains' coordinates."""

        def of(z: Any) -> tuple[Any, Any]:
            figures = self.over_plants(lambda v, p: self.one(v, p)[2], self.gains.values(z))
            cost = jnp.mean(jax.vmap(self.figures.cost)(figures)) / scale
            excess = [self.figures.excess(row) for row in figures]
            return cost, jnp.concatenate(excess)

        return of

    @cached_property
    def look(self) -> Any:
        """Final states, recorded fields and figures of all plants."""
        return jax.jit(lambda values: self.over_plants(self.one, values))

    @cached_property
    def matrices(self) -> Any:
        """A(g) of each plant at its final state, for one loop."""
        outside = external_at(self.simulation, self.run.inputs, self.run.steps)

        def of(loop: Loop, values: Any, factor: Any, states: Any) -> Any:
            def one(plant: Any, state: Any) -> Any:
                own = {**plant, **self.gains.parameters(values)}
                changed = scaled(self.simulation, loop, factor, own)
                simulation = self.simulation.with_parameters(changed)
                return step_matrix(simulation, state, outside(state))

            return jax.vmap(one)(self.plants, states)

        return jax.jit(of, static_argnums=0)

    def margins(self, values: np.ndarray, states: Any) -> list[list[Margin]]:
        """Of each loop, of each plant."""
        period = period_of(self.simulation) * self.simulation.timestep
        found = []
        for loop in self.loops:
            kept: dict[float, np.ndarray] = {}

            def of(factor: float, loop: Loop = loop, kept: Any = kept) -> np.ndarray:
                if factor not in kept:
                    kept[factor] = np.asarray(self.matrices(loop, values, factor, states))
                return kept[factor]

            members = range(len(of(1.0)))
            found.append([margin_of(lambda g, m=m, of=of: of(g)[m], period) for m in members])
        return found


def _tuned(
    bench: _Bench,
    given: Any,
    tries: int,
    rounds: int,
    random: np.random.Generator,
    progress: Progress,
) -> Tuning:
    old = np.array([g.start for g in bench.gains.entries])
    before = _side(bench, old)
    weights = np.array([goal.weight for goal in bench.figures.goals])
    costs = before.figures @ weights
    first = float(np.mean(costs))
    scale = abs(first) if np.isfinite(first) and first else 1.0
    z = bench.gains.starts(tries, random)
    with progress_bar(_PASSES * rounds, 0, progress) as tell:
        ends = minimise(
            bench.problem(scale),
            z,
            bench.gains.low,
            bench.gains.high,
            rounds=rounds,
            passes=_PASSES,
            tell=tell,
        )
    if not np.isfinite(ends.cost).any():
        raise InputError(_diverged(bench, costs), place=("gains",))
    best = ends.best
    new = np.array(
        [float(g.value(x)) for g, x in zip(bench.gains.entries, ends.x[best], strict=True)]
    )
    after = _side(bench, new)
    _refuse_infeasible(bench, ends, new, after)
    same = ends.cost <= ends.cost[best] + 1e-3 * abs(ends.cost[best])
    arrived = int(np.count_nonzero(same & (ends.excess <= KEPT_BY)))
    figures = [
        FigureRow(
            goal.label, unit, goal.weight or 0.0, goal.at_least, goal.at_most,
            before.figures[:, k], after.figures[:, k],
        )
        for k, (goal, unit) in enumerate(zip(bench.figures.goals, bench.figures.units, strict=True))
    ]  # fmt: skip
    at = [
        _at_bound(g.z(value), low, high)
        for g, value, low, high in zip(
            bench.gains.entries, new, bench.gains.low, bench.gains.high, strict=True
        )
    ]
    rows = [
        GainRow(g.name, g.address, g.index, g.unit, float(a), float(b), bound)
        for g, a, b, bound in zip(bench.gains.entries, old, new, at, strict=True)
    ]
    margins = [
        MarginRow(loop.name, tuple(before.margins[k]), tuple(after.margins[k]))
        for k, loop in enumerate(bench.loops)
    ]
    parameters = {a: np.asarray(v) for a, v in bench.gains.parameters(new).items()}
    model = given.simulation if isinstance(given, Scenario) else given
    return Tuning(
        tuple(rows),
        tuple(figures),
        tuple(margins),
        {address: np.asarray(values) for address, values in bench.varied.items()},
        parameters,
        (arrived, tries),
        ends.rounds,
        ends.is_complete,
        _traces(bench, before, after),
        model,
    )


def _side(bench: _Bench, values: np.ndarray) -> _Side:
    states, recorded, figures = bench.look(values)
    return _Side(np.asarray(figures), recorded, bench.margins(values, states))


def _at_bound(z: float, low: float, high: float) -> str:
    if z - low < 1e-6:
        return "lower"
    return "upper" if high - z < 1e-6 else ""


def _diverged(bench: _Bench, costs: np.ndarray) -> str:
    bad = np.flatnonzero(~np.isfinite(costs))
    where = "from every start"
    if len(bad):
        values = [f"{a} = {float(v[bad[0]]):.4g}" for a, v in bench.varied.items()]
        where += f"; with the graph's own gains in {len(bad)} of {bench.members} plants"
        where += f", first plant {bad[0]} ({', '.join(values)})" if values else ""
    return (
        f"the runs leave the finite numbers, or a figure does not exist, {where}. Begin from gains "
        "that are stable, or give bounds"
    )


def _refuse_infeasible(bench: _Bench, ends: Ends, new: np.ndarray, after: _Side) -> None:
    if not ends.is_complete or ends.excess[ends.best] <= KEPT_BY:
        return
    excess = np.array([bench.figures.excess(jnp.asarray(row)) for row in after.figures])
    worst = {}
    for k, place in enumerate(bench.figures.limited):
        goal, unit = bench.figures.goals[place], bench.figures.units[place]
        member = int(np.argmax(excess[:, k]))
        if excess[member, k] > KEPT_BY:
            kept = int(np.count_nonzero(excess[:, k] <= KEPT_BY))
            bound = f"at most {goal.at_most:g}" if goal.at_most is not None else ""
            bound = bound or f"at least {goal.at_least:g}"
            worst[goal.label] = (
                f"{goal.label}: {after.figures[member, place]:.4g} {unit}, wanted {bound} "
                f"(kept in {kept} of {len(excess)} plants)"
            )
    gains = ", ".join(f"{g.name} = {v:.4g}" for g, v in zip(bench.gains.entries, new, strict=True))
    raise InputError(
        "no gains were found that keep all limits. The nearest, "
        f"{gains}, give {'; '.join(worst.values())}. Loosen a limit, widen the bounds of gains, "
        "or ask for less of the run",
        place=("limits",),
    )


def _traces(bench: _Bench, before: _Side, after: _Side) -> tuple[Trace, ...]:
    """Every component that goals look at: nominal, lowest and highest of all plants."""
    found = []
    for name in bench.figures.record:
        node, _, field = name.partition(".")
        a, b = (np.asarray(side.recorded[node][field]) for side in (before, after))
        flat = (x.reshape(*x.shape[:2], -1) for x in (a, b))
        for j, (x, y) in enumerate(zip(*(np.moveaxis(part, -1, 0) for part in flat), strict=True)):
            label = f"{name}[{j}]" if a.ndim > 2 else name
            ends = [(part[0], part.min(axis=0), part.max(axis=0)) for part in (x, y)]
            found.append(Trace(label, bench.time_s, *ends))
    return tuple(found)
