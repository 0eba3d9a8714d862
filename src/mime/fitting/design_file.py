"""`[design]` of a fit's file: the next experiment for the same scenario and the same unknowns."""

import dataclasses
import os
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mime._text import nearest, quoted
from mime.core.arguments import path as path_of
from mime.core.problem import InputError
from mime.fitting.design import Design, design
from mime.fitting.file import Number, Positive, UnknownTable, Whole
from mime.fitting.from_scenario import constants_of, start_of
from mime.fitting.motion_design import MotionDesign, design_motion
from mime.fitting.result import Fit, FitError
from mime.running.progress import Progress
from mime.scenarios.bundled import scenario_of
from mime.scenarios.scenario import Scenario, load_scenario
from mime.scenarios.source import Source, read_source
from mime.scenarios.validation import validated

PerJoint = Positive | list[Positive]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DesignTable(_Table):
    """`[design]`: an input to drive, or with `arm` a motion of its joints."""

    duration: Positive
    period: Positive
    inputs: dict[str, Positive] = {}
    sensors: dict[str, Positive] = {}
    limits: dict[str, Positive] = {}
    initial: dict[str, Number] = {}
    shape: Literal["fourier", "spline"] = "fourier"
    harmonics: Annotated[int, Field(ge=1, le=10_000)] | None = None
    fit: str | None = None
    """A `fit.json` whose values the model takes."""
    arm: str | None = None
    noise: PerJoint | None = None
    """Of an arm's torque sensors, N·m."""
    velocity_limits: PerJoint | None = None
    torque_limits: PerJoint | None = None
    position_limits: list[Annotated[list[Number], Field(min_length=2, max_length=2)]] | None = None
    starts: Annotated[int, Field(ge=1, le=1000)] | None = None
    seed: Whole = 0


class DesignFileTable(BaseModel):
    """The whole file; what only `mime fit` needs may be there or not."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    title: str = ""
    scenario: str
    unknowns: list[str] | dict[str, UnknownTable] = []
    design: DesignTable
    columns: Any = None
    logs: Any = None
    starts: Any = None
    seed: Any = None


@dataclasses.dataclass(frozen=True)
class DesignFile:
    """What `load_design` returns: all that `design` takes."""

    source: Source
    table: DesignFileTable
    scenario: Scenario

    @property
    def title(self) -> str:
        """What the file calls itself, else its name."""
        return self.table.title or self.source.file.stem

    def run(self, progress: Progress = True) -> Design | MotionDesign:
        """Design; what is wrong with the file is told with its line."""
        try:
            return self._motion(progress) if self.table.design.arm else self._inputs(progress)
        except InputError as error:
            inside = dict.fromkeys(self.source.data["design"], ("design",))
            self.source.refuse_arguments(error, inside)
            raise

    def _inputs(self, progress: Progress) -> Design:
        table, found = self.table, self.table.design
        motion = ("noise", "velocity_limits", "torque_limits", "position_limits")
        if strange := [key for key in motion if getattr(found, key) is not None]:
            raise InputError(f"{quoted(strange)} goes with `arm` only", place=(strange[0],))
        unknowns: Any = table.unknowns
        if isinstance(unknowns, dict):
            unknowns = {address: given.unknown() for address, given in unknowns.items()}
        simulation = self.scenario.simulation
        if found.fit is not None:
            file = self.source.file.parent / found.fit
            try:
                simulation = Fit.load(file, simulation).simulation
            except (OSError, FitError) as error:
                is_missing = isinstance(error, FileNotFoundError)
                words = f"no such file: {file}" if is_missing else f"{error}"
                raise InputError(words, place=("fit",), label="fit:") from None
        return design(
            simulation,
            found.inputs,
            found.sensors,
            unknowns,
            duration=found.duration,
            period=found.period,
            limits=found.limits,
            shape=found.shape,
            harmonics=10 if found.harmonics is None else found.harmonics,
            constants=constants_of(self.scenario, found.inputs, "; drive it, or make it constant"),
            initial={**start_of(self.scenario), **found.initial},
            starts=found.starts or 4,
            seed=found.seed,
            progress=progress,
        )

    def _motion(self, progress: Progress) -> MotionDesign:
        found, nodes = self.table.design, self.scenario.simulation.nodes
        assert found.arm is not None, "it was asked for"
        if strange := [key for key in ("inputs", "sensors", "limits") if getattr(found, key)]:
            raise InputError(f"{quoted(strange)} cannot stand beside `arm`", place=(strange[0],))
        arms = {name: node for name, node in nodes.items() if hasattr(node, "tree")}
        if found.arm not in arms:
            words = f"no arm {found.arm!r}{nearest(found.arm, arms)} ({quoted(arms)})"
            raise InputError(words, place=("arm",))
        if found.noise is None:
            raise InputError(
                "say how well torques are measured, in N·m", place=("arm",), label="noise:"
            )
        tree: Any = getattr(nodes[found.arm], "tree")  # noqa: B009  arms have one, nodes do not
        return design_motion(
            tree,
            duration=found.duration,
            period=found.period,
            noise=found.noise,
            position_limits=found.position_limits,
            velocity_limits=found.velocity_limits,
            torque_limits=found.torque_limits,
            harmonics=5 if found.harmonics is None else found.harmonics,
            starts=found.starts or 3,
            seed=found.seed,
            progress=progress,
        )


def load_design(path: str | os.PathLike[str], *, allow_code: bool = False) -> DesignFile:
    """Read and check a file with `[design]` and its scenario; a `ScenarioError` tells all."""
    source = read_source(path_of("path", path))
    table = validated(DesignFileTable, source.data, source, ())
    source.stop_if_any()
    assert table is not None, "all that was refused is noted"
    scenario = scenario_of(source, table.scenario)
    return DesignFile(source, table, load_scenario(scenario, allow_code=allow_code))
