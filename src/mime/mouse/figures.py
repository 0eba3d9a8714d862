"""A mouse's run in pictures: its path, its wheels, what it saw, what it believes.

`RECORD` is what `run(record=...)` needs for them.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from mime.maze.belief import UNKNOWN, WALL, Belief
from mime.maze.drawing import draw
from mime.maze.grid import STEPS, Cell
from mime.maze.maze import Maze
from mime.mouse.navigator import DONE, RACE, RETURN, SEARCH, STUCK
from mime.running.trajectory import Trajectory

RECORD = {
    "body": [
        "pose_world",
        "body_velocity",
        "left_wheel_velocity",
        "right_wheel_velocity",
        "touching",
        "penetration",
    ],
    "brain": [
        "left_voltage",
        "right_voltage",
        "estimated_pose",
        "phase",
        "time_to_goal",
        "time_home",
        "race_time",
    ],
    "ranges": ["reading"],
}
PHASE_NAMES = {SEARCH: "search", RETURN: "return", RACE: "speed run", DONE: "done", STUCK: "stuck"}
SENSOR_ROWS = (
    ("front", (0,)),
    ("front sides", (1, 2)),
    ("look-ahead", (3, 4)),
    ("back sides", (5, 6)),
)
"""Indices into `SENSOR_POSES` of those that look alike to the left and to the right."""
_LEFT, _RIGHT, _AHEAD = "tab:blue", "tab:orange", "tab:green"
_SHADES = {SEARCH: "tab:blue", RETURN: "tab:green", RACE: "tab:red", STUCK: "black"}
_MOST_POINTS = 20_000


def draw_path(
    run: Trajectory, maze: Maze, axes: Any = None, phases: Sequence[int] = (SEARCH, RETURN, RACE)
) -> np.ndarray:
    """The way over the maze, coloured by speed, on one of `axes` per phase; returns the axes.

    Fields: `body.pose_world`, `body.body_velocity`, `brain.phase`, `brain.race_time`. All phases
    share one scale.
    """
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    if axes is None:
        size = 4.6 * len(phases), 5.95
        axes = plt.subplots(1, len(phases), figsize=size, layout="constrained")[1]
    axes = _as_many(axes, len(phases), "draw_path", "phase")
    x, y = run["body"]["pose_world"][:, :2].T
    speed, phase = np.abs(run["body"]["body_velocity"]), run["brain"]["phase"]
    norm = Normalize(0.0, max(float(speed.max(initial=0.0)), 0.1))
    for axis, which in zip(axes, phases, strict=True):
        draw(maze, axis, wall_colour="0.35")
        within = np.flatnonzero(phase == which)
        points = np.column_stack([x, y])[within]
        lines = LineCollection(
            list(np.stack([points[:-1], points[1:]], axis=1)),
            array=speed[within][1:],
            cmap="turbo",
            norm=norm,
            linewidths=2.6 if which == RACE else 1.5,
            capstyle="round",
            label="path",
        )
        axis.add_collection(lines)
        for end, marker, label in ((0, "o", "begins"), (-1, "s", "ends")):
            style = {"color": "black", "markeredgecolor": "white", "zorder": 5, "label": label}
            axis.plot(*points[[end] if len(points) else []].T, marker, **style)
        axis.set(xlabel="x [m]", ylabel="y [m]", title=_caption(run, within, which))
    shown = [c for c in axes[0].collections if c.get_label() in ("start", "goal")]
    below = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.12), "ncols": 4, "frameon": False}
    axes[0].legend(handles=[*shown, *axes[0].lines], fontsize=8, **below)
    bar = {"location": "bottom", "aspect": 60, "shrink": 0.6}
    scale = plt.cm.ScalarMappable(norm, "turbo")
    axes[0].figure.colorbar(scale, ax=list(axes), label="speed [m/s]", **bar)
    return axes


def draw_wheels(
    run: Trajectory, axes: Any = None, span: tuple[float, float] | None = None
) -> np.ndarray:
    """Voltages and speeds of the wheels against time, on two `axes`; returns the axes.

    `span`: from when to when [s]. Without axes a figure is made, with the whole run on the left and
    its speed run on the right. Fields: `brain.left_voltage`, `body.left_wheel_velocity`, the
    right ones too, and `brain.phase`.
    """
    if axes is None:
        return _whole_and_race(run, draw_wheels, 2, 5.0)
    axes = _as_many(axes, 2, "draw_wheels", "voltages and speeds")
    for side, colour in (("left", _LEFT), ("right", _RIGHT)):
        volts = run["brain"][f"{side}_voltage"]
        speed = run["body"][f"{side}_wheel_velocity"]
        for axis, values in zip(axes, (volts, speed), strict=True):
            _plot(axis, run.time, values, span, color=colour, label=side)
    axes[0].set_ylabel("motor voltage [V]")
    axes[1].set_ylabel("wheel speed [rad/s]")
    axes[0].legend(loc="upper left", ncols=2, fontsize=8)
    return _over_time(axes, run, span)


def draw_readings(
    run: Trajectory, axes: Any = None, span: tuple[float, float] | None = None
) -> np.ndarray:
    """Readings of the seven range sensors against time, on four `axes`; returns the axes.

    `span` and a figure of its own as in `draw_wheels`. Fields: `ranges.reading`, `brain.phase`.
    """
    readings = run["ranges"]["reading"]
    if readings.shape[1] != 7:
        raise ValueError(
            f"draw_readings: ranges.reading has {readings.shape[1]} sensors, expected the 7 of "
            "the mouse. Draw others with trajectory.plot('ranges.reading')"
        )
    if axes is None:
        return _whole_and_race(run, draw_readings, len(SENSOR_ROWS), 7.5)
    axes = _as_many(axes, len(SENSOR_ROWS), "draw_readings", "row of sensors")
    for axis, (name, sensors) in zip(axes, SENSOR_ROWS, strict=True):
        sides = [("ahead", _AHEAD)] if len(sensors) == 1 else [("left", _LEFT), ("right", _RIGHT)]
        for sensor, (side, colour) in zip(sensors, sides, strict=True):
            values = 1e3 * readings[:, sensor]
            _plot(axis, run.time, values, span, color=colour, label=side)
        axis.set(ylabel=f"{name} [mm]", ylim=(0.0, 1.05e3 * max(readings.max(initial=0), 0.01)))
    for axis in axes[:2]:
        axis.legend(loc="lower left", ncols=2, fontsize=8)
    return _over_time(axes, run, span)


def draw_belief(run: Trajectory, maze: Maze, axes: Any = None) -> Any:
    """The map as the mouse believes it at the end, and the way it chose to race; returns the axes.

    Solid: walls that it knows. Pale: walls that stand, but that it has not seen. Crosses: what it
    has wrong. Needs the run's `final_state`, or `brain.horizontal` and `brain.vertical` recorded.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    axes = plt.subplots(figsize=(6.4, 7.0), layout="constrained")[1] if axes is None else axes
    belief = final_belief(run)
    draw(maze, axes, wall_colour="0.85")
    draw(maze, axes, belief=belief, route=_raced_cells(run, maze), wall_colour="tab:red")
    size = maze.cell_size_m
    known = total = wrong = 0
    for believed, true, (dx, dy) in (
        (np.asarray(belief.horizontal)[1:-1], maze.horizontal[1:-1], (0.5, 1.0)),
        (np.asarray(belief.vertical)[:, 1:-1], maze.vertical[:, 1:-1], (1.0, 0.5)),
    ):
        mistaken = (believed != UNKNOWN) & ((believed == WALL) != true)
        rows, cols = np.nonzero(mistaken)
        if len(rows):
            at = (cols + dx) * size, (rows + dy) * size
            axes.plot(*at, "x", color="magenta", markeredgewidth=2.5, label="wrong")
        known, total = known + int(np.sum(believed != UNKNOWN)), total + believed.size
        wrong += len(rows)
    shown = [*axes.lines, *(c for c in axes.collections if c.get_label() == "unknown")]
    walls = [Patch(color="tab:red", label="wall"), Patch(color="0.85", label="wall not seen")]
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.08), "ncols": 5, "frameon": False}
    axes.legend(handles=walls + shown, fontsize=8, **below)
    axes.set(
        xlabel="x [m]",
        ylabel="y [m]",
        title=f"what the mouse believes: {known} of {total} inner edges known, {wrong} wrong",
    )
    return axes


