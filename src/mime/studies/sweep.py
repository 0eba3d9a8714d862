"""`sweep`: the members of a study that are not in its store yet, chunk by chunk."""

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import numpy as np

from mime._text import Travels, shortened
from mime.core.arguments import instance, mapping, whole
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.core.signals import Inputs
from mime.running.progress import Progress, check_progress, progress_bar
from mime.running.simulation import Simulation
from mime.running.trajectory import Divergence
from mime.scenarios.scenario import Scenario, load_scenario
from mime.studies.build import Base, Described, build_study
from mime.studies.experiment import Kept
from mime.studies.file import read_study, run_command
from mime.studies.layout import lock, open_store
from mime.studies.result import StudyResult, about_column, attributes, result_of
from mime.studies.store import Store, StoreWriteError
from mime.studies.study import Chunk, Study
from mime.studies.tables import checked_table, plain, source_of
from mime.studies.task import Done, Runner, Task, Work, run_task

if TYPE_CHECKING:
    import distributed


class StudyInterrupted(Travels, KeyboardInterrupt):
    """The user stopped a sweep. Chunks that were done are kept; the same call goes on."""


def sweep(
    what: "Study | Scenario | Simulation | str | os.PathLike[str]",
    vary: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    duration: SupportsFloat | None = None,
    inputs: Inputs | None = None,
    initial_state: Mapping[str, Mapping[str, Any]] | None = None,
    every: SupportsIndex = 1,
    figures: Sequence[Mapping[str, Any]] = (),
    fields: Sequence[str] = (),
    keep_every: SupportsIndex | None = None,
    client: "distributed.Client | str | None" = None,
    threads: SupportsIndex | None = None,
    progress: Progress = True,
    **options: Any,
) -> StudyResult:
    """Run all members of a study that are not in its store yet: one dataset with all of them.

    what         a `study.toml`, a `Study`; or, with `vary`, a scenario (by file or name) or graph
    vary         `{"motor.r_ohm": [1.0, 2.0], "motor.gear.ratio": {"uniform": [10, 50]}}`: values
                 and tables as in a `study.toml`
    out          folder of the store; without it, all is kept in memory
    duration, inputs, initial_state, every    of a graph's runs, as `run_batch` takes them
    figures      figures of merit to keep, `{"name": ..., "kind": "max", "field": ...}`, besides
                 those of the scenario
    fields, keep_every    fields to keep over time, at every k-th step
    client       a Dask client, or the address of a scheduler: its workers run the chunks
    threads      of this machine; one per core by default
    progress     as in `run`, in members
    options      other keys of a `study.toml`: `draws`, `sampling`, `seed`, `zip`, `constraints`,
                 `fit`, `chunk`, `title`

    Interrupted or killed, the same call does what is left, to the same bytes.
    """
    check_progress(progress)
    threads = None if threads is None else whole("threads", threads, 1)
    folder = None if out is None else Path(path_of("out", out))
    graph = {"duration": duration, "inputs": inputs, "initial_state": initial_state, "every": every}
    keep = {"fields": fields, "every": keep_every}
    study = _study(what, vary, graph, {"figures_of_merit": figures, "keep": keep, **options})
    if folder is None and client is None:
        return _in_memory(study, progress, threads)
    if folder is None:
        raise InputError("a sweep on a cluster needs a store: give out", place=("out",))
    return swept(study, folder, progress, runner(client, threads))


def runner(client: "distributed.Client | str | None", threads: int | None) -> Runner:
    """Who runs chunks: this machine, or the workers of a cluster."""
    if client is not None:
        from mime.studies.cluster import on_cluster

        return on_cluster(client, threads)

    def here(study: Study, work: Sequence[Work]) -> Iterator[Done]:
        return (run_task(chunk.experiment, task, threads) for chunk, task in work)

    return here


def _study(
    what: Any, vary: Mapping[str, Any] | None, graph: dict[str, Any], tables: dict[str, Any]
) -> Study:
    """The study that the arguments describe."""
    if isinstance(what, Study):
        _refuse_given({"vary": vary, **graph, **tables}, "a study")
        return what
    instance("what", what, Study, Scenario, Simulation, str, os.PathLike)
    return build_study(described(what, vary, graph, tables))


def described(
    what: "Scenario | Simulation | str | os.PathLike[str]",
    vary: Mapping[str, Any] | None,
    graph: dict[str, Any],
    tables: dict[str, Any],
    name: str = "sweep",
) -> Described:
    """A study's file; or what `vary` changes in a scenario or a graph, and other tables."""
    if isinstance(what, str | os.PathLike) and vary is None:
        _refuse_given({**graph, **tables}, "a study")
        return read_study(what)
    data = plain({"vary": mapping("vary", vary, "{'node.parameter': values}"), **tables})
    data["keep"] = {k: v for k, v in data["keep"].items() if v is not None}
    source = source_of(data, name)
    table = checked_table(source)
    if isinstance(what, Simulation):
        steps = what.count_steps(graph["duration"])
        given_every = whole("every", graph["every"], 1, most=steps)
        base = Base(
            what,
            steps,
            _by_node("inputs", graph["inputs"]),
            _by_node("initial_state", graph["initial_state"]),
            given_every,
            (),
            None,
            "a graph",
        )
        return Described(source, table, lambda _: base)
    _refuse_given(graph, "a scenario")
    scenario = what.file if isinstance(what, Scenario) else what
    fixed = [*(what.overrides if isinstance(what, Scenario) else ()), *table.set]

    def load(more: Sequence[str]) -> Base:
        if isinstance(what, Scenario) and not (table.set or more):
            return Base.of(what)
        return Base.of(load_scenario(scenario, [*fixed, *more]))

    return Described(source, table, load, run_command(scenario, fixed, False))


