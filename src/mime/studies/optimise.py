"""`optimise_study`: the best members of a study, by gradients or by Optuna, each kept once."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, SupportsIndex

import numpy as np

from mime._text import quoted
from mime.core.arguments import instance, mapping, whole
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.core.signals import Inputs
from mime.running.progress import Progress, check_progress, progress_bar
from mime.running.simulation import Simulation
from mime.scenarios.scenario import Scenario
from mime.scenarios.validation import validated
from mime.studies.axes import Equals
from mime.studies.build import Axes, Described, build_study
from mime.studies.dimensions import Space, space_of
from mime.studies.evaluations import Evaluations, InMemory, InStore, Keeper
from mime.studies.experiment import Lane
from mime.studies.expression import names_in
from mime.studies.gradient_search import NoSlopeError, search_by_gradient
from mime.studies.objectives import Aim, OptimiseTable, aim_of
from mime.studies.optimum import InfeasibleError, StudyOptimum, closest
from mime.studies.optuna_search import search_by_optuna
from mime.studies.slopes import Slopes, obstacles
from mime.studies.space import Columns
from mime.studies.study import MOST_VARIANTS, Study
from mime.studies.sweep import StudyInterrupted, described, runner
from mime.studies.tables import plain
from mime.studies.task import Runner

if TYPE_CHECKING:
    import distributed

_ROWS = 64
"""Of a chunk of a new store, unless the study says: a batch of a search is smaller than a sweep's,
and what is not filled is written all the same."""


def optimise_study(
    what: "Scenario | Simulation | str | os.PathLike[str]",
    vary: Mapping[str, Any] | None = None,
    optimise: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    duration: SupportsFloat | None = None,
    inputs: Inputs | None = None,
    initial_state: Mapping[str, Mapping[str, Any]] | None = None,
    every: SupportsIndex = 1,
    figures: Sequence[Mapping[str, Any]] = (),
    client: "distributed.Client | str | None" = None,
    threads: SupportsIndex | None = None,
    progress: Progress = True,
    **options: Any,
) -> StudyOptimum:
    """Look for the best members of a study: each that is asked for is a member of its store.

    what         a `study.toml` with the table `[optimise]`; or, with `vary`, a scenario (by file or
                 name) or a graph
    vary         `{"motor.gear.ratio": {"loguniform": [1, 100]}, "motor.datasheet": [...]}`: where
                 to look, as in a `study.toml`
    optimise     `{"minimise": "rise time", "constraints": ["largest current <= 2"]}`: keys of the
                 table `[optimise]`, which come before those of the file
    out          folder of the store; without it, all is kept in memory
    duration, inputs, initial_state, every    of a graph's runs, as `run_batch` takes them
    figures      figures of merit, besides those of the scenario, as for `sweep`
    client       a Dask client, or the address of a scheduler: its workers run the members
    threads      of this machine; one per core by default
    progress     as in `run`, in members
    options      other keys of a `study.toml`: `zip`, `constraints`, `chunk`, `title`

    Interrupted or killed, the same call goes on: it asks for the same members again, and what the
    store has is not run.
    """
    check_progress(progress)
    threads = None if threads is None else whole("threads", threads, 1)
    instance("what", what, Scenario, Simulation, str, os.PathLike)
    folder = None if out is None else Path(path_of("out", out))
    graph = {"duration": duration, "inputs": inputs, "initial_state": initial_state, "every": every}
    tables = {"figures_of_merit": figures, "keep": {"fields": (), "every": None}, **options}
    form = "{'minimise': 'figure'}"
    changed = plain(dict(mapping("optimise", optimise, form)))
    search = build_search(described(what, vary, graph, tables, "search"), changed)
    if folder is None and client is not None:
        raise InputError("a search on a cluster needs a store: give out", place=("out",))
    return searched(search, folder, progress, runner(client, threads), threads)


class Search(NamedTuple):
    """A search, checked."""

    base: Study
    """A member for each graph: what members are made of."""
    space: Space
    aim: Aim
    table: OptimiseTable


def build_search(given: Described, changed: Mapping[str, Any] | None = None) -> Search:
    """The search that tables describe, some keys of `[optimise]` changed."""
    source, table = given.source, given.table
    file = table.optimise.model_dump(exclude_unset=True) if table.optimise is not None else {}
    if table.optimise is None and not changed:
        words = 'the table is missing: [optimise] with minimise = "a figure", or maximise'
        source.add(("optimise",), words)
    if table.fit is not None:
        words = "a fit has no ranges to search; name parameters below [vary], or leave it out"
        source.add(("fit",), words)
    own = validated(OptimiseTable, {**file, **(changed or {})}, source, ("optimise",))
    source.stop_if_any()
    assert own is not None, "all that was refused is noted"
    spaces: list[Space] = []

    def choose(axes: Axes, lanes: Mapping[str, Lane]) -> Columns:
        space = space_of(axes, table.zip, table.constraints)
        columns = space.columns(space.every(_graphs(space, lanes)))
        space.allowed(columns)  # says what is wrong with a constraint
        spaces.append(space)
        return columns

    base = build_study(given, choose)
    base = dataclasses.replace(base, chunk=table.chunk or _ROWS)
    (space,) = spaces
    units = {v.name: v.unit for v in base.variables if not v.shape}
    aim = aim_of(own, units, source)
    try:
        ends = space.columns(space.corners())
        keep = space.allowed(ends)
        base.with_columns({name: column[keep] for name, column in ends.items()})
    except InputError as error:
        source.refuse((), error)
        source.stop_if_any()
    return Search(base, space, aim, own)


def _graphs(space: Space, lanes: Mapping[str, Lane]) -> list[int]:
    """The places of dimensions that make graphs of their own: these have finitely many values."""
    found, count = [], 1.0
    known: set[str] = set()
    for place, dimension in enumerate(space.dimensions):
        others = [name for name in dimension.names if name not in lanes]
        if not others:
            continue
        count *= dimension.size
        if dimension.size > MOST_VARIANTS or count > MOST_VARIANTS:
            words = f"at most {MOST_VARIANTS}: write a short list, or integers"
            raise InputError(
                "is no number of the graph but a key of the scenario, or one that a node is built "
                f"from, and each of its values makes a graph; {words}",
                place=("vary", others[0]),
            )
        found.append(place)
        known |= set(dimension.names)
    for name, axis in space.axes.items():
        if isinstance(axis, Equals) and name not in lanes and not names_in(axis.equals) <= known:
            words = (
                f"makes a graph for each of its values; let it follow from {quoted(known)} alone"
            )
            raise InputError(words, place=("vary", name))
    return found


def searched(
    search: Search, folder: Path | None, progress: Progress, run: Runner, threads: int | None
) -> StudyOptimum:
    """Search, and tell what was found; an `InfeasibleError` where nothing was."""
    base, space, aim, table = search
    with contextlib.ExitStack() as stack:
        keeper: Keeper = InMemory(threads)
        if folder is not None:
            keeper = stack.enter_context(InStore.opened(folder, base, run))
        tell = stack.enter_context(progress_bar(table.budget, 0, progress, "members"))
        evaluations = Evaluations(base, keeper, table.budget, tell)
        with _interruptible(evaluations, folder):
            method = _run(search, evaluations, keeper)
        study, figures = evaluations.study, evaluations.figures
        allowed = space.allowed(dict(study.columns))
        feasible = aim.feasible(figures) & allowed
        best, front = aim.best(figures, feasible), aim.front(figures, feasible)
        about = {
            "objectives": [{"figure": o.figure, "direction": o.direction} for o in aim.objectives],
            "constraints": [
                {"figure": limit.figure, "sense": limit.sense, "bound": limit.bound}
                for limit in aim.limits
            ],
            "best": best,
            "front": front,
            "feasible": np.flatnonzero(feasible).tolist(),
        }
        result = keeper.result(study, about)
    if not feasible.any():
        raise InfeasibleError(closest(aim, study, figures, allowed, len(result.diverged)))
    return StudyOptimum(
        study, result, aim.objectives, aim.limits, feasible, best, tuple(front), method
    )


def _run(search: Search, evaluations: Evaluations, keeper: Keeper) -> str:
    """Evaluate members by the method that is asked for, or fits; in words, what was done."""
    base, space, aim, table = search
    if table.method != "gradient" and space.size <= table.budget:
        return _all(space, evaluations)
    why = obstacles(base, space, aim) if table.method != "optuna" else [""]
    if not why:
        try:
            slopes = Slopes(base, space, aim, keeper)
            return search_by_gradient(space, aim, table, evaluations, slopes)
        except NoSlopeError:
            name = aim.objectives[0].figure
            why = [f"{name!r} has a slope of 0, or none, at all of {table.starts} starts"]
    if table.method == "gradient":
        raise InputError(
            f"optimise.method: no search by gradients: {'; '.join(why)}. Write "
            'method = "optuna", or ask for a figure that has a slope (final, mean, rms, max, ...)',
            place=("optimise", "method"),
        )
    return search_by_optuna(space, aim, table, evaluations)


def _all(space: Space, evaluations: Evaluations) -> str:
    """Every member there is."""
    columns = space.columns(space.every(range(len(space.dimensions))))
    keep = space.allowed(columns)
    if not keep.any():
        words = f"no member keeps all of {quoted(space.constraints)}"
        raise InputError(words, place=("constraints",))
    evaluations.of({name: column[keep] for name, column in columns.items()})
    return "trying all members that there are"


@contextlib.contextmanager
def _interruptible(evaluations: Evaluations, folder: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        kept = f"which are kept in {folder}; optimise again to go on"
        lost = "and nothing was kept: give out"
        words = f"stopped after {len(evaluations):,} members, {lost if folder is None else kept}"
        raise StudyInterrupted(words) from None
