"""The tables of a study, as they are written: in a file, or by a call from Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mime.scenarios.fields import Words
from mime.scenarios.source import Source
from mime.scenarios.validation import validated
from mime.studies.axes import MOST
from mime.studies.objectives import OptimiseTable
from mime.studies.space import Sampling

Count = Annotated[int, Field(ge=1, le=MOST)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class KeepTable(_Table):
    """`[keep]`"""

    figures: list[str] | None = None
    """Names of the scenario's figures of merit; all of them when not given."""
    fields: list[str] = []
    """Fields that are kept over time."""
    every: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """Steps from one kept sample to the next."""


class FitTable(_Table):
    """`[fit]`: parameters drawn from what a fit knows of them."""

    file: str
    parameters: Annotated[list[str], Field(min_length=1)] | None = None
    """Which of them; all that are known when not given."""


class StudyTable(_Table):
    """The whole file."""

    title: Words = ""
    scenario: str = ""
    set: list[str] = []
    """Changes of the scenario for all members, as of `--set`."""
    vary: dict[str, Any] = {}
    draws: Count | None = None
    sampling: Sampling = "sobol"
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    zip: list[Annotated[list[str], Field(min_length=2)]] = []
    constraints: list[str] = []
    fit: str | FitTable | None = None
    keep: KeepTable = KeepTable()
    figures_of_merit: list[Any] = []
    chunk: Annotated[int, Field(ge=1, le=2**20)] | None = None
    """Members that run as one batch; by what they record when not given."""
    optimise: OptimiseTable | None = None
    """What `mime optimise` looks for."""


def checked_table(source: Source) -> StudyTable:
    """The file's tables; stops with all that is wrong with their keys."""
    table = validated(StudyTable, source.data, source, ())
    source.stop_if_any()
    assert table is not None, "all that was refused is noted"
    return table


def source_of(data: Mapping[str, Any], name: str) -> Source:
    """What Python gives in place of a file."""
    return Source(Path(name), "", dict(data), {})


def plain(value: Any) -> Any:
    """Arrays as lists, tuples too: what TOML would hold."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [plain(entry) for entry in value] if isinstance(value, list | tuple | range) else value
