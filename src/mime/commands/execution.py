"""One scenario run into one folder: result.nc, plots, report.html, and a checkpoint on the way."""

import dataclasses
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mime._text import shortened
from mime.commands import RunFailedError, UserMistakeError
from mime.commands.output import (
    CHECKPOINT,
    REPORT,
    RESULT,
    clean_up,
    earlier_result,
    prepare,
    put_back,
    reason,
    save,
    save_partial,
    set_aside,
    write_bytes,
)
from mime.reporting.graph_picture import draw_graph
from mime.reporting.plots import draw_plot
from mime.reporting.report import png_bytes, write_report
from mime.running.checkpoint import CheckpointError, Reason
from mime.running.job import DivergenceError, RunInterrupted
from mime.running.trajectory import Trajectory
from mime.scenarios.merits import FigureOfMerit
from mime.scenarios.scenario import Scenario
from mime.scenarios.source import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHECKPOINT_SECONDS = 10.0
_ADVICE: dict[Reason, str] = {
    "missing": "start the run without --resume",
    "unfinished": "add --resume to go on, or delete it to start anew",
    "other run": "resume with what it was started with, or start anew with another file",
    "too long": "ask for a longer run",
    "damaged": "delete it to start anew",
}
Tell = Callable[[Trajectory, list[FigureOfMerit]], None]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    trajectory: Trajectory
    figures: list[FigureOfMerit]
    plots: list[tuple[str, bytes]]
    """Title and PNG."""
    failures: list[str]
    """In words, the pictures that could not be drawn."""

    @property
    def ok(self) -> bool:
        """True when every figure of merit keeps its limits and every picture was drawn."""
        return all(figure.ok for figure in self.figures) and not self.failures


def execute(
    scenario: Scenario,
    folder: Path,
    command: str,
    *,
    resume: bool = False,
    progress: bool = True,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    tell: Tell = lambda trajectory, figures: None,
) -> Outcome:
    """Run and write everything. What was computed before a failure or Ctrl-C is kept.

    `tell` gets the figures as soon as they are known; plots and files take another second.
    """
    prepare(folder)
    checkpoint = folder / CHECKPOINT
    resume = resume and checkpoint.exists()
    moved = [] if resume else set_aside(folder)
    again = f"{command} --resume"
    try:
        trajectory = scenario.run(
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
            resume=resume,
            progress=progress,
        )
    except CheckpointError as error:
        put_back(moved)
        raise UserMistakeError(f"{error.what}; {_ADVICE[error.reason]}") from error
    except RunInterrupted as stopped:
        kept = save_partial(stopped.trajectory, folder)
        words = f"{stopped.what}; {kept}.\nGo on with:  {again}{earlier_result(folder)}"
        raise RunInterrupted(words, stopped.trajectory) from None
    except KeyboardInterrupt:  # before the first step
        put_back(moved)
        raise
    except DivergenceError as error:
        checkpoint.unlink(missing_ok=True)  # to go on from it would diverge again
        raise RunFailedError(
            f"{error.where}; what was computed before is {save_partial(error.trajectory, folder)}. "
            "Take a smaller timestep, or check that node's parameters and inputs."
            + earlier_result(folder)
        ) from error
    except MemoryError as error:
        raise RunFailedError(
            f"too little memory for this run: {error}. Record fewer fields (simulation.record) or "
            f"fewer steps (simulation.every){earlier_result(folder)}"
        ) from error
    except OSError as error:
        hint = f"Make room, then:  {again}" if checkpoint.exists() else "Make room, and start again"
        words = f"cannot write {checkpoint}: {reason(error)}.\n{hint}"
        raise RunFailedError(words + earlier_result(folder)) from error
    try:
        save(trajectory, folder / RESULT)  # first of all: nothing that follows can lose the run
        figures = scenario.figures(trajectory)
        tell(trajectory, figures)
        outcome = Outcome(trajectory, figures, *_plots(scenario, trajectory))
        _write(scenario, outcome, folder, command)
    except KeyboardInterrupt:
        words = f"stopped while results were written.\nGo on with:  {again}"
        raise RunInterrupted(words + earlier_result(folder), trajectory) from None
    except RunFailedError as error:
        words = f"{error}.\nThe run is kept in {checkpoint}. Make room, then:  {again}"
        raise RunFailedError(words + earlier_result(folder)) from error
    clean_up(folder)
    return outcome


def command_line(scenario: str, overrides: tuple[str, ...], folder: Path | None) -> str:
    """The command that gives this run."""
    words = ["mime", "run", scenario]
    for override in overrides:
        words += ["--set", override]
    if folder is not None:
        words += ["--out", str(folder)]
    return shlex.join(words)


def _plots(scenario: Scenario, trajectory: Trajectory) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Titles and pictures; and, in words, those that could not be drawn."""
    drawn: list[tuple[str, bytes]] = []
    failures: list[str] = []
    for index, plot in scenario.tables.plots.items():
        title = plot.title or f"plot {index + 1}"
        png = _picture(title, partial(draw_plot, scenario, plot, trajectory, title), failures)
        drawn += [] if png is None else [(title, png)]
    return drawn, failures


def _picture(title: str, draw: Callable[[], "Figure"], failures: list[str]) -> bytes | None:
    """A picture; None when it cannot be drawn, whatever the reason: the run is worth more."""
    try:
        return png_bytes(draw())
    except Exception as error:
        failures.append(shortened(f"picture {title!r} could not be drawn: {in_words(error)}", 300))
        return None


def _write(scenario: Scenario, outcome: Outcome, folder: Path, command: str) -> None:
    for index, (_, png) in enumerate(outcome.plots, 1):
        write_bytes(folder / f"plot_{index}.png", png)
    graph = _picture("graph", partial(draw_graph, scenario), outcome.failures)
    limits = outcome.trajectory.warnings
    report = write_report(
        scenario, outcome.figures, outcome.plots, graph, command, outcome.failures, limits
    )
    write_bytes(folder / REPORT, report.encode())
