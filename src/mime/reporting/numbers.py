"""Numbers for people: sensible digits, with units."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mime.scenarios.merits import FigureOfMerit


def number(value: Any, digits: int = 5) -> str:
    """`83.333`, `1.2e-05`, `true`; a long array is cut short."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item() + 0.0:.{digits}g}"  # no minus zero
    if array.size > 12:
        return f"array of {' x '.join(map(str, array.shape))}"
    return f"[{', '.join(number(entry, digits) for entry in array)}]"


def with_unit(value: Any, unit: str, digits: int = 5) -> str:
    """`83.333 rad/s`"""
    return f"{number(value, digits)} {unit}".strip()


def figure_cells(figure: "FigureOfMerit") -> tuple[str, str, str]:
    """Name, value and limits of a figure of merit in words."""
    value = with_unit(figure.value, figure.unit) if figure.reached else "not reached"
    return f"{figure.name}{figure.window}", value, figure.limits