def final_belief(run: Trajectory) -> Belief:
    """What the mouse knew of the walls at the end of a run."""
    names = Belief._fields
    if run.final_state is not None:
        return Belief(*(run.final_state.of("brain")[name] for name in names))
    if all(name in run["brain"] for name in names):
        return Belief(*(jnp.asarray(run["brain"][name][-1]) for name in names))
    raise ValueError(
        "this run holds no belief: it was read from a file, and brain.horizontal and "
        "brain.vertical were not recorded. Record them, or draw before saving"
    )


def phase_span(run: Trajectory, phase: int) -> tuple[float, float] | None:
    """The first and last time [s] at which a run was in a phase; None if it never was."""
    times = run.time[run["brain"]["phase"] == phase]
    return (float(times[0]), float(times[-1])) if len(times) else None


def _raced_cells(run: Trajectory, maze: Maze) -> list[Cell] | None:
    """The cells of the speed run, where the state tells them."""
    if run.final_state is None:
        return None
    brain = run.final_state.of("brain")
    cells = [maze.start]
    for heading in np.asarray(brain["route"])[: int(brain["moves"])].tolist():
        (row, col), (down, right) = cells[-1], STEPS[heading]
        cells.append((row + down, col + right))
    return cells if len(cells) > 1 else None


def _caption(run: Trajectory, within: Shaped[np.ndarray, " samples"], phase: int) -> str:
    if not len(within):
        return f"{PHASE_NAMES[phase]}: none"
    steps = np.diff(run["body"]["pose_world"][within, :2], axis=0)
    length = float(np.hypot(*steps.T).sum())
    duration = float(run.time[within[-1]] - run.time[within[0]])
    if phase == RACE:  # its clock starts with the first move, after the turn on the spot
        duration = float(run["brain"]["race_time"][-1]) or duration
    end = ", not finished" if run["brain"]["phase"][-1] == phase else ""
    return f"{PHASE_NAMES[phase]}: {length:.1f} m in {duration:.1f} s{end}"


