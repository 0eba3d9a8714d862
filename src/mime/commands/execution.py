"""One scenario run into one folder: result.nc, plots, report.html, and a checkpoint on the way."""

import dataclasses
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mime._text import shortened
from mime.commands import RunFailedError, UserMistakeError
from mime.commands.output import (
    CHECKPOINT,
    PARTIAL,
    REPORT,
    RESULT,
    RunFolder,
    earlier_result,
    open_folder,
    reason,
    save,
    save_partial,
    write_bytes,
)
from mime.reporting.graph_picture import draw_graph
from mime.reporting.html import png_bytes
from mime.reporting.plots import draw_plot
from mime.reporting.report import write_report
from mime.running.checkpoint import CheckpointError, Reason, read_header
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
    with open_folder(folder) as files:
        results = [RESULT, REPORT, *_plot_names(len(scenario.tables.plots))]
        if resume:  # it is read before it is replaced, and refused if it is another run's
            files.owned.setdefault(CHECKPOINT, None)
        files.refuse_foreign([*results, PARTIAL])
        files.claim([CHECKPOINT])
        resume = resume and (folder / CHECKPOINT).exists()
        moved = [] if resume else files.set_aside()
        again = f"{command} --resume"
        try:
            trajectory = scenario.run(
                checkpoint=folder / CHECKPOINT,
                checkpoint_seconds=checkpoint_seconds,
                resume=resume,
                progress=progress,
            )
        except (CheckpointError, KeyboardInterrupt, DivergenceError, MemoryError, OSError) as error:
            failure = _failure(error, files, moved, again)
            raise failure from (None if failure is error else error)
        try:
            files.claim(results)
            # First of all: nothing that follows can lose the run.
            _when_there_is_room(lambda: save(trajectory, folder / RESULT))
            figures = scenario.figures(trajectory)
            tell(trajectory, figures)
            outcome = Outcome(trajectory, figures, *_plots(scenario, trajectory))
            _write(scenario, outcome, folder, command)
        except KeyboardInterrupt:
            words = f"stopped while results were written.\nGo on with:  {again}"
            raise RunInterrupted(words + earlier_result(folder), trajectory) from None
        except (RunFailedError, UserMistakeError) as error:
            kept = _kept(folder / CHECKPOINT)
            words = f"{error}.\n{kept} Make room, then:  {again}"
            raise RunFailedError(words + earlier_result(folder)) from error
        files.clean_up()
        return outcome


def _failure(error: BaseException, files: RunFolder, moved: list[str], again: str) -> BaseException:
    """What to tell of a run that did not reach its end, once what there is of it is kept."""
    folder = files.folder
    checkpoint = folder / CHECKPOINT
    match error:
        case CheckpointError():
            files.put_back(moved)
            return UserMistakeError(f"{error.what}; {_ADVICE[error.reason]}")
        case RunInterrupted():
            kept = save_partial(error.trajectory, files)
            words = f"{error.what}; {kept}.\nGo on with:  {again}{earlier_result(folder)}"
            return RunInterrupted(words, error.trajectory)
        case DivergenceError():
            files.remove([CHECKPOINT])  # to go on from it would diverge again
            return RunFailedError(
                f"{error.where}; what was computed before is "
                f"{save_partial(error.trajectory, files)}. "
                "Take a smaller timestep, or check that node's parameters and inputs."
                + earlier_result(folder)
            )
        case MemoryError():
            return RunFailedError(
                f"too little memory for this run: {error}. Record fewer fields "
                f"(simulation.record) or fewer steps (simulation.every){earlier_result(folder)}"
            )
        case OSError():
            room = (
                f"Make room, then:  {again}"
                if checkpoint.exists()
                else "Make room, and start again"
            )
            words = f"cannot write {checkpoint}: {reason(error)}.\n{room}"
            return RunFailedError(words + earlier_result(folder))
    files.put_back(moved)  # Ctrl-C before the first step
    return error


def _kept(checkpoint: Path) -> str:
    """In words, how much of a finished run its checkpoint holds: the disk may have been full."""
    try:
        header = read_header(checkpoint)
    except CheckpointError as error:
        return f"The run is not kept: {error.what}."
    part = f" up to step {header['done']} of {header['total']}"
    return f"The run is kept in {checkpoint}{part if header['done'] < header['total'] else ''}."


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


def _replay(scenario: Scenario, outcome: Outcome) -> str | None:
    """The page to watch the run on; None where there is nothing to see."""
    from mime.replay.show import replay_scenario

    try:
        if not outcome.trajectory.drawing:
            return None
        return replay_scenario(scenario, outcome.trajectory).html
    except Exception as error:  # as of a picture: the run is worth more
        outcome.failures.append(shortened(f"no replay could be made: {in_words(error)}", 300))
        return None


def _plot_names(count: int) -> list[str]:
    return [f"plot_{index + 1}.png" for index in range(count)]


def _write(scenario: Scenario, outcome: Outcome, folder: Path, command: str) -> None:
    for name, (_, png) in zip(_plot_names(len(outcome.plots)), outcome.plots, strict=True):
        _when_there_is_room(partial(write_bytes, folder / name, png))
    graph = _picture("graph", partial(draw_graph, scenario), outcome.failures)
    replay = _replay(scenario, outcome)
    limits = outcome.trajectory.warnings
    report = write_report(
        scenario, outcome.figures, outcome.plots, graph, command, outcome.failures, limits, replay
    )
    _when_there_is_room(lambda: write_bytes(folder / REPORT, report.encode()))


def _when_there_is_room(write: Callable[[], None]) -> None:
    """Write; at a terminal wait for whoever makes room, and try again."""
    while True:
        try:
            return write()
        except RunFailedError as error:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            print(f"{error}. Make room and press Enter; Ctrl-C gives up.", file=sys.stderr)
            if not sys.stdin.readline():
                raise
