"""The one way up: nodes, graphs, results and robots are drawn where they are, by rooms above them.

`trajectory.replay()` is a method of a result, and pages are made in `replay`, which knows results
and may not be known by them. So a method asks here for the function that draws a kind of picture of
its type. MIME's own are named in the table, and load when they are first asked for; another package
adds or replaces one by the entry point `mime.drawing`, named `Trajectory.replay`.
"""

import importlib
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

GROUP = "mime.drawing"
_OWN = {
    "Trajectory.replay": "mime.replay.show:replay_run",
    "Trajectory.animate": "mime.replay.show:animate_run",
    "Trajectory.plot": "mime.reporting.plots:plot_run",
    "KinematicTree.show": "mime.replay.show:show_robot",
    "Node.html": "mime.reporting.notebook:node_html",
    "GraphManager.html": "mime.reporting.notebook:graph_html",
    "Simulation.html": "mime.reporting.notebook:simulation_html",
    "Trajectory.html": "mime.reporting.notebook:trajectory_html",
    "KinematicTree.html": "mime.reporting.notebook:tree_html",
    "Datasheet.html": "mime.reporting.notebook:datasheet_html",
    "StudyResult.report": "mime.studies.report.page:write_report",
    "Scenario.html": "mime.reporting.notebook:scenario_html",
}


@cache
def drawer(name: str) -> Callable[..., Any]:
    """The function that draws `Type.picture`; `Type.html` is what a notebook shows of it."""
    for entry in entry_points(group=GROUP, name=name):
        return entry.load()
    module, _, function = _OWN[name].partition(":")
    return getattr(importlib.import_module(module), function)
