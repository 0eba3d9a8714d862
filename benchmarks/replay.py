"""Pages to watch a run on: how large, how long to write, how long to load.

A UR5 with its meshes swings for 10 s, recorded at 30 instants a second; the mouse's page is that of
its bundled scenario, 27 s. Writing is from the result in memory to the file on the disk, the meshes
read and packed in it, in processor time, the best of several; the first time in a process is with
the import of trimesh.
Loading is from the start of the page's script to its first picture, in the installed Chromium with
WebGL in software.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import robots
from harness import Figure

from mime import GraphManager, RobotArmNode, Trajectory, load_scenario
from mime.replay.show import replay_run, replay_scenario

REPEATS = 5
MOST_MB, MOST_SECONDS = 2.0, 3.0


def cases(threads: int) -> Iterator[Figure]:
    """Size, time to write, time to load."""
    yield Figure("UR5, 10 s: write, first", lambda: ur5()[1], "s", MOST_SECONDS)
    yield Figure("UR5, 10 s: write", lambda: ur5()[2], "s", MOST_SECONDS, quick=True)
    yield Figure("UR5, 10 s: size", lambda: megabytes(ur5()[0]), "MB", MOST_MB, quick=True)
    yield Figure("mouse, 27 s: size", lambda: megabytes(mouse()), "MB")
    if browser() is not None:
        yield Figure("UR5, 10 s: load", lambda: load_seconds(ur5()[0]), "s")
        yield Figure("mouse, 27 s: load", lambda: load_seconds(mouse()), "s")


@cache
def folder() -> tempfile.TemporaryDirectory:
    """For as long as the process lives."""
    return tempfile.TemporaryDirectory(prefix="mime_replay_")


def megabytes(file: Path) -> float:
    return file.stat().st_size / 1e6


@cache
def mouse() -> Path:
    scenario, file = load_scenario("mouse_in_maze"), Path(folder().name, "mouse.html")
    return replay_scenario(scenario, scenario.run()).save(file)


def swing() -> Trajectory:
    """10 s of a UR5 that falls from a pose, at 30 samples a second."""
    graph = GraphManager()
    path = robots.example("ur5_robot.urdf")  # the others are without their meshes
    graph.add_node(RobotArmNode("arm", 1 / 300, path, end_effector_link_name="tool0"))
    start = {"arm": {"joint_angles": [0.0, -1.0, 1.0, 0.0, 0.5, 0.0]}}
    return graph.compile().run(10.0, every=10, initial_state=start, progress=False, watch=False)


@cache
def ur5() -> tuple[Path, float, float]:
    """Its page, and the processor's seconds to write it, for the first time and at best."""
    run, file, seconds = swing(), Path(folder().name, "ur5.html"), []
    for _ in range(REPEATS):
        begin = time.process_time()
        replay_run(run, file, "UR5", None, None, 3000)
        seconds.append(time.process_time() - begin)
    return file, seconds[0], min(seconds)


def browser() -> str | None:
    """The installed one, where playwright can drive it."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return None
    names = [os.environ.get("CHROME") or "chromium", "chromium-browser", "google-chrome"]
    return next(filter(None, map(shutil.which, names)), None)


def load_seconds(file: Path) -> float:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from browsers import Opened
    from browsers import browser as running

    seconds = []
    with running() as chromium:
        for _ in range(3):
            with Opened(chromium, file) as opened:
                seconds.append(opened.ready().evaluate("mimeReplay.loadSeconds"))
    return min(seconds)
