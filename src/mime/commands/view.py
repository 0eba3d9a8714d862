"""`mime view FILE`: a page to look at a robot or a study, or to watch a run."""

import os
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from mime.commands import OK, RunFailedError, UserMistakeError
from mime.commands.robots import AS_IT_SAYS, SUFFIXES, Robot, RobotOptions, read_robot
from mime.commands.run import AllowCode, Debug, Overrides

if TYPE_CHECKING:
    from mime.replay.page import Replay

_RESULTS = {".nc"}


def view(
    what: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="FILE",
            help="robot (URDF, MJCF, or model:NAME), scenario (file or bundled name), result.nc, "
            "or the folder of a study",
        ),
    ],
    set: Overrides = (),
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help="the page (NAME.html, here)")
    ] = None,
    no_open: Annotated[bool, tyro.conf.arg(help="write the page and show no browser")] = False,
    allow_code: AllowCode = False,
    robot: Robot = AS_IT_SAYS,
    debug: Debug = False,
) -> int:
    """Write a page to look at a robot or a study, or to watch a run, and open it in the browser.

    The page is one file that needs no network and no server. A robot alone has a slider for each
    joint; a scenario is run first; a result is replayed. Of a study's folder it is the report that
    `mime sweep` has left there; without it, one is made of the store.
    """
    del debug  # `main` looks for it
    if Path(what).is_dir():
        save, file = _study(Path(what), out)
    else:
        if robot.xacro or what.lower().endswith(SUFFIXES) or what.startswith("model:"):
            page = _robot(what, robot)
            name = Path(what.removeprefix("model:")).stem
        else:
            page, name = _page(what, set, allow_code)
        save, file = page.save, out or Path(f"{name}.html")
    try:
        save(file)
    except OSError as error:
        raise RunFailedError(f"cannot write {file}: {error.strerror or error}") from error
    print(f"page: {file}")
    if not no_open and not _opened(file):
        print("no browser was found: open the page by hand")
    return OK


def _page(what: str, overrides: tuple[str, ...], allow_code: bool) -> tuple["Replay", str]:
    if Path(what).suffix.lower() in _RESULTS:
        return _result(Path(what)), Path(what).stem
    from mime.replay.show import replay_scenario
    from mime.running.job import DivergenceError
    from mime.scenarios.bundled import find_scenario
    from mime.scenarios.scenario import load_scenario

    scenario = load_scenario(find_scenario(what), overrides, allow_code=allow_code)
    try:
        run = scenario.run(progress=True)
    except DivergenceError as error:
        raise RunFailedError(str(error.where)) from error
    return replay_scenario(scenario, run), scenario.name.strip(". ") or "unnamed"


def _study(folder: Path, out: Path | None) -> tuple[Callable[[Path], Path], Path]:
    """What writes the report of a study, and where; a store alone knows no replays and slopes."""
    from mime.commands.sweep import REPORT
    from mime.studies.result import open_study
    from mime.studies.store import StudyError

    if out is None and (folder / REPORT).exists():
        return Path, folder / REPORT  # nothing is left to write
    try:
        return open_study(folder, check=False).report, out or folder / REPORT
    except StudyError as error:
        raise UserMistakeError(str(error)) from error


def _robot(what: str, options: RobotOptions) -> "Replay":
    from mime.models import model_path
    from mime.replay.show import show_robot

    try:
        path = model_path(what.removeprefix("model:")) if what.startswith("model:") else Path(what)
        return show_robot(read_robot(path, options), None)
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, ImportError) as error:
        raise UserMistakeError(str(error)) from error


def _result(file: Path) -> "Replay":
    from mime.replay.show import replay_run
    from mime.running.trajectory import Trajectory

    try:
        run = Trajectory.load(file)
    except ValueError as error:
        raise UserMistakeError(str(error)) from error
    return replay_run(run, None, file.stem, None, None, 3000)


def _opened(file: Path) -> bool:
    """Whether a browser shows it; none is asked where there can be no window."""
    windows = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in windows):
        return False
    return webbrowser.open(file.resolve().as_uri())
