"""Numbers for people: sensible digits, with units."""

from typing import TYPE_CHECKING, Any

from mime.core.printing import number as number

if TYPE_CHECKING:
    from mime.scenarios.merits import FigureOfMerit


def with_unit(value: Any, unit: str, digits: int = 5) -> str:
    """`83.333 rad/s`"""
    return f"{number(value, digits)} {unit}".strip()


def figure_cells(figure: "FigureOfMerit") -> tuple[str, str, str]:
    """Name, value and limits of a figure of merit in words."""
    value = with_unit(figure.value, figure.unit) if figure.reached else "not reached"
    return f"{figure.name}{figure.window}", value, figure.limits
