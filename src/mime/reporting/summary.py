"""The tables that `mime run` prints: figures of merit and recorded fields, with units."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:  # `mime list` needs a console, and does not wait for JAX
    from mime.running.trajectory import Trajectory
    from mime.scenarios.merits import FigureOfMerit


def wide_console() -> Console:
    """A console as wide as the terminal; in a file or a pipe wide enough for the tables."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def figures_table(figures: "Sequence[FigureOfMerit]") -> Table:
    """Figures of merit with their limits."""
    from mime.reporting.numbers import with_unit

    table = Table(title="figures of merit", title_justify="left", box=None, pad_edge=False)
    for heading, side in (("figure", "left"), ("value", "right"), ("limits", "left"), ("", "left")):
        table.add_column(heading, justify="right" if side == "right" else "left")
    for figure in figures:
        verdict = "" if not figure.limits else "ok" if figure.ok else "OUTSIDE"
        table.add_row(figure.name, with_unit(figure.value, figure.unit), figure.limits, verdict)
    return table


def fields_table(trajectory: "Trajectory") -> Table:
    """Least, largest and last value of every recorded field; of a vector over its components."""
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
            unit = trajectory.units[node][field] or "1"
            last = number(values[-1], 4) if values.ndim == 1 else f"({values[0].size} components)"
            ends = number(values.min(), 4), number(values.max(), 4)
            table.add_row(f"{node}.{field}", *ends, last, unit)
    return table
