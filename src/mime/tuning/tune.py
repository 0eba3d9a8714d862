"""`mime.tune`: gains of controllers, by gradient through the simulator, for a batch of plants."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex

import jax
import numpy as np

from mime.core.arguments import instance, mapping, real, several, whole
from mime.core.problem import InputError
from mime.fitting.result import Fit
from mime.optimise.descent import KEPT_BY, Ends, minimise_by
from mime.running.progress import Progress, check_progress, progress_bar
from mime.running.simulation import Simulation
from mime.scenarios.scenario import Scenario
from mime.tuning.bench import Bench, Run, Side
from mime.tuning.gains import Between
from mime.tuning.goal import Goal
from mime.tuning.margin_limits import KINDS, checked
from mime.tuning.plants import Spread
from mime.tuning.problem import question
from mime.tuning.result import FigureRow, GainRow, MarginRow, Trace, Tuning

_PASSES = 8


def tune(
    simulation: Simulation | Scenario,
    gains: Mapping[str, Between | None] | Sequence[str],
    goals: Sequence[Goal] | Goal,
    *,
    limits: Mapping[str, float] | None = None,
    margins: Mapping[str, float] | None = None,
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
    margins          `{"gain_db": 6.0, "phase_deg": 45.0}`: what every loop of the gains must have
                     where the run ends, in every plant; also `delay_s`, `gain_down_db` (below 0)
                     and `sensitivity`, the largest that Ms may be
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
    bounds = {
        field: real(f"limits[{field!r}]", largest, above=0)
        for field, largest in mapping("limits", limits, "{'node.field': largest}").items()
    }
    if not any(goal.weight for goal in wanted):
        raise InputError(
            "nothing to make small: every goal is a limit. Give one a weight, or one "
            "without limits",
            place=("goals",),
            label="goals:",
        )
    asked = checked(margins)
    run = Run(simulation, duration, inputs, initial_state, every)
    with jax.enable_x64(True):
        bench = Bench(run, gains, wanted, bounds, asked, plants, count, random)
        return _tuned(bench, run.given, tries, most, random, progress)


def _tuned(
    bench: Bench,
    given: Any,
    tries: int,
    rounds: int,
    random: np.random.Generator,
    progress: Progress,
) -> Tuning:
    old = np.array([g.start for g in bench.gains.entries])
    before = bench.side(old)
    weights = np.array([goal.weight for goal in bench.figures.goals])
    costs = before.figures @ weights
    first = float(np.mean(costs))
    scale = abs(first) if np.isfinite(first) and first else 1.0
    z = bench.gains.starts(tries, random)
    with progress_bar(_PASSES * rounds, 0, progress) as tell:
        ends = minimise_by(
            *question(bench, scale),
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
    after = bench.side(new)
    figures = [*_figure_rows(bench, before, after), *_margin_rows(bench, before, after)]
    _refuse_infeasible(bench, ends, new, figures)
    same = ends.cost <= ends.cost[best] + 1e-3 * abs(ends.cost[best])
    arrived = int(np.count_nonzero(same & (ends.excess <= KEPT_BY)))
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


def _at_bound(z: float, low: float, high: float) -> str:
    if z - low < 1e-6:
        return "lower"
    return "upper" if high - z < 1e-6 else ""


def _diverged(bench: Bench, costs: np.ndarray) -> str:
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


def _figure_rows(bench: Bench, before: Side, after: Side) -> list[FigureRow]:
    sides = (before.figures.T, after.figures.T)
    return [
        FigureRow(goal.label, unit, goal.weight or 0.0, goal.at_least, goal.at_most, *values)
        for goal, unit, *values in zip(
            bench.figures.goals, bench.figures.units, *sides, strict=True
        )
    ]


def _margin_rows(bench: Bench, before: Side, after: Side) -> list[FigureRow]:
    """What was asked of margins, as figures with limits: of each loop, of each kind."""
    found = []
    for place, loop in enumerate(bench.loops):
        for key, said in bench.margin_limits.said.items():
            kind = KINDS[key]
            values = [
                np.array([getattr(margin, key) for margin in side.margins[place]])
                for side in (before, after)
            ]
            limits = (said, None) if kind.is_least else (None, said)
            name = f"{kind.words} of {loop.name}"
            found.append(FigureRow(name, kind.unit, 0.0, *limits, *values))
    return found


def _refuse_infeasible(
    bench: Bench, ends: Ends, new: np.ndarray, figures: Sequence[FigureRow]
) -> None:
    if not ends.is_complete or ends.excess[ends.best] <= KEPT_BY:
        return
    worst = []
    for row in figures:
        excess = row.excess(row.after)
        if (member := row.tightest(row.after)) is not None and excess[member] > KEPT_BY:
            kept = int(np.count_nonzero(excess <= KEPT_BY))
            value = row.after[member]
            told = "none, unstable or without loop gain where the run ends"
            told = told if np.isnan(value) else f"{value:.4g} {row.unit}".strip()
            worst.append(
                f"{row.name}: {told}, wanted {row.bounds} (kept in {kept} of {len(excess)} plants)"
            )
    gains = ", ".join(f"{g.name} = {v:.4g}" for g, v in zip(bench.gains.entries, new, strict=True))
    raise InputError(
        "no gains were found that keep all limits. The nearest, "
        f"{gains}, give {'; '.join(worst)}. Loosen a limit, widen the bounds of gains, "
        "or ask for less of the run",
        place=("limits" if bench.figures.limited else "margins",),
    )


def _traces(bench: Bench, before: Side, after: Side) -> tuple[Trace, ...]:
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
