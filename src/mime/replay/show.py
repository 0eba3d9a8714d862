"""What `trajectory.replay`, `trajectory.animate` and `tree.show` do."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mime.core.arguments import path as path_of
from mime.core.arguments import real, text, texts, whole
from mime.core.problem import InputError
from mime.replay.content import MOST_MEMBERS, page_content
from mime.replay.curves import plots_of_fields
from mime.replay.page import Replay
from mime.running.trajectory import Trajectory
from mime.scenarios.scenario import Scenario

if TYPE_CHECKING:  # robots and films are not part of every run
    from mime.control.kinematics.tree import KinematicTree

Path = str | os.PathLike[str]


def replay_run(
    run: Trajectory,
    path: Path | None,
    title: str,
    fields: Sequence[str] | None,
    members: Sequence[int] | None,
    samples: int,
) -> Replay:
    """The page of a run, written when there is a path."""
    samples = whole("samples", samples, 2)
    _check_members(run, members)
    words = text("title", title) if title else "Replay"
    try:
        plots = None if fields is None else plots_of_fields(run, texts("fields", fields))
    except (KeyError, IndexError, ValueError) as error:
        raise InputError(f"fields: {error.args[0]}", place=("fields",)) from error
    replay = Replay(words, lambda: page_content(run, words, "", plots, samples, members))
    if path is not None:
        replay.save(path)
    return replay


def replay_scenario(scenario: Scenario, run: Trajectory) -> Replay:
    """The page of a scenario's run, with the curves that it asks for."""
    from mime.replay.curves import plots_of_scenario

    plots = plots_of_scenario(run, scenario.tables.plots.values()) or None
    about = scenario.tables.description
    return Replay(scenario.title, lambda: page_content(run, scenario.title, about, plots))


def animate_run(run: Trajectory, path: Path, fps: float, speed: float) -> None:
    """A film of a run, as a GIF or, by ffmpeg, as an MP4."""
    from mime.replay.still import write_gif, write_mp4

    file = path_of("path", path)
    writers = {".gif": write_gif, ".mp4": write_mp4}
    if file.suffix.lower() not in writers:
        raise InputError(f"path must end in .gif or .mp4, got {file.name!r}", place=("path",))
    if not run.drawing:
        raise InputError("there is nothing to draw in this run: no node of it has a drawing")
    write = writers[file.suffix.lower()]
    write(run, file, real("fps", fps, "1/s", above=0), real("speed", speed, above=0))


def show_robot(tree: "KinematicTree", path: Path | None) -> Replay:
    """The page of a robot alone, written when there is a path."""
    from mime.replay.robot import robot_content

    page = Replay(tree.name, lambda: robot_content(tree))
    if path is not None:
        page.save(path)
    return page


def _check_members(run: Trajectory, members: Sequence[int] | None) -> None:
    if members is None:
        return
    if run.batch_size is None:
        raise InputError(
            "members: this is one run and no batch; leave them out", place=("members",)
        )
    if not 1 <= len(members) <= MOST_MEMBERS:
        words = f"members must be 1 to {MOST_MEMBERS} of the batch, got {len(members)}"
        raise InputError(words, place=("members",))
    for member in members:
        whole("members", member, 0, most=run.batch_size - 1)
