"""`study.toml`: the scenario, what varies, what is kept."""

import os
from collections.abc import Sequence
from pathlib import Path

from mime.core.arguments import path as path_of
from mime.core.arguments import texts
from mime.scenarios.bundled import bundled_scenarios, scenario_of
from mime.scenarios.scenario import load_scenario
from mime.scenarios.source import read_source
from mime.studies.build import Base, Described, build_study
from mime.studies.study import Study
from mime.studies.tables import checked_table


def load_study(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), *, allow_code: bool = False
) -> Study:
    """Read and check a study's file and its scenario; a `ScenarioError` tells all that is wrong.

    `overrides` are changes of the scenario for all members, as in `load_scenario`.
    """
    return build_study(read_study(path, overrides, allow_code=allow_code))


def read_study(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), *, allow_code: bool = False
) -> Described:
    """A study's file, its keys checked."""
    source = read_source(path_of("path", path))
    table = checked_table(source)
    texts("overrides", overrides)
    if not table.scenario:
        source.add(("scenario",), "the key is missing: a file, or a name of `mime list`")
        source.stop_if_any()
    scenario = scenario_of(source, table.scenario)
    fixed = [*table.set, *overrides]

    def load(more: Sequence[str]) -> Base:
        return Base.of(load_scenario(scenario, [*fixed, *more], allow_code=allow_code))

    return Described(source, table, load, run_command(scenario, fixed, allow_code))


def run_command(
    scenario: str | os.PathLike[str], overrides: Sequence[str], allow_code: bool
) -> tuple[str, ...]:
    """The words that run a scenario as a study has it."""
    changes = [word for override in overrides for word in ("--set", override)]
    file = Path(scenario)
    name = file.stem if bundled_scenarios().get(file.stem) == file else os.fspath(scenario)
    return ("mime", "run", name, *["--allow-code"] * allow_code, *changes)
