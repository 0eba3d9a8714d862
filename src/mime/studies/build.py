"""From the tables of a study to its graphs, its figures and its members."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mime._text import nearest, quoted
from mime.core.address import find
from mime.core.problem import InputError, ParameterError
from mime.fitting.result import Fit, FitError
from mime.running.simulation import Simulation
from mime.scenarios.merits import Merit
from mime.scenarios.scenario import Scenario
from mime.scenarios.source import ScenarioError, Source, shown
from mime.scenarios.validation import validated
from mime.scenarios.waveforms import Waveform
from mime.studies.axes import AnyAxis, axis_model
from mime.studies.experiment import Experiment, Lane
from mime.studies.kept import FIGURES, find_field, own_figures
from mime.studies.lanes import lane_of
from mime.studies.space import Columns, Correlated, Drawing, drawn_names, members
from mime.studies.study import MOST_VARIANTS, Study
from mime.studies.tables import FitTable, StudyTable


class Base(NamedTuple):
    """What the members are variants of."""

    simulation: Simulation
    steps: int
    inputs: Any
    initial_state: Any
    every: int
    merits: Sequence[Merit]
    scenario: Scenario | None
    source: str

    @staticmethod
    def of(scenario: Scenario) -> "Base":
        """A scenario's."""
        tables = scenario.tables
        return Base(
            scenario.simulation,
            scenario.steps,
            scenario.inputs,
            scenario.initial_state,
            tables.simulation.every,
            list(tables.figures_of_merit.values()),
            scenario,
            scenario.name,
        )


class Described(NamedTuple):
    """A study as it is written: its tables, and how its graphs are made."""

    source: Source
    table: StudyTable
    load: Callable[[Sequence[str]], Base]
    """The base, with some keys changed."""
    command: tuple[str, ...] = ()
    """The words that run its scenario."""


Axes = Mapping[str, AnyAxis]
Choose = Callable[[Axes, Mapping[str, Lane]], Columns]
"""From axes, and which of them are lanes of a batch, to the columns of a study's members."""


def build_study(described: Described, choose: Choose | None = None) -> Study:
    """The study that tables describe; its members are those of its axes, or chosen."""
    source, table, load, command = described
    base = load(())
    axes = _axes(table, source)
    correlated = _correlated(table, source)
    merits = _figures(table, base, source)
    stride = _fields(table, base, source)
    source.stop_if_any()
    try:
        names = [*axes, *(correlated.names if correlated else ())]
        lanes = {n: lane for n in names if (lane := _lane(n, base)) is not None}
        if choose is None:
            drawing = Drawing(table.draws, table.sampling, table.seed)
            columns = members(axes, drawing, table.zip, table.constraints, correlated)
        else:
            columns = choose(axes, lanes)
    except InputError as error:
        source.refuse((), error)
        source.stop_if_any()
        raise
    for name in lanes:
        if columns[name].dtype == object:
            words = f"must be numbers, got {shown(columns[name][0])}"
            source.add(("vary", name), words)
    source.stop_if_any()
    keys, variant = _variants(columns, lanes, source)

    def experiment(base: Base) -> Experiment:
        return Experiment(
            base.simulation,
            base.steps,
            base.inputs,
            base.initial_state,
            base.every,
            tuple(merits),
            tuple(table.keep.fields),
            stride,
            lanes,
            _waveforms(base, lanes),
        )

    def variant_of(key: Sequence[str]) -> Base:
        """The base with some keys changed; what is wrong with them is told by the study's line."""
        try:
            return load(key) if key else base
        except ScenarioError as error:
            changed = [words.partition("=")[0] for words in key]
            for problem in error.problems:
                name = problem.override.partition("=")[0]
                if name in changed:
                    source.add(("vary", name), problem.words)
                else:
                    source.add(("vary", changed[0]), f"with {', '.join(key)} {problem}")
            source.stop_if_any()
            raise

    experiments = tuple(experiment(variant_of(key)) for key in keys)
    title = table.title or source.file.stem
    most = int(np.bincount(variant).max())
    size = table.chunk or experiments[0].chunk_members(most)
    units = {name: _unit(name, experiments[0]) for name in columns}
    study = Study(
        title,
        columns,
        units,
        experiments,
        variant,
        size,
        base.source,
        frozenset(name for name, axis in axes.items() if axis.is_logarithmic),
        tuple(drawn_names(axes)) if table.sampling == "saltelli" and choose is None else (),
        command,
    )
    try:
        study.check()
    except InputError as error:
        source.refuse((), error)
        source.stop_if_any()
    return study


def _axes(table: StudyTable, source: Source) -> dict[str, AnyAxis]:
    found: dict[str, Any] = {}
    for name, given in table.vary.items():
        at = ("vary", name)
        entry = {"values": given} if isinstance(given, list) else given
        if not isinstance(entry, Mapping):
            source.add(at, f"must be a list or a table, got {shown(given)}")
            continue
        found[name] = validated(axis_model(dict(entry)), entry, source, at)
    return found


