"""From a scenario file to a simulation with its inputs. All that is wrong is told at once."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from mime.core.arguments import path as path_of
from mime.core.arguments import texts
from mime.core.upward import drawer
from mime.running.graph import GraphManager
from mime.running.progress import Progress
from mime.running.simulation import Simulation
from mime.running.trajectory import Trajectory
from mime.scenarios.assemblies import Drawing, all_drawings, build_assemblies
from mime.scenarios.build_graph import Parts, build_graph
from mime.scenarios.build_nodes import build_nodes
from mime.scenarios.bundled import bundled_scenarios
from mime.scenarios.merits import FigureOfMerit, Statistic, evaluate
from mime.scenarios.request import (
    check_goals,
    check_steps,
    initial_state,
    recorded_fields,
    seen_fields,
    waveforms,
)
from mime.scenarios.source import ScenarioError, ScenarioProblem, apply_overrides, read_source
from mime.scenarios.tables import ScenarioTables, checked_tables


@dataclasses.dataclass(frozen=True, repr=False)
class Scenario:
    """What `load_scenario` returns."""

    file: Path
    text: str
    overrides: tuple[str, ...]
    tables: ScenarioTables
    graph: GraphManager
    simulation: Simulation
    inputs: dict[str, Any]
    initial_state: dict[str, dict[str, Any]]
    record: list[str]
    drawings: dict[str, Drawing]
    """Drawings by `assembly.drawing`."""

    def __repr__(self) -> str:
        simulation = self.tables.simulation
        words = f"Scenario {self.title!r}: {simulation.duration:g} s in {self.steps:,} steps"
        return f"{words}, {self.file}\n{self.simulation!r}"

    def _repr_html_(self) -> str:
        return drawer("Scenario.html")(self)

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.file.stem

    @property
    def title(self) -> str:
        """What the file calls itself, else its name."""
        return self.tables.title or self.name

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.simulation.count_steps(self.tables.simulation.duration)

    def run(
        self,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 5.0,
        resume: bool = False,
        progress: Progress = False,
    ) -> Trajectory:
        """Run it in its precision; options are those of `Simulation.run`."""
        with jax.enable_x64(self.tables.simulation.precision == "double"):
            return self.simulation.run(
                self.tables.simulation.duration,
                self.inputs,
                record=self.record,
                every=self.tables.simulation.every,
                initial_state=self.initial_state,
                checkpoint=checkpoint,
                checkpoint_seconds=checkpoint_seconds,
                resume=resume,
                progress=progress,
            )

    def never(self) -> dict[str, float]:
        """By field, the value that says that its event has not happened, as figures name it."""
        merits = self.tables.figures_of_merit.values()
        named = [merit for merit in merits if isinstance(merit, Statistic)]
        return {merit.field: merit.never for merit in named if merit.never is not None}

    def figures(self, trajectory: Trajectory) -> list[FigureOfMerit]:
        """The figures of merit of a run of it; of a batch, each with an array over members."""
        changed = [words.partition("=")[0].strip() for words in self.overrides]
        merits = self.tables.figures_of_merit.values()
        return [evaluate(merit, trajectory, changed) for merit in merits]


def load_scenario(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), *, allow_code: bool = False
) -> Scenario:
    """Read and check a scenario; `overrides` are `node.parameter=value`, as of the command line.

    `path` is a file, or the name of a bundled scenario, as in `mime run motor_step`.

    Raises `ScenarioError` with every problem found: file, line, key, got, expected. A scenario is
    data: nothing in it is executed, unless `allow_code` lets it name nodes of your own by file,
    `type = "propeller.py:PropellerNode"`.

    In a run of it, an input (a `csv` row, say) of time t drives the step that begins at t, and a
    recorded sample is the state *after* its step: its first is that at the end of the first step.
    """
    file = bundled_scenarios().get(str(path)) or path_of("path", path)
    texts("overrides", overrides)
    try:
        return _load(file, overrides, allow_code)
    except RecursionError as error:
        problem = ScenarioProblem((), "not a scenario: nested too deep", file=file)
        raise ScenarioError(file, [problem]) from error


def _load(file: Path, overrides: Sequence[str], allow_code: bool) -> Scenario:
    """Each stage notes what is wrong and goes on with what is sound; `source` tells all of it."""
    source = read_source(file, allow_code)
    apply_overrides(overrides, source)
    tables = checked_tables(source)
    with jax.enable_x64(tables.simulation.precision == "double"):
        nodes = build_nodes(tables, source)
        assembled = build_assemblies(tables, source)
        parts = Parts.of(tables, nodes, assembled, source)
        graph, simulation = build_graph(tables, parts, assembled, source)
        if simulation is not None:
            groups = tuple(group.name for group in simulation.wiring.groups)
            parts = dataclasses.replace(parts, groups=groups)
        drawings = all_drawings(assembled)
        record = recorded_fields(tables, parts, drawings, source)
        state = initial_state(tables, parts, assembled, source)
        inputs = waveforms(tables, parts, source)
        if simulation is not None:
            check_goals(tables, inputs, simulation, source)
            record = list(dict.fromkeys([*record, *seen_fields(tables, simulation)]))
        check_steps(tables, parts, record, source)
        source.stop_if_any()
    assert simulation is not None, "all that was refused is noted"
    built = tables, graph, simulation, inputs, state, record, drawings
    return Scenario(file, source.text, tuple(overrides), *built)
