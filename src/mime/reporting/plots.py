"""The plots that a scenario asks for: fields over time or over another field, units on all axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mime.core.trajectory import Trajectory
from mime.scenarios.merits import pick, unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_LINES = 12
_MOST_POINTS = 20_000


def draw_fields(
    trajectory: Trajectory, fields: Sequence[str], title: str = "", against: str | None = None
) -> "Figure":
    """One figure: neighbours of the same unit share an axis."""
    from matplotlib.figure import Figure

    groups: list[list[str]] = []
    for name in fields:
        if groups and unit_of(trajectory, groups[-1][0]) == unit_of(trajectory, name):
            groups[-1].append(name)
        else:
            groups.append([name])
    stride = max(1, len(trajectory.time) // _MOST_POINTS)
    height = 1.0 + 2.0 * len(groups) + (1.5 if against else 0.0)
    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    x = trajectory.time if against is None else pick(trajectory, against)
    for axis, group in zip(axes, groups, strict=True):
        _draw(axis, trajectory, group, x[::stride], stride)
        axis.grid(alpha=0.3)
    if against is None:
        axes[-1].set_xlabel("time [s]")
    else:
        unit = unit_of(trajectory, against)
        axes[-1].set_xlabel(f"{against} [{unit or '1'}]")
        if all(unit_of(trajectory, name) == unit for name in fields):
            for axis in axes:
                axis.set_aspect("equal", adjustable="datalim")
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _draw(axis: Any, trajectory: Trajectory, names: list[str], x: np.ndarray, stride: int) -> None:
    count = 0
    for name in names:
        values = pick(trajectory, name)[::stride]
        lines = values.reshape(len(values), -1)
        for index in range(lines.shape[1]):
            label = name if lines.shape[1] == 1 else f"{name}[{index}]"
            axis.plot(x, lines[:, index], linewidth=1.3, label=label)
            count += 1
    unit = unit_of(trajectory, names[0]) or "1"
    short = names[0].rpartition(".")[2] if len(names) == 1 else ""
    axis.set_ylabel(f"{short}\n[{unit}]".strip(), fontsize=9)
    if 1 < count <= _MOST_LINES:
        axis.legend(fontsize=7, ncols=2 if count > 4 else 1)
    elif len(names) == 1:
        axis.set_title(names[0], fontsize=8, loc="left")