def _correlated(table: StudyTable, source: Source) -> Correlated | None:
    """What a fit knows: means and covariance of the parameters that are asked for."""
    if table.fit is None:
        return None
    given = FitTable(file=table.fit) if isinstance(table.fit, str) else table.fit
    at = ("fit",) if isinstance(table.fit, str) else ("fit", "file")
    file = source.file.parent / given.file
    try:
        fit = Fit.load(file)
        known = fit.parameters
    except OSError as error:
        source.add(at, f"cannot read {file}: {error.strerror or error}")
        return None
    except FitError as error:
        source.refuse(at, error)
        return None
    names = given.parameters or list(known)
    if missing := [name for name in names if name not in known]:
        words = f"{quoted(missing)}: no value in {file}{nearest(missing[0], known)}"
        source.add(at, f"{words} (known: {quoted(known)})")
        return None
    if not names:
        source.add(at, f"{file} knows no parameter")
        return None
    places = [fit.known.index(name) for name in names]
    mean = np.array([known[name] for name in names])
    return Correlated(tuple(names), mean, fit.covariance[np.ix_(places, places)])


def _figures(table: StudyTable, base: Base, source: Source) -> list[Merit]:
    """The scenario's that are asked for, and the study's own."""
    names = [merit.name for merit in base.merits]
    wanted = names if table.keep.figures is None else table.keep.figures
    for index, name in enumerate(wanted):
        if name not in names:
            words = f"the scenario has no figure {name!r}{nearest(name, names)} ({quoted(names)})"
            source.add(("keep", "figures", index), words)
    found = [merit for merit in base.merits if merit.name in wanted]
    found += own_figures(table.figures_of_merit, base.simulation, source)
    every = [merit.name for merit in found]
    taken = [*every, *table.keep.fields, *table.vary]
    for name in sorted({name for name in taken if taken.count(name) > 1}):
        source.add((FIGURES,), f"{name!r} is named twice")
    for name in every:
        if "/" in name or name in ("member", "time", "address", "diverged"):
            source.add((FIGURES,), f"a figure cannot be called {name!r} in a store")
    if not found and not table.keep.fields:
        source.add(("keep",), "nothing is kept: name fields, or add [[figures_of_merit]]")
    return found


def _fields(table: StudyTable, base: Base, source: Source) -> int:
    """Checks what is kept over time: the stride."""
    keep, every = table.keep, base.every
    for index, name in enumerate(keep.fields):
        find_field(name, base.simulation, source, ("keep", "fields", index), whole=True)
    if base.steps % every:
        words = f"must divide the {base.steps} steps in a study, got {every}"
        source.add(("scenario",), f"simulation.every {words}")
        return every
    stride = keep.every or every
    if stride % every or base.steps % stride:
        words = f"must be a multiple of the scenario's every, {every}, and divide its {base.steps}"
        source.add(("keep", "every"), f"{words} steps, got {stride}")
    return stride


def _lane(name: str, base: Base) -> Lane | None:
    try:
        return lane_of(name, base.simulation, base.scenario)
    except (InputError, ParameterError) as error:
        raise InputError(str(error), place=("vary", name)) from error


def _waveforms(base: Base, lanes: Mapping[str, Lane]) -> dict[str, Waveform]:
    """The tables of inputs over time whose keys are lanes."""
    inputs = {f"{lane.node}.{lane.field}" for lane in lanes.values() if lane.road == "waveform"}
    if base.scenario is None:
        return {}
    return {name: table for name, table in base.scenario.tables.inputs.items() if name in inputs}


def _variants(
    columns: Columns, lanes: Mapping[str, Lane], source: Source
) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """What each graph changes in the scenario, and which graph each member is of."""
    size = len(next(iter(columns.values())))
    others = [name for name in columns if name not in lanes]
    if not others:
        return [()], np.zeros(size, np.int32)
    words = [[f"{name}={_toml(value)}" for value in columns[name].tolist()] for name in others]
    keys: dict[tuple[str, ...], int] = {}
    variant = np.array([keys.setdefault(key, len(keys)) for key in zip(*words)], np.int32)
    if len(keys) > MOST_VARIANTS:
        source.add(
            ("vary",),
            f"{quoted(others)} make {len(keys):,} graphs, since they are no parameters of the "
            f"graph but keys of the scenario; at most {MOST_VARIANTS}",
        )
        source.stop_if_any()
    return list(keys), variant


def _toml(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a key that takes numbers takes it too
    return json.dumps(value, ensure_ascii=False)


def _unit(name: str, experiment: Experiment) -> str:
    nodes = experiment.simulation.nodes
    first, _, rest = name.partition(".")
    if first in nodes and rest in nodes[first].built_from():
        road, node, field, key = Lane("parameter", first, rest)
    elif name in experiment.lanes:
        road, node, field, key = experiment.lanes[name]
    else:
        return ""
    owner = nodes[node]
    if road == "parameter":
        spec = find(owner, field).spec
        return spec.unit if spec is not None else ""
    if road == "initial":
        return owner.state_spec()[field].unit
    if road == "seed":
        return ""
    unit = owner.boundary_input_spec()[field].unit
    return unit if road == "input" else experiment.waveforms[f"{node}.{field}"].unit_of(key, unit)
