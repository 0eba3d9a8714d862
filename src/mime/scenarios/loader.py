"""A scenario file as a simulation that is ready to run. All that is wrong is said at once."""

import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from mime.scenarios.assemblies import all_drawings, build_assemblies
from mime.scenarios.checking import checked_tables
from mime.scenarios.nodes import build_nodes, check_types
from mime.scenarios.overrides import apply
from mime.scenarios.positions import key_lines
from mime.scenarios.problems import ScenarioError, Source
from mime.scenarios.recorded import recorded_fields
from mime.scenarios.scenario import Scenario
from mime.scenarios.wanted import check_steps, initial_state, waveforms
from mime.scenarios.wires import build_graph

_LARGEST_FILE_BYTES = 2**22


def load_scenario(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Scenario:
    """Read and check a scenario; `overrides` are `node.parameter=value`, as of the command line.

    Raises `ScenarioError` with every problem found: file, line, key, got, expected. A scenario is
    data: nothing in it is executed.
    """
    file = Path(path)
    try:
        return _load(file, _read(file), overrides)
    except RecursionError as error:
        raise ScenarioError(file, [f"{file}: not a scenario: nested too deep"]) from error


def _load(file: Path, text: str, overrides: Sequence[str]) -> Scenario:
    data, source = _parse(file, text)
    source.overridden = apply(overrides, data, source)
    tables = checked_tables(data, source)
    if tables is None:
        check_types(data, source)
    source.stop_if_any()
    assert tables is not None
    with jax.enable_x64(tables.simulation.precision == "double"):
        nodes = build_nodes(tables, source)
        assembled = build_assemblies(tables, source)
        graph, simulation = build_graph(tables, nodes, assembled, source)
        if simulation is None:
            source.stop_if_any()
        assert simulation is not None
        drawings = all_drawings(assembled)
        record = recorded_fields(tables, simulation, drawings, source)
        check_steps(tables, simulation, record, source)
        state = initial_state(tables, simulation, assembled, source)
        inputs = waveforms(tables, simulation, source)
        source.stop_if_any()
    parts = tables, graph, simulation, inputs, state, record, drawings
    return Scenario(file, text, tuple(overrides), *parts)


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            raise ScenarioError(file, [f"{file}: larger than 4 MiB: not a scenario"])
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ScenarioError(file, [f"{file}:{line}: not UTF-8 text: {error.reason}"]) from error
    except OSError as error:
        raise ScenarioError(file, [f"{file}: cannot be read: {error.strerror}"]) from error


def _parse(file: Path, text: str) -> tuple[dict[str, Any], Source]:
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
        return data, Source(file, key_lines(text))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        match = re.search(r" \(at line (\d+), column (\d+)\)", message)
        if match is None:
            raise ScenarioError(file, [f"{file}: not TOML: {message}"]) from error
        words = message.replace(match.group(), "")
        place = f"{file}:{match[1]}: column {match[2]}"
        raise ScenarioError(file, [f"{place}: not TOML: {words}"]) from error
    except ValueError as error:  # a number of more digits than Python reads
        raise ScenarioError(file, [f"{file}: not TOML: {error}"]) from error
