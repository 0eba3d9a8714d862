"""A loaded scenario: a simulation, its inputs, and what is wanted of it."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import jax

from mime.running.graph import GraphManager
from mime.running.progress import Progress
from mime.running.simulation import Simulation
from mime.running.trajectory import Trajectory
from mime.scenarios.assemblies import Drawing
from mime.scenarios.merits import Figure, evaluate
from mime.scenarios.tables import ScenarioTables


@dataclasses.dataclass(frozen=True)
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
    """By `assembly.drawing`."""

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
        """Of the whole run."""
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

    def figures(self, trajectory: Trajectory) -> list[Figure]:
        """The figures of merit of a run of it."""
        return [evaluate(merit, trajectory) for merit in self.tables.figures_of_merit]