def _whole_and_race(run: Trajectory, drawing: Any, rows: int, height: float) -> np.ndarray:
    """A figure of two columns: the whole run, and its speed run."""
    import matplotlib.pyplot as plt

    race = phase_span(run, RACE)
    columns = 1 if race is None else 2
    _, axes = plt.subplots(
        rows,
        columns,
        figsize=(6.0 * columns, height),
        sharex="col",
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    drawing(run, axes[:, 0])
    if race is not None:
        drawing(run, axes[:, 1], race)
        for axis, title in zip(axes[0], ("the whole run", "the speed run"), strict=True):
            axis.set_title(title, fontsize=10, pad=16)
        for axis in axes[:, 1]:
            axis.set_ylabel("")
            if axis.get_legend():
                axis.get_legend().remove()
    return axes


def _plot(axis: Any, time: Any, values: Any, span: Any, **style: Any) -> None:
    low, high = (-np.inf, np.inf) if span is None else span
    within = np.flatnonzero((time >= low) & (time <= high))
    within = within[:: max(1, len(within) // _MOST_POINTS)]
    width = 0.7 if span is None else 1.1
    axis.plot(time[within], values[within], linewidth=width, **style)


def _over_time(axes: np.ndarray, run: Trajectory, span: tuple[float, float] | None) -> np.ndarray:
    """Label the time axis and shade the phases."""
    awake = run.time[run["brain"]["phase"] < DONE]
    low, high = span or (0.0, float(awake[-1]) + 1.0 if len(awake) else float(run.time[-1]))
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.set_xlim(low, high)
        for phase, colour in _SHADES.items():
            if shaded := phase_span(run, phase):
                axis.axvspan(*shaded, color=colour, alpha=0.07, linewidth=0)
    for phase in _SHADES:
        shaded = phase_span(run, phase)
        if span is None and shaded:
            place = 0.5 * sum(shaded), 1.0
            across = axes[0].get_xaxis_transform()
            style = {"ha": "center", "va": "bottom", "fontsize": 8, "color": "0.3"}
            axes[0].text(*place, PHASE_NAMES[phase], transform=across, **style)
    axes[-1].set_xlabel("time [s]")
    return axes


def _as_many(axes: Any, count: int, who: str, each: str) -> np.ndarray:
    axes = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(axes) != count:
        raise ValueError(f"{who} needs {count} axes, one per {each}; got {len(axes)}")
    return axes