def _refuse_given(arguments: Mapping[str, Any], what: str) -> None:
    """Stop at arguments besides something that says all of it."""
    if given := [name for name, value in arguments.items() if not _is_default(name, value)]:
        raise InputError(f"{what} says all of it: leave out {', '.join(given)}")


def _by_node(name: str, given: Any) -> dict[str, dict[str, Any]]:
    """`{node: {field: value}}`, with what is wrong in words."""
    form = "{node: {field: value}}"
    outer = {} if given is None else mapping(name, given, form)
    return {node: dict(mapping(f"{name}[{node!r}]", inner, form)) for node, inner in outer.items()}


def _is_default(name: str, value: Any) -> bool:
    if name == "keep":
        return not list(value["fields"]) and value["every"] is None
    if name == "every":
        return value is None or value == 1
    return value is None or (isinstance(value, Mapping | list | tuple) and not value)


def swept(study: Study, folder: Path, progress: Progress, run: Runner) -> StudyResult:
    """Run what is missing in a store, and open it."""
    with writing(folder):
        store = open_store(folder, study)
        store.sweep_up()
        left = store.plan(study)
        computed = _run(study, store, left, progress, run)
        if computed:
            store.sweep_up()  # after workers that were killed
    after = Store(folder, store.group, store.rows, store.layout, check=False)
    return result_of(after, after.rows_of(study.addresses), study.title, computed, study)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold a store's folder, made where it is not there; what cannot be written is told."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder):
            yield
    except OSError as error:
        where = f"cannot write to {shortened(str(folder), 200)}: {error.strerror or error}"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "make room" if full else "see to that, or choose another folder"
        words = f"chunks that are done are kept; {remedy}, and start again to go on"
        raise StoreWriteError(shortened(f"{where}; {words}")) from error


def work_of(study: Study, store: Store, left: list[tuple[int, np.ndarray]]) -> list[Work]:
    """The chunks that are left, as tasks."""
    work = []
    for number, members in left:
        chunk = Chunk(study.experiments[study.variant[members[0]]], members)
        own = store.region(number), study.rows(members), study.lanes(chunk)
        work.append((chunk, Task(*own, study.addresses[members])))
    return work


def _run(
    study: Study, store: Store, left: list[tuple[int, np.ndarray]], progress: Progress, run: Runner
) -> int:
    """Run the chunks that are left; how many members that were."""
    total = sum(len(members) for _, members in left)
    made, before = 0, study.size - total
    with progress_bar(study.size, before, progress, "members") as bar:
        try:
            for done in run(study, work_of(study, store, left)):
                made += done.members
                bar(before + made)
        except KeyboardInterrupt:
            words = f"stopped after {before + made:,} of {study.size:,} members, which are kept in"
            raise StudyInterrupted(f"{words} {store.folder}; sweep again to go on") from None
    return made


def _in_memory(study: Study, progress: Progress, threads: int | None) -> StudyResult:
    """All members at once, for what fits."""
    parts: dict[str, np.ndarray] = {}
    failed: dict[int, Divergence] = {}
    with progress_bar(study.size, 0, progress, "members") as bar:
        made = 0
        for chunk in study.chunks(np.arange(study.size), study.chunk):
            kept: Kept = chunk.experiment.run(study.lanes(chunk), threads)
            for name, values in kept.arrays.items():
                if name not in parts:
                    parts[name] = np.empty((study.size, *values.shape[1:]), values.dtype)
                parts[name][chunk.members] = values
            failed |= {int(chunk.members[row]): where for row, where in kept.diverged.items()}
            made += len(chunk.members)
            bar(made)
    return result_in_memory(study, parts, failed)


def result_in_memory(
    study: Study, parts: Mapping[str, np.ndarray], failed: dict[int, Divergence]
) -> StudyResult:
    """All members of a study, from what was kept of each."""
    import xarray

    variables = {}
    for v in study.variables:
        inner = ["time"] * bool(v.shape) + [f"{v.name}.axis{i}" for i in range(len(v.shape) - 1)]
        about = {"units": v.unit or "1", "long_name": v.description or v.name}
        variables[v.name] = (("member", *inner), parts[v.name], about)
    coordinates: dict[str, Any] = {
        name: (
            "member",
            np.array(list(map(str, column))) if column.dtype == object else column,
            about_column(study.units[name], name in study.logarithmic),
        )
        for name, column in study.columns.items()
    }
    if study.experiments[0].fields:
        coordinates["time"] = ("time", study.experiments[0].times, {"units": "s"})
    failed = dict(sorted(failed.items()))
    about = attributes(study.title, study.source, study.experiments[0].versions, failed)
    dataset = xarray.Dataset(variables, coordinates, about)
    return StudyResult(study.title, dataset, study.size, 0, failed, study=study)
