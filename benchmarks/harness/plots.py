"""Cost against something: every case with a place, one picture a plot."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Curves = dict[str, dict[float, float]]
_ALONE = ": MIME, on linear axes"


def draw(topic: str, entries: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write `bench_<topic>_<plot>.png` for each plot that the entries name."""
    plots: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, entry in entries.items():
        if "place" in entry:
            plots[entry["place"]["plot"]][name] = entry
    return [_draw(f"bench_{topic}_{plot}", chosen, folder) for plot, chosen in plots.items()]


def _draw(name: str, entries: Mapping[str, Any], folder: Path) -> Path:
    panels: dict[str, Curves] = defaultdict(lambda: defaultdict(dict))
    compile_time: Curves = defaultdict(dict)
    for entry in entries.values():
        place = entry["place"]
        panel = panels[place["panel"]]
        panel["MIME"][place["x"]] = entry["us"]
        compile_time[place["panel"]][place["x"]] = entry["first_call_s"]
        for peer, their in entry["theirs"].items():
            if "us" in their:
                panel[peer][place["x"]] = their["us"]
    x_label, unit = next((e["place"]["x_label"], e["unit"]) for e in entries.values())
    if any(entry["place"].get("linear") for entry in entries.values()):
        for title, curves in list(panels.items()):
            panels[f"{title}{_ALONE}"] = {"MIME": curves["MIME"]}
    columns = min(3, len(panels) + 1)
    rows = -(-(len(panels) + 1) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 3.4 * rows), layout="constrained", squeeze=False
    )
    axes = list(grid.flat)
    for axis, (title, curves) in zip(axes, panels.items(), strict=False):
        _curves(axis, curves, title, f"µs per {unit}")
    _curves(axes[len(panels)], compile_time, "first call of MIME, compilation included", "s")
    for axis in axes[: len(panels) + 1]:
        axis.set_xlabel(x_label)
    for axis in axes[len(panels) + 1 :]:
        axis.remove()
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
    return path


def _curves(axis: Any, curves: Curves, title: str, y_label: str) -> None:
    for label, points in curves.items():
        x, y = zip(*sorted(points.items()), strict=True)
        style = {"linewidth": 2.2, "marker": "o"} if label == "MIME" else {"marker": "s"}
        axis.plot(x, y, label=label, **style)
    if title.endswith(_ALONE):
        axis.set_xlim(0)
        axis.set_ylim(0)
    else:
        axis.set(xscale="log", yscale="log")
    axis.set_title(title, fontsize=10)
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=7)
