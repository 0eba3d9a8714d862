"""The best and the worst member of each figure; run again, as replays, where they can be drawn."""

import contextlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mime.running.scene import scene
from mime.scenarios.merits import evaluate
from mime.studies.report.table import Column, Table
from mime.studies.study import Study

FOLDER = "replays"
_MOST = 8
"""Replays of a study: a page of about a megabyte each."""


class Extreme(NamedTuple):
    """The two ends of a figure."""

    figure: Column
    best: int
    """A member that keeps all limits, if one does; that with the smallest value where nobody says
    what is better.
    """
    worst: int

    @property
    def titles(self) -> tuple[str, str]:
        """What they are called."""
        return ("best", "worst") if self.figure.direction else ("smallest", "largest")


class Replays(NamedTuple):
    """Pages of members, by member."""

    files: dict[int, str]
    """Relative to the report."""
    words: str
    """What became of it."""


def extremes(table: Table) -> list[Extreme]:
    """Of all figures that have a value."""
    found = []
    for figure in table.figures:
        if np.isnan(figure.values).all():
            continue
        sign = -1.0 if figure.direction == "maximise" else 1.0
        able = np.where(table.eligible, sign * figure.values, np.nan)
        cost = sign * figure.values if np.isnan(able).all() else able
        best, worst = int(np.nanargmin(cost)), int(np.nanargmax(sign * figure.values))
        found.append(Extreme(figure, best, worst))
    return found


def write_replays(study: Study | None, table: Table, ends: list[Extreme], folder: Path) -> Replays:
    """A page for each of them, up to eight, in a folder; what was there of another time goes.

    A member runs again as the study has it, and its figures must come out with the same bits.
    """
    with contextlib.suppress(FileNotFoundError):
        for file in (folder / FOLDER).glob("member_*.html"):
            file.unlink()
    if study is None:
        return Replays({}, "No replays: the store alone does not say what its members are.")
    simulation = study.experiments[0].simulation
    if not scene(simulation.nodes, simulation.wiring):
        return Replays({}, "No replays: no node of this graph has a drawing.")
    wanted = list(dict.fromkeys(member for e in ends for member in (e.best, e.worst)))
    files, other = {}, []
    for member in wanted[:_MOST]:
        run = study.run(member)
        if run.diverged:
            continue
        merits = study.experiments[study.variant[member]].merits
        again = np.array([evaluate(merit, run).value for merit in merits])
        kept = {figure.name: figure.values[member] for figure in table.figures}
        if not np.array_equal(again, [kept[m.name] for m in merits], equal_nan=True):
            other.append(member)
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        name = f"{FOLDER}/member_{member}.html"
        run.replay(folder / name, title=f"{study.title}: member {member}")
        files[member] = name
    words = f"Replays stand beside this page, in {FOLDER}/. "
    if other:
        numbers = ", ".join(map(str, other))
        words += f"Figures of {numbers}, run again, are not those of the store."
    elif files:
        words += "Their members were run again: all figures have the bits of the store."
    if len(wanted) > _MOST:
        words += f" {len(wanted) - _MOST} more members are best or worst of a figure."
    return Replays(files, words)
