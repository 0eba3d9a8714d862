"""The tables that `mime run` prints: figures of merit and recorded fields, with units."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:  # `mime list` needs a console, and does not wait for JAX
    from mime.running.trajectory import Trajectory
    from mime.scenarios.merits import FigureOfMerit


def wide_console() -> Console:
    """A console as wide as the terminal; in a file or a pipe wide enough for the tables.

    Text is text: titles and names come from files, and `[rpm]` or `:on:` in them is no markup.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = 140
    return console


def figures_table(figures: "Sequence[FigureOfMerit]") -> Table:
    """Figures of merit with their limits."""
    from mime.reporting.numbers import figure_cells

    table = Table(title="figures of merit", title_justify="left", box=None, pad_edge=False)
    for heading, side in (("figure", "left"), ("value", "right"), ("limits", "left"), ("", "left")):
        table.add_column(heading, justify="right" if side == "right" else "left")
    for figure in figures:
        verdict = figure.verdict
        loud = verdict in ("outside", "unfinished")
        table.add_row(*figure_cells(figure), verdict.upper() if loud else verdict)
    return table


def fields_table(trajectory: "Trajectory", never: Mapping[str, float] | None = None) -> Table:
    """Least, largest and last value of every recorded field; of a vector over its components.

    `never`: the value that says of a field that its event has not happened.
    """
    import numpy as np

    from mime.reporting.numbers import number

    table = Table(title="recorded", title_justify="left", box=None, pad_edge=False)
    table.add_column("field")
    for heading in ("least", "largest", "last"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    for node, fields in trajectory.fields.items():
        for field, values in fields.items():
            if not values.size:
                continue
            name, unit = f"{node}.{field}", trajectory.units[node][field] or "1"
            if never and name in never and np.all(values == never[name]):
                table.add_row(name, "", "", "never", "")
                continue
            last = number(values[-1], 4) if values.ndim == 1 else f"({values[0].size} components)"
            ends = number(values.min(), 4), number(values.max(), 4)
            table.add_row(name, *ends, last, unit)
    return table
