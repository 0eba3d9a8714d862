"""One scenario run into one folder: result.nc, plots, report.html, and a checkpoint on the way."""

import dataclasses
import shlex
from pathlib import Path

from mime.commands.errors import RunFailedError, UserMistakeError
from mime.core.checkpoint import CheckpointError
from mime.core.files import write_atomically
from mime.core.run import DivergenceError, RunInterrupted
from mime.core.trajectory import Trajectory
from mime.reporting.graph_picture import draw_graph
from mime.reporting.plots import draw_fields
from mime.reporting.report import png_bytes, write_report
from mime.scenarios.merits import Figure
from mime.scenarios.scenario import Scenario

RESULT, PARTIAL, CHECKPOINT, REPORT = (
    "result.nc",
    "result.partial.nc",
    "checkpoint.npz",
    "report.html",
)
CHECKPOINT_SECONDS = 10.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    trajectory: Trajectory
    figures: list[Figure]
    plots: list[tuple[str, bytes]]
    """Title and PNG."""

    @property
    def ok(self) -> bool:
        """True when every figure of merit keeps its limits."""
        return all(figure.ok for figure in self.figures)


def prepare(folder: Path) -> None:
    """Make the folder, and see that it can be written to before hours are spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / ".writable", _touch)
        (folder / ".writable").unlink()
        for left in folder.glob(".*.part"):  # of a run that was killed while it wrote
            left.unlink(missing_ok=True)
    except OSError as error:
        raise UserMistakeError(f"cannot write to {folder}: {_reason(error)}") from error


def _touch(part: Path) -> None:
    part.write_bytes(b"mime")


def execute(
    scenario: Scenario,
    folder: Path,
    command: str,
    *,
    resume: bool = False,
    progress: bool = True,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Outcome:
    """Run and write everything. What was computed before a failure or Ctrl-C is kept."""
    prepare(folder)
    checkpoint = folder / CHECKPOINT
    resume = resume and checkpoint.exists()
    try:
        trajectory = scenario.run(
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
            resume=resume,
            progress=progress,
        )
    except CheckpointError as error:
        words = str(error).replace("pass resume=True", "add --resume")
        raise UserMistakeError(words) from error
    except RunInterrupted as stopped:
        _save(stopped.trajectory, folder / PARTIAL)
        made = str(stopped).partition(";")[0]
        message = f"{made}; kept in {folder / PARTIAL}.\nGo on with:  {command} --resume"
        raise RunInterrupted(message, stopped.trajectory) from None
    except DivergenceError as error:
        checkpoint.unlink(missing_ok=True)  # to go on from it would diverge again
        _save(error.trajectory, folder / PARTIAL)
        raise RunFailedError(
            f"{error.where}; what was computed before is in {folder / PARTIAL}. Take a smaller "
            "timestep, or check that node's parameters and inputs."
        ) from error
    except OSError as error:
        raise RunFailedError(f"cannot write {checkpoint}: {_reason(error)}") from error
    try:
        outcome = Outcome(trajectory, scenario.figures(trajectory), _plots(scenario, trajectory))
        _write(scenario, outcome, folder, command)
    except KeyboardInterrupt:
        message = f"stopped while results were written.\nGo on with:  {command} --resume"
        raise RunInterrupted(message, trajectory) from None
    checkpoint.unlink(missing_ok=True)
    (folder / PARTIAL).unlink(missing_ok=True)
    return outcome


def command_line(scenario: str, overrides: tuple[str, ...], folder: Path | None) -> str:
    """The command that gives this run."""
    words = ["mime", "run", scenario]
    for override in overrides:
        words += ["--set", override]
    if folder is not None:
        words += ["--out", str(folder)]
    return shlex.join(words)


def _plots(scenario: Scenario, trajectory: Trajectory) -> list[tuple[str, bytes]]:
    drawn = []
    for index, plot in enumerate(scenario.tables.plots, 1):
        title = plot.title or f"plot {index}"
        figure = draw_fields(trajectory, plot.fields, title, plot.against)
        drawn.append((title, png_bytes(figure)))
    return drawn


def _write(scenario: Scenario, outcome: Outcome, folder: Path, command: str) -> None:
    _save(outcome.trajectory, folder / RESULT)
    for index, (_, png) in enumerate(outcome.plots, 1):
        write_bytes(folder / f"plot_{index}.png", png)
    graph = png_bytes(draw_graph(scenario))
    report = write_report(scenario, outcome.figures, outcome.plots, graph, command)
    write_bytes(folder / REPORT, report.encode())


def _save(trajectory: Trajectory, path: Path) -> None:
    try:
        trajectory.save(path)
    except (OSError, RuntimeError) as error:  # HDF5 tells of a full disk as either
        raise RunFailedError(f"cannot write {path}: {_reason(error)}") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""

    def write(part: Path) -> None:
        part.write_bytes(content)

    try:
        write_atomically(path, write)
    except OSError as error:
        raise RunFailedError(f"cannot write {path}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What the operating system says, in a line."""
    return (
        getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
    )
